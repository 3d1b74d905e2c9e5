/* The pool: as many children as configured, whatever happens to them, and news of how it stands. */
#include "common/compiler/compiler_internal.h"
#include "common/log/log.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000
#define REPLACE_GAP_MIN_MS 1000
#define REPLACE_GAP_MAX_MS 60000

static bool answers(const struct compiler_child *c)
{
    return c->state != CHILD_STARTING && c->state != CHILD_ENDING;
}

void compiler_pool_stats(const struct compiler_pool *p, struct compiler_stats *out)
{
    *out = p->stats;
    out->ready = 0;
    list_for_each (it, &p->children) {
        out->ready += answers(list_entry(it, struct compiler_child, link)) ? 1 : 0;
    }
}

static unsigned count_ready(const struct compiler_pool *p)
{
    struct compiler_stats now;
    compiler_pool_stats(p, &now);
    return now.ready;
}

/* Children that live and shall go on living. */
static unsigned count_staying(const struct compiler_pool *p)
{
    unsigned n = 0;
    list_for_each (it, &p->children) {
        const struct compiler_child *c = list_entry(it, struct compiler_child, link);
        n += c->state != CHILD_ENDING && !c->retiring ? 1 : 0;
    }
    return n;
}

static bool is_retiring(const struct compiler_pool *p)
{
    list_for_each (it, &p->children) {
        if (list_entry(it, struct compiler_child, link)->retiring) {
            return true;
        }
    }
    return false;
}

bool compiler_pool_is_hopeless(const struct compiler_pool *p)
{
    return p->start_failed && count_staying(p) == 0 && count_ready(p) == 0;
}

static void on_tell(struct loop_task *t)
{
    struct compiler_pool *p = t->data;
    if (p->closing) {
        return;
    }
    if (count_ready(p) > 0) {
        if (p->told != TOLD_READY) {
            p->told = TOLD_READY;
            p->on_ready(p->data, true, "");
        }
    } else if (p->why && (p->told != TOLD_DOWN || p->fresh_why)) {
        p->told = TOLD_DOWN;
        p->fresh_why = false;
        auto_free char *why = xstrdup(p->why);
        p->on_ready(p->data, false, why);
    }
}

/* While none answers, one at a time: more of them would only slow it down. */
static unsigned count_missing(const struct compiler_pool *p)
{
    unsigned wanted = p->asleep ? 0 : count_ready(p) > 0 ? p->n_children : 1;
    unsigned staying = count_staying(p);
    return staying < wanted ? wanted - staying : 0;
}

static void respawn_later(struct compiler_pool *p)
{
    if (p->closing || p->respawn.heap_at || count_missing(p) == 0) {
        return;
    }
    int64_t next = p->backoff.v ? p->backoff.v * 2 : BACKOFF_MIN_MS;
    p->backoff = MS(next < BACKOFF_MAX_MS ? next : BACKOFF_MAX_MS);
    loop_timer_start(&p->respawn, p->backoff);
}

static void start_missing(struct compiler_pool *p)
{
    unsigned missing = count_missing(p);
    for (unsigned i = 0; i < missing; i++) {
        compiler_child_start(p);
    }
}

static void on_respawn(struct loop_timer *t)
{
    struct compiler_pool *p = t->data;
    p->asleep = false;
    start_missing(p);
}

void compiler_pool_wake(struct compiler_pool *p)
{
    if (p->asleep && !p->closing) {
        loop_timer_stop(&p->respawn);
        p->asleep = false;
        start_missing(p);
    }
}

void compiler_pool_note_failure(struct compiler_pool *p, bool starting, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct buf why = {0};
    buf_vaddf(&why, fmt, ap);
    va_end(ap);
    p->fresh_why = !p->why || strcmp(p->why, buf_str(&why)) != 0;
    p->start_failed = starting;
    free(p->why);
    p->why = buf_take(&why);
    loop_defer(p->loop, &p->tell);
}

void compiler_pool_child_gone(struct compiler_pool *p)
{
    if (p->closing) {
        compiler_pool_check_closed(p);
        return;
    }
    respawn_later(p);
    loop_defer(p->loop, &p->tell);
    compiler_dispatch(p);
}

static void end_quietly(struct compiler_child *c)
{
    log_info("compiler.replaced", "pid=%d", c->process.pid);
    compiler_child_kill(c);
}

/* The substitute is there: those that are at rest go, the others after their answer. */
static void end_retiring(struct compiler_pool *p)
{
    list_for_each (it, &p->children) {
        struct compiler_child *c = list_entry(it, struct compiler_child, link);
        if (c->retiring && c->state == CHILD_IDLE) {
            end_quietly(c);
        }
    }
}

void compiler_pool_child_ready(struct compiler_child *c, const char *malloy_version)
{
    struct compiler_pool *p = c->pool;
    c->state = CHILD_IDLE;
    log_info("compiler.ready", "pid=%d malloy=%s took_ms=%lld rss_mb=%lld", c->process.pid,
             log_q(malloy_version), (long long)ms_sub(loop_now(p->loop), c->asked_at).v,
             (long long)compiler_child_rss_mb(c));
    free(p->version);
    p->version = xstrdup(malloy_version);
    free(p->why);
    p->why = NULL;
    p->start_failed = false;
    loop_defer(p->loop, &p->tell);
    end_retiring(p);
    if (!p->respawn.heap_at) { /* else they are being waited with */
        start_missing(p);
    }
}

/* Replacing that does not help (a package too large for the limit) must not become all we do. */
static void open_replace_gap(struct compiler_pool *p)
{
    struct ms now = loop_now(p->loop);
    bool long_ago = ms_sub(now, p->replace_at).v > REPLACE_GAP_MAX_MS;
    int64_t gap = long_ago || !p->replace_gap.v ? REPLACE_GAP_MIN_MS : p->replace_gap.v * 2;
    p->replace_gap = MS(gap < REPLACE_GAP_MAX_MS ? gap : REPLACE_GAP_MAX_MS);
    p->replace_at = ms_add(now, p->replace_gap);
}

static void replace_when_large(struct compiler_child *c)
{
    struct compiler_pool *p = c->pool;
    if (c->retiring || ms_before(loop_now(p->loop), p->replace_at) || is_retiring(p)) {
        return;
    }
    int64_t rss_mb = compiler_child_rss_mb(c);
    if (rss_mb <= p->rss_limit_mb) {
        return;
    }
    log_info("compiler.too_large", "pid=%d rss_mb=%lld limit_mb=%lld", c->process.pid,
             (long long)rss_mb, (long long)p->rss_limit_mb);
    open_replace_gap(p);
    p->stats.replaced++;
    c->retiring = true;
    compiler_child_start(p);
}

void compiler_pool_child_rests(struct compiler_child *c)
{
    struct compiler_pool *p = c->pool;
    c->state = CHILD_IDLE;
    replace_when_large(c);
    if (c->retiring && count_ready(p) > p->n_children) {
        end_quietly(c);
    } else if (compiler_unload_forgotten(c)) {
        return; /* first, or a pool that is always busy would never do it */
    }
    compiler_dispatch(p);
}

static void note_no_one(void *data, bool ready, const char *why)
{
    (void)data;
    (void)ready;
    (void)why;
}

struct compiler_pool *compiler_pool_new(struct loop *l, const struct compiler_settings *s,
                                        void (*on_ready)(void *data, bool ready, const char *why),
                                        void *data)
{
    loop_assert_here(l);
    must(s->bundle);
    struct compiler_pool *p = xcalloc(1, sizeof *p);
    p->loop = l;
    p->n_children = s->children ? s->children : 1;
    p->max_waiting = s->max_waiting ? s->max_waiting : 64;
    p->heap_mb = s->heap_mb ? s->heap_mb : 256;
    p->rss_limit_mb = s->rss_limit_mb ? s->rss_limit_mb : 256;
    p->node = xstrdup(s->node && *s->node ? s->node : "node");
    p->bundle = xstrdup(s->bundle);
    p->self = xstrdup(s->self && *s->self ? s->self : "/proc/self/exe");
    p->on_ready = on_ready ? on_ready : note_no_one;
    p->data = data;
    p->version = xstrdup("");
    list_init(&p->children);
    list_init(&p->waiting);
    list_init(&p->finished);
    map_init(&p->kept);
    loop_task_init(&p->finish, compiler_jobs_finish, p);
    loop_task_init(&p->tell, on_tell, p);
    loop_timer_init(&p->tidy, l, compiler_loads_tidy, p);
    loop_timer_init(&p->respawn, l, on_respawn, p);
    p->thaw_span = MS(COMPILER_THAW_MS);
    p->tidy_span = MS(COMPILER_TIDY_MS);
    p->asleep = s->start_after.v > 0;
    if (p->asleep) {
        loop_timer_start(&p->respawn, s->start_after);
    } else {
        start_missing(p);
    }
    return p;
}

void compiler_pool_check_closed(struct compiler_pool *p)
{
    if (p->closing && !p->closed && list_empty(&p->children) && list_empty(&p->finished)) {
        p->closed = true;
        p->on_closed(p->closed_data);
    }
}

static void shut_down_child(struct compiler_child *c)
{
    if (c->state == CHILD_ENDING) {
        return;
    }
    struct compiler_job *job = compiler_job_detach(c);
    if (job) {
        compiler_job_fail(job, ERR_SHUTDOWN, "the Malloy compiler is shutting down");
    }
    compiler_child_kill(c);
}

void compiler_pool_close(struct compiler_pool *p, void (*done)(void *data), void *data)
{
    loop_assert_here(p->loop);
    must(!p->closing);
    p->closing = true;
    p->on_closed = done;
    p->closed_data = data;
    loop_timer_stop(&p->respawn);
    compiler_jobs_fail_all(p, ERR_SHUTDOWN, "the Malloy compiler is shutting down");
    list_for_each (it, &p->children) {
        shut_down_child(list_entry(it, struct compiler_child, link));
    }
    loop_defer(p->loop, &p->finish); /* looks whether that was all */
}

void compiler_pool_free(struct compiler_pool *p)
{
    if (!p) {
        return;
    }
    must(p->closed);
    loop_timer_stop(&p->tidy); /* loads may be forgotten after the close */
    loop_task_cancel(&p->finish);
    loop_task_cancel(&p->tell);
    compiler_kept_fini(p);
    free(p->version);
    free(p->why);
    free(p->node);
    free(p->bundle);
    free(p->self);
    free(p);
}

const char *compiler_version(const struct compiler_pool *p)
{
    return p->version;
}
