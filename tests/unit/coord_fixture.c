/* The fixture of the coordinator tests. */
#include "tests/unit/coord_fixture.h"

#include <stdio.h>

static const struct uuid installation = {{1}};
static const struct coord_limits limits = {
    .lease = {10000},
    .attempts = 3,
    .bound_wait = {10000},
    .bound_wait_loading = {600000},
    .gateway_live = {5000},
    .gateway_gone = {60000},
    .gateway_comes = {5000},
};

/* Of a planner that dies all the time nobody would ever hear when there are no gateways. */
static struct coord *coord_make(bool reloads)
{
    struct coord_limits lim = limits;
    if (reloads) {
        lim.gateway_comes = MS(0);
    }
    return coord_new(&installation, &lim);
}

/* ---- life ---- */
void fx_init(struct fx *f, int reloads)
{
    *f = (struct fx){.reloads = reloads != 0};
    f->store = memory_store_new();
    arena_init(&f->mem);
    coord_out_init(&f->o, &f->mem);
    f->now = (struct coord_now){.mono = {1000}, .unix_us = 1766012345678000};
    f->c = coord_make(f->reloads);
    coord_started(f->c, f->now, &f->o);
}

void fx_fini(struct fx *f)
{
    coord_free(f->c);
    memory_store_free(f->store);
    arena_fini(&f->mem);
}

void fx_reload(struct fx *f)
{
    coord_free(f->c);
    f->c = coord_make(f->reloads);
    memory_store_load(f->store, f->c, f->now);
    coord_started(f->c, f->now, &f->o);
    ck_assert_ptr_null(memory_store_apply(f->store, &f->o.rows));
    f->o.rows = (struct rows){.arena = &f->mem};
}

static void compare_with_reload(struct fx *f)
{
    struct coord *again = coord_make(f->reloads);
    memory_store_load(f->store, again, f->now);
    auto_free char *lived = coord_dump(f->c);
    auto_free char *loaded = coord_dump(again);
    coord_free(again);
    ck_assert_str_eq(lived, loaded);
}

void fx_commit(struct fx *f)
{
    const char *wrong = memory_store_apply(f->store, &f->o.rows);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    wrong = coord_check(f->c);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    bool wrote = f->o.rows.n > 0;
    f->o.rows = (struct rows){.arena = &f->mem};
    compare_with_reload(f);
    if (wrote && f->reloads) {
        fx_reload(f);
    }
    f->now.unix_us += 1000;
    f->now.mono.v += 1;
    f->now.random[3]++;
}

static void next_call(struct fx *f)
{
    f->o.n_notes = 0;
}

void fx_wait(struct fx *f, int64_t ms)
{
    f->now.mono.v += ms;
    f->now.unix_us += ms * 1000;
    next_call(f);
    coord_tick(f->c, f->now, &f->o);
    fx_commit(f);
}

bool fx_noted(const struct fx *f, enum coord_note_kind kind)
{
    for (size_t i = 0; i < f->o.n_notes; i++) {
        if (f->o.notes[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* ---- units and runs ---- */
void fx_publish(struct fx *f, uint64_t unit, uint64_t load, const char *cause,
                const char *const *keep, size_t n)
{
    char name[24];
    snprintf(name, sizeof(name), "p%llu", (unsigned long long)unit);
    struct coord_unit_row row = {.id = unit, .load = load, .environment = "dev", .name = name};
    next_call(f);
    coord_unit_load(f->c, f->now, &row, cause, keep, n, &f->o);
    fx_commit(f);
}

uint64_t fx_unit(struct fx *f, const char *name)
{
    uint64_t unit = memory_store_add_unit(f->store, "dev", name);
    char expected[24];
    snprintf(expected, sizeof(expected), "p%llu", (unsigned long long)unit);
    ck_assert_str_eq(name, expected);
    fx_publish(f, unit, 1, "publish", NULL, 0);
    return unit;
}

const char *fx_create_with(struct fx *f, const struct coord_run_new *n)
{
    struct err e = {0};
    char *id = arena_alloc(&f->mem, 24);
    next_call(f);
    ck_assert_int_eq(coord_run_create(f->c, f->now, n, id, &f->o, &e), 0);
    ck_assert(fx_noted(f, NOTE_RUN));
    fx_commit(f);
    ck_assert_str_eq(coord_run_to_plan(f->c), id);
    ck_assert_int_eq(coord_run_planning(f->c, f->now, id, &f->o), 0);
    fx_commit(f);
    if (f->reloads) { /* the flow of the new planner takes it again */
        ck_assert_str_eq(coord_run_to_plan(f->c), id);
        ck_assert_int_eq(coord_run_planning(f->c, f->now, id, &f->o), 0);
    }
    ck_assert_ptr_null(coord_run_to_plan(f->c));
    return id;
}

const char *fx_create(struct fx *f, uint64_t unit)
{
    return fx_create_with(f, &(struct coord_run_new){.unit = unit, .trigger = "ON_DEMAND"});
}

/* ---- plans ---- */
void fx_plan_init(struct fx_plan *p)
{
    *p = (struct fx_plan){
        .p = {.load = 1, .compiler_version = "0.0.1", .targets = p->t, .refusals = p->refusals}};
}

struct plan_target *fx_plan_add(struct fx_plan *p, enum plan_action action, const char *name,
                                const char *table, const char *build)
{
    size_t i = p->p.n++;
    must(i < FX_TARGETS);
    snprintf(p->text[i][0], 80, "\"s\".\"%s\"", table);
    snprintf(p->text[i][1], 80, "%s@m.malloy", name);
    p->ids[i][0] = p->text[i][1];
    p->names[i][0] = name;
    p->models[i][0] = "m.malloy";
    p->p.n_authored++;
    p->t[i] = (struct plan_target){
        .action = action,
        .target = {.warehouse = "digest",
                   .connection = "pg",
                   .in_place = true,
                   .schema = "s",
                   .table = table,
                   .physical = p->text[i][0],
                   .target_key = table,
                   .build_id = build,
                   .entity_id = build},
        .source_id = p->ids[i][0],
        .source_name = name,
        .model = "m.malloy",
        .source_ids = p->ids[i],
        .source_names = p->names[i],
        .source_models = p->models[i],
        .n_sources = 1,
        .sql = "SELECT 1",
        .parents = p->parents[i],
        .tag = "kiln",
    };
    return &p->t[i];
}

void fx_plan_parent(struct fx_plan *p, size_t child, size_t parent)
{
    p->parents[child][p->t[child].n_parents++] = parent;
}

void fx_plan_carry(struct fx *f, struct fx_plan *p, const char *name, const char *table,
                   const char *build)
{
    struct plan_target *x = fx_plan_add(p, PLAN_CARRY, name, table, build);
    const struct core_generation *g = coord_current_generation(f->c, &x->target);
    ck_assert_ptr_nonnull(g);
    x->generation = *g;
    x->generation.id = arena_strdup(&f->mem, g->id);
    x->generation.columns = (struct core_columns){0};
}

void fx_planned(struct fx *f, const char *run, struct fx_plan *p)
{
    next_call(f);
    ck_assert_int_eq(coord_run_planned(f->c, f->now, run, &p->p, &f->o), 0);
    fx_commit(f);
}

void fx_plan_one(struct fx *f, const char *run, const char *build)
{
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", build);
    fx_planned(f, run, &p);
}

/* ---- builders and gateways ---- */
static struct coord_builder builder(struct fx *f, const char *name)
{
    struct coord_builder b = {.instance = name, .reach = {.has_root = true}};
    b.boot.b[0] = (uint8_t)name[strlen(name) - 1];
    memset(b.request_id, 0x77, sizeof(b.request_id));
    f->pulls++;
    memcpy(b.request_id, &f->pulls, sizeof(f->pulls));
    return b;
}

size_t fx_pull(struct fx *f, const char *name, size_t slots, struct coord_lease *out)
{
    struct coord_builder b = builder(f, name);
    next_call(f);
    size_t n = coord_pull(f->c, f->now, &b, slots, out, &f->o);
    fx_commit(f);
    return n;
}

struct coord_lease fx_pull_one(struct fx *f, const char *name)
{
    struct coord_lease l = {0};
    ck_assert_uint_eq(fx_pull(f, name, 1, &l), 1);
    return l;
}

static struct core_column column = {"n", "bigint", NULL, false};

int fx_grant(struct fx *f, uint64_t token, uint64_t rows)
{
    struct coord_facts facts = {
        .rows = rows, .bytes = 100, .data_as_of_us = 1766012345000000, .columns = {&column, 1}};
    struct err e = {0};
    next_call(f);
    int rc = coord_grant(f->c, f->now, token, &facts, &f->o, &e);
    fx_commit(f);
    return rc;
}

int fx_finish(struct fx *f, uint64_t token, enum coord_outcome outcome, int code, const char *text)
{
    struct coord_finish end = {
        .token = token, .outcome = outcome, .error_code = code, .error_text = text, .took_ms = 12};
    struct err e = {0};
    next_call(f);
    int rc = coord_finish(f->c, f->now, &end, &f->o, &e);
    fx_commit(f);
    return rc;
}

int fx_resolved(struct fx *f, uint64_t token, uint64_t published, bool still_there)
{
    struct coord_finish end = {
        .token = token,
        .outcome = OUTCOME_OK,
        .has_fence = true,
        .fence_claim = token,
        .fence_published = published,
        .fence_still_there = still_there,
    };
    struct err e = {0};
    next_call(f);
    int rc = coord_finish(f->c, f->now, &end, &f->o, &e);
    fx_commit(f);
    return rc;
}

void fx_build(struct fx *f, const struct coord_lease *l)
{
    ck_assert_int_eq(l->kind, KIND_BUILD);
    ck_assert_int_eq(fx_grant(f, l->token, 7), 0);
    ck_assert_int_eq(fx_finish(f, l->token, OUTCOME_OK, 0, NULL), 0);
}

const char *fx_baked(struct fx *f, uint64_t unit, const char *name, const char *table,
                     const char *build)
{
    const char *run = fx_create(f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    struct coord_unit_row row;
    ck_assert(coord_unit_get(f->c, unit, &row));
    p.p.load = row.load;
    fx_plan_add(&p, PLAN_BUILD, name, table, build);
    fx_planned(f, run, &p);
    struct coord_lease l = fx_pull_one(f, "b1");
    fx_build(f, &l);
    ck_assert_int_eq(fx_run_state(f, run), RUN_READY);
    return run;
}

void fx_report(struct fx *f, const char *gateway, uint64_t unit, uint64_t applied, bool loading)
{
    struct uuid boot = {{9}};
    struct coord_gateway_unit u = {.unit = unit, .applied = applied, .loading = loading};
    next_call(f);
    coord_gateway_report(f->c, f->now, gateway, &boot, &u, 1, &f->o);
    fx_commit(f);
}

/* ---- what stands in the rows ---- */
enum run_state fx_run_state(const struct fx *f, const char *run)
{
    const struct row_run *r = memory_run(f->store, run);
    ck_assert_ptr_nonnull(r);
    return r->state;
}

enum job_state fx_job_state(const struct fx *f, uint64_t job)
{
    const struct row_job *j = memory_job(f->store, job);
    ck_assert_ptr_nonnull(j);
    return j->state;
}

enum generation_state fx_generation_state(const struct fx *f, const char *id)
{
    const struct row_generation *g = memory_generation(f->store, id);
    ck_assert_msg(g != NULL, "no generation %s", id);
    return g->state;
}

const struct core_binding *fx_bound(const struct fx *f, uint64_t unit, const char *source)
{
    const struct core_binding_set *set = memory_set(f->store, unit);
    for (size_t i = 0; set && i < set->n; i++) {
        if (strcmp(set->bindings[i].source_name, source) == 0) {
            return &set->bindings[i];
        }
    }
    return NULL;
}

const char *fx_unbaked(const struct fx *f, uint64_t unit, const char *source)
{
    const struct core_binding_set *set = memory_set(f->store, unit);
    size_t len = strlen(source);
    for (size_t i = 0; set && i < set->n_unbaked; i++) {
        const char *id = set->unbaked[i].source_id;
        if (strncmp(id, source, len) == 0 && id[len] == '@') {
            return set->unbaked[i].code;
        }
    }
    return NULL;
}

static json_t *parsed(const char *text)
{
    ck_assert_ptr_nonnull(text);
    json_t *v = json_parse(slice_of(text), NULL);
    ck_assert_ptr_nonnull(v);
    return v;
}

json_t *fx_manifest(const struct fx *f, const char *run)
{
    return parsed(memory_run(f->store, run)->manifest);
}

json_t *fx_metadata(const struct fx *f, const char *run)
{
    return parsed(memory_run(f->store, run)->metadata);
}
