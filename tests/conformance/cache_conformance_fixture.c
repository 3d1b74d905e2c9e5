/* The fixture of the cache conformance tests. */
#include "tests/conformance/cache_conformance_fixture.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct ms rig_now(struct rig *r)
{
    return r->is_sim ? r->time.now : loop_now(r->loop);
}

void rig_step(struct rig *r)
{
    if (!r->is_sim) {
        (void)loop_turn(r->loop, MS(50));
    } else if (!sim_time_step(&r->time)) {
        sim_time_pass(&r->time, MS(50));
    }
}

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

char redis_say(struct rig *r, size_t n, const struct slice *args)
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

void end_left_behind(void)
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

void rig_init(struct rig *r, int which)
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

void rig_fini(struct rig *r)
{
    if (r->is_sim) {
        cache_world_free(r->world);
        return;
    }
    server_kill(r);
    loop_free(r->loop);
    ck_assert_int_eq(rmdir(r->dir), 0);
}

void rig_down(struct rig *r)
{
    if (r->is_sim) {
        cache_world_down(r->world);
    } else {
        server_kill(r);
    }
}

void rig_up(struct rig *r)
{
    if (r->is_sim) {
        cache_world_flush(r->world);
        cache_world_up(r->world);
    } else {
        server_start(r);
    }
}

void rig_flush(struct rig *r)
{
    if (r->is_sim) {
        cache_world_flush(r->world);
    } else {
        struct slice args[] = {SLICE("FLUSHALL")};
        (void)redis_say(r, 1, args);
    }
}

void rig_poke(struct rig *r, uint64_t unit, struct slice value)
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

void on_state(void *data, bool is_confirmed, const char *why)
{
    struct mirror *m = data;
    ck_assert(why && *why);
    if (is_confirmed) {
        m->n_confirmed++;
    } else {
        m->n_lost++;
    }
}

void mirror_open(struct mirror *m, struct rig *r)
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

void mirror_ready(struct mirror *m, struct rig *r)
{
    mirror_open(m, r);
    until(r, cache_confirmed(m->cache));
    ck_assert_int_eq(m->n_synced, 1);
}

void on_closed(void *data)
{
    ((struct mirror *)data)->is_closed = true;
}

void mirror_close(struct mirror *m)
{
    cache_close(m->cache, on_closed, m);
    until(m->rig, m->is_closed);
    cache_free(m->cache);
}

static void on_put_done(struct cache_put *p)
{
    ((struct put *)p->data)->n_done++;
}

void put_start(struct put *p, struct mirror *m, uint64_t unit, uint64_t epoch, struct slice packed)
{
    *p = (struct put){
        .put = {.unit = unit, .epoch = epoch, .packed = packed, .done = on_put_done, .data = p}};
    cache_put_start(m->cache, &p->put);
    ck_assert_int_eq(p->n_done, 0);
}

int64_t put(struct mirror *m, uint64_t unit, uint64_t epoch, struct slice packed)
{
    struct put p;
    put_start(&p, m, unit, epoch, packed);
    until(m->rig, p.n_done == 1);
    ck_assert(!p.put.rc == !p.put.err.code);
    return p.put.rc ? p.put.rc : (int64_t)p.put.in_force;
}
