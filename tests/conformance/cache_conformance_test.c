/* One suite for both caches: a private redis-server on a unix socket, and Redis in memory. */
#include "common/cache/cache_sim.h"
#include "common/log/log.h"
#include "tests/support/suite.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REDIS, SIM, RIGS };
enum { PATIENCE_MS = 20000, UNITS = 64 };
extern char **environ;

struct rig {
    bool is_sim;
    struct loop *loop;
    char dir[32], url[64], socket[48];
    pid_t server;
    struct sim_time time;
    struct cache_world *world;
    struct uuid installation;
};

static struct ms rig_now(struct rig *r)
{
    return r->is_sim ? r->time.now : loop_now(r->loop);
}

static void rig_step(struct rig *r)
{
    if (!r->is_sim) {
        (void)loop_turn(r->loop, MS(50));
    } else if (!sim_time_step(&r->time)) {
        sim_time_pass(&r->time, MS(50));
    }
}

#define until(r, claim)                                                                            \
    do {                                                                                           \
        struct ms limit = ms_add(rig_now(r), MS(PATIENCE_MS));                                     \
        while (!(claim)) {                                                                         \
            ck_assert_msg(ms_before(rig_now(r), limit), "never: " #claim);                         \
            rig_step(r);                                                                           \
        }                                                                                          \
    } while (0)

/* ---- the server ---- */
static int dial_redis(const struct rig *r)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, r->socket, sizeof(r->socket));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    if (connect(fd, (const struct sockaddr *)(const void *)&at, sizeof(at))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* One command of another client; the first byte of the answer. */
static char redis_say(struct rig *r, size_t n, const struct slice *args)
{
    auto_buf struct buf out;
    char in[256];
    buf_init(&out);
    buf_addf(&out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&out, "$%zu\r\n", args[i].len);
        buf_add_slice(&out, args[i]);
        buf_add_str(&out, "\r\n");
    }
    int fd = dial_redis(r);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, out.p, out.len), (ssize_t)out.len);
    ck_assert_int_gt(read(fd, in, sizeof(in)), 0);
    close(fd);
    ck_assert_msg(in[0] != '-', "%.60s", in);
    return in[0];
}

/* A test that fails leaves its server behind: the next start, or the end of the program, ends it.
 */
static pid_t left_behind;

static void end_left_behind(void)
{
    if (left_behind) {
        (void)kill(left_behind, SIGKILL);
        (void)waitpid(left_behind, NULL, 0);
        left_behind = 0;
    }
}

static void server_start(struct rig *r)
{
    end_left_behind();

    char *argv[] = {
        "redis-server", "--port", "0",     "--unixsocket", r->socket,   "--save",    "",
        "--appendonly", "no",     "--dir", r->dir,         "--logfile", "/dev/null", NULL};
    ck_assert_int_eq(posix_spawnp(&r->server, argv[0], NULL, NULL, argv, environ), 0);
    left_behind = r->server;
    int fd = -1;
    for (struct ms limit = ms_add(loop_now(r->loop), MS(PATIENCE_MS)); fd < 0;) {
        ck_assert_msg(ms_before(loop_now(r->loop), limit), "redis-server does not start");
        fd = dial_redis(r);
        (void)loop_turn(r->loop, MS(10));
    }
    close(fd);
}

static void server_kill(struct rig *r)
{
    ck_assert_int_eq(kill(r->server, SIGKILL), 0);
    ck_assert_int_eq(waitpid(r->server, NULL, 0), r->server);
    left_behind = 0;
    (void)unlink(r->socket);
}

static void rig_init(struct rig *r, int which)
{
    *r = (struct rig){.is_sim = which == SIM, .installation = uuid_random()};
    if (r->is_sim) {
        sim_time_init(&r->time, 11);
        r->world = cache_world_new(&r->time);
        const struct cache_faults slow = {.delay_least = MS(1), .delay_most = MS(5)};
        cache_world_set_faults(r->world, &slow);
        return;
    }
    r->loop = loop_new();
    (void)snprintf(r->dir, sizeof(r->dir), "/tmp/krdXXXXXX");
    ck_assert(mkdtemp(r->dir) != NULL);
    (void)snprintf(r->socket, sizeof(r->socket), "%s/r", r->dir);
    (void)snprintf(r->url, sizeof(r->url), "unix:%s", r->socket);
    server_start(r);
}

static void rig_fini(struct rig *r)
{
    if (r->is_sim) {
        cache_world_free(r->world);
        return;
    }
    server_kill(r);
    loop_free(r->loop);
    ck_assert_int_eq(rmdir(r->dir), 0);
}

static void rig_down(struct rig *r)
{
    if (r->is_sim) {
        cache_world_down(r->world);
    } else {
        server_kill(r);
    }
}

/* The server comes back empty, as without persistence. */
static void rig_up(struct rig *r)
{
    if (r->is_sim) {
        cache_world_flush(r->world);
        cache_world_up(r->world);
    } else {
        server_start(r);
    }
}

static void rig_flush(struct rig *r)
{
    if (r->is_sim) {
        cache_world_flush(r->world);
    } else {
        struct slice args[] = {SLICE("FLUSHALL")};
        (void)redis_say(r, 1, args);
    }
}

static void rig_poke(struct rig *r, uint64_t unit, struct slice value)
{
    char key[96];
    char id[UUID_TEXT];
    if (r->is_sim) {
        cache_world_poke(r->world, &r->installation, unit, value);
        return;
    }
    uuid_format(&r->installation, id);
    (void)snprintf(key, sizeof(key), "kiln:%s:b:%llu", id, (unsigned long long)unit);
    struct slice args[] = {value.p ? SLICE("SET") : SLICE("DEL"), slice_of(key), value};
    (void)redis_say(r, value.p ? 3 : 2, args);
}

/* ---- a mirror that remembers ---- */
struct mirror {
    struct rig *rig;
    struct cache *cache;
    uint64_t epoch[UNITS];
    char packed[UNITS][32];
    int n_sets, n_synced, n_confirmed, n_lost;
    bool is_closed;
};

static void on_set(void *data, uint64_t unit, uint64_t epoch, struct slice packed)
{
    struct mirror *m = data;
    ck_assert_uint_lt(unit, UNITS);
    m->epoch[unit] = epoch;
    (void)snprintf(m->packed[unit], sizeof(m->packed[unit]), "%.*s", SLICE_FMT(packed));
    m->n_sets++;
}

static void on_synced(void *data)
{
    ((struct mirror *)data)->n_synced++;
}

static void on_state(void *data, bool is_confirmed, const char *why)
{
    struct mirror *m = data;
    ck_assert(why && *why);
    if (is_confirmed) {
        m->n_confirmed++;
    } else {
        m->n_lost++;
    }
}

static void mirror_open(struct mirror *m, struct rig *r)
{
    struct cache_events ev = {
        .data = m, .on_set = on_set, .on_synced = on_synced, .on_state = on_state};
    struct uuid boot = uuid_random();
    struct err e = {0};
    *m = (struct mirror){.rig = r};
    m->cache = r->is_sim ? cache_sim_open(r->world, &r->installation, &ev)
                         : cache_open(r->loop, r->url, &r->installation, &boot, &ev, &e);
    ck_assert_msg(m->cache != NULL, "%s", e.text);
    ck_assert(!cache_confirmed(m->cache));
}

static void mirror_ready(struct mirror *m, struct rig *r)
{
    mirror_open(m, r);
    until(r, cache_confirmed(m->cache));
    ck_assert_int_eq(m->n_synced, 1);
}

static void on_closed(void *data)
{
    ((struct mirror *)data)->is_closed = true;
}

static void mirror_close(struct mirror *m)
{
    cache_close(m->cache, on_closed, m);
    until(m->rig, m->is_closed);
    cache_free(m->cache);
}

struct put {
    struct cache_put put;
    int n_done;
};

static void on_put_done(struct cache_put *p)
{
    ((struct put *)p->data)->n_done++;
}

static void put_start(struct put *p, struct mirror *m, uint64_t unit, uint64_t epoch,
                      struct slice packed)
{
    *p = (struct put){
        .put = {.unit = unit, .epoch = epoch, .packed = packed, .done = on_put_done, .data = p}};
    cache_put_start(m->cache, &p->put);
    ck_assert_int_eq(p->n_done, 0);
}

/* Puts and waits; the epoch in force, or the error. */
static int64_t put(struct mirror *m, uint64_t unit, uint64_t epoch, struct slice packed)
{
    struct put p;
    put_start(&p, m, unit, epoch, packed);
    until(m->rig, p.n_done == 1);
    ck_assert(!p.put.rc == !p.put.err.code);
    return p.put.rc ? p.put.rc : (int64_t)p.put.in_force;
}

START_TEST(a_put_is_seen_by_every_mirror)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    mirror_ready(&b, &r);

    ck_assert_int_eq(put(&a, 7, 1732900000000001, SLICE("set")), 1732900000000001);

    until(&r, a.n_sets && b.n_sets);
    ck_assert_uint_eq(b.epoch[7], 1732900000000001);
    ck_assert_str_eq(b.packed[7], "set");
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(a_mirror_that_opens_later_reads_what_is_there)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    for (uint64_t unit = 0; unit < UNITS; unit++) {
        ck_assert_int_eq(put(&a, unit, 100 + unit, SLICE("x")), (int64_t)(100 + unit));
    }

    mirror_ready(&b, &r);

    ck_assert_int_eq(b.n_sets, UNITS); /* all of them before the first on_synced */
    for (uint64_t unit = 0; unit < UNITS; unit++) {
        ck_assert_uint_eq(b.epoch[unit], 100 + unit);
    }
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(only_a_greater_epoch_replaces_a_set)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    ck_assert_int_eq(put(&a, 1, 20, SLICE("twenty")), 20);
    ck_assert_int_eq(put(&a, 1, 19, SLICE("older")), 20);
    ck_assert_int_eq(put(&a, 1, 20, SLICE("equal")), 20);
    until(&r, a.epoch[1] == 20);
    ck_assert_str_eq(a.packed[1], "twenty");
    ck_assert_int_eq(put(&a, 1, 21, SLICE("newer")), 21);

    until(&r, a.epoch[1] == 21);
    ck_assert_str_eq(a.packed[1], "newer");
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_set_may_hold_any_bytes_and_none)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    ck_assert_int_eq(put(&a, 1, 1, SLICE("a\0b\r\n\xff")), 1);
    ck_assert_int_eq(put(&a, 2, 1, SLICE_NONE), 1);
    until(&r, a.epoch[1] && a.epoch[2]);

    ck_assert_str_eq(a.packed[1], "a");
    ck_assert_str_eq(a.packed[2], "");
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(another_installation_is_not_heard)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    r.installation = uuid_random();
    mirror_ready(&b, &r);

    ck_assert_int_eq(put(&a, 1, 5, SLICE("a's")), 5);
    ck_assert_int_eq(put(&b, 2, 6, SLICE("b's")), 6);
    until(&r, a.epoch[1] == 5 && b.epoch[2] == 6);

    ck_assert_uint_eq(a.epoch[2], 0);
    ck_assert_uint_eq(b.epoch[1], 0);
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(a_lost_server_makes_the_mirror_unconfirmed_and_its_return_syncs_it)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    mirror_ready(&b, &r);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("old")), 5);

    rig_down(&r);
    until(&r, !cache_confirmed(a.cache) && !cache_confirmed(b.cache));
    ck_assert_int_eq(put(&a, 1, 6, SLICE("lost")), ERR_REDIS);
    rig_up(&r);
    until(&r, cache_confirmed(a.cache) && cache_confirmed(b.cache));

    ck_assert_int_eq(a.n_synced, 2);
    ck_assert_int_eq(b.n_synced, 2);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("again")), 5); /* Redis came back empty */
    until(&r, strcmp(b.packed[1], "again") == 0);
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(a_server_that_is_not_there_yet_is_waited_for)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    rig_down(&r);
    mirror_open(&a, &r);
    struct put p;
    put_start(&p, &a, 1, 1, SLICE("x"));
    until(&r, p.n_done == 1);
    ck_assert_int_eq(p.put.rc, ERR_REDIS);

    rig_up(&r);
    until(&r, cache_confirmed(a.cache));

    ck_assert_int_eq(a.n_synced, 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_flush_leads_to_another_sync)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("old")), 5);
    until(&r, a.n_sets == 1);

    rig_flush(&r);
    until(&r, a.n_synced == 2);

    ck_assert(cache_confirmed(a.cache));
    ck_assert_int_eq(put(&a, 1, 5, SLICE("again")), 5);
    until(&r, strcmp(a.packed[1], "again") == 0);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_deleted_or_foreign_value_leads_to_another_sync)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("old")), 5);
    until(&r, a.n_sets == 1);

    rig_poke(&r, 1, SLICE_NONE);
    until(&r, a.n_synced == 2);
    rig_poke(&r, 1, SLICE("rubbish"));
    until(&r, a.n_synced == 3);
    rig_poke(&r, 1, SLICE("99999999999999999999 too large for 64 bits"));
    until(&r, a.n_synced == 4);

    ck_assert_int_eq(a.n_sets, 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(rubbish_is_overwritten_by_any_epoch)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    rig_poke(&r, 1, SLICE("hello"));
    mirror_ready(&a, &r);

    ck_assert_int_eq(put(&a, 1, 1, SLICE("set")), 1);

    until(&r, a.epoch[1] == 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_change_by_someone_else_is_seen)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    rig_poke(&r, 3, SLICE("00000000000000000009nine"));

    until(&r, a.epoch[3] == 9);
    ck_assert_str_eq(a.packed[3], "nine");
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_set_over_the_cap_is_refused)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    size_t len = (size_t)8 << 20;
    char *big = xcalloc(1, len + 1);

    ck_assert_int_eq(put(&a, 1, 1, slice_make(big, len + 1)), ERR_LIMIT);
    ck_assert_int_eq(put(&a, 1, 1, slice_make(big, len)), 1);
    until(&r, a.epoch[1] == 1);

    free(big);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(closing_ends_puts_with_shutdown)
{
    struct rig r;
    struct mirror a;
    struct put p;
    struct put late;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    put_start(&p, &a, 1, 1, SLICE("x"));
    cache_close(a.cache, on_closed, &a);
    put_start(&late, &a, 1, 2, SLICE("x"));
    until(&r, a.is_closed);

    ck_assert_int_eq(p.n_done, 1);
    ck_assert_int_eq(p.put.rc, ERR_SHUTDOWN);
    ck_assert_int_eq(late.n_done, 1);
    ck_assert_int_eq(late.put.rc, ERR_SHUTDOWN);
    cache_free(a.cache);
    rig_fini(&r);
}
END_TEST

/* ---- Redis alone ---- */
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

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    (void)atexit(end_left_behind);
    Suite *s = suite_create("cache conformance");
    TCase *t = tcase_create("both");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_put_is_seen_by_every_mirror, REDIS, RIGS);
    tcase_add_loop_test(t, a_mirror_that_opens_later_reads_what_is_there, REDIS, RIGS);
    tcase_add_loop_test(t, only_a_greater_epoch_replaces_a_set, REDIS, RIGS);
    tcase_add_loop_test(t, a_set_may_hold_any_bytes_and_none, REDIS, RIGS);
    tcase_add_loop_test(t, another_installation_is_not_heard, REDIS, RIGS);
    tcase_add_loop_test(t, a_lost_server_makes_the_mirror_unconfirmed_and_its_return_syncs_it,
                        REDIS, RIGS);
    tcase_add_loop_test(t, a_server_that_is_not_there_yet_is_waited_for, REDIS, RIGS);
    tcase_add_loop_test(t, a_flush_leads_to_another_sync, REDIS, RIGS);
    tcase_add_loop_test(t, a_deleted_or_foreign_value_leads_to_another_sync, REDIS, RIGS);
    tcase_add_loop_test(t, rubbish_is_overwritten_by_any_epoch, REDIS, RIGS);
    tcase_add_loop_test(t, a_change_by_someone_else_is_seen, REDIS, RIGS);
    tcase_add_loop_test(t, a_set_over_the_cap_is_refused, REDIS, RIGS);
    tcase_add_loop_test(t, closing_ends_puts_with_shutdown, REDIS, RIGS);
    suite_add_tcase(s, t);
    TCase *only = tcase_create("redis");
    tcase_set_timeout(only, 60);
    tcase_add_test(only, a_forgotten_script_is_sent_again);
    tcase_add_test(only, a_key_of_the_wrong_type_is_cleared);
    tcase_add_test(only, a_killed_connection_of_either_kind_leads_to_another_sync);
    tcase_add_test(only, a_server_that_hangs_is_unconfirmed_by_silence);
    tcase_add_test(only, a_wrong_password_is_said_without_the_password);
    tcase_add_test(only, children_do_not_inherit_the_connections);
    suite_add_tcase(s, only);
    return suite_run(s);
}
