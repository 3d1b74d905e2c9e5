/* The end of kiln up: gateway, builders, planner, then the stores; what is left after 4 s is
 * killed. */
#include "common/log/log.h"
#include "services/kiln/up.h"
#include <signal.h>

enum { STOP_GATEWAY, STOP_BUILDERS, STOP_PLANNER, STOP_STORES, STOP_KILL, STOP_PHASES };
/* When each phase begins at the latest, in ms since the end began; earlier when the one before is
 * gone. */
static const int64_t begins_at[STOP_PHASES] = {0, 1500, 2300, 3000, 4000};
#define QUIT_MS 3700 /* PostgreSQL: end at once; the next start recovers */

static bool phase_is_gone(const struct up *u, int phase)
{
    bool gone = true;
    switch (phase) {
    case STOP_GATEWAY:
        return up_child_is_gone(&u->gateway);
    case STOP_BUILDERS:
        for (size_t i = 0; i < u->n_builders; i++) {
            gone = gone && up_child_is_gone(&u->builders[i]);
        }
        return gone;
    case STOP_PLANNER:
        return up_child_is_gone(&u->planner);
    default:
        for (size_t i = 0; i < u->n_all; i++) {
            gone = gone && up_child_is_gone(u->all[i]);
        }
        return gone && (!u->has_postgres || u->pg.flow.ended);
    }
}

static void begin_phase(struct up *u)
{
    switch (u->phase) {
    case STOP_GATEWAY:
        up_child_stop(&u->gateway);
        return;
    case STOP_BUILDERS:
        for (size_t i = 0; i < u->n_builders; i++) {
            up_child_stop(&u->builders[i]);
        }
        return;
    case STOP_PLANNER:
        up_child_stop(&u->planner);
        return;
    case STOP_STORES:
        if (u->has_postgres) {
            up_child_stop(&u->pg.server);
        }
        if (u->has_redis) {
            up_child_stop(&u->redis);
        }
        return;
    default:
        for (size_t i = 0; i < u->n_all; i++) {
            if (!up_child_is_gone(u->all[i])) {
                log_warn("child.killed", "child=%s pid=%ld reason=\"did not end in time\"",
                         u->all[i]->name, (long)u->all[i]->pid);
                up_child_kill(u->all[i]);
            }
        }
    }
}

static void go_on(struct up *u)
{
    int64_t elapsed = ms_sub(loop_now(u->loop), u->stop_begun).v;
    while (u->phase + 1 < STOP_PHASES &&
           (phase_is_gone(u, u->phase) || elapsed >= begins_at[u->phase + 1])) {
        if (u->phase >= STOP_STORES && phase_is_gone(u, STOP_STORES)) {
            break;
        }
        u->phase++;
        begin_phase(u);
    }
    if (u->phase >= STOP_STORES && phase_is_gone(u, STOP_STORES)) {
        loop_timer_stop(&u->stop_timer);
        loop_stop(u->loop);
    }
}

static void on_stop_timer(struct loop_timer *t)
{
    struct up *u = t->data;
    int64_t elapsed = ms_sub(loop_now(u->loop), u->stop_begun).v;
    if (u->has_postgres && u->phase == STOP_STORES && elapsed >= QUIT_MS) {
        u->pg.server.stop_signal = SIGQUIT;
        up_child_stop(&u->pg.server);
    }
    loop_timer_start(t, MS(50));
    go_on(u);
}

void up_stop_child_gone(struct up *u)
{
    if (u->stopping) {
        go_on(u);
    }
}

void up_stop(struct up *u)
{
    if (u->stopping) {
        u->phase = STOP_KILL;
        begin_phase(u);
        return;
    }
    u->stopping = true;
    u->stop_begun = loop_now(u->loop);
    u->phase = STOP_GATEWAY;
    up_ready_stop(u);
    loop_timer_init(&u->stop_timer, u->loop, on_stop_timer, u);
    loop_timer_start(&u->stop_timer, MS(50));
    if (u->has_postgres && !u->pg.flow.ended) {
        flow_cancel(&u->pg.flow);
    }
    begin_phase(u);
}

void up_fail(struct up *u, const char *fmt, ...)
{
    if (u->stopping) {
        return;
    }
    auto_buf struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    u->failure = arena_strdup(&u->arena, buf_str(&text));
    u->exit_code = 1;
    up_stop(u);
}
