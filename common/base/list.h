/* Intrusive double list: the links live in the objects, membership is state. */
#pragma once
#include "common/base/base.h"

struct list {
    struct list *next;
    struct list *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}
static inline void list_add_tail(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}
static inline void list_add_head(struct list *head, struct list *item)
{
    item->next = head->next;
    item->prev = head;
    head->next->prev = item;
    head->next = item;
}
/* Unlinks and leaves the item an empty list, so that removing twice is harmless. */
static inline void list_del(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}
static inline bool list_linked(const struct list *item)
{
    return item->next && item->next != item;
}
/* First item, unlinked; NULL when empty. */
static inline struct list *list_take_head(struct list *head)
{
    struct list *item = head->next;
    if (item == head) {
        return NULL;
    }
    list_del(item);
    return item;
}
#define list_entry(item, type, member) container_of(item, type, member)
/* The body may unlink `it`, nothing else. */
#define list_for_each(it, head)                                                                    \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head);                      \
         it = it##_next, it##_next = it->next)
