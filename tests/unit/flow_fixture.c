/* The fixture of the flow tests. */
#include "tests/unit/flow_fixture.h"

static struct world *world_of(struct flow_env *env)
{
    return container_of(env, struct world, env);
}

static struct ms world_now(struct flow_env *env)
{
    return world_of(env)->now;
}

static void world_arm(struct flow_env *env, struct flow *f, struct ms at)
{
    struct world *w = world_of(env);
    size_t free_at = MAX_FLOWS;
    for (size_t i = 0; i < MAX_FLOWS; i++) {
        if (w->armed[i].f == f) {
            w->armed[i].f = NULL;
        }
        if (!w->armed[i].f) {
            free_at = i;
        }
    }
    if (at.v != INT64_MAX) {
        ck_assert_uint_lt(free_at, MAX_FLOWS);
        w->armed[free_at].f = f;
        w->armed[free_at].at = at;
    }
}

static void world_defer(struct flow_env *env, struct flow *f)
{
    struct world *w = world_of(env);
    for (size_t i = 0; i < w->n_queue; i++) {
        ck_assert_ptr_ne(w->queue[i], f); /* deferred twice: would be kicked twice */
    }
    w->queue[w->n_queue++] = f;
}

void world_init(struct world *w)
{
    *w = (struct world){.now = MS(1000)};
    w->env = (struct flow_env){.now = world_now, .arm = world_arm, .defer = world_defer};
    list_init(&w->env.live);
}

void turn(struct world *w)
{
    struct flow *queue[MAX_FLOWS];
    size_t n = w->n_queue;
    memcpy(queue, w->queue, sizeof(queue));
    w->n_queue = 0;
    for (size_t i = 0; i < n; i++) {
        flow_kick(queue[i]);
    }
}

void settle(struct world *w)
{
    while (w->n_queue > 0) {
        turn(w);
    }
}

bool is_armed(struct world *w, struct flow *f)
{
    for (size_t i = 0; i < MAX_FLOWS; i++) {
        if (w->armed[i].f == f) {
            return true;
        }
    }
    return false;
}

void pass(struct world *w, int64_t span)
{
    w->now = ms_add(w->now, MS(span));
    for (size_t i = 0; i < MAX_FLOWS; i++) {
        if (w->armed[i].f && !ms_before(w->now, w->armed[i].at)) {
            struct flow *f = w->armed[i].f;
            w->armed[i].f = NULL;
            flow_deadline(f);
        }
    }
}

/* ---- the flow under test ---- */
static struct job *job_of(struct flow *f)
{
    return container_of(f, struct job, flow);
}

static void note(struct job *j, const char *text)
{
    strncat(j->trail, text, sizeof(j->trail) - strlen(j->trail) - 1);
}

static enum flow_next step_ask(struct flow *f)
{
    struct job *j = job_of(f);
    if (j->circle) {
        return FLOW_AGAIN;
    }
    if (j->skip_ask) {
        return flow_goto(f, WORK);
    }
    if (f->entered) {
        note(j, "ask ");
        return FLOW_WAIT;
    }
    j->seen_rc[ASK] = f->rc;
    if (f->rc) {
        return flow_fail(f, CLEAN, f->rc, "ask: %s", err_text(&f->err));
    }
    return flow_goto(f, WORK);
}

static enum flow_next step_work(struct flow *f)
{
    struct job *j = job_of(f);
    if (f->entered) {
        note(j, "work ");
        j->note = arena_strdup(&f->arena, "kept");
        return FLOW_WAIT;
    }
    j->seen_rc[WORK] = f->rc;
    j->seen_timed_out = f->timed_out;
    if (f->rc) {
        f->final_rc = f->rc;
        return flow_goto(f, CLEAN);
    }
    if (j->poll) {
        return FLOW_WAIT;
    }
    return flow_goto(f, COMMIT);
}

static void cancel_work(struct flow *f)
{
    job_of(f)->cancels++;
}

static enum flow_next step_commit(struct flow *f)
{
    struct job *j = job_of(f);
    if (f->entered) {
        note(j, "commit ");
        return FLOW_WAIT;
    }
    j->seen_rc[COMMIT] = f->rc;
    return flow_goto(f, CLEAN);
}

static enum flow_next step_clean(struct flow *f)
{
    struct job *j = job_of(f);
    if (f->entered) {
        note(j, "clean ");
        return FLOW_WAIT;
    }
    j->seen_rc[CLEAN] = f->rc;
    return flow_goto(f, DONE);
}

static enum flow_next step_done(struct flow *f)
{
    job_of(f)->ended++;
    return FLOW_END;
}

static const struct flow_step job_steps[] = {
    [ASK] = {"ASK", step_ask, FLOW_TO(WORK) | FLOW_TO(CLEAN), 100, NULL, "asks; then: waits",
             false},
    [WORK] = {"WORK", step_work, FLOW_TO(COMMIT) | FLOW_TO(CLEAN), 100, cancel_work, "works",
              false},
    [COMMIT] = {"COMMIT", step_commit, FLOW_TO(CLEAN), 500, NULL, "point of no return", true},
    [CLEAN] = {"CLEAN", step_clean, FLOW_TO(DONE), 0, NULL, NULL, false},
    [DONE] = {"DONE", step_done, 0, 0, NULL, NULL, false},
};
const struct flow_type job_type = {"job", job_steps, ARRAY_LEN(job_steps)};

void on_job_end(struct flow *f)
{
    struct job *j = job_of(f);
    j->freed++;
    free(j->note_at_end);
    j->note_at_end = xstrdup(j->note ? j->note : ""); /* the arena is alive here */
}

void start(struct job *j, struct world *w)
{
    j->flow.on_end = on_job_end;
    flow_start(&j->flow, &job_type, &w->env, NULL);
}

void begin(struct job *j, struct world *w)
{
    world_init(w);
    *j = (struct job){0};
    start(j, w);
    turn(w);
}

void job_fini(struct job *j)
{
    free(j->note_at_end);
}
