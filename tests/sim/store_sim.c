/* store.h over rows in memory: commits strictly in order, each some time before it is done and some time
 * before its answer is there; leadership by waiting. What it cannot do in this world, it says. */
#include "services/planner/store/store.h"
#include "tests/sim/trio_world.h"

#include <stdio.h>

enum { TAKEOVER_LEAST_MS = 1000, TAKEOVER_MOST_MS = 6000 };

struct item { /* a commit, or the read of the whole coordinator */
    struct list link;
    struct store_op *op;
    const struct rows *rows;
    struct coord *coord;
    struct coord_now now;
};
struct read { /* anything else */
    struct list link;
    struct store *s;
    struct store_op *op;
    struct loop_timer timer;
    int (*fill)(struct read *r);
    struct store_run_filter filter;
    uint64_t id;
    struct sha256 sha256;
    const void *in;
    void *out;
    size_t *n;
};
struct store {
    struct proc *p;
    struct store_events ev;
    struct list queue; /* of struct item */
    struct list reads; /* of struct read */
    struct loop_timer step, leader;
    struct loop_task end;
    bool leading, closing, lost, applied, stepping;
    void (*closed)(void *data);
    void *closed_data;
};

/* ---- leadership ---- */
static struct ms some_delay(struct store *s)
{
    return sim_time_between(&s->p->w->time, MS(0), s->p->w->faults.store_most);
}

static void on_leader(struct loop_timer *t)
{
    struct store *s = t->data;
    s->leading = true;
    s->ev.on_state(s->ev.data, true, "");
    s->ev.on_leader(s->ev.data, ++s->p->w->term);
}

static void on_end(struct loop_task *t);
static void on_step(struct loop_timer *t);

struct store *store_open(struct loop *l, const struct store_settings *set,
                         const struct store_events *ev)
{
    struct store *s = xcalloc(1, sizeof(*s));
    (void)set;
    s->p = proc_now();
    s->p->store = s;
    s->ev = *ev;
    list_init(&s->queue);
    list_init(&s->reads);
    loop_timer_init(&s->step, l, on_step, s);
    loop_timer_init(&s->leader, l, on_leader, s);
    loop_task_init(&s->end, on_end, s);
    bool first = s->p->n_starts == 1; /* later ones wait until the old one's row has stood still */
    struct ms wait = first ? MS(10)
                           : sim_time_between(&s->p->w->time, MS(TAKEOVER_LEAST_MS),
                                              MS(TAKEOVER_MOST_MS));
    loop_timer_start(&s->leader, wait);
    return s;
}

const struct uuid *store_installation(const struct store *s)
{
    return &s->p->w->installation;
}

uint64_t store_config_epoch(const struct store *s)
{
    (void)s;
    return 1;
}

void store_set_pack(struct store *s, store_pack_fn pack, void *data)
{
    (void)s;
    (void)data;
    must(pack);
}

/* ---- the queue ---- */
static void end_item(struct store *s, int rc, const char *why)
{
    struct item *it = list_entry(list_take_head(&s->queue), struct item, link);
    struct store_op *op = it->op;
    free(it);
    op->rc = rc ? err_set(&op->err, rc, "run store: %s", why) : 0;
    op->done(op);
}

static void kick(struct store *s)
{
    if (!s->stepping && !list_empty(&s->queue)) {
        s->stepping = true;
        s->applied = false;
        loop_timer_start(&s->step, some_delay(s));
    }
}

/* A commit whose answer is bad: done or not, its planner must not go on. */
static void lose(struct store *s)
{
    s->lost = true;
    s->leading = false;
    while (!list_empty(&s->queue)) {
        end_item(s, ERR_STORE, "the connection was lost");
    }
    s->ev.on_lost(s->ev.data, ERR_STORE, "the connection was lost");
}

static void load(struct item *it, struct world *w)
{
    memory_store_load(w->rows, it->coord, it->now);
    struct map_iter at = {0};
    for (const struct row_run *r; memory_run_next(&at, w->rows, &r);) {
        if (!run_state_active(r->state) && memory_unit(w->rows, r->unit)) {
            coord_load_run(it->coord, r); /* ended ones too, as the run store gives them */
        }
    }
}

static void apply(struct store *s, const struct item *it)
{
    struct proc *before = proc_enter(NULL);
    const char *wrong = memory_store_apply(s->p->w->rows, it->rows);
    proc_leave(before);
    if (wrong) {
        trio_fail("the run store refuses: %s", wrong);
    }
}

static void on_step(struct loop_timer *t)
{
    struct store *s = t->data;
    struct world *w = s->p->w;
    struct item *it = list_entry(s->queue.next, struct item, link);
    bool loses = !s->applied && it->rows && sim_time_chance(&w->time, w->faults.store_lose);
    if (!s->applied && it->rows && (!loses || sim_time_chance(&w->time, 500))) {
        apply(s, it);
    }
    if (loses) {
        lose(s);
        return;
    }
    if (!s->applied) {
        s->applied = true;
        loop_timer_start(&s->step, some_delay(s));
        return;
    }
    if (it->coord) {
        load(it, w);
    }
    s->stepping = false;
    end_item(s, 0, NULL);
    kick(s);
}

/* Refused ones end on the next turn too. */
static void on_end(struct loop_task *t)
{
    struct store *s = t->data;
    while (!list_empty(&s->queue)) {
        end_item(s, s->closing ? ERR_SHUTDOWN : ERR_STORE_LEADER, "not the leader");
    }
    while (s->closing && !list_empty(&s->reads)) {
        struct read *r = list_entry(list_take_head(&s->reads), struct read, link);
        struct store_op *op = r->op;
        loop_timer_stop(&r->timer);
        free(r);
        op->rc = err_set(&op->err, ERR_SHUTDOWN, "run store: shutting down");
        op->done(op);
    }
    if (s->closing && s->closed) {
        void (*closed)(void *) = s->closed;
        s->closed = NULL;
        closed(s->closed_data);
    }
}

static struct item *add(struct store *s, struct store_op *op)
{
    struct item *it = xcalloc(1, sizeof(*it));
    it->op = op;
    err_clear(&op->err);
    list_add_tail(&s->queue, &it->link);
    if (!s->leading || s->closing || s->lost) {
        loop_defer(s->p->loop, &s->end);
    } else {
        kick(s);
    }
    return it;
}

void store_commit(struct store *s, struct store_op *op, const struct rows *rows)
{
    add(s, op)->rows = rows;
}

void store_load_coord(struct store *s, struct store_op *op, struct coord *c, struct coord_now now)
{
    struct item *it = add(s, op);
    it->coord = c;
    it->now = now;
}

void store_close(struct store *s, void (*done)(void *data), void *data)
{
    s->closing = true;
    s->closed = done;
    s->closed_data = data;
    loop_timer_stop(&s->step);
    loop_timer_stop(&s->leader);
    loop_defer(s->p->loop, &s->end);
}

void store_free(struct store *s)
{
    must(list_empty(&s->queue) && list_empty(&s->reads));
    loop_timer_stop(&s->step);
    loop_timer_stop(&s->leader);
    loop_task_cancel(&s->end);
    s->p->store = NULL;
    free(s);
}

bool store_sim_idle(const struct proc *p)
{
    return p->store && p->store->leading && list_empty(&p->store->queue);
}

void store_sim_crash(struct proc *p)
{
    p->store = NULL; /* what was not applied never will be: a new term shuts it out */
}

/* ---- reads ---- */
static void on_read(struct loop_timer *t)
{
    struct read *r = t->data;
    struct store_op *op = r->op;
    list_del(&r->link);
    op->rc = r->fill(r);
    free(r);
    op->done(op);
}

static struct read *read_new(struct store *s, struct store_op *op, int (*fill)(struct read *))
{
    struct read *r = xcalloc(1, sizeof(*r));
    r->s = s;
    r->op = op;
    r->fill = fill;
    err_clear(&op->err);
    list_add_tail(&s->reads, &r->link);
    loop_timer_init(&r->timer, s->p->loop, on_read, r);
    loop_timer_start(&r->timer, some_delay(s));
    return r;
}

static bool run_fits(const struct row_run *row, const struct store_run_filter *f)
{
    return (!f->unit || row->unit == f->unit) && (!f->id || strcmp(row->id, f->id) == 0);
}

static int fill_runs(struct read *r)
{
    struct world *w = r->s->p->w;
    struct store_run_rec **out = r->out;
    size_t n = 0;
    struct map_iter it = {0};
    for (const struct row_run *row; memory_run_next(&it, w->rows, &row);) {
        n += run_fits(row, &r->filter);
    }
    *out = arena_zalloc(r->op->arena, (n + 1) * sizeof(**out));
    *r->n = 0;
    it = (struct map_iter){0};
    for (const struct row_run *row; memory_run_next(&it, w->rows, &row);) {
        const struct trio_unit *u = package_unit(w, row->unit);
        if (run_fits(row, &r->filter)) {
            (*out)[(*r->n)++] = (struct store_run_rec){.r = *row,
                                                       .environment = TRIO_ENVIRONMENT,
                                                       .package = u->name,
                                                       .environment_id = 1};
        }
    }
    return 0;
}

void store_runs(struct store *s, struct store_op *op, const struct store_run_filter *f,
                struct store_run_rec **out, size_t *n)
{
    struct read *r = read_new(s, op, fill_runs);
    r->filter = *f;
    r->out = out;
    r->n = n;
}

static int fill_environments(struct read *r)
{
    struct store_environment **out = r->out;
    *out = arena_zalloc(r->op->arena, sizeof(**out));
    (*out)[0] = (struct store_environment){.id = 1, .name = TRIO_ENVIRONMENT};
    *r->n = 1;
    return 0;
}

void store_environments(struct store *s, struct store_op *op, struct store_environment **out,
                        size_t *n)
{
    struct read *r = read_new(s, op, fill_environments);
    r->out = out;
    r->n = n;
}

static int fill_connections(struct read *r)
{
    static const char config[] = "{\"name\":\"" TRIO_CONNECTION "\",\"type\":\"postgres\","
                                 "\"postgresConnection\":{\"host\":\"h\",\"password\":\"pw\"}}";
    struct store_connection **out = r->out;
    uint8_t key[32];
    must(hex_decode(slice_of(TRIO_KEY), key, sizeof(key)) == 0);
    *out = arena_zalloc(r->op->arena, sizeof(**out));
    (*out)[0] = (struct store_connection){.id = 1,
                                          .environment = 1,
                                          .epoch = 1,
                                          .name = TRIO_CONNECTION,
                                          .type = "postgres",
                                          .public_json = "{}",
                                          .digest = "digest"};
    auto_buf struct buf sealed = {0};
    crypto_seal(key, (*out)[0].nonce, slice_of(config), &sealed);
    (*out)[0].sealed = slice_make(arena_slice(r->op->arena, buf_slice(&sealed)), sealed.len);
    *r->n = 1;
    return 0;
}

void store_connections(struct store *s, struct store_op *op, uint64_t environment,
                       struct store_connection **out, size_t *n)
{
    (void)environment;
    struct read *r = read_new(s, op, fill_connections);
    r->out = out;
    r->n = n;
}

static int fill_units(struct read *r)
{
    struct world *w = r->s->p->w;
    struct store_unit **out = r->out;
    *out = arena_zalloc(r->op->arena, TRIO_UNITS * sizeof(**out));
    *r->n = 0;
    for (size_t i = 0; i < w->n_units; i++) {
        const struct row_unit *row = memory_unit(w->rows, w->units[i].id);
        if (row) {
            (*out)[(*r->n)++] = (struct store_unit){.id = row->id,
                                                    .environment = 1,
                                                    .load = row->load,
                                                    .epoch = row->epoch,
                                                    .environment_name = TRIO_ENVIRONMENT,
                                                    .name = w->units[i].name,
                                                    .reload_emptied = row->reload_emptied};
        }
    }
    return 0;
}

void store_units(struct store *s, struct store_op *op, struct store_unit **out, size_t *n)
{
    struct read *r = read_new(s, op, fill_units);
    r->out = out;
    r->n = n;
}

/* ---- loads ---- */
static struct slice model_text(struct arena *a, const struct trio_unit *u, unsigned version)
{
    return slice_of(arena_printf(a, "// %s, version %u\n", u->name, version));
}

static int fill_load(struct read *r)
{
    struct arena *a = r->op->arena;
    struct store_load *out = r->out;
    const struct trio_load *l = package_load(r->s->p->w, r->id);
    if (!l) {
        return err_set(&r->op->err, ERR_NOT_FOUND, "no such load");
    }
    const struct trio_unit *u = package_unit(r->s->p->w, l->unit);
    struct slice text = model_text(a, u, l->version);
    struct slice loaded = package_loaded(a, u, l->version);
    *out = (struct store_load){.id = l->id,
                               .unit = l->unit,
                               .version = sha256_of(text.p, text.len),
                               .compiler_version = "0.0.1",
                               .manifest_json = "{\"name\":\"p\"}",
                               .package_json = "{}",
                               .plan_json = "null",
                               .default_connection = "duckdb",
                               .loaded_packed = loaded.p,
                               .loaded_len = loaded.len,
                               .n_files = 1};
    out->files = arena_zalloc(a, sizeof(*out->files));
    out->files[0] = (struct store_file){.path = TRIO_MODEL,
                                        .content = text,
                                        .bytes = text.len,
                                        .sha256 = sha256_of(text.p, text.len)};
    return 0;
}

void store_get_load(struct store *s, struct store_op *op, uint64_t id, bool with_content,
                    struct store_load *out)
{
    (void)with_content;
    struct read *r = read_new(s, op, fill_load);
    r->id = id;
    r->out = out;
}

static int fill_file(struct read *r)
{
    struct world *w = r->s->p->w;
    for (size_t i = 0; i < w->n_loads; i++) {
        struct slice text = model_text(r->op->arena, package_unit(w, w->loads[i].unit),
                                       w->loads[i].version);
        struct sha256 id = sha256_of(text.p, text.len);
        if (memcmp(id.b, r->sha256.b, sizeof(id.b)) == 0) {
            *(struct slice *)r->out = text;
            return 0;
        }
    }
    return err_set(&r->op->err, ERR_NOT_FOUND, "no such file");
}

void store_get_file(struct store *s, struct store_op *op, const struct sha256 *id,
                    struct slice *out)
{
    struct read *r = read_new(s, op, fill_file);
    r->sha256 = *id;
    r->out = out;
}

static int fill_put_unit(struct read *r)
{
    const struct store_unit *in = r->in;
    const struct trio_unit *u = package_named(r->s->p->w, in->name, strlen(in->name));
    must(u);
    *(uint64_t *)r->out = u->id;
    return 0;
}

void store_put_unit(struct store *s, struct store_op *op, const struct store_unit *u,
                    uint64_t *out_id)
{
    struct read *r = read_new(s, op, fill_put_unit);
    r->in = u;
    r->out = out_id;
}

static int fill_put_load(struct read *r)
{
    struct world *w = r->s->p->w;
    const struct store_load *in = r->in;
    struct trio_unit *u = package_unit(w, in->unit);
    struct arena a;
    arena_init(&a);
    for (unsigned v = 0; v <= u->version; v++) {
        struct slice loaded = package_loaded(&a, u, v);
        if (slice_eq(loaded, slice_make(in->loaded_packed, in->loaded_len))) {
            *(uint64_t *)r->out = package_load_add(w, u, v)->id;
        }
    }
    arena_fini(&a);
    return 0;
}

void store_put_load(struct store *s, struct store_op *op, const struct store_load *l,
                    uint64_t *out_id)
{
    struct read *r = read_new(s, op, fill_put_load);
    r->in = l;
    r->out = out_id;
}

static int fill_nothing(struct read *r)
{
    if (r->n) {
        *r->n = 0;
    }
    return 0;
}

void store_unit_error(struct store *s, struct store_op *op, uint64_t unit, const char *load_error,
                      const char *stale_error)
{
    (void)unit;
    (void)load_error;
    (void)stale_error;
    (void)read_new(s, op, fill_nothing);
}

void store_events_open(struct store *s, struct store_op *op, struct store_event **out, size_t *n)
{
    (void)out; /* nobody publishes by webhook here */
    read_new(s, op, fill_nothing)->n = n;
}

void store_prune(struct store *s, struct store_op *op)
{
    (void)read_new(s, op, fill_nothing);
}
