/* Publish events: a row first, everything else later (design.md 4; decisions 7.5). */
#include "services/planner/store/store_internal.h"

#define EVENT_COLUMNS                                                                              \
    "id, public_id, kind, delivery_id, environment, name, body, state, run, error, archive, "      \
    "kiln.us(created_at), "                                                                        \
    "kiln.us(updated_at), trace"

static struct store_event event_read(struct arena *a, const struct pgc_result *r, size_t row)
{
    return (struct store_event){.id = cell_id(r, row, 0),
                                .public_id = cell_text(a, r, row, 1),
                                .kind = cell_text(a, r, row, 2),
                                .delivery_id = cell_text(a, r, row, 3),
                                .environment = cell_text(a, r, row, 4),
                                .name = cell_text(a, r, row, 5),
                                .body_json = cell_text(a, r, row, 6),
                                .state = cell_text(a, r, row, 7),
                                .run = cell_text(a, r, row, 8),
                                .error = cell_text(a, r, row, 9),
                                .archive = cell_bytes(a, r, row, 10),
                                .created_us = pgc_i64(r, row, 11),
                                .updated_us = pgc_i64(r, row, 12),
                                .trace = cell_trace(r, row, 13)};
}

static int finish_insert(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 2);
    if (pgc_rows(r) == 0) {
        return err_set(&q->op->err, ERR_CONFLICT, "the event's id is taken");
    }
    *(struct store_event *)q->out = event_read(q->op->arena, r, 0);
    if (pgc_affected(req_result(q, 1)) == 0) {
        return err_set(&q->op->err, ERR_CONFLICT, "this delivery was taken before");
    }
    return 0;
}

void store_event_insert(struct store *s, struct store_op *op, struct store_event *e)
{
    struct store_req *r = req_write(s, op, finish_insert);
    struct store_stmts *b = &r->stmts;
    struct arena *a = op->arena;
    const char *public_id = arena_strdup(a, e->public_id);
    const char *delivery_id = arena_strdup(a, e->delivery_id);
    r->out = e;
    stmt_add(b, "k_event_insert",
             "INSERT INTO kiln.event (public_id, kind, delivery_id, environment, name, body, "
             "archive, state, trace) VALUES ($1, $2, "
             "$3, $4, $5, $6::json, $7::bytea, $8, $9::uuid) ON CONFLICT (delivery_id) WHERE "
             "delivery_id IS "
             "NOT NULL DO NOTHING",
             9);
    stmt_text(b, public_id);
    stmt_text(b, arena_strdup(a, e->kind));
    stmt_text(b, delivery_id);
    stmt_text(b, arena_strdup(a, e->environment));
    stmt_text(b, arena_strdup(a, e->name));
    stmt_text(b, e->body_json ? arena_strdup(a, e->body_json) : "{}");
    stmt_bytes(b, e->archive);
    stmt_text(b, e->state ? arena_strdup(a, e->state) : "received");
    stmt_trace(b, &e->trace);
    stmt_add(
        b, "k_event_inserted",
        "SELECT " EVENT_COLUMNS
        " FROM kiln.event WHERE public_id = $1::text OR delivery_id = $2::text ORDER BY id LIMIT 1",
        2);
    stmt_text(b, public_id);
    stmt_text(b, delivery_id);
    req_start(r);
}

void store_event_move(struct store *s, struct store_op *op, uint64_t id, const char *from,
                      const char *to, const char *run, const char *error)
{
    struct store_req *r = req_write(s, op, NULL);
    struct store_stmts *b = &r->stmts;
    /* The archive has done its work once it is loaded. */
    stmt_add(b, "k_event_move",
             "WITH u AS (UPDATE kiln.event SET state = $3::text, run = coalesce($4, run), error = "
             "coalesce($5, error), archive "
             "= CASE WHEN $3::text IN ('received', 'loading') THEN archive END, updated_at = "
             "clock_timestamp() WHERE id = "
             "$1::bigint AND state = $2::text RETURNING 1) "
             "SELECT kiln.one(count(*), 'event ' || $1::bigint || ' is not ' || $2::text || ' any "
             "more') FROM u",
             5);
    stmt_num(b, (int64_t)id);
    stmt_text(b, arena_strdup(op->arena, from));
    stmt_text(b, arena_strdup(op->arena, to));
    stmt_text(b, arena_strdup(op->arena, run));
    stmt_text(b, arena_strdup(op->arena, error));
    req_start(r);
}

static int finish_get(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    if (pgc_rows(r) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "there is no such event");
    }
    *(struct store_event *)q->out = event_read(q->op->arena, r, 0);
    return 0;
}

void store_event_get(struct store *s, struct store_op *op, const char *public_id,
                     struct store_event *out)
{
    struct store_req *r = req_read(s, op, finish_get);
    r->out = out;
    stmt_add(&r->stmts, "k_event_get",
             "SELECT " EVENT_COLUMNS " FROM kiln.event WHERE public_id = $1", 1);
    stmt_text(&r->stmts, arena_strdup(op->arena, public_id));
    req_start(r);
}

static int finish_open(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    size_t n = pgc_rows(r);
    struct store_event *list = arena_zalloc(q->op->arena, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = event_read(q->op->arena, r, i);
    }
    *(struct store_event **)q->out = list;
    *q->n = n;
    return 0;
}

void store_events_open(struct store *s, struct store_op *op, struct store_event **out, size_t *n)
{
    struct store_req *r = req_read(s, op, finish_open);
    r->out = out;
    r->n = n;
    stmt_add(&r->stmts, "k_events_open",
             "SELECT " EVENT_COLUMNS
             " FROM kiln.event WHERE state NOT IN ('done', 'failed') ORDER BY id",
             0);
    req_start(r);
}
