#include "common/flow/flow.h"
#include "common/flow/flow_graph.h"
#include "common/log/log.h"
#include "tests/support/suite.h"
#include <stdio.h>

/* A world with a scripted clock: deferred flows in a queue, one armed deadline per flow. */
enum { MAX_FLOWS = 16 };
struct world {
    struct flow_env env;
    struct ms now;
    struct flow *queue[MAX_FLOWS];
    size_t n_queue;
    struct {
        struct flow *f;
        struct ms at;
    } armed[MAX_FLOWS];
};

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

static void world_init(struct world *w)
{
    *w = (struct world){.now = MS(1000)};
    w->env = (struct flow_env){.now = world_now, .arm = world_arm, .defer = world_defer};
    list_init(&w->env.live);
}

static void turn(struct world *w)
{
    struct flow *queue[MAX_FLOWS];
    size_t n = w->n_queue;
    memcpy(queue, w->queue, sizeof(queue));
    w->n_queue = 0;
    for (size_t i = 0; i < n; i++) {
        flow_kick(queue[i]);
    }
}

static void settle(struct world *w)
{
    while (w->n_queue > 0) {
        turn(w);
    }
}

static bool is_armed(struct world *w, struct flow *f)
{
    for (size_t i = 0; i < MAX_FLOWS; i++) {
        if (w->armed[i].f == f) {
            return true;
        }
    }
    return false;
}

static void pass(struct world *w, int64_t span)
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

/* The flow under test: ASK -> WORK -> COMMIT (shielded) -> CLEAN -> END; it notes what it sees. */
enum { ASK, WORK, COMMIT, CLEAN, DONE };
struct job {
    struct flow flow;
    struct flow child;
    char trail[256];
    int cancels; /* calls of WORK's cancel */
    int ended, freed;
    int seen_rc[5]; /* f->rc per step when its wait was over */
    bool seen_timed_out;
    bool skip_ask; /* ASK goes straight on */
    bool circle;   /* ASK runs in circles */
    bool poll;     /* WORK waits again and again */
    char *note;    /* in the arena */
    char *note_at_end;
};

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
static const struct flow_type job_type = {"job", job_steps, ARRAY_LEN(job_steps)};

static void on_job_end(struct flow *f)
{
    struct job *j = job_of(f);
    j->freed++;
    free(j->note_at_end);
    j->note_at_end = xstrdup(j->note ? j->note : ""); /* the arena is alive here */
}

static void start(struct job *j, struct world *w)
{
    j->flow.on_end = on_job_end;
    flow_start(&j->flow, &job_type, &w->env, NULL);
}

static void job_fini(struct job *j)
{
    free(j->note_at_end);
}

START_TEST(first_run_is_on_the_next_turn_and_the_way_leads_to_one_end)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);
    ck_assert_str_eq(j.trail, "");

    turn(&w);
    for (int i = 0; i < 4; i++) {
        flow_resume(&j.flow, 0, NULL);
    }

    ck_assert_str_eq(j.trail, "ask work commit clean ");
    ck_assert_int_eq(j.ended, 1);
    ck_assert_int_eq(j.freed, 1);
    ck_assert_str_eq(j.note_at_end, "kept");
    ck_assert_int_eq(j.flow.final_rc, 0);
    ck_assert(list_empty(&w.env.live));
    ck_assert(!is_armed(&w, &j.flow));
    job_fini(&j);
}
END_TEST

START_TEST(error_of_a_wait_is_seen_with_its_sentence_and_stays_the_first_cause)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);
    turn(&w);

    struct err e;
    (void)err_set(&e, ERR_STORE, "store is away");
    flow_resume(&j.flow, ERR_STORE, &e);
    (void)err_set(&e, ERR_IO, "cleaning failed too");
    flow_resume(&j.flow, ERR_IO, &e);

    ck_assert_int_eq(j.seen_rc[CLEAN], ERR_IO);
    ck_assert_int_eq(j.flow.final_rc, ERR_STORE);
    ck_assert_str_eq(j.flow.err.text, "ask: store is away");
    job_fini(&j);
}
END_TEST

START_TEST(deadline_without_a_cancel_function_ends_the_wait_with_a_timeout)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);
    turn(&w);

    pass(&w, 99);
    ck_assert(!j.flow.timed_out);
    pass(&w, 1);
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], ERR_TIMEOUT);
    ck_assert_str_eq(j.flow.err.text, "ask: job: ASK took longer than 100 ms");
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_TIMEOUT);
    job_fini(&j);
}
END_TEST

START_TEST(deadline_of_an_operation_reaches_the_step_as_a_timeout_not_as_a_cancel)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);

    pass(&w, 100);
    settle(&w);
    ck_assert_int_eq(j.cancels, 1);
    ck_assert(j.flow.waiting);
    ck_assert_int_eq(j.seen_rc[WORK], 0);
    flow_resume(&j.flow, ERR_CANCELLED, NULL);

    ck_assert_int_eq(j.seen_rc[WORK], ERR_TIMEOUT);
    ck_assert(j.seen_timed_out);
    ck_assert(!j.flow.cancel_asked);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_TIMEOUT);
    ck_assert_str_eq(j.flow.err.text, "job: WORK took longer than 100 ms");
    job_fini(&j);
}
END_TEST

START_TEST(result_that_beats_the_cancel_of_a_deadline_counts)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);

    pass(&w, 100);
    flow_resume(&j.flow, 0, NULL);

    ck_assert_int_eq(j.seen_rc[WORK], 0);
    ck_assert_str_eq(flow_step_name(&j.flow), "COMMIT");
    flow_resume(&j.flow, 0, NULL);
    flow_resume(&j.flow, 0, NULL);
    job_fini(&j);
}
END_TEST

START_TEST(cancel_ends_the_operation_once_and_the_flow_decides_where_that_leads)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);

    flow_cancel(&j.flow);
    flow_cancel(&j.flow);
    pass(&w, 100); /* the deadline finds a cancel under way */
    ck_assert_int_eq(j.cancels, 1);
    flow_resume(&j.flow, ERR_CANCELLED, NULL);

    ck_assert_int_eq(j.seen_rc[WORK], ERR_CANCELLED);
    ck_assert_str_eq(flow_step_name(&j.flow), "CLEAN");
    settle(&w);
    ck_assert_str_eq(flow_step_name(&j.flow), "CLEAN"); /* its wait is not ended again */
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_CANCELLED);
    job_fini(&j);
}
END_TEST

START_TEST(cancel_of_a_wait_without_operation_comes_on_the_next_turn)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);
    turn(&w);

    flow_cancel(&j.flow);
    ck_assert_int_eq(j.seen_rc[ASK], 0);
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], ERR_CANCELLED);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_CANCELLED);
    job_fini(&j);
}
END_TEST

START_TEST(completion_that_beats_a_pending_cancel_wins_and_nothing_is_run_twice)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);
    turn(&w);

    flow_cancel(&j.flow);
    flow_resume(&j.flow, 0, NULL); /* to WORK, the kick is still queued */
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], 0);
    ck_assert_str_eq(flow_step_name(&j.flow), "WORK");
    flow_resume(&j.flow, ERR_IO, NULL);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.ended, 1);
    job_fini(&j);
}
END_TEST

START_TEST(cancel_before_the_first_run_ends_the_first_wait)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);

    flow_cancel(&j.flow);
    ck_assert_str_eq(j.trail, "");
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], ERR_CANCELLED);
    ck_assert_str_eq(j.trail, "ask clean ");
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.ended, 1);
    job_fini(&j);
}
END_TEST

START_TEST(shielded_wait_is_not_touched_by_a_cancel_but_the_next_one_is)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_str_eq(flow_step_name(&j.flow), "COMMIT");

    flow_cancel(&j.flow);
    settle(&w);
    ck_assert_str_eq(flow_step_name(&j.flow), "COMMIT");
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.seen_rc[COMMIT], 0);
    settle(&w);

    ck_assert_int_eq(j.seen_rc[CLEAN], ERR_CANCELLED);
    ck_assert_int_eq(j.ended, 1);
    job_fini(&j);
}
END_TEST

START_TEST(deadline_counts_from_the_entry_of_the_step_however_often_it_waits)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true, .poll = true};
    start(&j, &w);
    turn(&w);

    for (int i = 0; i < 3; i++) {
        pass(&w, 30);
        flow_resume(&j.flow, 0, NULL);
    }
    ck_assert_int_eq(j.cancels, 0);
    pass(&w, 10);

    ck_assert_int_eq(j.cancels, 1);
    flow_resume(&j.flow, 0, NULL); /* waits again: with a whole deadline, not an expired one */
    pass(&w, 99);
    ck_assert_int_eq(j.cancels, 1);
    pass(&w, 1);
    ck_assert_int_eq(j.cancels, 2);
    flow_resume(&j.flow, ERR_CANCELLED, NULL);
    flow_resume(&j.flow, 0, NULL);
    job_fini(&j);
}
END_TEST

START_TEST(flow_that_runs_in_circles_fails)
{
    struct world w;
    world_init(&w);
    struct job j = {.circle = true};
    start(&j, &w);

    turn(&w);

    ck_assert_int_eq(j.ended, 1);
    ck_assert_int_eq(j.flow.final_rc, ERR_LOOP);
    ck_assert_str_eq(j.flow.err.text, "flow job runs in circles in step ASK");
    job_fini(&j);
}
END_TEST

START_TEST(flow_that_is_resumed_too_often_fails)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true, .poll = true};
    start(&j, &w);
    turn(&w);

    unsigned n = 0;
    while (!j.ended && n <= FLOW_MAX_RESUMES) {
        flow_resume(&j.flow, 0, NULL);
        n++;
    }

    ck_assert_uint_eq(n, FLOW_MAX_RESUMES);
    ck_assert_int_eq(j.flow.final_rc, ERR_LOOP);
    job_fini(&j);
}
END_TEST

/* Parent with one child: CALL starts it and waits for it. */
enum { CALL, CALL_DONE };
struct caller {
    struct flow flow;
    struct job *child;
    int rc;
    char text[ERR_TEXT_MAX];
    int child_freed; /* the child's on_end had run when we were resumed */
};

static enum flow_next step_call(struct flow *f)
{
    struct caller *c = container_of(f, struct caller, flow);
    if (f->entered) {
        c->child = xcalloc(1, sizeof(*c->child));
        c->child->flow.on_end = on_job_end;
        flow_start(&c->child->flow, &job_type, f->env, f);
        return FLOW_WAIT;
    }
    c->rc = f->rc;
    c->child_freed = c->child->freed;
    memcpy(c->text, f->err.text, sizeof(c->text));
    return flow_goto(f, CALL_DONE);
}

static void cancel_call(struct flow *f)
{
    flow_cancel(&container_of(f, struct caller, flow)->child->flow);
}

static enum flow_next step_call_done(struct flow *f)
{
    struct caller *c = container_of(f, struct caller, flow);
    job_fini(c->child);
    free(c->child);
    return FLOW_END;
}

static const struct flow_step caller_steps[] = {
    [CALL] = {"CALL", step_call, FLOW_TO(CALL_DONE), 1000, cancel_call, NULL, false},
    [CALL_DONE] = {"CALL_DONE", step_call_done, 0, 0, NULL, NULL, false},
};
static const struct flow_type caller_type = {"caller", caller_steps, 2};

START_TEST(parent_is_resumed_on_a_later_turn_with_the_childs_error)
{
    struct world w;
    world_init(&w);
    struct caller c = {0};
    flow_start(&c.flow, &caller_type, &w.env, NULL);
    settle(&w);

    struct err e;
    (void)err_set(&e, ERR_STORE, "store is away");
    flow_resume(&c.child->flow, ERR_STORE, &e);
    flow_resume(&c.child->flow, 0, NULL);
    ck_assert_int_eq(c.child->ended, 1);
    ck_assert_int_eq(c.rc, 0); /* not inside the child's own resume */
    settle(&w);

    ck_assert_int_eq(c.rc, ERR_STORE);
    ck_assert_str_eq(c.text, "ask: store is away");
    ck_assert_int_eq(c.child_freed, 1);
    ck_assert(c.flow.ended);
    ck_assert(list_empty(&w.env.live));
}
END_TEST

START_TEST(cancel_of_a_parent_travels_through_its_child)
{
    struct world w;
    world_init(&w);
    struct caller c = {0};
    flow_start(&c.flow, &caller_type, &w.env, NULL);
    settle(&w);

    flow_cancel(&c.flow);
    settle(&w);
    flow_resume(&c.child->flow, 0, NULL); /* CLEAN */
    settle(&w);

    ck_assert_int_eq(c.rc, ERR_CANCELLED);
    ck_assert(c.flow.ended);
}
END_TEST

START_TEST(cancel_of_a_child_that_has_just_ended_is_harmless)
{
    struct world w;
    world_init(&w);
    struct caller c = {0};
    flow_start(&c.flow, &caller_type, &w.env, NULL);
    settle(&w);
    for (int i = 0; i < 4; i++) {
        flow_resume(&c.child->flow, 0, NULL);
    }

    flow_cancel(&c.flow); /* between the child's END and the parent's resume */
    settle(&w);

    ck_assert_int_eq(c.rc, 0);
    ck_assert(c.flow.ended);
}
END_TEST

START_TEST(ended_flow_can_be_started_again)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    for (int round = 1; round <= 2; round++) {
        start(&j, &w);
        settle(&w);
        for (int i = 0; i < 4; i++) {
            flow_resume(&j.flow, 0, NULL);
        }
        ck_assert_int_eq(j.ended, round);
    }
    job_fini(&j);
}
END_TEST

START_TEST(what_lies_in_the_arena_before_the_start_stays)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    j.note = arena_strdup(&j.flow.arena, "early");
    start(&j, &w);
    flow_cancel(&j.flow);
    settle(&w);
    flow_resume(&j.flow, 0, NULL);

    ck_assert_str_eq(j.note_at_end, "early");
    job_fini(&j);
}
END_TEST

START_TEST(table_check_names_what_is_wrong)
{
    static const struct flow_step far[] = {
        {"A", step_ask, FLOW_TO(5), 0, NULL, NULL, false},
        {"END", step_done, 0, 0, NULL, NULL, false},
    };
    static const struct flow_step lost[] = {
        {"A", step_ask, FLOW_TO(0), 0, NULL, NULL, false},
        {"END", step_done, 0, 0, NULL, NULL, false},
    };
    static const struct flow_step on[] = {
        {"A", step_ask, FLOW_TO(1), 0, NULL, NULL, false},
        {"END", step_done, FLOW_TO(0), 0, NULL, NULL, false},
    };

    ck_assert_ptr_null(flow_type_check(&job_type));
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"t", far, 2}),
                     "a successor is no step of the flow");
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"t", lost, 2}),
                     "a step, or END, cannot be reached from the first step");
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"t", on, 2}),
                     "the last step is END: it has no successor and no wait");
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"", on, 2}), "the flow has no name");
}
END_TEST

START_TEST(graph_shows_every_step_and_arrow)
{
    auto_buf struct buf out;
    buf_init(&out);

    flow_graph(&job_type, &out);

    ck_assert_str_eq(buf_str(&out),
                     "stateDiagram-v2\n"
                     "    ASK: ASK - asks, then, waits (at most 100 ms)\n"
                     "    WORK: WORK - works (at most 100 ms)\n"
                     "    COMMIT: COMMIT - point of no return (at most 500 ms) [not cancellable]\n"
                     "    [*] --> ASK\n"
                     "    ASK --> WORK\n"
                     "    ASK --> CLEAN\n"
                     "    WORK --> COMMIT\n"
                     "    WORK --> CLEAN\n"
                     "    COMMIT --> CLEAN\n"
                     "    CLEAN --> DONE\n"
                     "    DONE --> [*]\n");
}
END_TEST

int main(void)
{
    log_setup("flow_test", LOG_ERROR, LOG_FORM_TEXT);
    TCase *tc = tcase_create("flow");
    tcase_add_test(tc, first_run_is_on_the_next_turn_and_the_way_leads_to_one_end);
    tcase_add_test(tc, error_of_a_wait_is_seen_with_its_sentence_and_stays_the_first_cause);
    tcase_add_test(tc, deadline_without_a_cancel_function_ends_the_wait_with_a_timeout);
    tcase_add_test(tc, deadline_of_an_operation_reaches_the_step_as_a_timeout_not_as_a_cancel);
    tcase_add_test(tc, result_that_beats_the_cancel_of_a_deadline_counts);
    tcase_add_test(tc, cancel_ends_the_operation_once_and_the_flow_decides_where_that_leads);
    tcase_add_test(tc, cancel_of_a_wait_without_operation_comes_on_the_next_turn);
    tcase_add_test(tc, completion_that_beats_a_pending_cancel_wins_and_nothing_is_run_twice);
    tcase_add_test(tc, cancel_before_the_first_run_ends_the_first_wait);
    tcase_add_test(tc, shielded_wait_is_not_touched_by_a_cancel_but_the_next_one_is);
    tcase_add_test(tc, deadline_counts_from_the_entry_of_the_step_however_often_it_waits);
    tcase_add_test(tc, flow_that_runs_in_circles_fails);
    tcase_add_test(tc, flow_that_is_resumed_too_often_fails);
    tcase_add_test(tc, parent_is_resumed_on_a_later_turn_with_the_childs_error);
    tcase_add_test(tc, cancel_of_a_parent_travels_through_its_child);
    tcase_add_test(tc, cancel_of_a_child_that_has_just_ended_is_harmless);
    tcase_add_test(tc, ended_flow_can_be_started_again);
    tcase_add_test(tc, what_lies_in_the_arena_before_the_start_stays);
    tcase_add_test(tc, table_check_names_what_is_wrong);
    tcase_add_test(tc, graph_shows_every_step_and_arrow);
    Suite *s = suite_create("flow");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
