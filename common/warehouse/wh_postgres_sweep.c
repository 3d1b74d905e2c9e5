/* Staging tables that nobody needs any more: named ones, and orphans by the age of their token. */
#include "common/warehouse/wh_postgres.h"

#include <inttypes.h>

/* ---- discard ---- */

enum { DISCARD_DROP, DISCARD_END };

struct op_discard {
    struct wh_pg_op o;
    const char *schema;
    const uint64_t *tokens;
    size_t n;
};

static struct op_discard *discard_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_discard, o);
}

static enum flow_next step_discard(struct flow *f)
{
    struct op_discard *d = discard_of(f);
    if (f->entered && d->n > 0) {
        d->o.stage = "dropping staging tables";
        for (size_t i = 0; i < d->n; i++) {
            wh_pg_add(&d->o, "DROP TABLE IF EXISTS %s",
                      wh_pg_staging(&d->o, d->schema, d->tokens[i]));
        }
        return wh_pg_run(&d->o);
    }
    return d->n > 0 && wh_pg_failed(&d->o, DISCARD_END) ? FLOW_AGAIN : flow_goto(f, DISCARD_END);
}

static const struct flow_step discard_steps[] = {
    {.name = "DROP",
     .run = step_discard,
     .to = FLOW_TO(DISCARD_END),
     .cancel = wh_pg_cancel_wait,
     .says = "drop the staging tables of the tokens"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type discard_flow = {"wh_discard", discard_steps,
                                              ARRAY_LEN(discard_steps)};

void wh_pg_discard(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens, size_t n)
{
    struct op_discard *d = wh_pg_op_start(op, sizeof *d, &discard_flow, MS(60000));
    d->schema = arena_strdup(op->arena, t->name.schema ? t->name.schema : "");
    d->tokens = arena_dup(op->arena, tokens, n * sizeof *tokens);
    d->n = n;
}

/* ---- sweep ---- */

enum { SWEEP_LIST, SWEEP_DROP, SWEEP_END };

struct op_sweep {
    struct wh_pg_op o;
    const char **schemas;
    size_t n_schemas;
    const uint64_t *live;
    size_t n_live;
    int64_t older_than_us;
    const char **orphans; /* as SQL */
    size_t n_orphans, at;
};

static struct op_sweep *sweep_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_sweep, o);
}

static bool is_orphan(const struct op_sweep *s, const char *token_text)
{
    uint64_t token = 0;
    if (slice_to_u64(slice_of(token_text), &token) < 0 || token >= (uint64_t)s->older_than_us) {
        return false;
    }
    for (size_t i = 0; i < s->n_live; i++) {
        if (s->live[i] == token) {
            return false;
        }
    }
    return true;
}

static void take_list(struct op_sweep *s)
{
    const struct pgc_result *r = wh_pg_result(&s->o, 0);
    s->orphans = arena_alloc(&s->o.flow.arena, (pgc_rows(r) + 1) * sizeof *s->orphans);
    for (size_t i = 0; i < pgc_rows(r); i++) {
        if (is_orphan(s, pgc_text(r, i, 1))) {
            s->orphans[s->n_orphans++] = arena_strdup(&s->o.flow.arena, pgc_text(r, i, 0));
        }
    }
}

static enum flow_next step_list(struct flow *f)
{
    struct op_sweep *s = sweep_of(f);
    if (f->entered) {
        s->o.stage = "looking for orphans";
        const char **params = arena_alloc(&f->arena, sizeof *params);
        params[0] = wh_pg_array(&f->arena, s->schemas, s->n_schemas);
        wh_pg_add_params(&s->o,
                         "SELECT format('%I.%I', n.nspname, c.relname), substr(c.relname, 7) FROM "
                         "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname "
                         "= ANY($1::text[]) AND c.relkind = 'r' AND c.relname ~ "
                         "'^_kiln_[0-9]{1,20}$' AND pg_has_role(c.relowner, 'USAGE') ORDER BY 1",
                         1, params);
        return wh_pg_run(&s->o);
    }
    if (wh_pg_failed(&s->o, SWEEP_END)) {
        return FLOW_AGAIN;
    }
    take_list(s);
    return flow_goto(f, SWEEP_DROP);
}

/* One by one: what is locked is left for the next sweep. */
static enum flow_next step_drop(struct flow *f)
{
    struct op_sweep *s = sweep_of(f);
    if (!f->entered) {
        bool is_left = f->rc != 0 && !f->cancel_asked &&
                       (wh_pg_is_lock_error(&f->err) || strcmp(f->err.sqlstate, "2BP01") == 0);
        if (!is_left && wh_pg_failed(&s->o, SWEEP_END)) {
            return FLOW_AGAIN;
        }
        s->o.op->facts.rows += !is_left;
    }
    if (s->at == s->n_orphans) {
        return flow_goto(f, SWEEP_END);
    }
    wh_pg_add(&s->o, "BEGIN");
    wh_pg_add(&s->o, "SET LOCAL lock_timeout = '1s'");
    wh_pg_add(&s->o, "DROP TABLE IF EXISTS %s", s->orphans[s->at++]);
    wh_pg_add(&s->o, "COMMIT");
    return wh_pg_run(&s->o);
}

static const struct flow_step sweep_steps[] = {
    {.name = "LIST",
     .run = step_list,
     .to = FLOW_TO(SWEEP_DROP) | FLOW_TO(SWEEP_END),
     .cancel = wh_pg_cancel_wait,
     .says = "staging tables of the schemas"},
    {.name = "DROP",
     .run = step_drop,
     .to = FLOW_TO(SWEEP_END),
     .cancel = wh_pg_cancel_wait,
     .says = "drop the orphans, one by one"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type sweep_flow = {"wh_sweep", sweep_steps, ARRAY_LEN(sweep_steps)};

void wh_pg_sweep(struct wh_op *op, const struct wh_sweep *sweep)
{
    struct op_sweep *s = wh_pg_op_start(op, sizeof *s, &sweep_flow, MS(120000));
    s->schemas = arena_zalloc(op->arena, (sweep->n_schemas + 1) * sizeof *s->schemas);
    for (size_t i = 0; i < sweep->n_schemas; i++) {
        s->schemas[i] = arena_strdup(op->arena, sweep->schemas[i]);
    }
    s->n_schemas = sweep->n_schemas;
    s->live = arena_dup(op->arena, sweep->live, sweep->n_live * sizeof *sweep->live);
    s->n_live = sweep->n_live;
    s->older_than_us = sweep->older_than_us;
}
