#include "services/planner/store/store_read.h"

int state_fault(const char *what, const char *state, struct err *e)
{
    return err_set(e, ERR_STORE_SCHEMA, "run store: a %s is '%s', which this version does not know",
                   what, state ? state : "");
}

static void names_read(struct arena *a, const struct pgc_result *r, size_t row, size_t col,
                       struct row_run *out)
{
    struct slice text = pgc_cell(r, row, col);
    out->has_names = text.p != NULL;
    json_t *list = text.p ? json_parse(text, NULL) : NULL;
    out->n_names = json_array_size(list);
    const char **names = arena_zalloc(a, (out->n_names + 1) * sizeof *names);
    for (size_t i = 0; i < out->n_names; i++) {
        names[i] = arena_strdup(a, json_string_value(json_array_get(list, i)));
    }
    out->names = names;
    json_decref(list);
}

static const uint8_t *request_read(struct arena *a, const struct pgc_result *r, size_t row,
                                   size_t col)
{
    struct uuid u;
    return uuid_parse(pgc_cell(r, row, col), &u) == 0 ? arena_dup(a, u.b, sizeof u.b) : NULL;
}

int run_read(struct arena *a, const struct pgc_result *r, size_t row, struct row_run *out,
             struct err *e)
{
    *out = (struct row_run){.id = cell_text(a, r, row, 0),
                            .unit = cell_id(r, row, 1),
                            .load = cell_id(r, row, 2),
                            .epoch = cell_id(r, row, 3),
                            .trigger = cell_text(a, r, row, 5),
                            .force_refresh = pgc_bool(r, row, 6),
                            .reseed = pgc_bool(r, row, 7),
                            .take_over = pgc_bool(r, row, 8),
                            .run_context = cell_text(a, r, row, 10),
                            .request_id = request_read(a, r, row, 11),
                            .event = cell_id(r, row, 12),
                            .plan = cell_text(a, r, row, 13),
                            .manifest = cell_text(a, r, row, 14),
                            .metadata = cell_text(a, r, row, 15),
                            .error = cell_text(a, r, row, 16),
                            .created_us = pgc_i64(r, row, 17),
                            .started_us = pgc_i64(r, row, 18),
                            .completed_us = pgc_i64(r, row, 19),
                            .stop_requested = pgc_bool(r, row, 20),
                            .trace = cell_trace(r, row, 21)};
    names_read(a, r, row, 9, out);
    if (run_state_parse(pgc_text(r, row, 4), &out->state) < 0) {
        return state_fault("run", pgc_text(r, row, 4), e);
    }
    out->from = out->state;
    return 0;
}

static int finish_runs(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    struct arena *a = q->op->arena;
    size_t n = pgc_rows(r);
    if (n == 0 && q->flag) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "there is no such run");
    }
    struct store_run_rec *list = arena_zalloc(a, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        int rc = run_read(a, r, i, &list[i].r, &q->op->err);
        if (rc < 0) {
            return rc;
        }
        list[i].environment = cell_text(a, r, i, RUN_N_COLUMNS);
        list[i].package = cell_text(a, r, i, RUN_N_COLUMNS + 1);
        list[i].environment_id = cell_id(r, i, RUN_N_COLUMNS + 2);
        list[i].updated_us = pgc_i64(r, i, RUN_N_COLUMNS + 3);
    }
    *(struct store_run_rec **)q->out = list;
    *q->n = n;
    return 0;
}

void store_runs(struct store *s, struct store_op *op, const struct store_run_filter *f,
                struct store_run_rec **out, size_t *n)
{
    struct store_req *r = req_read(s, op, finish_runs);
    r->out = out;
    r->n = n;
    r->flag = f->id != NULL;
    stmt_add(
        &r->stmts, "k_runs",
        "SELECT " RUN_COLUMNS
        ", e.name, u.name, e.id, kiln.us(r.updated_at) FROM kiln.run r JOIN kiln.unit u ON u.id = "
        "r.unit JOIN kiln.environment e ON e.id = u.environment WHERE ($1::bigint IS NULL OR "
        "r.unit = $1::bigint) AND "
        "($2::bigint IS NULL OR u.environment = $2::bigint) AND ($3::text IS NULL OR r.id = "
        "$3::text) "
        "ORDER BY r.id DESC LIMIT $4::bigint OFFSET $5::bigint",
        5);
    stmt_id(&r->stmts, f->unit);
    stmt_id(&r->stmts, f->environment);
    stmt_text(&r->stmts, arena_strdup(op->arena, f->id));
    stmt_id(&r->stmts, f->limit);
    stmt_num(&r->stmts, f->offset);
    req_start(r);
}
