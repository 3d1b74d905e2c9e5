/* One fixed story, told again and again: each time one process dies after another event, or another
 * statement of the warehouse fails. It must end the same (models.md 7, 42). */
#include "tests/sim/trio_sim.h"

enum { STEP_MOST_MS = 180000, SWEEP_AFTER_MS = 60000, STORY_SEED = 7 };

static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 1, .units = 1};
static const struct trio_faults calm = {.store_most = {3}, .wh_most = {20}};

/* What goes wrong in one telling. */
struct mishap {
    uint64_t at; /* event after which .. */
    enum proc_kind victim;
    bool drains;        /* .. it is asked to end; else killed */
    uint64_t statement; /* this one fails .. */
    int code;
    bool after;        /* .. though it was done */
    bool may_fail_run; /* its run may end failed */
};
struct story {
    struct world *w;
    const struct mishap *m;
    struct trio_total *total;
    char replay[96];
};

static void strike(struct story *s)
{
    struct proc *p = world_proc(s->w, s->m->victim, 0);
    if (!s->m->drains) {
        proc_crash(p);
    } else if (p->loop) {
        struct proc *before = proc_enter(p);
        proc_drain(p);
        proc_leave(before);
    }
}

static void step(struct story *s)
{
    must(world_step(s->w));
    trio_check(s->w);
    if (s->m && s->m->at == s->w->time.steps) {
        strike(s);
    }
}

static void rest(struct story *s, const char *what)
{
    struct ms since = s->w->time.now;
    while (!trio_at_rest(s->w)) {
        step(s);
        if (ms_sub(s->w->time.now, since).v > STEP_MOST_MS) {
            trio_fail("%s did not come to an end", what);
        }
    }
    s->total->slowest = ms_max(s->total->slowest, ms_sub(s->w->time.now, since));
}

static size_t n_runs(const struct world *w)
{
    size_t n = 0;
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, w->rows, &r);) {
        n++;
    }
    return n;
}

static bool stands(const struct world *w)
{
    const struct trio_unit *u = &w->units[0];
    struct arena a;
    arena_init(&a);
    bool whole = true;
    for (size_t i = 0; i < u->n; i++) {
        int64_t rows = wh_sim_rows(w->wh, "public", package_table(&a, u, i));
        whole = whole && rows == (int64_t)package_rows(u, i);
    }
    arena_fini(&a);
    return whole;
}

/* ---- the story ---- */
static void run(struct story *s, bool force)
{
    struct world *w = s->w;
    size_t before = n_runs(w);
    must(people_run(w, &w->units[0], force, NULL));
    rest(s, "a run");
    const struct row_run *r = people_newest(w, w->units[0].id);
    if (n_runs(w) != before + 1) {
        trio_fail("one request made %zu runs", n_runs(w) - before);
    }
    if (s->m && s->m->may_fail_run) { /* failed, or ready with what could be built */
        return;
    }
    const struct core_binding_set *set = memory_set(w->rows, w->units[0].id);
    if (r->state != RUN_READY || !set || set->n != w->units[0].n || !stands(w)) {
        trio_fail("a run ends %s with %zu bindings: %s", run_state_name(r->state), set ? set->n : 0,
                  r->error ? r->error : "");
    }
}

static void delete_newest(struct story *s)
{
    struct world *w = s->w;
    const struct row_run *r = people_newest(w, w->units[0].id);
    size_t before = n_runs(w);
    must(people_delete(w, r, true));
    rest(s, "a deletion");
    if (n_runs(w) != before - 1) {
        trio_fail("a deletion left %zu runs of %zu", n_runs(w), before);
    }
}

static void reload(struct story *s)
{
    struct world *w = s->w;
    uint64_t load = memory_unit(w->rows, w->units[0].id)->load;
    must(people_reload(w, &w->units[0], false));
    rest(s, "a reload");
    if (memory_unit(w->rows, w->units[0].id)->load == load) {
        trio_fail("a reload left the package at its old load");
    }
}

static void sweep(struct story *s)
{
    struct world *w = s->w;
    struct ms until = ms_add(w->time.now, MS(SWEEP_AFTER_MS));
    while (ms_before(w->time.now, until)) {
        step(s);
    }
    rest(s, "the wait for the sweep");
    planner_sweep_now(world_proc(w, PROC_PLANNER, 0));
    until = ms_add(w->time.now, MS(100));
    while (ms_before(w->time.now, until)) {
        step(s);
    }
    rest(s, "the sweep");
}

static uint64_t tell(const struct mishap *m, struct trio_total *total, uint64_t *statements)
{
    struct story s = {.w = world_new(STORY_SEED, &shape), .m = m, .total = total};
    struct world *w = s.w;
    if (m) {
        snprintf(w->replay, sizeof(w->replay), "trio_sim --story %llu,%d,%d,%llu,%d,%d",
                 (unsigned long long)m->at, (int)m->victim, m->drains,
                 (unsigned long long)m->statement, m->code, m->after);
        w->wh_fail_at = m->statement;
        w->wh_fail_code = m->code;
        w->wh_fail_after = m->after;
    }
    world_set_faults(w, &calm);
    rest(&s, "the start");
    run(&s, false);
    run(&s, true);
    delete_newest(&s);
    delete_newest(&s);
    run(&s, false);
    reload(&s);
    run(&s, false);
    uint64_t events = w->time.steps;
    *statements = w->wh_ops;
    sweep(&s);
    if (m && m->may_fail_run) { /* whatever went wrong, the next run makes it good */
        struct mishap over = {0};
        s.m = &over;
        run(&s, false);
    }
    trio_check_end(w);
    trio_count(w, total);
    world_free(w);
    return events;
}

void trio_story(const char *text, struct trio_total *total)
{
    unsigned long long at, statement;
    int victim, drains, code, after;
    must(sscanf(text, "%llu,%d,%d,%llu,%d,%d", &at, &victim, &drains, &statement, &code, &after) ==
         6);
    const struct mishap m = {.at = at,
                             .victim = (enum proc_kind)victim,
                             .drains = drains,
                             .statement = statement,
                             .code = code,
                             .after = after,
                             .may_fail_run = statement != 0};
    uint64_t n;
    (void)tell(&m, total, &n);
}

/* ---- every point ---- */
void trio_crash_sweep(uint64_t every, struct trio_total *total)
{
    uint64_t n;
    uint64_t events = tell(NULL, total, &n);
    uint64_t from = 1;
    for (int drains = 0; drains < 2; drains++) {
        for (int victim = 0; victim < PROC_PEOPLE; victim++) {
            from = from % every + 1; /* not the same events for every kind */
            for (uint64_t at = from; at <= events; at += every) {
                const struct mishap m = {
                    .at = at, .victim = (enum proc_kind)victim, .drains = drains};
                (void)tell(&m, total, &n);
            }
        }
    }
}

void trio_fault_sweep(uint64_t every, struct trio_total *total)
{
    static const struct mishap kinds[] = {
        {.code = ERR_WH_CONNECT},
        {.code = ERR_WH_SQL},
        {.code = ERR_TARGET_BUSY},
        {.code = ERR_WH_LOST, .after = true},
        {.code = ERR_WH_UNKNOWN_OUTCOME, .after = true},
    };
    uint64_t n;
    (void)tell(NULL, total, &n);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (uint64_t at = 1 + k % every; at <= n; at += every) {
            struct mishap m = kinds[k];
            m.statement = at;
            m.may_fail_run = true;
            uint64_t ignored;
            (void)tell(&m, total, &ignored);
        }
    }
}
