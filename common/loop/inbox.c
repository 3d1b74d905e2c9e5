/* Inbox: many producers push onto one atomic list; the loop takes it whole and turns it round. */
#include "common/loop/loop_internal.h"
#include <stdatomic.h>

#define INBOX_PER_TURN                                                                             \
    256 /* so that a flood from another thread cannot starve timers and sockets */

static void take(struct loop *l)
{
    struct inbox_item *newest = atomic_exchange_explicit(&l->inbox, NULL, memory_order_acquire);
    struct inbox_item *oldest = NULL;
    struct inbox_item **end = newest ? &newest->next : NULL;
    while (newest) {
        struct inbox_item *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    if (oldest) {
        *l->taken_end = oldest;
        l->taken_end = end;
    }
}

static void on_wake(uv_async_t *handle)
{
    struct loop *l = container_of(handle, struct loop, wake);
    take(l);
    for (int n = 0; l->taken && n < INBOX_PER_TURN; n++) {
        struct inbox_item *item = l->taken;
        l->taken = item->next;
        if (!l->taken) {
            l->taken_end = &l->taken;
        }
        item->next = NULL;
        item->fn(item);
    }
    if (l->taken) {
        (void)uv_async_send(&l->wake);
    }
}

void loop_inbox_setup(struct loop *l)
{
    l->taken_end = &l->taken;
    must(uv_async_init(&l->uv, &l->wake, on_wake) == 0);
    uv_unref((uv_handle_t *)&l->wake);
}

void loop_post(struct loop *l, struct inbox_item *item)
{
    struct inbox_item *head = atomic_load_explicit(&l->inbox, memory_order_relaxed);
    do {
        item->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&l->inbox, &head, item, memory_order_release,
                                                    memory_order_relaxed));
    if (!head) { /* who finds it empty rings */
        (void)uv_async_send(&l->wake);
    }
}
