/* The real environment of flows: clock, deadlines and kicks of the loop. */
#include "common/loop/loop_internal.h"

static struct loop *loop_of(struct flow_env *env)
{
    return container_of(env, struct loop, env);
}

static struct ms env_now(struct flow_env *env)
{
    return loop_now(loop_of(env));
}

static void on_deadline(struct loop_timer *t)
{
    flow_deadline(t->data);
}

/* Timer and task live in the flow's arena: they die with it, and a flow that never waits has no
 * timer. */
static void env_arm(struct flow_env *env, struct flow *f, struct ms at)
{
    if (!f->timer) {
        if (at.v == INT64_MAX) {
            return;
        }
        f->timer = arena_alloc(&f->arena, sizeof(struct loop_timer));
        loop_timer_init(f->timer, loop_of(env), on_deadline, f);
    }
    if (at.v == INT64_MAX) {
        loop_timer_stop(f->timer);
        return;
    }
    loop_timer_start(f->timer, ms_sub(at, loop_now(loop_of(env))));
}

static void on_kick(struct loop_task *t)
{
    flow_kick(t->data);
}

static void env_defer(struct flow_env *env, struct flow *f)
{
    if (!f->task) {
        f->task = arena_alloc(&f->arena, sizeof(struct loop_task));
        loop_task_init(f->task, on_kick, f);
    }
    loop_defer(loop_of(env), f->task);
}

void loop_flow_setup(struct loop *l)
{
    l->env = (struct flow_env){.now = env_now, .arm = env_arm, .defer = env_defer};
    list_init(&l->env.live);
}

struct flow_env *loop_flows(struct loop *l)
{
    return &l->env;
}
