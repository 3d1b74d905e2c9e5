/* Memory by simulated process: kill -9 takes all of it, whatever state it was in. malloc and its
 * kin are wrapped at link time (trio.cmake), so that what a process allocates is known to be its
 * own. */
#pragma once
#include "common/base/list.h"

struct heap {
    struct list blocks;
    size_t n;
};
void heap_init(struct heap *h);
/* Allocations belong to h from now on; NULL: to the world. Returns whose they were before. */
struct heap *heap_enter(struct heap *h);
/* Frees every block that still belongs to it. */
void heap_drop(struct heap *h);
/* A process that ended in good order freed all it had: what is left is a leak, and the sanitizer
 * says where it is from. Without one: false. */
bool heap_clean(struct heap *h);
