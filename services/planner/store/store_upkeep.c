/* Replies kept for repeated calls, wiping, and pruning what is old (protocol.md 10). */
#include "services/planner/store/store_internal.h"

static int finish_answered(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    if (pgc_rows(r) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "this call was not answered yet");
    }
    struct store_answer *out = q->out;
    out->reply = cell_bytes(q->op->arena, r, 0, 0);
    out->kind = (int)pgc_i64(r, 0, 1);
    return 0;
}

void store_answered_get(struct store *s, struct store_op *op, const uint8_t request_id[16],
                        struct store_answer *out)
{
    struct store_req *r = req_read(s, op, finish_answered);
    r->out = out;
    memcpy(out->request_id, request_id, sizeof(out->request_id));
    stmt_add(&r->stmts, "k_answered_get",
             "SELECT reply, kind FROM kiln.answered WHERE request_id = $1::uuid", 1);
    stmt_uuid_bytes(&r->stmts, request_id);
    req_start(r);
}

void answer_stmts(struct store_stmts *b, const struct store_answer *a)
{
    stmt_add(b, "k_answered_put",
             "INSERT INTO kiln.answered (request_id, kind, reply) VALUES ($1::uuid, $2::int, "
             "$3::bytea) ON CONFLICT (request_id) DO UPDATE SET kind = excluded.kind, reply = "
             "excluded.reply",
             3);
    stmt_uuid_bytes(b, a->request_id);
    stmt_num(b, a->kind);
    stmt_bytes(b, a->reply.p ? a->reply : SLICE(""));
}

void store_answered_put(struct store *s, struct store_op *op, const struct store_answer *a)
{
    struct store_req *r = req_write(s, op, NULL);
    /* Nobody waits for the disk: should the server lose it, the change says what was answered. */
    stmt_add(&r->stmts, "k_answered_soon", "SELECT set_config('synchronous_commit', 'off', true)",
             0);
    answer_stmts(&r->stmts, a);
    req_start(r);
}

static int finish_wipe(struct store_req *q)
{
    q->s->config_epoch = cell_id(req_result(q, 2), 0, 0);
    return 0;
}

void store_wipe(struct store *s, struct store_op *op)
{
    struct store_req *r = req_write(s, op, finish_wipe);
    /* Ids go on counting: gateways may still hold sets under the old ones. */
    stmt_add(&r->stmts, NULL,
             "TRUNCATE kiln.environment, kiln.connection, kiln.file, kiln.package_version, "
             "kiln.version_file, kiln.unit, "
             "kiln.load, kiln.load_schema, kiln.place, kiln.target, kiln.run, kiln.job, "
             "kiln.job_parent, kiln.attempt, "
             "kiln.generation, kiln.manifest_entry, kiln.binding_set, kiln.binding_set_generation, "
             "kiln.instance, "
             "kiln.event, kiln.answered CONTINUE IDENTITY",
             0);
    stmt_add(&r->stmts, "k_config_epoch",
             "UPDATE kiln.meta SET config_epoch = config_epoch + 1 RETURNING config_epoch", 0);
    req_start(r);
}

/* In this order: what refers to something goes before it. Ready runs stay, their manifests name
 * tables in use. */
static const char *const prunes[] = {
    "DELETE FROM kiln.event WHERE state IN ('done', 'failed') AND updated_at < now() - interval '7 "
    "days'",
    "DELETE FROM kiln.answered WHERE created_at < now() - interval '1 day'",
    "DELETE FROM kiln.run WHERE state IN ('failed', 'cancelled') AND completed_at < now() - "
    "interval '30 days'",
    "DELETE FROM kiln.job WHERE run IS NULL AND state IN ('done', 'carried', 'skipped', 'failed', "
    "'cancelled') AND updated_at "
    "< now() - interval '7 days'",
    "DELETE FROM kiln.instance WHERE heard_at < now() - interval '7 days'",
    /* The set in force and the one before it stay. */
    "DELETE FROM kiln.binding_set b WHERE b.created_at < now() - interval '1 day' AND (SELECT "
    "count(*) FROM kiln.binding_set n "
    "WHERE n.unit = b.unit AND n.epoch > b.epoch) >= 2",
    "DELETE FROM kiln.load l WHERE l.created_at < now() - interval '7 days' AND NOT EXISTS (SELECT "
    "FROM kiln.unit WHERE load = "
    "l.id) AND NOT EXISTS (SELECT FROM kiln.run WHERE load = l.id) AND NOT EXISTS (SELECT FROM "
    "kiln.generation WHERE load = "
    "l.id) AND NOT EXISTS (SELECT FROM kiln.binding_set WHERE load = l.id)",
    "DELETE FROM kiln.package_version v WHERE v.created_at < now() - interval '7 days' AND NOT "
    "EXISTS (SELECT FROM kiln.load "
    "WHERE version = v.id)",
    "DELETE FROM kiln.file f WHERE NOT EXISTS (SELECT FROM kiln.version_file WHERE file = "
    "f.sha256)",
};

void store_prune(struct store *s, struct store_op *op)
{
    struct store_req *r = req_write(s, op, NULL);
    for (size_t i = 0; i < ARRAY_LEN(prunes); i++) {
        stmt_add(&r->stmts, NULL, prunes[i], 0);
    }
    req_start(r);
}
