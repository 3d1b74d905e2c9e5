/* The run store as plain tables in memory, with the rules that its schema keeps: what tests commit
 * rows to and reload from. */
#pragma once
#include "common/base/map.h"
#include "services/planner/core/coord.h"

struct memory_store;

struct memory_store *memory_store_new(void);
void memory_store_free(struct memory_store *s);
/* Applies the rows in order. NULL, or the sentence that says which rule the first bad one broke;
 * rows before it stay applied. */
const char *memory_store_apply(struct memory_store *s, const struct rows *rows);
/* A unit as the store would make one. Returns its id. */
uint64_t memory_store_add_unit(struct memory_store *s, const char *environment, const char *name);
/* Reads everything into a fresh coordinator, in the order that its header asks for. */
void memory_store_load(struct memory_store *s, struct coord *c, struct coord_now now);

/* What stands in the tables now; NULL: no such row. Valid until the next apply. */
const struct row_run *memory_run(const struct memory_store *s, const char *id);
const struct row_job *memory_job(const struct memory_store *s, uint64_t id);
const struct row_attempt *memory_attempt(const struct memory_store *s, uint64_t token);
const struct row_generation *memory_generation(const struct memory_store *s, const char *id);
const struct row_entry *memory_entry(const struct memory_store *s, const char *run,
                                     const char *entity_id);
const struct core_binding_set *memory_set(const struct memory_store *s, uint64_t unit); /* newest */
const struct row_unit *memory_unit(const struct memory_store *s, uint64_t id);
const struct core_target *memory_place(const struct memory_store *s, uint64_t id);
/* Row after row in order of insertion, deleted ones left out; begin with an iterator of zeros. */
bool memory_run_next(struct map_iter *it, const struct memory_store *s, const struct row_run **out);
bool memory_job_next(struct map_iter *it, const struct memory_store *s, const struct row_job **out);
bool memory_generation_next(struct map_iter *it, const struct memory_store *s,
                            const struct row_generation **out);
bool memory_token_recorded(const struct memory_store *s,
                           uint64_t token); /* some generation has it */
/* Moves that were applied, as "machine from to" counts: for coverage of states.def. */
size_t memory_moves_seen(const struct memory_store *s, const char *machine, const char *from,
                         const char *to);
