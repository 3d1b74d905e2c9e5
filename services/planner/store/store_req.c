#include "services/planner/store/store_internal.h"

void add_guard(struct store *s, struct store_stmts *b)
{
    stmt_add(b, "k_guard", "SELECT kiln.guard($1::uuid, $2::bigint)", 2);
    stmt_uuid(b, &s->boot);
    stmt_num(b, (int64_t)s->term);
}

static int code_of(const struct pgc_batch *b)
{
    const char *state = b->err.sqlstate;
    if (strcmp(state, "KL001") == 0) {
        return ERR_STORE_LEADER;
    }
    if (strcmp(state, "KL002") == 0) {
        return ERR_STORE_MOVED;
    }
    if (strcmp(state, "23505") == 0) {
        return ERR_CONFLICT;
    }
    enum err_class class = err_code_class(b->rc);
    bool again =
        class == ERR_CLASS_TRANSIENT || class == ERR_CLASS_CANCELLED || class == ERR_CLASS_LOST;
    if (again || b->unknown_outcome || state[0] == '\0') {
        return ERR_STORE;
    }
    return ERR_INTERNAL;
}

int store_fault(const struct pgc_batch *b, struct err *e)
{
    if (b->rc == 0) {
        return 0;
    }
    char state[sizeof b->err.sqlstate];
    memcpy(state, b->err.sqlstate, sizeof state);
    int rc = err_set(e, code_of(b), "run store: %s", err_text(&b->err));
    if (e) {
        memcpy(e->sqlstate, state, sizeof state);
    }
    return rc;
}

const struct pgc_result *req_result(const struct store_req *r, size_t stmt)
{
    must(stmt < r->batch.n && r->batch.results[stmt]);
    return r->batch.results[stmt];
}

static void req_end(struct store_req *r, int rc)
{
    struct store_op *op = r->op;
    struct store *s = r->s;
    bool is_lost = rc == ERR_STORE_LEADER && r->term == s->term && s->leading;
    op->rc = rc;
    pgc_batch_fini(&r->batch);
    char why[ERR_TEXT_MAX];
    memcpy(why, op->err.text, sizeof why);
    op->done(op); /* r is gone with the op's arena */
    if (is_lost) {
        store_lose(s, ERR_STORE_LEADER, why);
    }
}

static void on_batch(struct pgc_batch *b)
{
    struct store_req *r = b->data;
    int rc = store_fault(b, &r->op->err);
    if (rc == 0 && r->finish) {
        rc = r->finish(r);
    }
    req_end(r, rc);
}

static void on_refuse(struct loop_task *t)
{
    struct store_req *r = container_of(t, struct store_req, refuse);
    struct store_op *op = r->op;
    op->rc = r->term == UINT64_MAX
                 ? err_set(&op->err, ERR_STORE_LEADER, "run store: this planner is not the leader")
                 : err_set(&op->err, ERR_STORE, "run store: not reached yet");
    op->done(op);
}

static struct store_req *req_new(struct store *s, struct store_op *op,
                                 int (*finish)(struct store_req *))
{
    struct store_req *r = arena_zalloc(op->arena, sizeof *r);
    r->s = s;
    r->op = op;
    r->finish = finish;
    err_clear(&op->err);
    op->impl = r;
    stmts_init(&r->stmts, op->arena);
    return r;
}

struct store_req *req_read(struct store *s, struct store_op *op, int (*finish)(struct store_req *))
{
    struct store_req *r = req_new(s, op, finish);
    r->batch.read_only = true;
    return r;
}

struct store_req *req_write(struct store *s, struct store_op *op, int (*finish)(struct store_req *))
{
    struct store_req *r = req_new(s, op, finish);
    r->term = s->leading ? s->term : UINT64_MAX;
    add_guard(s, &r->stmts);
    return r;
}

void req_start(struct store_req *r)
{
    if (r->op->answer && r->term) {
        answer_stmts(&r->stmts, r->op->answer);
    }
    stmts_end(&r->stmts);
    if (r->term == UINT64_MAX || !r->s->migrated || r->s->closing) {
        loop_task_init(&r->refuse, on_refuse, r);
        loop_defer(r->s->loop, &r->refuse);
        return;
    }
    r->batch.stmts = r->stmts.items;
    r->batch.n = r->stmts.n;
    r->batch.timeout = MS(30000);
    r->batch.done = on_batch;
    r->batch.data = r;
    pgc_batch_start(r->s->pool, &r->batch);
}
