/* Served queries: what they read is fixed when names are bound to files, between two swaps of the
 * views (protocol.md 7); then rows are streamed. */
#include "common/duck/duck_type.h"
#include "common/warehouse/wh_duckdb_internal.h"

/* ---- on the thread ---- */

/* Waits until no swap is under way. */
static uint64_t even_sequence(struct duck_package *p, struct duck_bound **bound)
{
    pthread_mutex_lock(&p->lock);
    while (p->sequence % 2 != 0) {
        pthread_cond_wait(&p->even, &p->lock);
    }
    uint64_t sequence = p->sequence;
    *bound = p->bound;
    if (*bound) {
        atomic_fetch_add(&(*bound)->refs, 1);
    }
    pthread_mutex_unlock(&p->lock);
    return sequence;
}

static bool is_still(struct duck_package *p, uint64_t sequence)
{
    pthread_mutex_lock(&p->lock);
    bool same = p->sequence == sequence;
    pthread_mutex_unlock(&p->lock);
    return same;
}

static bool out_of_reach(const struct duck_op *o, size_t i)
{
    const struct duck_package *p = o->package;
    struct err ignored;
    return !p->root || generation_root_is(p->root, &p->installation, &o->roots[i], &ignored) < 0;
}

static int check_receipts(struct duck_op *o, const struct duck_bound *bound, struct err *e)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct wh_table *t = &o->tables[i];
        const struct duck_bound_item *b = bound ? duck_bound_find(bound, t->name.table) : NULL;
        if (!b) {
            o->out_of_reach = (bound && bound->lacks_root) || out_of_reach(o, i);
            return err_set(e, ERR_WH_MISSING, "connection '%s': \"%s\" is not bound",
                           o->package->name, t->name.table);
        }
        if (strcmp(b->build_id, t->build_id) != 0) {
            return err_set(e, ERR_STORE_MOVED,
                           "connection '%s': \"%s\" no longer holds the result that the query was "
                           "compiled against",
                           o->package->name, t->name.table);
        }
        int rc = duck_bound_check(o->package, b, e);
        if (rc < 0) {
            o->out_of_reach = out_of_reach(o, i);
            return rc;
        }
    }
    return 0;
}

/* Until names were bound with no swap in between. */
static int open_query(struct duck_op *o, struct duck_conn *conn, struct duck_query **out,
                      struct err *e)
{
    const struct duck_query_ask ask = {
        .sql = o->sql, .prepare_as = o->prepare_as, .select_only = o->read_only};
    for (;;) {
        struct duck_bound *bound;
        uint64_t sequence = even_sequence(o->package, &bound);
        int rc = check_receipts(o, bound, e);
        if (rc == 0) {
            rc = duck_query_open(conn, &ask, out, e);
        }
        if (is_still(o->package, sequence)) {
            o->read_under = bound;
            return rc;
        }
        if (rc == 0) {
            duck_query_close(*out);
        }
        duck_bound_unref(bound);
        rc = duck_job_stopped(&o->job, e);
        if (rc < 0) {
            return rc;
        }
    }
}

static void read_columns(struct duck_op *o, const struct duck_query *q)
{
    struct wh_columns *cols = &o->facts.columns;
    cols->n = duck_query_n_columns(q);
    cols->items = arena_zalloc(&o->scratch, (cols->n + 1) * sizeof(*cols->items));
    for (size_t i = 0; i < cols->n; i++) {
        auto_buf struct buf type = {0};
        duck_type_sql(duck_query_column_type(q, i), &type);
        cols->items[i] = (struct wh_column){.name = duck_op_text(o, duck_query_column_name(q, i)),
                                            .data_type = duck_op_text(o, buf_str(&type)),
                                            .nullable = true};
    }
}

static int send_pages(struct duck_op *o, struct duck_query *q, bool *sent, struct err *e)
{
    enum duck_form form = o->json_rows ? DUCK_FORM_JSON : DUCK_FORM_TEXT;
    for (;;) {
        struct duck_page *page;
        int rc = duck_query_next(q, form, &page, e);
        if (rc < 0 || !page) {
            return rc;
        }
        *sent = true;
        rc = duck_job_push(&o->job, page, e);
        if (rc < 0) {
            return rc;
        }
    }
}

static int run_query(struct duck_op *o, struct duck_conn *conn, bool *sent, struct err *e)
{
    struct duck_query *q;
    int rc = open_query(o, conn, &q, e);
    if (rc < 0) {
        return rc;
    }
    read_columns(o, q);
    rc = duck_query_begin(q, e);
    if (rc == 0) {
        rc = send_pages(o, q, sent, e);
    }
    duck_query_close(q);
    return rc;
}

/* Whatever made it fail is out of the way now. DuckDB itself reads a server's tables anew when a
 * statement names a column that it does not know. */
static bool is_mended(struct duck_job *job, struct duck_conn *conn, const struct err *e)
{
    struct err ignored;
    if (e->code == ERR_QUERY_MEMORY) {
        return duck_job_more_memory(job, conn);
    }
    return duck_is_of_old_tables(e) && duck_exec(conn, "CALL pg_clear_cache()", &ignored) == 0;
}

static int work_query(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct duck_op *o = duck_op_of(job);
    bool sent = false;
    int rc = run_query(o, conn, &sent, e);
    if (rc < 0 && !sent && is_mended(job, conn, e)) {
        duck_bound_unref(o->read_under);
        o->read_under = NULL;
        rc = run_query(o, conn, &sent, e);
    }
    return rc;
}

/* ---- on the loop ---- */

static void fill_receipts(struct duck_op *o)
{
    const struct duck_bound *bound = o->read_under;
    o->query->epoch = bound ? bound->epoch : 0;
    for (size_t i = 0; i < o->query->n_baked; i++) {
        struct wh_receipt *r = &o->query->baked[i];
        r->out_of_reach = o->out_of_reach;
        const struct duck_bound_item *b = bound ? duck_bound_find(bound, r->name.table) : NULL;
        if (!b) {
            continue;
        }
        r->generation = arena_strdup(o->op->arena, b->generation);
        r->published = b->token;
        r->data_as_of_us = b->data_as_of_us;
        struct err ignored;
        r->ok = strcmp(b->build_id, r->build_id) == 0 &&
                (o->job.rc == 0 || duck_bound_check(o->package, b, &ignored) == 0);
    }
}

static int send_columns(struct duck_op *o)
{
    if (o->columns_sent) {
        return 0;
    }
    o->columns_sent = true;
    fill_receipts(o);
    return o->sink->on_columns ? o->sink->on_columns(o->sink->data, &o->facts.columns) : 0;
}

static int on_page(struct duck_job *job, struct duck_page *page)
{
    struct duck_op *o = duck_op_of(job);
    int rc = send_columns(o);
    size_t n = o->json_rows ? 1 : o->facts.columns.n;
    auto_free struct slice *cells = xcalloc(n + 1, sizeof(*cells));
    for (size_t i = 0; rc == 0 && i < duck_page_rows(page); i++) {
        duck_page_cells(page, i, cells);
        rc = o->sink->on_row(o->sink->data, cells);
        o->op->facts.rows += rc == 0;
    }
    return rc;
}

static void before_done(struct duck_op *o)
{
    if (o->job.rc == 0) {
        int rc = send_columns(o);
        if (rc < 0) {
            o->job.rc = err_set(&o->job.err, rc, "connection '%s': the reader of the rows stopped",
                                o->package->name);
        }
    } else if (!o->columns_sent) {
        fill_receipts(o);
    }
    o->facts.rows = o->op->facts.rows;
}

void duck_wh_query(struct wh_op *op, struct wh_query *q, struct wh_sink *sink)
{
    struct duck_op *o = duck_op_new(op, "querying", work_query);
    must(sink->on_row);
    o->query = q;
    o->sink = sink;
    o->sql = duck_op_text(o, q->sql);
    o->prepare_as = duck_op_text(o, q->prepare_as);
    o->json_rows = q->json_rows;
    o->read_only = q->read_only;
    o->n = q->n_baked;
    o->tables = arena_zalloc(&o->scratch, (q->n_baked + 1) * sizeof(*o->tables));
    o->roots = arena_zalloc(&o->scratch, (q->n_baked + 1) * sizeof(*o->roots));
    for (size_t i = 0; i < q->n_baked; i++) {
        o->roots[i] = q->baked[i].root;
        o->tables[i] = (struct wh_table){.name.table = duck_op_text(o, q->baked[i].name.table),
                                         .build_id = duck_op_text(o, q->baked[i].build_id)};
        q->baked[i].ok = false;
    }
    o->before_done = before_done;
    o->job.on_page = on_page;
    duck_op_go(o, false, MS(0));
}
