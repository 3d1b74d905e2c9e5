/* What only a real Redis does. */
#include "tests/conformance/cache_conformance_fixture.h"
#include "tests/conformance/cache_conformance_suites.h"

#include <signal.h>
#include <stdio.h>

START_TEST(a_forgotten_script_is_sent_again)
{
    struct rig r;
    struct mirror a;
    struct slice flush[] = {SLICE("SCRIPT"), SLICE("FLUSH")};
    rig_init(&r, REDIS);
    mirror_ready(&a, &r);

    (void)redis_say(&r, 2, flush);
    ck_assert_int_eq(put(&a, 1, 1, SLICE("x")), 1);
    ck_assert_int_eq(put(&a, 1, 2, SLICE("x")), 2);

    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_key_of_the_wrong_type_is_cleared)
{
    struct rig r;
    struct mirror a;
    char key[96];
    char id[UUID_TEXT];
    rig_init(&r, REDIS);
    mirror_ready(&a, &r);
    uuid_format(&r.installation, id);
    (void)snprintf(key, sizeof(key), "kiln:%s:b:4", id);
    struct slice spoil[] = {SLICE("HSET"), slice_of(key), SLICE("f"), SLICE("v")};
    (void)redis_say(&r, 4, spoil);
    until(&r, a.n_synced == 2);

    ck_assert_int_eq(put(&a, 4, 1, SLICE("x")), 1);

    until(&r, a.epoch[4] == 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

static void lost_connection_is_noticed(const char *type)
{
    struct rig r;
    struct mirror a;
    struct slice kill_it[] = {SLICE("CLIENT"), SLICE("KILL"),   SLICE("TYPE"),
                              slice_of(type),  SLICE("SKIPME"), SLICE("yes")};
    rig_init(&r, REDIS);
    mirror_ready(&a, &r);

    (void)redis_say(&r, 6, kill_it);
    until(&r, a.n_lost == 1);
    until(&r, cache_confirmed(a.cache));

    ck_assert_int_eq(a.n_synced, 2);
    ck_assert_int_eq(put(&a, 1, 1, SLICE("x")), 1);
    until(&r, a.epoch[1] == 1);
    mirror_close(&a);
    rig_fini(&r);
}

START_TEST(a_killed_connection_of_either_kind_leads_to_another_sync)
{
    lost_connection_is_noticed("normal");
    lost_connection_is_noticed("pubsub");
}
END_TEST

START_TEST(a_server_that_hangs_is_unconfirmed_by_silence)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, REDIS);
    mirror_ready(&a, &r);
    struct ms start = rig_now(&r);

    ck_assert_int_eq(kill(r.server, SIGSTOP), 0);
    ck_assert_int_eq(put(&a, 1, 1, SLICE("x")), ERR_REDIS); /* its deadline of 2 s */
    ck_assert_int_lt(rig_now(&r).v - start.v, 4000);
    until(&r, !cache_confirmed(a.cache));
    ck_assert_int_lt(rig_now(&r).v - start.v, 11000);
    ck_assert_int_eq(kill(r.server, SIGCONT), 0);
    until(&r, cache_confirmed(a.cache));

    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_wrong_password_is_said_without_the_password)
{
    struct rig r;
    struct mirror a = {.rig = &r};
    struct cache_events ev = {.data = &a, .on_state = on_state};
    struct uuid boot = uuid_random();
    struct err e = {0};
    rig_init(&r, REDIS);

    ck_assert(!cache_open(r.loop, "me:hunter22@nowhere", &r.installation, &boot, &ev, &e));
    ck_assert(e.code == ERR_CONF && !strstr(e.text, "hunter22"));
    a.cache = cache_open(r.loop, "me:hunter22@localhost:1", &r.installation, &boot, &ev, &e);
    ck_assert(a.cache != NULL);
    until(&r, a.n_lost == 1);

    struct put p;
    put_start(&p, &a, 1, 1, SLICE("x"));
    until(&r, p.n_done == 1);
    ck_assert_int_eq(p.put.rc, ERR_REDIS);
    ck_assert(strstr(p.put.err.text, "localhost:1") && !strstr(p.put.err.text, "hunter22"));
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

/* How many sockets a child would inherit. */
static int sockets_of_a_child(void)
{
    return system("n=0; for f in /proc/self/fd/*; do case $(readlink $f) in socket:*) "
                  "n=$((n+1));; esac; done; exit $n");
}

START_TEST(children_do_not_inherit_the_connections)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, REDIS);
    int before = sockets_of_a_child();

    mirror_ready(&a, &r);

    ck_assert_int_eq(sockets_of_a_child(), before);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

TCase *cache_conformance_redis_tests(void)
{
    TCase *t = tcase_create("redis");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_forgotten_script_is_sent_again);
    tcase_add_test(t, a_key_of_the_wrong_type_is_cleared);
    tcase_add_test(t, a_killed_connection_of_either_kind_leads_to_another_sync);
    tcase_add_test(t, a_server_that_hangs_is_unconfirmed_by_silence);
    tcase_add_test(t, a_wrong_password_is_said_without_the_password);
    tcase_add_test(t, children_do_not_inherit_the_connections);
    return t;
}
