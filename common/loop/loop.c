#include "common/loop/loop_internal.h"
#include <signal.h>
#include <stdio.h>
#include <time.h>

static void on_turn_over(uv_timer_t *t)
{
    (void)t; /* the poll has ended, which was the point */
}

static void on_idle(uv_idle_t *idle)
{
    struct loop *l = container_of(idle, struct loop, idle);
    struct list now; /* what these tasks defer belongs to the next turn */
    list_init(&now);
    if (!list_empty(&l->tasks)) {
        now = l->tasks;
        now.next->prev = &now;
        now.prev->next = &now;
        list_init(&l->tasks);
    }
    bool ran = !list_empty(&now);
    for (struct list *it; (it = list_take_head(&now));) {
        struct loop_task *t = list_entry(it, struct loop_task, link);
        t->fn(t);
    }
    if (list_empty(&l->tasks) && !(l->in_turn && ran)) {
        (void)uv_idle_stop(&l->idle);
    }
}

void loop_note_progress(struct loop *l)
{
    if (l->in_turn) {
        (void)uv_idle_start(&l->idle, on_idle);
    }
}

static void on_uv_signal(uv_signal_t *handle, int signum)
{
    struct loop *l = handle->data;
    l->on_signal(l->signal_data, signum);
}

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof(*l));
    l->owner = pthread_self();
    must(uv_loop_init(&l->uv) == 0);
    must(uv_timer_init(&l->uv, &l->turn) == 0);
    must(uv_idle_init(&l->uv, &l->idle) == 0);
    must(uv_signal_init(&l->uv, &l->term) == 0);
    must(uv_signal_init(&l->uv, &l->intr) == 0);
    l->term.data = l;
    l->intr.data = l;
    list_init(&l->tasks);
    loop_timer_setup(l);
    loop_inbox_setup(l);
    loop_flow_setup(l);
    (void)signal(SIGPIPE, SIG_IGN);
    return l;
}

static void say_what_is_left(uv_handle_t *h, void *data)
{
    (void)data;
    (void)fprintf(stderr, "loop_free: a %s handle is left%s\n", uv_handle_type_name(h->type),
                  uv_is_closing(h) ? " (closing)" : "");
}

void loop_free(struct loop *l)
{
    must(list_empty(&l->env.live)); /* a flow has not ended */
    must(l->offloads == 0);
    uv_close((uv_handle_t *)&l->timer, NULL);
    uv_close((uv_handle_t *)&l->turn, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->term, NULL);
    uv_close((uv_handle_t *)&l->intr, NULL);
    for (int turns = 0; turns < 4 && uv_run(&l->uv, UV_RUN_NOWAIT); turns++) {
    }
    must(l->n_heap == 0); /* a timer is still armed */
    must(list_empty(&l->tasks));
    if (uv_loop_close(&l->uv)) {
        uv_walk(&l->uv, say_what_is_left, NULL);
        must(!"a handle is left open");
    }
    free(l->heap);
    free(l);
}

void loop_run(struct loop *l)
{
    l->owner = pthread_self();
    l->stopped = false;
    uv_ref((uv_handle_t *)&l->wake);
    while (!l->stopped) {
        (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    }
    uv_unref((uv_handle_t *)&l->wake);
}

void loop_stop(struct loop *l)
{
    loop_assert_here(l);
    l->stopped = true;
    uv_stop(&l->uv);
}

bool loop_turn(struct loop *l, struct ms max_wait)
{
    l->owner = pthread_self();
    l->in_turn = true;
    if (max_wait.v <= 0) {
        (void)uv_run(&l->uv, UV_RUN_NOWAIT);
    } else {
        uint64_t wait = max_wait.v == INT64_MAX ? UINT64_MAX : (uint64_t)max_wait.v;
        uv_update_time(&l->uv);
        (void)uv_timer_start(&l->turn, on_turn_over, wait, 0);
        (void)uv_run(&l->uv, UV_RUN_ONCE);
        (void)uv_timer_stop(&l->turn);
    }
    l->in_turn = false;
    return uv_loop_alive(&l->uv) || l->n_heap > 0 || !list_empty(&l->tasks) ||
           !list_empty(&l->env.live);
}

int64_t loop_unix_us(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    return &l->uv;
}

void loop_assert_here(const struct loop *l)
{
    must(pthread_equal(l->owner, pthread_self()));
}

void loop_task_init(struct loop_task *t, void (*fn)(struct loop_task *), void *data)
{
    t->fn = fn;
    t->data = data;
    list_init(&t->link);
}

void loop_defer(struct loop *l, struct loop_task *t)
{
    loop_assert_here(l);
    if (list_linked(&t->link)) {
        return;
    }
    list_add_tail(&l->tasks, &t->link);
    (void)uv_idle_start(&l->idle, on_idle);
}

void loop_task_cancel(struct loop_task *t)
{
    if (list_linked(&t->link)) {
        list_del(&t->link);
    }
}

void loop_on_signal(struct loop *l, void (*fn)(void *data, int signum), void *data)
{
    l->on_signal = fn;
    l->signal_data = data;
    must(uv_signal_start(&l->term, on_uv_signal, SIGTERM) == 0);
    must(uv_signal_start(&l->intr, on_uv_signal, SIGINT) == 0);
    uv_unref((uv_handle_t *)&l->term);
    uv_unref((uv_handle_t *)&l->intr);
}
