/* Hash map from byte strings (copied) or u64 to pointers (borrowed). Iteration order is insertion
 * order. */
#pragma once
#include "common/base/slice.h"

struct map_slot;
struct map {
    struct map_slot *slots; /* insertion ordered, with holes */
    uint32_t *index;        /* open addressing into slots */
    size_t n_slots, n_live, cap;
};

void map_init(struct map *m);
void map_fini(struct map *m); /* frees keys, not values */
size_t map_len(const struct map *m);
void *map_get(const struct map *m, struct slice key); /* NULL if absent */
void *map_put(struct map *m, struct slice key,
              void *value);                     /* the old value or NULL; value not NULL */
void *map_del(struct map *m, struct slice key); /* the old value or NULL */
void *map_get_u64(const struct map *m, uint64_t key);
void *map_put_u64(struct map *m, uint64_t key, void *value);
void *map_del_u64(struct map *m, uint64_t key);
/* for (struct map_iter it = map_begin(m); map_next(&it);) use it.key, it.value; deleting it.key is
 * allowed */
struct map_iter {
    const struct map *m;
    size_t at;
    struct slice key;
    void *value;
};
struct map_iter map_begin(const struct map *m);
bool map_next(struct map_iter *it);
