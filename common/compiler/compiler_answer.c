/* What an answer means in the state it comes in. */
#include "common/compiler/compiler_internal.h"
#include "common/log/log.h"

static bool is_kind(const Kiln__Mc__Frame *f, const char *kind)
{
    return strcmp(f->kind, kind) == 0;
}

static bool says_not_loaded(const Kiln__Mc__Frame *f)
{
    return is_kind(f, "error") && strcmp(f->error_code, "not_loaded") == 0;
}

static void answer_hello(struct compiler_child *c, const Kiln__Mc__Frame *f)
{
    Kiln__Mc__HelloReply *m =
        is_kind(f, "hello") ? kiln__mc__hello_reply__unpack(NULL, f->payload.len, f->payload.data)
                            : NULL;
    if (!m) {
        compiler_child_lost(c, "the Malloy compiler did not greet; is the bundle of this version?");
        return;
    }
    compiler_pool_child_ready(c, m->malloy_version);
    kiln__mc__hello_reply__free_unpacked(m, NULL);
    compiler_pool_child_rests(c);
}

/* What a child lacks that should have taken the load as it was kept. */
static void explain_needs(const Kiln__Mc__Frame *f, struct buf *out)
{
    Kiln__Mc__Needs *m = kiln__mc__needs__unpack(NULL, f->payload.len, f->payload.data);
    if (m && m->n_tables) {
        buf_addf(out, "it lacks the schema of table %s of connection '%s'", m->tables[0]->path,
                 m->tables[0]->connection);
    } else if (m && m->n_sqls) {
        buf_addf(out, "it lacks the schema of an SQL block on connection '%s'",
                 m->sqls[0]->connection);
    } else {
        buf_add_str(out, "it lacks schemas");
    }
    if (m) {
        kiln__mc__needs__free_unpacked(m, NULL);
    }
}

static void answer_replay(struct compiler_child *c, const Kiln__Mc__Frame *f, char *load_id)
{
    bool loaded = is_kind(f, "loaded");
    if (loaded || is_kind(f, "needs")) {
        compiler_copy_set(c, load_id, loaded, c->asked_stale);
    }
    if (loaded && c->job->call) {
        c->state = CHILD_IDLE;
        compiler_job_run(c, c->job);
        return;
    }
    struct compiler_job *job = compiler_job_detach(c);
    if (loaded) {
        compiler_job_fail(job, ERR_CANCELLED, "cancelled");
    } else {
        auto_buf struct buf why = {0};
        if (is_kind(f, "needs")) {
            explain_needs(f, &why);
        } else {
            buf_add_str(&why, is_kind(f, "error") ? f->error_text : f->kind);
        }
        compiler_job_fail(job, ERR_PACKAGE,
                          "the Malloy compiler cannot load the package of load '%s' again: %s; "
                          "reload the package",
                          load_id, buf_str(&why));
    }
    compiler_pool_child_rests(c);
}

static void answer_call(struct compiler_child *c, const Kiln__Mc__Frame *f, struct slice packed,
                        const char *own_load)
{
    if (own_load && (is_kind(f, "loaded") || is_kind(f, "needs"))) {
        compiler_copy_set(c, own_load, is_kind(f, "loaded"), c->asked_stale);
    }
    struct compiler_job *job = c->job;
    if (says_not_loaded(f) && job->load_id && job->call) {
        log_warn("compiler.not_loaded", "pid=%d load=%s", c->process.pid, log_q(job->load_id));
        compiler_copy_drop(c, job->load_id);
        c->state = CHILD_IDLE;
        compiler_job_run(c, job);
        return;
    }
    job = compiler_job_detach(c);
    compiler_pool_child_rests(c); /* the next call is on its way before this one is told */
    if (says_not_loaded(f)) {
        compiler_job_fail(job, ERR_COMPILER_NOT_LOADED, "%s", f->error_text);
        return;
    }
    compiler_job_answer(job, f, packed);
}

void compiler_answer(struct compiler_child *c, const Kiln__Mc__Frame *f, struct slice packed)
{
    auto_free char *load_id = c->asked_load;
    c->asked_load = NULL;
    if (c->state != CHILD_STARTING) {
        c->pool->backoff = MS(0); /* it works, not only starts */
    }
    switch (c->state) {
    case CHILD_STARTING:
        answer_hello(c, f);
        break;
    case CHILD_REPLAYING:
        answer_replay(c, f, load_id);
        break;
    case CHILD_CALLING:
        answer_call(c, f, packed, load_id);
        break;
    case CHILD_UNLOADING:
        compiler_copy_drop(c, load_id);
        compiler_pool_child_rests(c);
        break;
    case CHILD_IDLE:
    case CHILD_ENDING:
        must(!"no answer is waited for");
    }
}

void compiler_answer_late(struct compiler_child *c)
{
    struct compiler_pool *p = c->pool;
    long long ms = (long long)c->span.v;
    enum compiler_child_state state = c->state;
    struct compiler_job *job = compiler_job_detach(c);
    p->stats.timeouts++;
    log_warn("compiler.killed", "pid=%d kind=%s after_ms=%lld", c->process.pid,
             job                       ? job->kind
             : state == CHILD_STARTING ? "hello"
                                       : "unload",
             ms);
    compiler_pool_note_failure(p, state == CHILD_STARTING,
                               "the Malloy compiler did not answer within %lld ms and was killed",
                               ms);
    compiler_child_kill(c);
    if (job && state == CHILD_REPLAYING) {
        compiler_job_fail(job, ERR_COMPILER_TIMEOUT,
                          "loading '%s' into a Malloy compiler took longer than %lld ms and was "
                          "stopped; make the package smaller or try again",
                          job->load_id, ms);
    } else if (job) {
        compiler_job_fail(job, ERR_COMPILER_TIMEOUT,
                          "'%s' took the Malloy compiler longer than %lld ms and was stopped; "
                          "simplify the text or raise the limit",
                          job->kind, ms);
    }
    compiler_dispatch(p);
}
