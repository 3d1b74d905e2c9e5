/* Timers: a binary heap by due time over one uv_timer. */
#include "common/loop/loop_internal.h"

static void put(struct loop *l, size_t at, struct loop_timer *t)
{
    l->heap[at] = t;
    t->heap_at = at + 1;
}

static void sift_up(struct loop *l, size_t at)
{
    struct loop_timer *t = l->heap[at];
    while (at > 0 && ms_before(t->due, l->heap[(at - 1) / 2]->due)) {
        put(l, at, l->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(l, at, t);
}

static void sift_down(struct loop *l, size_t at)
{
    struct loop_timer *t = l->heap[at];
    for (size_t child; (child = 2 * at + 1) < l->n_heap; at = child) {
        if (child + 1 < l->n_heap && ms_before(l->heap[child + 1]->due, l->heap[child]->due)) {
            child++;
        }
        if (!ms_before(l->heap[child]->due, t->due)) {
            break;
        }
        put(l, at, l->heap[child]);
    }
    put(l, at, t);
}

static void heap_remove(struct loop *l, struct loop_timer *t)
{
    size_t at = t->heap_at - 1;
    struct loop_timer *last = l->heap[--l->n_heap];
    t->heap_at = 0;
    if (last == t) {
        return;
    }
    put(l, at, last);
    sift_up(l, at);
    sift_down(l, last->heap_at - 1);
}

static void on_uv_timer(uv_timer_t *handle);

static void set_uv_timer(struct loop *l)
{
    if (l->firing) {
        return;
    }
    if (l->n_heap == 0) {
        (void)uv_timer_stop(&l->timer);
        return;
    }
    uv_update_time(&l->uv); /* the wait counts from now, not from the start of the turn */
    struct ms wait = ms_max(ms_sub(l->heap[0]->due, loop_now(l)), MS(0));
    (void)uv_timer_start(&l->timer, on_uv_timer, (uint64_t)wait.v, 0);
}

static void on_uv_timer(uv_timer_t *handle)
{
    struct loop *l = container_of(handle, struct loop, timer);
    struct ms now = loop_now(l);
    l->firing = true;
    /* Bounded: a timer that starts itself with 0 ms comes round on the next turn. */
    for (size_t left = l->n_heap; left > 0 && l->n_heap > 0; left--) {
        struct loop_timer *t = l->heap[0];
        if (ms_before(now, t->due)) {
            break;
        }
        heap_remove(l, t);
        t->fn(t);
    }
    l->firing = false;
    loop_note_progress(l);
    set_uv_timer(l);
}

void loop_timer_setup(struct loop *l)
{
    must(uv_timer_init(&l->uv, &l->timer) == 0);
    uv_unref((uv_handle_t *)&l->timer);
}

struct ms loop_now(struct loop *l)
{
    (void)l;
    return MS((int64_t)(uv_hrtime() / 1000000));
}

void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(struct loop_timer *),
                     void *data)
{
    *t = (struct loop_timer){.loop = l, .fn = fn, .data = data};
}

void loop_timer_start(struct loop_timer *t, struct ms after)
{
    struct loop *l = t->loop;
    loop_assert_here(l);
    loop_timer_stop(t);
    if (after.v == INT64_MAX) {
        return;
    }
    t->due = ms_add(loop_now(l), ms_max(after, MS(0)));
    if (l->n_heap == l->heap_cap) {
        l->heap_cap = l->heap_cap ? l->heap_cap * 2 : 64;
        l->heap = xrealloc(l->heap, l->heap_cap * sizeof(*l->heap));
    }
    put(l, l->n_heap++, t);
    sift_up(l, l->n_heap - 1);
    if (t->heap_at == 1) {
        set_uv_timer(l);
    }
}

/* The uv timer may then ring early for nothing; that is cheaper than setting it anew at every stop.
 */
void loop_timer_stop(struct loop_timer *t)
{
    if (t->heap_at == 0) {
        return;
    }
    heap_remove(t->loop, t);
    if (t->loop->n_heap == 0) {
        set_uv_timer(t->loop);
    }
}
