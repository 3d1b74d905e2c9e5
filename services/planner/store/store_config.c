/* Environments and connections. */
#include "services/planner/store/store_internal.h"

/* Sets the request's out id from column 0 of statement 1. */
static int finish_id(struct store_req *q)
{
    *(uint64_t *)q->out = cell_id(req_result(q, 1), 0, 0);
    return 0;
}

static int finish_environments(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    struct arena *a = q->op->arena;
    size_t n = pgc_rows(r);
    struct store_environment *list = arena_zalloc(a, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct store_environment){.id = cell_id(r, i, 0),
                                             .name = cell_text(a, r, i, 1),
                                             .readme = cell_text(a, r, i, 2),
                                             .frozen = pgc_bool(r, i, 3)};
    }
    *(struct store_environment **)q->out = list;
    *q->n = n;
    return 0;
}

void store_environments(struct store *s, struct store_op *op, struct store_environment **out,
                        size_t *n)
{
    struct store_req *r = req_read(s, op, finish_environments);
    r->out = out;
    r->n = n;
    stmt_add(&r->stmts, "k_environments",
             "SELECT id, name, readme, frozen FROM kiln.environment WHERE deleted_at IS NULL ORDER "
             "BY id",
             0);
    req_start(r);
}

void store_put_environment(struct store *s, struct store_op *op, const struct store_environment *e,
                           uint64_t *out_id)
{
    struct store_req *r = req_write(s, op, finish_id);
    r->out = out_id;
    stmt_add(&r->stmts, "k_put_environment",
             "INSERT INTO kiln.environment AS e (name, readme, frozen) VALUES ($1, $2, $3::bool) "
             "ON CONFLICT (name) WHERE "
             "deleted_at IS NULL DO UPDATE SET readme = coalesce(excluded.readme, e.readme), "
             "frozen = excluded.frozen "
             "RETURNING id",
             3);
    stmt_text(&r->stmts, arena_strdup(op->arena, e->name));
    stmt_text(&r->stmts, arena_strdup(op->arena, e->readme));
    stmt_flag(&r->stmts, e->frozen);
    req_start(r);
}

static int finish_delete_environment(struct store_req *q)
{
    if (pgc_i64(req_result(q, 1), 0, 0) > 0) {
        return err_set(&q->op->err, ERR_CONFLICT,
                       "the environment still has packages; delete them first");
    }
    if (pgc_affected(req_result(q, 2)) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "there is no such environment");
    }
    q->s->config_epoch = cell_id(req_result(q, 4), 0, 0);
    return 0;
}

static void add_config_epoch(struct store_req *r)
{
    stmt_add(&r->stmts, "k_config_epoch",
             "UPDATE kiln.meta SET config_epoch = config_epoch + 1 RETURNING config_epoch", 0);
}

void store_delete_environment(struct store *s, struct store_op *op, uint64_t id)
{
    struct store_req *r = req_write(s, op, finish_delete_environment);
    stmt_add(&r->stmts, "k_environment_units",
             "SELECT count(*) FROM kiln.unit WHERE environment = $1::bigint AND deleted_at IS NULL",
             1);
    stmt_num(&r->stmts, (int64_t)id);
    stmt_add(&r->stmts, "k_delete_environment",
             "UPDATE kiln.environment SET deleted_at = clock_timestamp() WHERE id = $1::bigint AND "
             "deleted_at IS NULL AND NOT "
             "EXISTS (SELECT FROM kiln.unit WHERE environment = $1::bigint AND deleted_at IS NULL)",
             1);
    stmt_num(&r->stmts, (int64_t)id);
    stmt_add(&r->stmts, "k_delete_environment_connections",
             "DELETE FROM kiln.connection c USING kiln.environment e WHERE e.id = c.environment "
             "AND e.id = $1::bigint AND "
             "e.deleted_at IS NOT NULL",
             1);
    stmt_num(&r->stmts, (int64_t)id);
    add_config_epoch(r);
    req_start(r);
}

static int finish_connections(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    struct arena *a = q->op->arena;
    size_t n = pgc_rows(r);
    struct store_connection *list = arena_zalloc(a, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct store_connection){.id = cell_id(r, i, 0),
                                            .environment = cell_id(r, i, 1),
                                            .epoch = cell_id(r, i, 2),
                                            .name = cell_text(a, r, i, 3),
                                            .type = cell_text(a, r, i, 4),
                                            .public_json = cell_text(a, r, i, 5),
                                            .digest = cell_text(a, r, i, 6),
                                            .sealed = cell_bytes(a, r, i, 7)};
        struct slice nonce = cell_bytes(a, r, i, 8);
        must(nonce.len == sizeof list[i].nonce);
        memcpy(list[i].nonce, nonce.p, nonce.len);
    }
    *(struct store_connection **)q->out = list;
    *q->n = n;
    return 0;
}

void store_connections(struct store *s, struct store_op *op, uint64_t environment,
                       struct store_connection **out, size_t *n)
{
    struct store_req *r = req_read(s, op, finish_connections);
    r->out = out;
    r->n = n;
    stmt_add(&r->stmts, "k_connections",
             "SELECT c.id, c.environment, c.epoch, c.name, c.type, c.public, c.digest, c.sealed, "
             "c.nonce FROM kiln.connection "
             "c WHERE $1::bigint IS NULL OR c.environment = $1::bigint ORDER BY c.id",
             1);
    stmt_id(&r->stmts, environment);
    req_start(r);
}

static int finish_put_connection(struct store_req *q)
{
    q->s->config_epoch = cell_id(req_result(q, 1), 0, 0);
    return 0;
}

#define INSERT_CONNECTION                                                                          \
    "INSERT INTO kiln.connection (environment, name, type, public, sealed, nonce, digest, epoch) " \
    "SELECT $1::bigint, $2, $3, "                                                                  \
    "$4::json, $5::bytea, $6::bytea, $7, config_epoch FROM kiln.meta "

void store_put_connection(struct store *s, struct store_op *op, const struct store_connection *c,
                          bool insert_only)
{
    struct store_req *r = req_write(s, op, finish_put_connection);
    struct store_stmts *b = &r->stmts;
    add_config_epoch(r);
    if (insert_only) {
        /* A known name fails, so that nothing of the transaction stays: ERR_CONFLICT. */
        stmt_add(b, "k_post_connection", INSERT_CONNECTION, 7);
    } else {
        stmt_add(b, "k_put_connection",
                 INSERT_CONNECTION
                 "ON CONFLICT (environment, name) DO UPDATE SET type = excluded.type, public = "
                 "excluded.public, sealed = excluded.sealed, "
                 "nonce = excluded.nonce, digest = excluded.digest, epoch = excluded.epoch",
                 7);
    }
    stmt_num(b, (int64_t)c->environment);
    stmt_text(b, arena_strdup(op->arena, c->name));
    stmt_text(b, arena_strdup(op->arena, c->type));
    stmt_text(b, c->public_json ? arena_strdup(op->arena, c->public_json) : "{}");
    stmt_bytes(b, c->sealed.p ? c->sealed : SLICE(""));
    stmt_bytes(b, slice_make(c->nonce, sizeof c->nonce));
    stmt_text(b, c->digest ? arena_strdup(op->arena, c->digest) : "");
    req_start(r);
}

static int finish_delete_connection(struct store_req *q)
{
    q->s->config_epoch = cell_id(req_result(q, 1), 0, 0);
    if (pgc_affected(req_result(q, 2)) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "there is no such connection");
    }
    return 0;
}

void store_delete_connection(struct store *s, struct store_op *op, uint64_t environment,
                             const char *name)
{
    struct store_req *r = req_write(s, op, finish_delete_connection);
    add_config_epoch(r);
    stmt_add(&r->stmts, "k_delete_connection",
             "DELETE FROM kiln.connection WHERE environment = $1::bigint AND name = $2", 2);
    stmt_num(&r->stmts, (int64_t)environment);
    stmt_text(&r->stmts, arena_strdup(op->arena, name));
    req_start(r);
}
