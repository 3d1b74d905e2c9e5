/* The simulated network under faults, and scripted time. */
#include "common/bus/bus_sim.h"
#include "common/log/log.h"
#include "tests/support/suite.h"

enum { CALLERS = 3, CALLS = 40 };
static const char url[] = "ipc:///call";

struct storm {
    struct sim_time time;
    struct bus_world *world;
    struct bus *planner;
    struct bus *callers[CALLERS];
    int n_requests, n_answered, n_failed, n_done;
};
struct ask {
    struct bus_call call;
    struct storm *storm;
    int n_done;
};

static struct bus *end_new(struct storm *s, const char *instance, uint8_t boot)
{
    struct bus_identity me = {.instance = instance, .key = SLICE("key")};
    memset(me.boot.b, boot, sizeof(me.boot.b));
    return bus_sim_new(s->world, &me);
}

/* Answers with the caller's own bytes. */
static void on_request(void *data, struct bus_request *r)
{
    struct storm *s = data;
    s->n_requests++;
    bus_reply_packed(r, slice_make(r->request_id, 16));
}

static void planner_start(struct storm *s)
{
    s->planner = end_new(s, "planner", 200);
    ck_assert_int_eq(bus_serve(s->planner, url, 8, on_request, s, NULL), 0);
}

static void on_done(struct bus_call *c)
{
    struct ask *a = container_of(c, struct ask, call);
    a->n_done++;
    a->storm->n_done++;
    if (c->rc == 0) {
        ck_assert(slice_eq(c->reply, slice_make(c->request_id, 16)));
        a->storm->n_answered++;
    } else {
        a->storm->n_failed++;
    }
}

static void storm_init(struct storm *s, uint64_t seed, const struct bus_faults *faults)
{
    *s = (struct storm){0};
    sim_time_init(&s->time, seed);
    s->world = bus_world_new(&s->time);
    bus_world_set_faults(s->world, faults);
    planner_start(s);
    const char *urls[] = {url};
    for (int i = 0; i < CALLERS; i++) {
        s->callers[i] = end_new(s, "caller", (uint8_t)i);
        ck_assert_int_eq(bus_dial(s->callers[i], urls, 1, NULL), 0);
    }
}

static void storm_fini(struct storm *s)
{
    for (int i = 0; i < CALLERS; i++) {
        bus_sim_crash(s->callers[i]);
    }
    bus_sim_crash(s->planner);
    bus_world_free(s->world);
}

static void ask_start(struct storm *s, struct ask *a, int caller, int64_t timeout_ms)
{
    *a = (struct ask){.storm = s,
                      .call = {.kind = BUS_GET_RUN, .timeout = MS(timeout_ms), .done = on_done}};
    ck_assert_int_eq(bus_call_start(s->callers[caller], &a->call), 0);
}

/* A run of calls under the faults; what happened, for comparison. */
static struct bus_world_stats storm_run(uint64_t seed, const struct bus_faults *faults,
                                        struct storm *s)
{
    storm_init(s, seed, faults);
    struct ask *asks = xcalloc(CALLERS * CALLS, sizeof(*asks));
    for (int i = 0; i < CALLERS * CALLS; i++) {
        ask_start(s, &asks[i], i % CALLERS, 30000);
        sim_time_pass(&s->time, MS(20));
    }
    while (s->n_done < CALLERS * CALLS) {
        ck_assert(sim_time_step(&s->time));
    }
    sim_time_pass(&s->time, MS(60000)); /* nothing comes twice */
    for (int i = 0; i < CALLERS * CALLS; i++) {
        ck_assert_int_eq(asks[i].n_done, 1);
    }
    struct bus_world_stats stats = *bus_world_stats(s->world);
    free(asks);
    storm_fini(s);
    return stats;
}

static const struct bus_faults bad_weather = {.delay_least = {1},
                                              .delay_most = {30},
                                              .reconnect_least = {10},
                                              .reconnect_most = {500},
                                              .drop = 100,
                                              .duplicate = 100,
                                              .reorder = 100,
                                              .cut = 30};

START_TEST(every_call_is_answered_once_in_bad_weather)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct storm s;
        struct bus_world_stats stats = storm_run(seed, &bad_weather, &s);

        ck_assert_msg(s.n_failed == 0, "seed %llu: %d calls failed", (unsigned long long)seed,
                      s.n_failed);
        ck_assert_int_ge(s.n_requests, CALLERS * CALLS);
        ck_assert(stats.dropped && stats.duplicated && stats.reordered && stats.cut);
    }
}
END_TEST

START_TEST(the_same_seed_gives_the_same_run)
{
    struct storm s;
    struct bus_world_stats one = storm_run(7, &bad_weather, &s);
    struct bus_world_stats same = storm_run(7, &bad_weather, &s);
    struct bus_world_stats other = storm_run(8, &bad_weather, &s);

    ck_assert_mem_eq(&one, &same, sizeof(one));
    ck_assert(memcmp(&one, &other, sizeof(one)) != 0);
}
END_TEST

START_TEST(without_faults_each_request_comes_once_and_nothing_is_lost)
{
    struct storm s;
    struct bus_faults none = {0};

    struct bus_world_stats stats = storm_run(1, &none, &s);

    ck_assert_int_eq(s.n_requests, CALLERS * CALLS);
    ck_assert_uint_eq(stats.sent, 2 * CALLERS * CALLS);
    ck_assert_uint_eq(stats.delivered, stats.sent);
}
END_TEST

START_TEST(a_crash_of_the_server_is_noticed_and_its_successor_answers)
{
    struct storm s;
    struct bus_faults slow = {.delay_least = {10}, .delay_most = {10}};
    struct ask a;
    storm_init(&s, 3, &slow);
    sim_time_pass(&s.time, MS(200));
    ask_start(&s, &a, 0, 10000);
    sim_time_pass(&s.time, MS(5)); /* the request is on its way */

    bus_sim_crash(s.planner);
    sim_time_pass(&s.time, MS(1000));
    ck_assert_int_eq(a.n_done, 0);
    planner_start(&s);
    sim_time_pass(&s.time, MS(3000));

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, 0);
    storm_fini(&s);
}
END_TEST

START_TEST(a_crash_of_the_caller_leaves_the_server_alone)
{
    struct storm s;
    struct bus_faults slow = {.delay_least = {10}, .delay_most = {10}};
    struct ask a;
    struct ask b;
    storm_init(&s, 3, &slow);
    sim_time_pass(&s.time, MS(200));
    ask_start(&s, &a, 0, 10000);
    sim_time_pass(&s.time, MS(15)); /* the answer is on its way */

    bus_sim_crash(s.callers[0]);
    ask_start(&s, &b, 1, 10000);
    sim_time_pass(&s.time, MS(1000));

    ck_assert_int_eq(a.n_done, 0); /* nobody is left to be told */
    ck_assert_int_eq(b.call.rc, 0);
    s.callers[0] = end_new(&s, "caller", 9);
    storm_fini(&s);
}
END_TEST

START_TEST(a_cut_end_is_reached_again_when_it_heals)
{
    struct storm s;
    struct bus_faults none = {0};
    struct ask a;
    struct ask b;
    storm_init(&s, 3, &none);
    sim_time_pass(&s.time, MS(200));

    bus_sim_cut(s.callers[0]);
    ask_start(&s, &a, 0, 1000);
    ask_start(&s, &b, 0, 9000);
    sim_time_pass(&s.time, MS(2000));
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    ck_assert_int_eq(b.n_done, 0);
    bus_sim_heal(s.callers[0]);
    sim_time_pass(&s.time, MS(200));

    ck_assert_int_eq(b.n_done, 1);
    ck_assert_int_eq(b.call.rc, 0);
    storm_fini(&s);
}
END_TEST

/* ---- scripted time ---- */
struct tick {
    struct sim_event ev;
    char name;
    char *log;
};

static void on_tick(struct sim_event *ev)
{
    struct tick *t = container_of(ev, struct tick, ev);
    t->log[strlen(t->log)] = t->name;
}

START_TEST(events_run_by_time_and_then_by_order)
{
    struct sim_time t;
    char log[8] = "";
    struct tick ticks[4] = {{{.fn = on_tick}, 'a', log},
                            {{.fn = on_tick}, 'b', log},
                            {{.fn = on_tick}, 'c', log},
                            {{.fn = on_tick}, 'd', log}};
    sim_time_init(&t, 1);

    sim_time_set(&t, &ticks[0].ev, MS(20));
    sim_time_set(&t, &ticks[1].ev, MS(10));
    sim_time_set(&t, &ticks[2].ev, MS(10));
    sim_time_set(&t, &ticks[3].ev, MS(5));
    sim_time_unset(&ticks[3].ev);
    ck_assert_int_eq(sim_time_due(&t).v, 10);
    sim_time_pass(&t, MS(15));
    ck_assert_str_eq(log, "bc");
    ck_assert_int_eq(t.now.v, 15);
    sim_time_set(&t, &ticks[0].ev, MS(1));
    ck_assert(sim_time_step(&t));
    ck_assert(!sim_time_step(&t));

    ck_assert_str_eq(log, "bca");
    ck_assert_int_eq(t.now.v, 16);
}
END_TEST

/* A flow that waits for a deadline. */
static enum flow_next step_wait(struct flow *f)
{
    if (f->entered) {
        return FLOW_WAIT;
    }
    return flow_goto(f, 1);
}

static enum flow_next step_end(struct flow *f)
{
    (void)f;
    return FLOW_END;
}

START_TEST(a_flow_runs_on_scripted_time)
{
    static const struct flow_step steps[] = {
        {.name = "wait", .run = step_wait, .to = FLOW_TO(1), .wait_ms = 700, .says = "waits"},
        {.name = "end", .run = step_end, .says = "ends"}};
    static const struct flow_type type = {.name = "waiter", .steps = steps, .n = 2};
    struct sim_time t;
    struct flow f = {0};
    sim_time_init(&t, 1);

    flow_start(&f, &type, sim_time_flows(&t), NULL);
    sim_time_pass(&t, MS(699));
    ck_assert(!f.ended);
    sim_time_pass(&t, MS(1));

    ck_assert(f.ended);
    ck_assert(list_empty(&sim_time_flows(&t)->live));
}
END_TEST

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("bus sim");
    TCase *t = tcase_create("all");
    tcase_add_test(t, every_call_is_answered_once_in_bad_weather);
    tcase_add_test(t, the_same_seed_gives_the_same_run);
    tcase_add_test(t, without_faults_each_request_comes_once_and_nothing_is_lost);
    tcase_add_test(t, a_crash_of_the_server_is_noticed_and_its_successor_answers);
    tcase_add_test(t, a_crash_of_the_caller_leaves_the_server_alone);
    tcase_add_test(t, a_cut_end_is_reached_again_when_it_heals);
    tcase_add_test(t, events_run_by_time_and_then_by_order);
    tcase_add_test(t, a_flow_runs_on_scripted_time);
    suite_add_tcase(s, t);
    return suite_run(s);
}
