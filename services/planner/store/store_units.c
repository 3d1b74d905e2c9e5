/* Units: what has its own runs, epoch and binding set. */
#include "services/planner/store/store_internal.h"

static int finish_units(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    struct arena *a = q->op->arena;
    size_t n = pgc_rows(r);
    struct store_unit *list = arena_zalloc(a, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct store_unit){.id = cell_id(r, i, 0),
                                      .environment = cell_id(r, i, 1),
                                      .load = cell_id(r, i, 2),
                                      .epoch = cell_id(r, i, 3),
                                      .environment_name = cell_text(a, r, i, 4),
                                      .name = cell_text(a, r, i, 5),
                                      .location = cell_text(a, r, i, 6),
                                      .description = cell_text(a, r, i, 7),
                                      .stale_error = cell_text(a, r, i, 8),
                                      .load_error = cell_text(a, r, i, 9),
                                      .stale_us = pgc_i64(r, i, 10),
                                      .reload_emptied = pgc_bool(r, i, 11)};
    }
    *(struct store_unit **)q->out = list;
    *q->n = n;
    return 0;
}

void store_units(struct store *s, struct store_op *op, struct store_unit **out, size_t *n)
{
    struct store_req *r = req_read(s, op, finish_units);
    r->out = out;
    r->n = n;
    stmt_add(&r->stmts, "k_units",
             "SELECT u.id, u.environment, u.load, u.epoch, e.name, u.name, u.location, "
             "u.description, u.stale_error, "
             "u.load_error, kiln.us(u.stale_at), u.reload_emptied FROM kiln.unit u JOIN "
             "kiln.environment e ON e.id = "
             "u.environment WHERE u.deleted_at IS NULL ORDER BY u.id",
             0);
    req_start(r);
}

static int finish_put_unit(struct store_req *q)
{
    if (pgc_rows(req_result(q, 1)) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "the package's environment is gone");
    }
    *(uint64_t *)q->out = cell_id(req_result(q, 1), 0, 0);
    return 0;
}

void store_put_unit(struct store *s, struct store_op *op, const struct store_unit *u,
                    uint64_t *out_id)
{
    struct store_req *r = req_write(s, op, finish_put_unit);
    struct arena *a = op->arena;
    r->out = out_id;
    stmt_add(&r->stmts, "k_put_unit",
             "INSERT INTO kiln.unit AS u (environment, kind, name, location, description) SELECT "
             "id, 'package', $2, $3, $4 "
             "FROM kiln.environment WHERE id = $1::bigint AND deleted_at IS NULL ON CONFLICT "
             "(environment, kind, name) WHERE "
             "deleted_at IS NULL DO UPDATE SET location = coalesce(excluded.location, u.location), "
             "description = "
             "coalesce(excluded.description, u.description) RETURNING id",
             4);
    stmt_num(&r->stmts, (int64_t)u->environment);
    stmt_text(&r->stmts, arena_strdup(a, u->name));
    stmt_text(&r->stmts, arena_strdup(a, u->location));
    stmt_text(&r->stmts, arena_strdup(a, u->description));
    req_start(r);
}

static int finish_unit_error(struct store_req *q)
{
    if (pgc_affected(req_result(q, 1)) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "the package is gone");
    }
    return 0;
}

void store_unit_error(struct store *s, struct store_op *op, uint64_t unit, const char *load_error,
                      const char *stale_error)
{
    struct store_req *r = req_write(s, op, finish_unit_error);
    stmt_add(&r->stmts, "k_unit_error",
             "UPDATE kiln.unit SET load_error = $2, stale_error = $3::text, stale_at = CASE WHEN "
             "$3::text IS NULL THEN NULL "
             "ELSE clock_timestamp() END WHERE id = $1::bigint AND deleted_at IS NULL",
             3);
    stmt_num(&r->stmts, (int64_t)unit);
    stmt_text(&r->stmts, arena_strdup(op->arena, load_error));
    stmt_text(&r->stmts, arena_strdup(op->arena, stale_error));
    req_start(r);
}
