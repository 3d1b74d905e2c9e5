#include "common/log/log.h"
#include "common/loop/loop.h"
#include "tests/support/suite.h"
#include "tests/support/turn.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 5000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

struct seen {
    struct loop *loop;
    int order[16];
    int n;
    struct ms at;
};
struct mark {
    struct loop_timer timer;
    struct loop_task task;
    struct seen *seen;
    int id;
    struct mark *other;
};

static void on_timer(struct loop_timer *t)
{
    struct mark *m = t->data;
    m->seen->at = loop_now(t->loop);
    m->seen->order[m->seen->n++] = m->id;
}

static void on_timer_stops_other(struct loop_timer *t)
{
    struct mark *m = t->data;
    on_timer(t);
    loop_timer_stop(&m->other->timer);
}

static void on_timer_again(struct loop_timer *t)
{
    struct mark *m = t->data;
    on_timer(t);
    if (m->seen->n < 5) {
        loop_timer_start(t, MS(0));
    }
}

static void mark_init(struct mark *m, struct seen *s, int id, void (*fn)(struct loop_timer *))
{
    *m = (struct mark){.seen = s, .id = id};
    loop_timer_init(&m->timer, s->loop, fn, m);
}

START_TEST(timers_fire_in_order_of_their_due_time_and_not_early)
{
    struct seen s = {.loop = loop_new()};
    struct mark m[8];
    struct ms begun = loop_now(s.loop);
    const int after[8] = {40, 10, 30, 20, 50, 5, 35, 15};
    for (int i = 0; i < 8; i++) {
        mark_init(&m[i], &s, after[i], on_timer);
        loop_timer_start(&m[i].timer, MS(after[i]));
    }
    loop_timer_stop(&m[2].timer);
    loop_timer_stop(&m[2].timer);

    turn_until(s.loop, s.n == 7);

    const int want[7] = {5, 10, 15, 20, 35, 40, 50};
    ck_assert_mem_eq(s.order, want, sizeof(want));
    ck_assert_int_ge(ms_sub(s.at, begun).v, 50);
    loop_free(s.loop);
}
END_TEST

static long ms_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
}

START_TEST(timer_stopped_by_another_in_the_same_turn_does_not_fire)
{
    struct seen s = {.loop = loop_new()};
    struct mark a, b, c;
    mark_init(&a, &s, 1, on_timer_stops_other);
    mark_init(&b, &s, 2, on_timer);
    mark_init(&c, &s, 3, on_timer);
    a.other = &b;
    loop_timer_start(&a.timer, MS(1));
    loop_timer_start(&b.timer, MS(2));
    loop_timer_start(&c.timer, MS(3));
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (ms_since(&start) < 5) { /* all three are due when the loop looks */
    }

    turn_until(s.loop, s.n == 2);

    ck_assert_int_eq(s.order[1], 3);
    loop_free(s.loop);
}
END_TEST

START_TEST(timer_can_start_itself_again_without_starving_the_loop)
{
    struct seen s = {.loop = loop_new()};
    struct mark a;
    mark_init(&a, &s, 1, on_timer_again);
    loop_timer_start(&a.timer, MS(0));

    turn_until(s.loop, s.n == 5);

    ck_assert_uint_eq(a.timer.heap_at, 0);
    loop_free(s.loop);
}
END_TEST

static void on_task(struct loop_task *t)
{
    struct mark *m = t->data;
    m->seen->order[m->seen->n++] = m->id;
}

static void on_task_defers(struct loop_task *t)
{
    struct mark *m = t->data;
    on_task(t);
    loop_defer(m->seen->loop, &m->other->task);
}

START_TEST(deferred_task_runs_on_the_next_turn_once_and_in_order)
{
    struct seen s = {.loop = loop_new()};
    struct mark a = {.seen = &s, .id = 1}, b = {.seen = &s, .id = 2}, c = {.seen = &s, .id = 3};
    a.other = &c;
    loop_task_init(&a.task, on_task_defers, &a);
    loop_task_init(&b.task, on_task, &b);
    loop_task_init(&c.task, on_task, &c);
    loop_defer(s.loop, &a.task);
    loop_defer(s.loop, &b.task);
    loop_defer(s.loop, &a.task);
    ck_assert_int_eq(s.n, 0);

    (void)loop_turn(s.loop, MS(PATIENCE));
    ck_assert_int_eq(s.n, 2); /* what a task defers is of the turn after */
    (void)loop_turn(s.loop, MS(PATIENCE));

    ck_assert_int_eq(s.n, 3);
    const int want[3] = {1, 2, 3};
    ck_assert_mem_eq(s.order, want, sizeof(want));
    loop_defer(s.loop, &a.task);
    loop_task_cancel(&a.task);
    ck_assert(!loop_turn(s.loop, MS(0)));
    ck_assert_int_eq(s.n, 3);
    loop_free(s.loop);
}
END_TEST

enum { PRODUCERS = 4, POSTS = 5000 };
struct letter {
    struct inbox_item item;
    struct mailbox *box;
    int from, no;
};
struct mailbox {
    struct loop *loop;
    int last[PRODUCERS];
    int n;
    bool out_of_order;
};

static void on_letter(struct inbox_item *item)
{
    struct letter *m = container_of(item, struct letter, item);
    loop_assert_here(m->box->loop);
    m->box->out_of_order |= m->no != m->box->last[m->from] + 1;
    m->box->last[m->from] = m->no;
    m->box->n++;
    free(m);
}

struct producer {
    pthread_t thread;
    struct mailbox *box;
    int id;
};

static void *produce(void *data)
{
    struct producer *p = data;
    for (int i = 1; i <= POSTS; i++) {
        struct letter *m = xcalloc(1, sizeof(*m));
        *m = (struct letter){.item.fn = on_letter, .box = p->box, .from = p->id, .no = i};
        loop_post(p->box->loop, &m->item);
    }
    return NULL;
}

START_TEST(inbox_takes_posts_of_many_threads_each_in_order)
{
    struct mailbox box = {.loop = loop_new()};
    struct producer p[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        p[i] = (struct producer){.box = &box, .id = i};
        ck_assert_int_eq(pthread_create(&p[i].thread, NULL, produce, &p[i]), 0);
    }

    turn_until(box.loop, box.n == PRODUCERS * POSTS);

    for (int i = 0; i < PRODUCERS; i++) {
        ck_assert_int_eq(pthread_join(p[i].thread, NULL), 0);
    }
    ck_assert(!box.out_of_order);
    loop_free(box.loop);
}
END_TEST

struct sum {
    struct offload_job job;
    struct loop *loop;
    pthread_t worker;
    int64_t total;
    bool done;
};

static void sum_offload(struct offload_job *job)
{
    struct sum *s = job->data;
    s->worker = pthread_self();
    for (int i = 1; i <= 1000; i++) {
        s->total += i;
    }
}

static void on_sum(struct offload_job *job)
{
    struct sum *s = job->data;
    loop_assert_here(s->loop);
    s->done = true;
}

START_TEST(offloaded_work_runs_elsewhere_and_its_end_on_the_loop)
{
    struct sum s = {.loop = loop_new()};
    s.job = (struct offload_job){.work_offload = sum_offload, .done = on_sum, .data = &s};
    loop_offload(s.loop, &s.job);
    ck_assert(!s.done);

    turn_until(s.loop, s.done);

    ck_assert_int_eq(s.total, 500500);
    ck_assert(!pthread_equal(s.worker, pthread_self()));
    loop_free(s.loop);
}
END_TEST

static void on_signal(void *data, int signum)
{
    struct seen *s = data;
    s->order[s->n++] = signum;
    loop_stop(s->loop);
}

START_TEST(signal_arrives_on_the_loop_and_stops_the_run)
{
    struct seen s = {.loop = loop_new()};
    loop_on_signal(s.loop, on_signal, &s);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);

    loop_run(s.loop);
    ck_assert_int_eq(kill(getpid(), SIGINT), 0);
    loop_run(s.loop);

    ck_assert_int_eq(s.n, 2);
    ck_assert_int_eq(s.order[0], SIGTERM);
    ck_assert_int_eq(s.order[1], SIGINT);
    loop_free(s.loop);
}
END_TEST

/* A flow on the real loop: sleeps into its deadline, then is asked again and cancelled. */
enum { NAP, NAP_TWO, AWAKE };
struct nap {
    struct flow flow;
    int rc[2];
    bool over;
};

static enum flow_next step_nap(struct flow *f)
{
    if (f->entered) {
        return FLOW_WAIT;
    }
    struct nap *n = container_of(f, struct nap, flow);
    n->rc[f->step] = f->rc;
    return flow_goto(f, f->step + 1);
}

static enum flow_next step_awake(struct flow *f)
{
    container_of(f, struct nap, flow)->over = true;
    return FLOW_END;
}

static const struct flow_step nap_steps[] = {
    [NAP] = {"NAP", step_nap, FLOW_TO(NAP_TWO), 10, NULL, NULL, false},
    [NAP_TWO] = {"NAP_TWO", step_nap, FLOW_TO(AWAKE), 60000, NULL, NULL, false},
    [AWAKE] = {"AWAKE", step_awake, 0, 0, NULL, NULL, false},
};
static const struct flow_type nap_type = {"nap", nap_steps, 3};

START_TEST(flow_runs_into_its_deadline_and_out_of_a_cancel_on_the_loop)
{
    struct loop *l = loop_new();
    struct nap n = {0};
    struct ms begun = loop_now(l);
    flow_start(&n.flow, &nap_type, loop_flows(l), NULL);

    turn_until(l, n.flow.step == NAP_TWO);
    ck_assert_int_eq(n.rc[NAP], ERR_TIMEOUT);
    ck_assert_int_ge(ms_sub(loop_now(l), begun).v, 10);
    flow_cancel(&n.flow);
    ck_assert(!n.over);
    turn_until(l, n.over);

    ck_assert_int_eq(n.rc[NAP_TWO], ERR_CANCELLED);
    ck_assert(!loop_turn(l, MS(0)));
    loop_free(l);
}
END_TEST

int main(void)
{
    log_setup("loop_test", LOG_ERROR, LOG_FORM_TEXT);
    TCase *tc = tcase_create("loop");
    tcase_add_test(tc, timers_fire_in_order_of_their_due_time_and_not_early);
    tcase_add_test(tc, timer_stopped_by_another_in_the_same_turn_does_not_fire);
    tcase_add_test(tc, timer_can_start_itself_again_without_starving_the_loop);
    tcase_add_test(tc, deferred_task_runs_on_the_next_turn_once_and_in_order);
    tcase_add_test(tc, inbox_takes_posts_of_many_threads_each_in_order);
    tcase_add_test(tc, offloaded_work_runs_elsewhere_and_its_end_on_the_loop);
    tcase_add_test(tc, signal_arrives_on_the_loop_and_stops_the_run);
    tcase_add_test(tc, flow_runs_into_its_deadline_and_out_of_a_cancel_on_the_loop);
    Suite *s = suite_create("loop");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
