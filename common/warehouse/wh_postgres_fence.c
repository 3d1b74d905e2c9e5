/* RESOLVE and DROP of protocol.md 3: raising the claim, taking a published table away. */
#include "common/warehouse/wh_postgres.h"

#include <inttypes.h>

struct wh_table wh_pg_table_copy(struct arena *a, const struct wh_table *t)
{
    const char *schema = t->name.schema ? t->name.schema : "";
    return (struct wh_table){
        .name = {.schema = arena_strdup(a, schema), .table = arena_strdup(a, t->name.table)},
        .target_key = arena_strdup(a, t->target_key ? t->target_key : t->name.table),
        .owner = t->owner,
        .generation = arena_strdup(a, t->generation),
        .build_id = arena_strdup(a, t->build_id),
    };
}

bool wh_pg_is_lock_error(const struct err *e)
{
    return strcmp(e->sqlstate, "55P03") == 0 || strcmp(e->sqlstate, "40P01") == 0;
}

struct ms wh_pg_lock_pause(void)
{
    uint16_t r = 0;
    random_bytes(&r, sizeof r);
    return MS(50 + r % 451);
}

void wh_pg_resolve_add(struct wh_pg_op *o, const struct wh_table *t, uint64_t token)
{
    char owner[UUID_TEXT];
    uuid_format(&t->owner, owner);
    wh_pg_add(o,
              "INSERT INTO %s AS f (target, owner, claim) VALUES (%s, '%s', %" PRIu64 ") ON "
              "CONFLICT (target) DO UPDATE SET claim = greatest(f.claim, excluded.claim) "
              "RETURNING " WH_PG_FENCE_COLUMNS ", (f.relid = to_regclass(%s)::oid) IS TRUE",
              wh_pg_fence(o, t->name.schema), wh_pg_literal(o, t->target_key), owner, token,
              wh_pg_literal(o, wh_pg_quoted(o, &t->name)));
}

void wh_pg_resolve_read(struct wh_pg_op *o, size_t stmt, struct wh_fence *out)
{
    wh_pg_read_fence(o, wh_pg_result(o, stmt), 0, 0, out);
}

/* ---- resolve ---- */

enum { RESOLVE_RAISE, RESOLVE_MAKE, RESOLVE_END };

struct op_resolve {
    struct wh_pg_op o;
    struct wh_table table;
    uint64_t token;
};

static struct op_resolve *resolve_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_resolve, o);
}

static enum flow_next step_raise(struct flow *f)
{
    struct op_resolve *r = resolve_of(f);
    if (f->entered) {
        r->o.stage = "resolving";
        wh_pg_resolve_add(&r->o, &r->table, r->token);
        return wh_pg_run(&r->o);
    }
    if (f->rc == ERR_WH_MISSING && !f->cancel_asked && strcmp(f->err.sqlstate, "42P01") == 0) {
        return flow_goto(f, RESOLVE_MAKE);
    }
    if (wh_pg_failed(&r->o, RESOLVE_END)) {
        return FLOW_AGAIN;
    }
    wh_pg_resolve_read(&r->o, 0, &r->o.op->facts.fence);
    return flow_goto(f, RESOLVE_END);
}

/* No fence table yet: without one a stale swap could still come and make it. */
static enum flow_next step_make(struct flow *f)
{
    struct op_resolve *r = resolve_of(f);
    if (f->entered) {
        wh_pg_add_params(&r->o, wh_pg_create_fence(&r->o, r->table.name.schema), 0, NULL);
        return wh_pg_run(&r->o);
    }
    bool made_by_other = f->rc != 0 && !f->cancel_asked && wh_pg_is_exists_error(&f->err);
    if (!made_by_other && wh_pg_failed(&r->o, RESOLVE_END)) {
        return FLOW_AGAIN;
    }
    return flow_goto(f, RESOLVE_RAISE);
}

static const struct flow_step resolve_steps[] = {
    {.name = "RAISE",
     .run = step_raise,
     .to = FLOW_TO(RESOLVE_MAKE) | FLOW_TO(RESOLVE_END),
     .cancel = wh_pg_cancel_wait,
     .says = "raise the claim, read what is published"},
    {.name = "MAKE",
     .run = step_make,
     .to = FLOW_TO(RESOLVE_RAISE) | FLOW_TO(RESOLVE_END),
     .cancel = wh_pg_cancel_wait,
     .says = "make the fence table"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type resolve_flow = {"wh_resolve", resolve_steps,
                                              ARRAY_LEN(resolve_steps)};

void wh_pg_resolve(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    struct op_resolve *r = wh_pg_op_start(op, sizeof *r, &resolve_flow, MS(30000));
    r->table = wh_pg_table_copy(op->arena, t);
    r->token = token;
}

/* ---- drop ---- */

enum { DROP_SESSION, DROP_CLAIM, DROP_BACK_OFF, DROP_PAUSE, DROP_COMMIT, DROP_MAKE, DROP_END };

struct op_drop {
    struct wh_pg_op o;
    struct wh_table table;
    uint64_t token;
    bool drops; /* the table is the one that was published */
    struct ms locks_until;
};

static struct op_drop *drop_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_drop, o);
}

static enum flow_next step_drop_session(struct flow *f)
{
    struct op_drop *d = drop_of(f);
    if (f->entered) {
        return wh_pg_take_session(&d->o);
    }
    return wh_pg_failed(&d->o, DROP_END) ? FLOW_AGAIN : flow_goto(f, DROP_CLAIM);
}

/* The claim is raised as by a resolve, so that a stale swap cannot bring the table back. */
static void add_claim(struct op_drop *d)
{
    wh_pg_add(&d->o, "BEGIN ISOLATION LEVEL READ COMMITTED");
    wh_pg_add(&d->o, "SET LOCAL lock_timeout = '200ms'");
    wh_pg_resolve_add(&d->o, &d->table, d->token);
}

static bool is_ours(const struct op_drop *d, const struct wh_fence *fence)
{
    return fence->published > 0 && fence->still_there && uuid_eq(&fence->owner, &d->table.owner) &&
           (!d->table.generation ||
            (fence->generation && strcmp(fence->generation, d->table.generation) == 0));
}

static enum flow_next step_drop_claim(struct flow *f)
{
    struct op_drop *d = drop_of(f);
    if (f->entered) {
        d->o.stage = "dropping";
        add_claim(d);
        return wh_pg_run(&d->o);
    }
    if (f->rc != 0 && !f->cancel_asked && wh_pg_is_lock_error(&f->err)) {
        return flow_goto(f, DROP_BACK_OFF);
    }
    if (f->rc == ERR_WH_MISSING && !f->cancel_asked) {
        return flow_goto(f, DROP_MAKE);
    }
    if (wh_pg_failed(&d->o, DROP_END)) {
        return FLOW_AGAIN;
    }
    struct wh_fence *fence = &d->o.op->facts.fence;
    wh_pg_resolve_read(&d->o, 2, fence);
    if (fence->claim > d->token) {
        return wh_pg_fail(&d->o, DROP_END, ERR_FENCED,
                          "a newer claim than %" PRIu64 " holds %s: it is not dropped", d->token,
                          wh_pg_quoted(&d->o, &d->table.name));
    }
    d->drops = is_ours(d, fence);
    return flow_goto(f, DROP_COMMIT);
}

static enum flow_next step_drop_back_off(struct flow *f)
{
    struct op_drop *d = drop_of(f);
    if (f->entered) {
        wh_pg_add(&d->o, "ROLLBACK");
        return wh_pg_run(&d->o);
    }
    if (wh_pg_failed(&d->o, DROP_END)) {
        return FLOW_AGAIN;
    }
    if (!ms_before(ms_add(loop_now(d->o.pg->loop), MS(500)), d->locks_until)) {
        return wh_pg_fail(&d->o, DROP_END, ERR_TARGET_BUSY,
                          "%s stayed locked by other sessions and was not dropped",
                          wh_pg_quoted(&d->o, &d->table.name));
    }
    return flow_goto(f, DROP_PAUSE);
}

static enum flow_next step_drop_pause(struct flow *f)
{
    struct op_drop *d = drop_of(f);
    if (f->entered) {
        return wh_pg_sleep(&d->o, wh_pg_lock_pause());
    }
    return wh_pg_failed(&d->o, DROP_END) ? FLOW_AGAIN : flow_goto(f, DROP_CLAIM);
}

/* A table that was replaced by hand, by another installation or by a newer generation is left
 * alone. */
static void add_commit(struct op_drop *d)
{
    const struct wh_fence *fence = &d->o.op->facts.fence;
    const char *where = wh_pg_literal(&d->o, d->table.target_key);
    if (d->drops) {
        wh_pg_add(&d->o, "DROP TABLE %s", wh_pg_quoted(&d->o, &d->table.name));
    }
    bool is_gone = uuid_eq(&fence->owner, &d->table.owner) && !fence->still_there;
    if (d->drops || is_gone) {
        wh_pg_add(&d->o, "UPDATE %s SET published = 0, relid = NULL WHERE target = %s",
                  wh_pg_fence(&d->o, d->table.name.schema), where);
    }
    wh_pg_add(&d->o, "COMMIT");
}

static enum flow_next step_drop_commit(struct flow *f)
{
    struct op_drop *d = drop_of(f);
    if (f->entered) {
        add_commit(d);
        return wh_pg_run(&d->o);
    }
    if (f->rc != 0 && !f->cancel_asked && wh_pg_is_lock_error(&f->err)) {
        return flow_goto(f, DROP_BACK_OFF);
    }
    if (strcmp(f->err.sqlstate, "2BP01") == 0) {
        return wh_pg_fail(&d->o, DROP_END, ERR_WH_DEPENDENTS,
                          "%s is not dropped because other objects depend on it: %s",
                          wh_pg_quoted(&d->o, &d->table.name), wh_pg_cause(&d->o));
    }
    if (f->rc != 0) {
        f->final_rc = f->rc; /* unknown or not: asked again with the same token it does the same */
        return flow_goto(f, DROP_END);
    }
    d->o.op->facts.rows = d->drops;
    return flow_goto(f, DROP_END);
}

/* No fence table, or not even its schema. */
static enum flow_next step_drop_make(struct flow *f)
{
    struct op_drop *d = drop_of(f);
    if (f->entered) {
        wh_pg_add(&d->o, "ROLLBACK");
        wh_pg_add_params(&d->o, wh_pg_create_fence(&d->o, d->table.name.schema), 0, NULL);
        return wh_pg_run(&d->o);
    }
    if (f->rc == ERR_WH_MISSING && !f->cancel_asked) {
        return flow_goto(f, DROP_END); /* the schema is gone, and the table with it */
    }
    bool made_by_other = f->rc != 0 && !f->cancel_asked && wh_pg_is_exists_error(&f->err);
    if (!made_by_other && wh_pg_failed(&d->o, DROP_END)) {
        return FLOW_AGAIN;
    }
    return flow_goto(f, DROP_CLAIM);
}

#define OR_END(step) (FLOW_TO(step) | FLOW_TO(DROP_END))
static const struct flow_step drop_steps[] = {
    {.name = "SESSION",
     .run = step_drop_session,
     .to = OR_END(DROP_CLAIM),
     .cancel = wh_pg_cancel_wait,
     .says = "take a session"},
    {.name = "CLAIM",
     .run = step_drop_claim,
     .to = OR_END(DROP_BACK_OFF) | FLOW_TO(DROP_COMMIT) | FLOW_TO(DROP_MAKE),
     .cancel = wh_pg_cancel_wait,
     .says = "raise the claim in a transaction"},
    {.name = "BACK_OFF",
     .run = step_drop_back_off,
     .to = OR_END(DROP_PAUSE),
     .cancel = wh_pg_cancel_wait,
     .says = "lock not had within 200 ms: roll back"},
    {.name = "PAUSE",
     .run = step_drop_pause,
     .to = OR_END(DROP_CLAIM),
     .cancel = wh_pg_cancel_wait,
     .says = "let readers through"},
    {.name = "COMMIT",
     .run = step_drop_commit,
     .to = OR_END(DROP_BACK_OFF),
     .shielded = true,
     .says = "drop what was published, note it, commit"},
    {.name = "MAKE",
     .run = step_drop_make,
     .to = OR_END(DROP_CLAIM),
     .cancel = wh_pg_cancel_wait,
     .says = "make the fence table"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type drop_flow = {"wh_drop", drop_steps, ARRAY_LEN(drop_steps)};

void wh_pg_drop(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    struct op_drop *d = wh_pg_op_start(op, sizeof *d, &drop_flow, MS(WH_PG_LOCKS_MS));
    d->locks_until = d->o.until;
    d->o.until = ms_add(d->o.until, MS(WH_PG_LOCKS_GRACE_MS));
    d->table = wh_pg_table_copy(op->arena, t);
    d->token = token;
}
