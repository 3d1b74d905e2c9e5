/* One memory limit over the instances of a process. DuckDB knows limits of instances only: the sum
 * of them is kept at ours by moving them.
 *
 * An instance keeps what it has until another one needs it, so those that are asked all the time
 * pay nothing. Then idle ones give way: first what they do not use, then what they can write to
 * their temporary files or read again; then busy ones give what is beyond a fair share. */
#include "common/duck/duck_pool_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)
/* What it takes to read a small file: DuckDB reads NDJSON in two pieces of 32 MiB. */
#define SMALL (80 * MIB)
enum { FLOORS = 256, USUAL = 4, TURN_MS = 20, TURNS = 100 };

struct duck_budget {
    pthread_mutex_t lock;
    pthread_cond_t left;
    uint64_t bytes, given;
    struct list busy, idle; /* of struct duck_share; idle: longest idle first */
    size_t n_busy, n;
};

struct duck_budget *duck_budget_new(uint64_t bytes)
{
    struct duck_budget *b = xcalloc(1, sizeof(*b));
    must(pthread_mutex_init(&b->lock, NULL) == 0 && pthread_cond_init(&b->left, NULL) == 0);
    b->bytes = bytes > 2 * MIB ? bytes : 2 * MIB;
    list_init(&b->busy);
    list_init(&b->idle);
    return b;
}

void duck_budget_free(struct duck_budget *b)
{
    if (!b) {
        return;
    }
    must(b->n == 0 && b->given == 0);
    pthread_cond_destroy(&b->left);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

uint64_t duck_budget_given(struct duck_budget *b)
{
    pthread_mutex_lock(&b->lock);
    uint64_t given = b->given;
    pthread_mutex_unlock(&b->lock);
    return given;
}

uint64_t duck_instance_memory(struct duck_instance *i)
{
    struct duck_share *s = &i->share;
    if (!s->budget) {
        return 0;
    }
    pthread_mutex_lock(&s->budget->lock);
    uint64_t bytes = s->bytes;
    pthread_mutex_unlock(&s->budget->lock);
    return bytes;
}

static struct duck_share *share_of(struct list *it)
{
    return list_entry(it, struct duck_share, link);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- how much ---- */

static uint64_t room(const struct duck_budget *b)
{
    return b->bytes - b->given;
}

/* What an idle instance is left at the least. */
static uint64_t floor_of(const struct duck_budget *b)
{
    return max_u64(b->bytes / FLOORS, MIB);
}

static uint64_t small(const struct duck_budget *b)
{
    return min_u64(SMALL, b->bytes / 2);
}

/* What its statements need at the least, each of them. */
static uint64_t needed(const struct duck_budget *b, const struct duck_share *s)
{
    return min_u64(small(b) * s->running, b->bytes / 2);
}

/* A busy instance's part: a quarter, and less while more than four are busy. */
static uint64_t fair(const struct duck_budget *b)
{
    uint64_t floors = min_u64(floor_of(b) * (b->n - b->n_busy), b->bytes / 2);
    uint64_t part = (b->bytes - floors) / (b->n_busy > USUAL ? b->n_busy : USUAL);
    return max_u64(part, small(b));
}

/* ---- moving limits ---- */

static bool set_limit(struct duck_share *s, uint64_t bytes)
{
    char sql[64];
    struct err refused;
    (void)snprintf(sql, sizeof(sql), "SET memory_limit = '%" PRIu64 "B'", bytes);
    return duck_exec(s->conn, sql, &refused) == 0;
}

/* It stays where it is when DuckDB cannot do with so little right now. */
static void lower(struct duck_budget *b, struct duck_share *s, uint64_t bytes)
{
    if (bytes < s->bytes && set_limit(s, bytes)) {
        b->given -= s->bytes - bytes;
        s->bytes = bytes;
    }
}

static void lift(struct duck_budget *b, struct duck_share *s, uint64_t bytes)
{
    if (bytes > s->bytes && (!s->conn || set_limit(s, bytes))) {
        b->given += bytes - s->bytes;
        s->bytes = bytes;
    }
}

static uint64_t used(struct duck_share *s)
{
    struct arena a;
    arena_init(&a);
    const char *text;
    struct err unknown;
    int rc =
        duck_exec_value(s->conn, "SELECT sum(memory_usage_bytes)::UBIGINT FROM duckdb_memory()", &a,
                        &text, &unknown);
    uint64_t bytes = rc == 0 && text ? strtoull(text, NULL, 10) : s->bytes;
    arena_fini(&a);
    return bytes;
}

static void trim_idle(struct duck_budget *b, uint64_t need)
{
    list_for_each (it, &b->idle) {
        struct duck_share *s = share_of(it);
        if (room(b) >= need) {
            return;
        }
        if (s->conn && !s->is_trimmed) {
            s->is_trimmed = true;
            lower(b, s, max_u64(used(s) + MIB, floor_of(b)));
        }
    }
}

static void empty_idle(struct duck_budget *b, uint64_t need)
{
    list_for_each (it, &b->idle) {
        struct duck_share *s = share_of(it);
        if (room(b) >= need) {
            return;
        }
        if (s->conn && !s->is_emptied) {
            s->is_emptied = true;
            (void)duck_conns_forget(container_of(s, struct duck_instance, share), NULL);
            lower(b, s, floor_of(b));
        }
    }
}

static void cut_busy(struct duck_budget *b, const struct duck_share *but, uint64_t need)
{
    list_for_each (it, &b->busy) {
        struct duck_share *s = share_of(it);
        if (room(b) >= need) {
            return;
        }
        if (s->conn && s != but) {
            lower(b, s, fair(b));
        }
    }
}

/* At least so much for it if it can be had; half of what is free, if that is more. */
static void reach(struct duck_budget *b, struct duck_share *s, uint64_t bytes)
{
    if (s->bytes >= bytes) {
        return;
    }
    uint64_t need = bytes - s->bytes;
    trim_idle(b, need);
    empty_idle(b, need);
    cut_busy(b, s, need);
    lift(b, s, s->bytes + min_u64(room(b), max_u64(need, room(b) / 2)));
}

/* ---- jobs ---- */

/* Lets go of the lock. */
static void wait_turn(struct duck_budget *b)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TURN_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&b->left, &b->lock, &until);
}

void duck_budget_enter(struct duck_job *job)
{
    struct duck_share *s = &job->instance->share;
    struct duck_budget *b = s->budget;
    struct err stopped;
    if (!b) {
        return;
    }
    pthread_mutex_lock(&b->lock);
    if (s->running++ == 0) {
        list_del(&s->link);
        list_add_tail(&b->busy, &s->link);
        b->n_busy++;
        s->is_trimmed = s->is_emptied = false;
    }
    reach(b, s, max_u64(fair(b), needed(b, s)));
    for (int i = 0; i < TURNS && s->bytes < needed(b, s) && duck_job_stopped(job, &stopped) == 0;
         i++) {
        wait_turn(b);
        reach(b, s, max_u64(fair(b), needed(b, s)));
    }
    pthread_mutex_unlock(&b->lock);
}

static void leave(struct duck_budget *b, struct duck_share *s)
{
    if (--s->running == 0) {
        list_del(&s->link);
        list_add_tail(&b->idle, &s->link);
        b->n_busy--;
    }
    pthread_cond_broadcast(&b->left);
}

void duck_budget_leave(struct duck_job *job)
{
    struct duck_share *s = &job->instance->share;
    if (s->budget) {
        pthread_mutex_lock(&s->budget->lock);
        leave(s->budget, s);
        pthread_mutex_unlock(&s->budget->lock);
    }
}

/* One small share stays for whoever comes meanwhile. */
bool duck_job_more_memory(struct duck_job *job, struct duck_conn *conn)
{
    struct duck_share *s = &job->instance->share;
    struct duck_budget *b = s->budget;
    if (!b) {
        return false;
    }
    size_t n_given_up = duck_conns_forget(job->instance, conn);
    pthread_mutex_lock(&b->lock);
    uint64_t before = s->bytes;
    uint64_t kept = floor_of(b) * (b->n - 1) + (b->n_busy > 1 ? b->n_busy - 1 : 1) * small(b);
    reach(b, s, b->bytes > kept ? b->bytes - kept : 0);
    bool is_more = n_given_up > 0 || s->bytes > before + before / 4;
    pthread_mutex_unlock(&b->lock);
    return is_more;
}

/* ---- instances ---- */

int duck_budget_join(struct duck_budget *b, struct duck_instance *i, struct err *e)
{
    struct duck_share *s = &i->share;
    pthread_mutex_lock(&b->lock);
    list_init(&s->link);
    b->n++;
    b->n_busy++;
    s->budget = b;
    s->running = 1;
    list_add_tail(&b->busy, &s->link);
    reach(b, s, small(b));
    for (int k = 0; k < TURNS && s->bytes < MIB; k++) {
        wait_turn(b);
        reach(b, s, small(b));
    }
    bool has_some = s->bytes >= MIB;
    pthread_mutex_unlock(&b->lock);
    return has_some ? 0
                    : err_set(e, ERR_QUERY_MEMORY,
                              "%s: all of DuckDB's memory here is taken by statements that run; "
                              "give DuckDB more memory here (duckdb_memory), or ask again later",
                              i->what);
}

void duck_budget_joined(struct duck_instance *i, struct duck_conn *conn)
{
    struct duck_share *s = &i->share;
    pthread_mutex_lock(&s->budget->lock);
    s->conn = conn;
    leave(s->budget, s);
    pthread_mutex_unlock(&s->budget->lock);
}

struct duck_conn *duck_budget_quit(struct duck_instance *i)
{
    struct duck_share *s = &i->share;
    pthread_mutex_lock(&s->budget->lock);
    struct duck_conn *conn = s->conn;
    s->conn = NULL;
    s->budget->n_busy -= s->running > 0; /* it never came to be */
    list_del(&s->link);
    pthread_mutex_unlock(&s->budget->lock);
    return conn;
}

void duck_budget_return(struct duck_instance *i)
{
    struct duck_share *s = &i->share;
    pthread_mutex_lock(&s->budget->lock);
    s->budget->given -= s->bytes;
    s->budget->n--;
    pthread_cond_broadcast(&s->budget->left);
    pthread_mutex_unlock(&s->budget->lock);
}
