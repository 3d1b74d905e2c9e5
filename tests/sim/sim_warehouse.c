/* The simulated warehouse: staging tables, named tables and their fence rows (protocol.md 3).
 * Statements are atomic, and late. */
#include "tests/sim/sim_world.h"

#include <stdio.h>

const char *sim_table_name(int table, char out[32])
{
    snprintf(out, 32, "\"s\".\"t%d\"", table);
    return out;
}

int sim_table_of(const char *physical)
{
    int table = -1;
    must(sscanf(physical, "\"s\".\"t%d\"", &table) == 1 && table >= 0 && table < SIM_TABLES);
    return table;
}

void sim_stmt_send(struct sim *s, const struct sim_stmt *st)
{
    for (size_t i = 0; i < SIM_STMTS; i++) {
        if (!s->stmts[i].used) {
            s->stmts[i] = *st;
            s->stmts[i].used = true;
            return;
        }
    }
    sim_fail(s, "the warehouse has no room for statements");
}

void sim_staging_drop(struct sim *s, const uint64_t *tokens, size_t n)
{
    for (size_t i = 0; i < s->n_staging;) {
        bool named = false;
        for (size_t k = 0; k < n; k++) {
            named = named || tokens[k] == s->staging[i];
        }
        if (named) {
            s->staging[i] = s->staging[--s->n_staging];
        } else {
            i++;
        }
    }
}

static bool staging_has(const struct sim *s, uint64_t token)
{
    for (size_t i = 0; i < s->n_staging; i++) {
        if (s->staging[i] == token) {
            return true;
        }
    }
    return false;
}

static int run_build(struct sim *s, const struct sim_stmt *st)
{
    if (sim_chance(s, s->faults.statement)) {
        return sim_chance(s, 700) ? ERR_WH_TRANSIENT : ERR_WH_SQL;
    }
    if (st->by_binding) {
        sim_result_make(s, st);
        return 0;
    }
    if (!staging_has(s, st->token)) {
        must(s->n_staging < SIM_STAGING);
        s->staging[s->n_staging++] = st->token;
    }
    return 0;
}

/* A swap may only come from a grant that the run store knows of, and never after a newer one. */
static void check_swap(struct sim *s, const struct sim_stmt *st, const struct sim_table *t)
{
    const struct row_attempt *a = memory_attempt(s->store, st->token);
    if (!a || !a->progress || a->state == ATTEMPT_LEASED || a->state == ATTEMPT_FAILED) {
        sim_fail(s, "token %llu swapped without a recorded grant", (unsigned long long)st->token);
    }
    if (st->token <= t->last_swap && st->token != t->published) {
        sim_fail(s, "token %llu swapped after %llu", (unsigned long long)st->token,
                 (unsigned long long)t->last_swap);
    }
}

static int run_swap(struct sim *s, const struct sim_stmt *st, struct sim_table *t)
{
    if (sim_chance(s, s->faults.statement)) {
        return sim_chance(s, 800) ? ERR_TARGET_BUSY : ERR_WH_DEPENDENTS;
    }
    if (t->claim > st->token) {
        return ERR_FENCED;
    }
    if (!staging_has(s, st->token)) {
        return ERR_WH_MISSING; /* someone swept it: nothing to rename */
    }
    check_swap(s, st, t);
    t->claim = t->published = t->stands = t->last_swap = st->token;
    memcpy(t->generation, st->generation, sizeof(t->generation));
    memcpy(t->build_id, st->build_id, sizeof(t->build_id));
    sim_staging_drop(s, &st->token, 1);
    return 0;
}

static int run_drop(struct sim *s, const struct sim_stmt *st, struct sim_table *t)
{
    if (st->by_binding) {
        sim_result_drop(s, st);
        return 0;
    }
    if (t->claim > st->token) {
        return ERR_FENCED;
    }
    t->claim = st->token;
    t->published = t->stands = 0;
    t->generation[0] = t->build_id[0] = '\0';
    return 0;
}

static void run_resolve(const struct sim_stmt *st, struct sim_table *t, struct sim_answer *a)
{
    t->claim = t->claim > st->token ? t->claim : st->token;
    a->claim = t->claim;
    a->published = t->published;
    a->still_there = t->published && t->stands == t->published;
}

static void run_one(struct sim *s, const struct sim_stmt *st)
{
    struct sim_table *t = &s->tables[st->table];
    struct sim_answer a = {0};
    switch (st->kind) {
    case STMT_BUILD:
        a.error = run_build(s, st);
        break;
    case STMT_SWAP:
        a.error = run_swap(s, st, t);
        break;
    case STMT_DROP:
        a.error = sim_chance(s, s->faults.statement) ? ERR_WH_LOST : run_drop(s, st, t);
        break;
    case STMT_RESOLVE:
        a.error = sim_chance(s, s->faults.statement) ? ERR_WH_CONNECT : 0;
        if (!a.error) {
            run_resolve(st, t, &a);
        }
        break;
    case STMT_SWEEP:
        break;
    }
    if (!a.error && sim_chance(s, s->faults.statement / 2)) {
        a.error = ERR_WH_UNKNOWN_OUTCOME; /* done, but the answer is lost */
    }
    sim_builder_answer(s, st, &a);
}

bool sim_stmt_run(struct sim *s)
{
    size_t from = sim_random(s, SIM_STMTS);
    for (size_t i = 0; i < SIM_STMTS; i++) {
        struct sim_stmt *slot = &s->stmts[(from + i) % SIM_STMTS];
        if (slot->used) {
            struct sim_stmt st = *slot;
            slot->used = false;
            s->changed = true;
            run_one(s, &st);
            return true;
        }
    }
    return false;
}
