/* What queries do, without their compiling: now and then one of the tables in force is read with
 * its receipt in one snapshot (protocol.md 7). What is found broken is told as the query half tells
 * it. */
#include "services/gateway/port.h"
#include "tests/sim/trio_world.h"

enum { READ_EVERY_MS = 1500, READ_MS = 30000 };

struct reader {
    struct gw_worker *w;
    bool closing;
    struct loop_timer timer;
    struct gw_package *p; /* counted, while a read is in work */
    const struct gw_binding *bound;
    struct gw_conn_get conn;
    struct arena arena;
    struct wh_op op;
    struct wh_query query;
    struct wh_receipt receipt;
    struct wh_sink sink;
    uint64_t n_rows;
};

static struct reader *reader_of(struct gw_worker *w)
{
    return (struct reader *)(void *)w->query_half;
}

static void again(struct reader *r)
{
    struct world *w = world_now();
    if (r->closing) {
        struct gw_worker *worker = r->w;
        worker->query_half = NULL;
        free(r);
        worker->closed(worker);
        return;
    }
    loop_timer_start(&r->timer, sim_time_between(&w->time, MS(1), MS(READ_EVERY_MS)));
}

static void read_end(struct reader *r)
{
    if (r->conn.wh) {
        gw_conn_put(r->w, r->conn.wh);
    }
    arena_fini(&r->arena);
    gw_package_unref(r->p);
    r->p = NULL;
    again(r);
}

static void on_read(struct wh_op *op)
{
    struct reader *r = op->data;
    struct world *w = world_now();
    w->n_reads++;
    if (op->rc == 0) {
        must(r->receipt.ok && r->n_rows == op->facts.rows);
        w->n_baked++;
    } else if (op->rc == ERR_STORE_MOVED || op->rc == ERR_WH_MISSING) {
        w->n_broken++;
        gw_tell_broken(r->w, r->p, r->bound,
                       op->rc == ERR_WH_MISSING ? "table_missing" : "binding_superseded");
    }
    read_end(r);
}

static int on_row(void *data, const struct slice *cells)
{
    struct reader *r = data;
    must(cells[0].len);
    r->n_rows++;
    return 0;
}

static void on_conn(struct gw_conn_get *q)
{
    struct reader *r = q->data;
    if (q->rc) {
        read_end(r);
        return;
    }
    r->receipt = (struct wh_receipt){.name = r->bound->name, .build_id = r->bound->build_id};
    r->query =
        (struct wh_query){.sql = arena_printf(&r->arena, "SELECT * FROM %s", r->bound->physical),
                          .baked = &r->receipt,
                          .n_baked = 1,
                          .read_only = true};
    r->sink = (struct wh_sink){.data = r, .on_row = on_row};
    r->n_rows = 0;
    r->op = (struct wh_op){
        .wh = q->wh, .arena = &r->arena, .timeout = MS(READ_MS), .data = r, .done = on_read};
    q->wh->ops->query(&r->op, &r->query, &r->sink);
}

static void on_timer(struct loop_timer *t)
{
    struct reader *r = t->data;
    struct gw_package *list[TRIO_UNITS];
    size_t n = gw_shelf_list(r->w, NULL, list, ARRAY_LEN(list));
    struct gw_package *p = n ? list[sim_time_below(&world_now()->time, n)] : NULL;
    if (!p || p->n_bindings == 0) {
        again(r);
        return;
    }
    r->p = gw_package_ref(p);
    r->bound = &p->bindings[sim_time_below(&world_now()->time, p->n_bindings)];
    arena_init(&r->arena);
    r->conn = (struct gw_conn_get){
        .environment = p->environment, .name = r->bound->connection, .done = on_conn, .data = r};
    gw_conn_get_start(r->w, &r->conn);
}

void reader_open(struct gw_worker *w)
{
    struct reader *r = xcalloc(1, sizeof(*r));
    r->w = w;
    w->query_half = (struct gw_part *)(void *)r;
    loop_timer_init(&r->timer, w->loop, on_timer, r);
    again(r);
}

void reader_close(struct gw_worker *w)
{
    struct reader *r = reader_of(w);
    r->closing = true;
    if (!r->p) {
        loop_timer_stop(&r->timer);
        again(r);
    }
}
