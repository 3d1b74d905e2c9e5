/* Workers on real threads: snapshots go from the main loop to every shelf, count as applied when
 * the last worker has swapped, and are freed by the main loop when the last holder is done; errands
 * come back once. */
#include "http_client.h"
#include "services/gateway/binder/binder.h"
#include "tests/support/suite.h"
#include <semaphore.h>

enum { WORKERS = 2 };

static struct {
    struct gateway g;
    struct gw_settings set;
    struct gw_binder b;
    struct gw_unit unit;
    struct gw_load *load;
    bool closed;
} fx;

/* ---- the world ---- */
static void open_nothing(struct gw_worker *w)
{
    must(w->g == &fx.g);
}

static void close_nothing(struct gw_worker *w)
{
    w->closed(w);
}

static void on_closed(struct gateway *g)
{
    must(g == &fx.g);
    fx.closed = true;
}

static struct gw_load *load_new(void)
{
    Kiln__GetPackageRep rep = KILN__GET_PACKAGE_REP__INIT;
    rep.package_json = bus_str("{}");
    rep.plan_json = bus_str("{}");
    uint8_t packed[256];
    size_t len = kiln__get_package_rep__pack(&rep, packed);
    struct gw_load *l = gw_load_make(&fx.g, slice_make((char *)packed, len), "l1");
    must(l);
    gw_load_finish(l);
    return l;
}

static void set_up(void)
{
    static const struct gw_worker_kind kind = {.open = open_nothing, .close = close_nothing};
    memset(&fx, 0, sizeof(fx));
    fx.set = (struct gw_settings){.state_dir = "/nonexistent", .warehouse_sessions = 3};
    fx.g.loop = loop_new();
    fx.g.set = &fx.set;
    fx.g.binder = &fx.b;
    struct bus_identity me = {.instance = "test"};
    fx.g.bus = bus_new(fx.g.loop, &me);
    fx.b.g = &fx.g;
    map_init(&fx.b.units);
    map_init(&fx.b.names);
    list_init(&fx.b.waits);
    list_init(&fx.b.swaps);
    list_init(&fx.b.alive);
    fx.b.m_applied = metric_counter("applied", "", "");
    fx.b.m_auto_loaded = fx.b.m_applied;
    fx.unit = (struct gw_unit){.id = 7, .g = &fx.g, .environment = "dev", .name = "shop"};
    map_put_u64(&fx.b.units, 7, &fx.unit);
    map_put(&fx.b.names, SLICE("dev/shop"), &fx.unit);
    fx.load = load_new();
    gw_workers_start(&fx.g, WORKERS, &kind);
}

static void on_bus_closed(void *data)
{
    *(bool *)data = true;
}

static void tear_down(void)
{
    if (!fx.closed) {
        gw_workers_close(&fx.g, on_closed);
    }
    turn_until(fx.g.loop, fx.closed);
    ck_assert_ptr_null(fx.g.workers);
    gw_package_unref(fx.unit.in_force);
    turn_until(fx.g.loop, list_empty(&fx.b.alive));
    ck_assert_uint_eq(fx.load->refs, 1);
    gw_load_unref(fx.load);
    map_fini(&fx.b.units);
    map_fini(&fx.b.names);
    bool over = false;
    bus_close(fx.g.bus, on_bus_closed, &over);
    turn_until(fx.g.loop, over);
    bus_free(fx.g.bus);
    metrics_reset();
    loop_free(fx.g.loop);
}

static struct gw_worker *worker(unsigned i)
{
    return &fx.g.workers->list[i];
}

static void apply(uint64_t epoch)
{
    Kiln__BindingSet set = KILN__BINDING_SET__INIT;
    set.package_id = 7;
    set.epoch = epoch;
    set.environment = bus_str("dev");
    set.package = bus_str("shop");
    set.cause = bus_str("test");
    binder_apply(&fx.unit, gw_package_make(fx.load, &set));
}

static size_t n_alive(void)
{
    size_t n = 0;
    list_for_each (it, &fx.b.alive) {
        n++;
    }
    return n;
}

/* ---- something to do on a worker ---- */
struct job {
    struct inbox_item item;
    struct gw_worker *w;
    void (*fn)(struct job *j);
    struct gw_package *p; /* in, out */
    uint64_t epoch;       /* out */
    sem_t go;
    atomic_bool done;
};

static void on_job(struct inbox_item *item)
{
    struct job *j = container_of(item, struct job, item);
    loop_assert_here(j->w->loop);
    j->fn(j);
    atomic_store(&j->done, true);
}

static void start_job(struct job *j, struct gw_worker *w, void (*fn)(struct job *j))
{
    j->w = w;
    j->fn = fn;
    j->item.fn = on_job;
    atomic_store(&j->done, false);
    loop_post(w->loop, &j->item);
}

static void run_job(struct job *j, struct gw_worker *w, void (*fn)(struct job *j))
{
    start_job(j, w, fn);
    turn_until(fx.g.loop, atomic_load(&j->done));
}

static void look(struct job *j)
{
    const struct gw_package *p = gw_shelf_find(j->w, "dev", "shop");
    j->epoch = p ? p->epoch : 0;
}

static void hold(struct job *j)
{
    j->p = gw_package_ref(gw_shelf_find(j->w, "dev", "shop"));
}

static void let_go(struct job *j)
{
    gw_package_unref(j->p);
}

static void be_busy(struct job *j)
{
    while (sem_wait(&j->go)) {
    }
}

static uint64_t seen_by(unsigned i)
{
    struct job j = {0};
    run_job(&j, worker(i), look);
    return j.epoch;
}

/* ---- snapshots ---- */
START_TEST(a_set_counts_as_applied_when_the_last_worker_has_swapped)
{
    struct job busy = {0};
    ck_assert_int_eq(sem_init(&busy.go, 0, 0), 0);
    ck_assert_uint_eq(binder_oldest(&fx.b, &fx.unit), 0);
    apply(5);
    ck_assert_uint_eq(binder_oldest(&fx.b, &fx.unit), 5); /* one of them may have it */
    turn_until(fx.g.loop, fx.unit.applied == 5);
    ck_assert_uint_eq(seen_by(0), 5);
    ck_assert_uint_eq(seen_by(1), 5);
    start_job(&busy, worker(1), be_busy);

    apply(6);
    turn_until(fx.g.loop, seen_by(0) == 6);
    for (int i = 0; i < 20; i++) {
        (void)loop_turn(fx.g.loop, MS(1));
    }
    ck_assert_uint_eq(fx.unit.applied, 5);
    ck_assert_uint_eq(binder_oldest(&fx.b, &fx.unit), 5);

    sem_post(&busy.go);
    turn_until(fx.g.loop, fx.unit.applied == 6);
    ck_assert_uint_eq(seen_by(1), 6);
    turn_until(fx.g.loop, n_alive() == 1);
    ck_assert_uint_eq(binder_oldest(&fx.b, &fx.unit), 6);
    sem_destroy(&busy.go);
}
END_TEST

START_TEST(a_query_keeps_its_snapshot_over_a_swap)
{
    struct job query = {0};
    apply(5);
    turn_until(fx.g.loop, fx.unit.applied == 5);
    run_job(&query, worker(1), hold);

    apply(6);
    turn_until(fx.g.loop, fx.unit.applied == 6);
    ck_assert_uint_eq(query.p->epoch, 5);
    ck_assert_str_eq(query.p->name, "shop");
    ck_assert_uint_eq(n_alive(), 2);
    ck_assert_uint_eq(binder_oldest(&fx.b, &fx.unit), 5);

    run_job(&query, worker(1), let_go);
    turn_until(fx.g.loop, n_alive() == 1);
    ck_assert_uint_eq(binder_oldest(&fx.b, &fx.unit), 6);
}
END_TEST

START_TEST(a_unit_that_goes_leaves_every_shelf)
{
    apply(5);
    turn_until(fx.g.loop, fx.unit.applied == 5);
    binder_unserve(&fx.unit);
    turn_until(fx.g.loop, list_empty(&fx.b.swaps));
    ck_assert_uint_eq(seen_by(0), 0);
    ck_assert_uint_eq(seen_by(1), 0);
    turn_until(fx.g.loop, fx.unit.in_force->refs == 1);
}
END_TEST

/* A worker that takes and gives back counts as fast as it can, in turns of its own. */
static void churn(struct job *j)
{
    struct gw_package *p = gw_shelf_find(j->w, "dev", "shop");
    ck_assert(p->epoch >= j->epoch); /* never back */
    j->epoch = p->epoch;
    gw_package_unref(j->p);
    j->p = gw_package_ref(p);
}

START_TEST(swaps_under_load_free_all_but_the_newest)
{
    struct job j[WORKERS] = {{.epoch = 0}, {.epoch = 0}};
    apply(1);
    turn_until(fx.g.loop, fx.unit.applied == 1);
    for (uint64_t epoch = 2; epoch <= 300; epoch++) {
        for (unsigned i = 0; i < WORKERS; i++) {
            if (epoch == 2 || atomic_load(&j[i].done)) {
                start_job(&j[i], worker(i), churn);
            }
        }
        apply(epoch);
        (void)loop_turn(fx.g.loop, MS(0));
    }
    turn_until(fx.g.loop, atomic_load(&j[0].done) && atomic_load(&j[1].done));
    turn_until(fx.g.loop, fx.unit.applied == 300);
    for (unsigned i = 0; i < WORKERS; i++) {
        run_job(&j[i], worker(i), let_go);
        ck_assert_uint_eq(seen_by(i), 300);
    }
    turn_until(fx.g.loop, n_alive() == 1);
}
END_TEST

/* A load that is under way when the gateway ends still comes into force: on the worker that has
 * requests left, and in vain on the one that is done. tear_down counts what stays alive. */
START_TEST(a_set_that_comes_while_workers_end_stays_on_none)
{
    struct job busy = {0};
    ck_assert_int_eq(sem_init(&busy.go, 0, 0), 0);
    apply(5);
    turn_until(fx.g.loop, fx.unit.applied == 5);
    start_job(&busy, worker(1), be_busy);
    gw_workers_close(&fx.g, on_closed);
    apply(6);
    turn_until(fx.g.loop, seen_by(0) == 0);
    ck_assert(!fx.closed);

    sem_post(&busy.go);
    turn_until(fx.g.loop, fx.closed);
    turn_until(fx.g.loop, list_empty(&fx.b.swaps));
    turn_until(fx.g.loop, n_alive() == 1);
    ck_assert_uint_eq(fx.unit.in_force->epoch, 6);
    sem_destroy(&busy.go);
}
END_TEST

START_TEST(warehouse_sessions_are_shared_out)
{
    ck_assert_uint_eq(worker(0)->sessions, 2);
    ck_assert_uint_eq(worker(1)->sessions, 1);
}
END_TEST

/* ---- waits ---- */
struct waiter {
    struct job job;
    struct gw_wait wait;
    atomic_uint n_done;
};

static void on_waited(struct gw_wait *q)
{
    struct waiter *a = q->data;
    loop_assert_here(a->job.w->loop);
    atomic_fetch_add(&a->n_done, 1);
}

static void start_wait(struct job *j)
{
    struct waiter *a = container_of(j, struct waiter, job);
    gw_wait_start(j->w, &a->wait);
}

static void cancel_wait(struct job *j)
{
    struct waiter *a = container_of(j, struct waiter, job);
    gw_wait_cancel(&a->wait);
    gw_wait_cancel(&a->wait);
}

static void waiter_init(struct waiter *a, uint64_t min_epoch)
{
    *a = (struct waiter){.wait = {.environment = "dev",
                                  .package = "shop",
                                  .min_epoch = min_epoch,
                                  .wait = MS(60000),
                                  .done = on_waited,
                                  .data = a}};
}

START_TEST(a_wait_ends_when_every_worker_has_the_epoch)
{
    struct waiter a;
    struct job busy = {0};
    ck_assert_int_eq(sem_init(&busy.go, 0, 0), 0);
    waiter_init(&a, 6);
    apply(5);
    run_job(&a.job, worker(0), start_wait);
    turn_until(fx.g.loop, fx.unit.applied == 5 && !list_empty(&fx.b.waits));
    start_job(&busy, worker(1), be_busy);

    apply(6);
    turn_until(fx.g.loop, seen_by(0) == 6);
    ck_assert_uint_eq(atomic_load(&a.n_done), 0);
    sem_post(&busy.go);
    turn_until(fx.g.loop, atomic_load(&a.n_done) == 1);
    ck_assert_int_eq(a.wait.rc, 0);
    ck_assert(!a.wait.is_gone);
    turn_until(fx.g.loop, atomic_load(&busy.done));
    sem_destroy(&busy.go);
}
END_TEST

START_TEST(a_cancelled_errand_comes_back_once)
{
    struct waiter a;
    waiter_init(&a, 9);
    run_job(&a.job, worker(1), start_wait);
    turn_until(fx.g.loop, !list_empty(&fx.b.waits));
    run_job(&a.job, worker(1), cancel_wait);
    turn_until(fx.g.loop, atomic_load(&a.n_done) == 1);
    ck_assert_int_eq(a.wait.rc, ERR_CANCELLED);
    ck_assert(a.wait.is_gone);
    ck_assert(list_empty(&fx.b.waits));
}
END_TEST

START_TEST(a_cancel_that_crosses_the_end_changes_nothing)
{
    struct waiter a;
    waiter_init(&a, 0);
    apply(5);
    turn_until(fx.g.loop, fx.unit.applied == 5);
    for (int i = 0; i < 50; i++) {
        run_job(&a.job, worker(1), start_wait);
        for (int turns = i % 3; turns > 0; turns--) {
            (void)loop_turn(fx.g.loop, MS(0));
        }
        run_job(&a.job, worker(1), cancel_wait);
        turn_until(fx.g.loop, atomic_load(&a.n_done) == (unsigned)i + 1);
        ck_assert_int_eq(a.wait.rc, 0); /* it is there: a cancel does not unsay it */
        ck_assert(list_empty(&fx.b.waits));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_worker");
    TCase *t = tcase_create("workers");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_set_counts_as_applied_when_the_last_worker_has_swapped);
    tcase_add_test(t, a_query_keeps_its_snapshot_over_a_swap);
    tcase_add_test(t, a_unit_that_goes_leaves_every_shelf);
    tcase_add_test(t, swaps_under_load_free_all_but_the_newest);
    tcase_add_test(t, a_set_that_comes_while_workers_end_stays_on_none);
    tcase_add_test(t, warehouse_sessions_are_shared_out);
    tcase_add_test(t, a_wait_ends_when_every_worker_has_the_epoch);
    tcase_add_test(t, a_cancelled_errand_comes_back_once);
    tcase_add_test(t, a_cancel_that_crosses_the_end_changes_nothing);
    suite_add_tcase(s, t);
    return suite_run(s);
}
