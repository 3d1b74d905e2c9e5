/* loop.h on scripted time: each process has its own; one task, one timer or one half of an offload
 * per event of the world, so that a process can die between any two. */
#include "tests/sim/trio_world.h"

enum { TIMERS_AT_FIRST = 64 };

struct loop {
    struct sim_time *time;
    struct proc *proc;          /* NULL: the world's */
    struct loop_timer **timers; /* by due, then by the order of their starts */
    size_t n, cap;
    struct list tasks;                     /* of struct loop_task */
    struct list offloads;                  /* of struct offload */
    struct inbox_item *inbox, **inbox_end; /* oldest first */
    struct flow_env env;
    struct sim_event wake;
};
struct offload {
    struct list link;
    struct offload_job *job;
    bool worked;
};

/* ---- when it wakes ---- */
static void rearm(struct loop *l)
{
    struct ms due = MS_NONE;
    if (!list_empty(&l->tasks) || !list_empty(&l->offloads) || l->inbox) {
        due = l->time->now;
    } else if (l->n) {
        due = ms_max(l->timers[0]->due, l->time->now);
    }
    if (l->proc && due.v != INT64_MAX) {
        due = ms_max(due, l->proc->frozen);
    }
    if (due.v == INT64_MAX) {
        sim_time_unset(&l->wake);
    } else if (!list_linked(&l->wake.link) || l->wake.due.v != due.v) {
        sim_time_set(l->time, &l->wake, ms_sub(due, l->time->now));
    }
}

static void take_out(struct loop *l, size_t at)
{
    l->timers[at]->heap_at = 0;
    l->n--;
    for (; at < l->n; at++) {
        l->timers[at] = l->timers[at + 1];
        l->timers[at]->heap_at = at + 1;
    }
}

static void run_timer(struct loop *l)
{
    if (l->n && !ms_before(l->time->now, l->timers[0]->due)) {
        struct loop_timer *t = l->timers[0];
        take_out(l, 0);
        t->fn(t);
    }
}

/* The work is one event, that it is known another. */
static void run_offload(struct loop *l)
{
    struct offload *o = list_entry(l->offloads.next, struct offload, link);
    struct offload_job *job = o->job;
    if (!o->worked) {
        o->worked = true;
        list_del(&o->link);
        list_add_tail(&l->offloads, &o->link);
        job->work_offload(job);
        return;
    }
    list_del(&o->link);
    free(o);
    job->done(job);
}

static void run_item(struct loop *l)
{
    struct inbox_item *item = l->inbox;
    l->inbox = item->next;
    l->inbox_end = l->inbox ? l->inbox_end : &l->inbox;
    item->fn(item);
}

static void on_wake(struct sim_event *ev)
{
    struct loop *l = container_of(ev, struct loop, wake);
    if (l->proc && ms_before(l->time->now, l->proc->frozen)) {
        rearm(l);
        return;
    }
    struct proc *before = proc_enter(l->proc);
    struct list *task = list_take_head(&l->tasks);
    if (task) {
        struct loop_task *t = list_entry(task, struct loop_task, link);
        t->fn(t);
    } else if (l->inbox) {
        run_item(l);
    } else if (!list_empty(&l->offloads)) {
        run_offload(l);
    } else {
        run_timer(l);
    }
    proc_leave(before);
    rearm(l);
}

/* ---- flows ---- */
static struct loop *loop_of(struct flow_env *env)
{
    return container_of(env, struct loop, env);
}

static struct ms env_now(struct flow_env *env)
{
    return loop_of(env)->time->now;
}

static void on_deadline(struct loop_timer *t)
{
    flow_deadline(t->data);
}

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
    loop_timer_start(f->timer, ms_sub(at, env_now(env)));
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

struct flow_env *loop_flows(struct loop *l)
{
    return &l->env;
}

/* ---- life ---- */
struct loop *loop_sim_new(struct sim_time *t, struct proc *p)
{
    struct loop *l = xcalloc(1, sizeof(*l));
    l->time = t;
    l->proc = p;
    l->cap = TIMERS_AT_FIRST;
    l->timers = xcalloc(l->cap, sizeof(struct loop_timer *));
    list_init(&l->tasks);
    list_init(&l->offloads);
    l->inbox_end = &l->inbox;
    l->env = (struct flow_env){.now = env_now, .arm = env_arm, .defer = env_defer};
    list_init(&l->env.live);
    l->wake.fn = on_wake;
    return l;
}

void loop_sim_drop(struct loop *l)
{
    sim_time_unset(&l->wake);
    for (struct list *it; (it = list_take_head(&l->offloads)) != NULL;) {
        free(list_entry(it, struct offload, link));
    }
    free(l->timers);
    free(l);
}

void loop_stop(struct loop *l)
{
    (void)l;
}

struct ms loop_now(struct loop *l)
{
    return l->time->now;
}

int64_t loop_unix_us(void)
{
    return world_unix_us(world_now());
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    (void)l;
    must(!"a handle in the simulation");
    return NULL;
}

void loop_assert_here(const struct loop *l)
{
    must(!l->proc || l->proc == proc_now());
}

/* ---- timers ---- */
void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(struct loop_timer *),
                     void *data)
{
    *t = (struct loop_timer){.loop = l, .fn = fn, .data = data};
}

void loop_timer_start(struct loop_timer *t, struct ms after)
{
    struct loop *l = t->loop;
    loop_timer_stop(t);
    if (after.v == INT64_MAX) {
        return;
    }
    t->due = ms_add(l->time->now, ms_max(after, MS(0)));
    if (l->n == l->cap) {
        l->cap *= 2;
        l->timers = xrealloc(l->timers, l->cap * sizeof(struct loop_timer *));
    }
    size_t at = l->n++;
    for (; at > 0 && ms_before(t->due, l->timers[at - 1]->due); at--) {
        l->timers[at] = l->timers[at - 1];
        l->timers[at]->heap_at = at + 1;
    }
    l->timers[at] = t;
    t->heap_at = at + 1;
    rearm(l);
}

void loop_timer_stop(struct loop_timer *t)
{
    if (t->heap_at) {
        take_out(t->loop, t->heap_at - 1);
        rearm(t->loop);
    }
}

/* ---- tasks, offload, inbox ---- */
void loop_task_init(struct loop_task *t, void (*fn)(struct loop_task *), void *data)
{
    *t = (struct loop_task){.fn = fn, .data = data};
}

void loop_defer(struct loop *l, struct loop_task *t)
{
    if (!list_linked(&t->link)) {
        list_add_tail(&l->tasks, &t->link);
        rearm(l);
    }
}

void loop_task_cancel(struct loop_task *t)
{
    if (list_linked(&t->link)) {
        list_del(&t->link);
    }
}

void loop_offload(struct loop *l, struct offload_job *job)
{
    struct proc *before = proc_enter(NULL);
    struct offload *o = xcalloc(1, sizeof(*o));
    proc_leave(before);
    o->job = job;
    list_add_tail(&l->offloads, &o->link);
    rearm(l);
}

/* From the loop's own thread: there is no other in the simulation. */
void loop_post(struct loop *l, struct inbox_item *item)
{
    loop_assert_here(l);
    item->next = NULL;
    *l->inbox_end = item;
    l->inbox_end = &item->next;
    rearm(l);
}

/* ---- what needs a second loop ---- */
struct loop *loop_new(void)
{
    must(!"another loop in the simulation");
    return NULL;
}

void loop_free(struct loop *l)
{
    (void)l;
}

void loop_thread_start(struct loop_thread *t, struct loop *l)
{
    (void)t;
    (void)l;
    must(!"another thread in the simulation");
}

void loop_thread_join(struct loop_thread *t)
{
    (void)t;
}

/* As loop_free of the real one insists. */
const char *loop_sim_left(const struct loop *l)
{
    if (!list_empty(&l->env.live)) {
        return list_entry(l->env.live.next, struct flow, link)->type->name;
    }
    if (!list_empty(&l->offloads)) {
        return "an offload";
    }
    if (!list_empty(&l->tasks)) {
        return "a task";
    }
    if (l->inbox) {
        return "an item in the inbox";
    }
    return l->n ? "a timer" : NULL;
}
