/* Keys, values and addresses of the cache, and the faults of its twin. */
#include "common/cache/cache_internal.h"
#include "common/cache/cache_sim.h"
#include "common/log/log.h"
#include "tests/support/suite.h"

static const struct uuid site = {{1, 2, 3}};

START_TEST(keys_of_our_installation_only_are_ours)
{
    struct cache c = {0};
    char key[CACHE_KEY_TEXT];
    uint64_t unit = 0;
    cache_base_init(&c, NULL, &(struct cache_events){0}, &site);

    cache_key_format(&c, UINT64_MAX, key);
    ck_assert_str_eq(key, "kiln:01020300-0000-0000-0000-000000000000:b:18446744073709551615");
    ck_assert(cache_key_parse(&c, slice_of(key), &unit));
    ck_assert(unit == UINT64_MAX);

    ck_assert(!cache_key_parse(&c, SLICE("kiln:01020300-0000-0000-0000-000000000000:b:"), &unit));
    ck_assert(!cache_key_parse(&c, SLICE("kiln:01020300-0000-0000-0000-000000000000:b:x"), &unit));
    ck_assert(!cache_key_parse(&c, SLICE("kiln:01020301-0000-0000-0000-000000000000:b:1"), &unit));
    ck_assert(!cache_key_parse(&c, SLICE_NONE, &unit));
}
END_TEST

START_TEST(values_begin_with_twenty_digits)
{
    char digits[CACHE_EPOCH_DIGITS + 1];
    uint64_t epoch = 0;
    struct slice packed;

    cache_epoch_format(1732900000000001, digits);
    ck_assert_str_eq(digits, "00001732900000000001");
    ck_assert(cache_value_parse(SLICE("00001732900000000001set"), &epoch, &packed));
    ck_assert_uint_eq(epoch, 1732900000000001);
    ck_assert(slice_is(packed, "set"));
    ck_assert(cache_value_parse(SLICE("18446744073709551615"), &epoch, &packed));
    ck_assert(epoch == UINT64_MAX && packed.len == 0);

    ck_assert(!cache_value_parse(SLICE("0000173290000000000"), &epoch, &packed));
    ck_assert(!cache_value_parse(SLICE("0000173290000000000x"), &epoch, &packed));
    ck_assert(!cache_value_parse(SLICE("-0001732900000000001"), &epoch, &packed));
    ck_assert(!cache_value_parse(SLICE("18446744073709551616"), &epoch, &packed));
    ck_assert(!cache_value_parse(SLICE_NONE, &epoch, &packed));
}
END_TEST

static struct cache_address address(const char *url)
{
    struct cache_address a;
    struct err e = {0};
    ck_assert_msg(cache_address_parse(url, &a, &e) == 0, "%s: %s", url, e.text);
    return a;
}

START_TEST(addresses_of_every_form_are_understood)
{
    struct cache_address a = address("unix:/run/kiln/r");
    ck_assert_str_eq(a.path, "/run/kiln/r");
    cache_address_fini(&a);
    a = address("redis:6379");
    ck_assert(!strcmp(a.host, "redis") && a.port == 6379 && !a.path && !a.password && a.db == 0);
    cache_address_fini(&a);
    a = address("127.0.0.1:6379/5");
    ck_assert(!strcmp(a.host, "127.0.0.1") && a.port == 6379 && a.db == 5);
    cache_address_fini(&a);
    a = address("[::1]:6379");
    ck_assert_str_eq(a.host, "::1");
    cache_address_fini(&a);
    a = address("me:p@ss:word@redis:1/2");
    ck_assert(!strcmp(a.user, "me") && !strcmp(a.password, "p@ss:word") && a.db == 2);
    char show[64];
    cache_address_show(&a, show, sizeof(show));
    ck_assert_str_eq(show, "redis:1");
    cache_address_fini(&a);
    a = address("secret@redis:1");
    ck_assert(!a.user && !strcmp(a.password, "secret"));
    cache_address_fini(&a);
}
END_TEST

START_TEST(bad_addresses_are_refused_without_their_password)
{
    static const char *const bad[] = {"",          "redis",          "redis:",
                                      "redis:0",   "redis:70000",    ":6379",
                                      "unix:",     "redis:6379/x",   "me:hunter22@redis",
                                      "[]:",       "me:hunter22@:1", "redis:63 79",
                                      "hunter22@", "redis:1/",       "redis:1/99999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cache_address a;
        struct err e = {0};
        ck_assert_msg(cache_address_parse(bad[i], &a, &e) == ERR_CONF, "%s", bad[i]);
        ck_assert(strstr(e.text, "host:port") && !strstr(e.text, "hunter22"));
    }
    char path[128] = "unix:/";
    memset(path + strlen(path), 'x', 107);
    struct cache_address a;
    struct err e = {0};
    ck_assert_int_eq(cache_address_parse(path, &a, &e), ERR_CONF);
    ck_assert(strstr(e.text, "108 bytes long") && strstr(e.text, "shorter run directory"));
}
END_TEST

/* ---- the twin ---- */
struct mirror {
    uint64_t epoch;
    int n_synced, n_lost;
};

static void on_set(void *data, uint64_t unit, uint64_t epoch, struct slice packed)
{
    (void)unit, (void)packed;
    ((struct mirror *)data)->epoch = epoch;
}

static void on_synced(void *data)
{
    ((struct mirror *)data)->n_synced++;
}

static void on_state(void *data, bool is_confirmed, const char *why)
{
    (void)why;
    ((struct mirror *)data)->n_lost += !is_confirmed;
}

struct world {
    struct sim_time time;
    struct cache_world *world;
    struct mirror mirror;
    struct cache *cache;
    int n_done;
};

static void world_init(struct world *w, const struct cache_faults *faults)
{
    *w = (struct world){0};
    sim_time_init(&w->time, 5);
    w->world = cache_world_new(&w->time);
    cache_world_set_faults(w->world, faults);
    struct cache_events ev = {
        .data = &w->mirror, .on_set = on_set, .on_synced = on_synced, .on_state = on_state};
    w->cache = cache_sim_open(w->world, &site, &ev);
    sim_time_pass(&w->time, MS(1000));
    ck_assert(cache_confirmed(w->cache));
}

static void world_fini(struct world *w)
{
    cache_sim_crash(w->cache);
    cache_world_free(w->world);
}

static void on_done(struct cache_put *p)
{
    ((struct world *)p->data)->n_done++;
}

static void put(struct world *w, struct cache_put *p, uint64_t epoch)
{
    *p = (struct cache_put){
        .unit = 1, .epoch = epoch, .packed = SLICE("x"), .done = on_done, .data = w};
    cache_put_start(w->cache, p);
}

START_TEST(a_put_lost_before_the_write_changes_nothing)
{
    struct world w;
    struct cache_put p;
    world_init(&w, &(struct cache_faults){.lose_before = 1000});

    put(&w, &p, 5);
    sim_time_pass(&w.time, MS(1000));

    ck_assert_int_eq(w.n_done, 1);
    ck_assert_int_eq(p.rc, ERR_REDIS);
    ck_assert_int_eq(w.mirror.n_lost, 1);
    ck_assert_int_eq(w.mirror.n_synced, 2);
    ck_assert_uint_eq(w.mirror.epoch, 0);
    world_fini(&w);
}
END_TEST

START_TEST(a_put_lost_after_the_write_is_seen_at_the_next_sync)
{
    struct world w;
    struct cache_put p;
    world_init(&w, &(struct cache_faults){.lose_after = 1000});

    put(&w, &p, 5);
    sim_time_pass(&w.time, MS(1000));

    ck_assert_int_eq(p.rc, ERR_REDIS);
    ck_assert_int_eq(w.mirror.n_synced, 2);
    ck_assert_uint_eq(w.mirror.epoch, 5);
    world_fini(&w);
}
END_TEST

START_TEST(a_crash_in_the_middle_of_a_put_calls_nobody)
{
    struct world w;
    struct cache_put p;
    world_init(&w, &(struct cache_faults){.delay_least = MS(10), .delay_most = MS(10)});

    put(&w, &p, 5);
    sim_time_pass(&w.time, MS(5));
    world_fini(&w);
    sim_time_pass(&w.time, MS(1000));

    ck_assert_int_eq(w.n_done, 0);
}
END_TEST

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("cache");
    TCase *t = tcase_create("all");
    tcase_add_test(t, keys_of_our_installation_only_are_ours);
    tcase_add_test(t, values_begin_with_twenty_digits);
    tcase_add_test(t, addresses_of_every_form_are_understood);
    tcase_add_test(t, bad_addresses_are_refused_without_their_password);
    tcase_add_test(t, a_put_lost_before_the_write_changes_nothing);
    tcase_add_test(t, a_put_lost_after_the_write_is_seen_at_the_next_sync);
    tcase_add_test(t, a_crash_in_the_middle_of_a_put_calls_nobody);
    suite_add_tcase(s, t);
    return suite_run(s);
}
