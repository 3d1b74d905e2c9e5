/* The coordinator over the real tables: after every decision, what is read back decides alike. */
#include "tests/conformance/store_fixture.h"
#include "tests/sim/coord_dump.h"

#include <stdio.h>

static struct coord *coord;
static struct coord_out out;
static struct arena out_arena;
static struct coord_now now;
static uint64_t unit, load;
static const struct coord_limits limits = {.lease = {10000},
                                           .attempts = 3,
                                           .bound_wait = {10000},
                                           .bound_wait_loading = {600000},
                                           .gateway_live = {5000},
                                           .gateway_gone = {60000},
                                           .gateway_comes = {5000}};
static struct coord_builder builder = {.instance = "builder-1"};
static struct err fault;

static struct coord *loaded(void)
{
    struct coord *c = coord_new(store_installation(one.s), &limits);
    struct store_op *op = op_new();
    store_load_coord(one.s, op, c, now);
    ck_assert_msg(op_wait(op) == 0, "%s", op->err.text);
    return c;
}

static void pass(int64_t ms)
{
    now.mono.v += ms;
    now.unix_us += ms * 1000;
    now.random[0]++;
}

static void set_up(void)
{
    fresh_database();
    peer_open(&one, "planner-1", 200, 60000);
    peer_lead(&one);
    now = (struct coord_now){.mono = MS(1000), .unix_us = INT64_C(1766012345678901)};
    unit = make_unit("prod", "sales");
    load = make_load(unit);
    arena_init(&out_arena);
    coord_out_init(&out, &out_arena);
    builder.boot = uuid_random();
    coord = loaded();
    coord_started(coord, now, &out);
    ck_assert_uint_eq(out.rows.n, 0);
}

static void tear_down(void)
{
    coord_free(coord);
    arena_fini(&out_arena);
    end_database();
}

/* Commits what the last decision made, reads all of it back and compares. */
static void settle(const char *step)
{
    struct store_op *op = op_new();
    store_commit(one.s, op, &out.rows);
    ck_assert_msg(op_wait(op) == 0, "%s: %s", step, op->err.text);
    ck_assert_msg(coord_check(coord) == NULL, "%s: %s", step, coord_check(coord));
    struct coord *again = loaded();
    auto_free char *want = coord_dump(coord);
    auto_free char *got = coord_dump(again);
    ck_assert_msg(strcmp(want, got) == 0, "%s\n---- held\n%s\n---- read back\n%s", step, want, got);
    coord_free(again);
    arena_reset(&out_arena);
    coord_out_init(&out, &out_arena);
    pass(10);
}

static void take_load(void)
{
    struct coord_unit_row u = {.id = unit, .load = load, .environment = "prod", .name = "sales"};
    coord_unit_load(coord, now, &u, "publish", NULL, 0, &out);
    settle("unit load");
}

static const char *start_run(void)
{
    static const char *const names[] = {"a \"quoted\" \\ name", "gr\xc3\xbcn"};
    static uint8_t request[16] = {9};
    struct coord_run_new n = {.unit = unit,
                              .trigger = "ON_DEMAND",
                              .has_names = true,
                              .names = names,
                              .n_names = 2,
                              .run_context = "{\"runId\":\"x\"}",
                              .request_id = request,
                              .trace = {{7, 9}}};
    request[1]++;
    char *id = arena_zalloc(&arena, 24);
    ck_assert_int_eq(coord_run_create(coord, now, &n, id, &out, &fault), 0);
    settle("run create");
    ck_assert_int_eq(coord_run_planning(coord, now, id, &out), 0);
    settle("run planning");
    return id;
}

static struct plan_target target_of(const char *name, char digit, enum plan_action action)
{
    char *build = arena_zalloc(&arena, 65);
    memset(build, digit, 64);
    const char **ids = arena_zalloc(&arena, 2 * sizeof *ids);
    const char **names = arena_zalloc(&arena, 2 * sizeof *names);
    const char **models = arena_zalloc(&arena, 2 * sizeof *models);
    ids[0] = arena_printf(&arena, "%s@mpkg://sales/m.malloy", name);
    names[0] = name;
    models[0] = "m.malloy";
    return (struct plan_target){
        .action = action,
        .target = {.warehouse = "digest",
                   .connection = "pg",
                   .in_place = true,
                   .schema = "public",
                   .table = name,
                   .physical = arena_printf(&arena, "\"public\".\"%s\"", name),
                   .target_key = name,
                   .build_id = build,
                   .entity_id = build},
        .source_id = ids[0],
        .source_name = name,
        .model = "m.malloy",
        .source_ids = ids,
        .source_names = names,
        .source_models = models,
        .n_sources = 1,
        .sql = "select 'it''s', \"gr\xc3\xbcn\"",
        .tag = "team=x",
        .window_s = 3600,
    };
}

static void plan(const char *run, struct plan_target *targets, size_t n)
{
    struct plan_refusal refusal = {.source_id = "r@mpkg://sales/m.malloy",
                                   .name = "r",
                                   .model = "m.malloy",
                                   .tier = "colocated",
                                   .reason = "target_collision",
                                   .message = "taken",
                                   .authored = true};
    struct run_plan p = {.load = load,
                         .compiler_version = "c1",
                         .targets = targets,
                         .n = n,
                         .refusals = &refusal,
                         .n_refusals = 1,
                         .n_authored = n + 1};
    ck_assert_int_eq(coord_run_planned(coord, now, run, &p, &out), 0);
    settle("run planned");
}

static struct coord_lease pull(enum job_kind kind)
{
    struct coord_lease lease;
    builder.request_id[0]++;
    ck_assert_uint_eq(coord_pull(coord, now, &builder, 1, &lease, &out), 1);
    ck_assert_int_eq(lease.kind, kind);
    settle("pull");
    return lease;
}

static struct coord_facts facts(void)
{
    static struct core_column columns[] = {
        {.name = "d", .data_type = "date", .nullable = true},
        {.name = "l", .data_type = "ARRAY", .element_type = "text"}};
    return (struct coord_facts){.rows = 7,
                                .bytes = 8192,
                                .data_as_of_us = INT64_C(1766012345000001),
                                .columns = {columns, 2}};
}

static void grant(uint64_t token)
{
    struct coord_facts f = facts();
    ck_assert_int_eq(coord_grant(coord, now, token, &f, &out, &fault), 0);
    settle("grant");
}

static void finish(struct coord_finish f, const char *step)
{
    ck_assert_msg(coord_finish(coord, now, &f, &out, &fault) == 0, "%s: %s", step, fault.text);
    settle(step);
}

static void build(uint64_t token)
{
    grant(token);
    finish((struct coord_finish){.token = token, .outcome = OUTCOME_OK, .facts = facts()},
           "finish");
}

static enum run_state state_of(const char *run)
{
    enum run_state s = RUN_REQUESTED;
    ck_assert(coord_run_state(coord, run, &s));
    return s;
}

START_TEST(run_reads_back_alike_after_every_step)
{
    take_load();
    const char *run = start_run();
    size_t parent = 0;
    struct plan_target targets[] = {target_of("a", '1', PLAN_BUILD),
                                    target_of("b", '2', PLAN_BUILD),
                                    target_of("c", '3', PLAN_FAIL)};
    targets[1].parents = &parent;
    targets[1].n_parents = 1;
    targets[1].upstream_reuse = "reused";
    targets[2].fail_text = "target has dependents: view public.v";
    targets[2].fail_code = ERR_WH_DEPENDENTS;
    plan(run, targets, ARRAY_LEN(targets));

    uint64_t first = pull(KIND_BUILD).token;
    struct coord_progress progress = {
        .token = first, .rows = 3, .bytes = 9, .stage = "building", .fraction = 0.5};
    uint64_t cancel[1], lost[1];
    size_t n_cancel = 0, n_lost = 0;
    pass(6000);
    coord_renew(coord, now, &builder, &progress, 1, cancel, &n_cancel, lost, &n_lost, &out);
    ck_assert_uint_gt(out.rows.n, 0);
    settle("renew");
    build(first);

    uint64_t second = pull(KIND_BUILD).token;
    grant(second);
    finish((struct coord_finish){.token = second, .outcome = OUTCOME_UNKNOWN_}, "unknown outcome");
    uint64_t resolve = pull(KIND_RESOLVE).token;
    finish((struct coord_finish){.token = resolve,
                                 .outcome = OUTCOME_OK,
                                 .has_fence = true,
                                 .fence_claim = resolve,
                                 .fence_published = second,
                                 .fence_still_there = true},
           "resolve");
    pass(20000);
    coord_tick(coord, now, &out);
    settle("bound");

    ck_assert_int_eq(state_of(run), RUN_READY);
    ck_assert_uint_eq(coord_unit_set(coord, unit)->n, 2);
    struct store_run_rec *recs;
    size_t n = 0;
    struct store_op *op = op_new();
    store_runs(one.s, op, &(struct store_run_filter){.unit = unit, .id = run}, &recs, &n);
    ck_assert_int_eq(op_wait(op), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(recs[0].r.state, RUN_READY);
    ck_assert_str_eq(recs[0].package, "sales");
    ck_assert_str_eq(recs[0].environment, "prod");
    ck_assert_uint_eq(recs[0].r.n_names, 2);
    ck_assert_str_eq(recs[0].r.names[0], "a \"quoted\" \\ name");
    ck_assert_str_eq(recs[0].r.run_context, "{\"runId\":\"x\"}");
    ck_assert_uint_eq(recs[0].r.trace.b[1], 9);
    ck_assert_int_gt(recs[0].r.completed_us, recs[0].r.created_us);
    ck_assert_ptr_nonnull(recs[0].r.manifest);
    ck_assert_str_eq(value("SELECT count(*) || ' ' || max(outcome) FROM kiln.manifest_entry"),
                     "3 failed");
}
END_TEST

static const char *ready_run(const char *table, char digit)
{
    const char *run = start_run();
    struct plan_target target = target_of(table, digit, PLAN_BUILD);
    plan(run, &target, 1);
    build(pull(KIND_BUILD).token);
    pass(20000);
    coord_tick(coord, now, &out);
    settle("bound");
    ck_assert_int_eq(state_of(run), RUN_READY);
    return run;
}

START_TEST(carried_run_deleted_run_and_its_drop_job_read_back_alike)
{
    take_load();
    const char *first = ready_run("a", '1');
    const char *second = start_run();
    struct plan_target target = target_of("a", '1', PLAN_CARRY);
    const struct core_generation *g = coord_current_generation(coord, &target.target);
    ck_assert_ptr_nonnull(g);
    target.generation = *g;
    plan(second, &target, 1);
    pass(20000);
    coord_tick(coord, now, &out);
    settle("carried");
    ck_assert_int_eq(state_of(second), RUN_READY);

    const uint64_t *jobs;
    size_t n = 0;
    ck_assert_int_eq(coord_run_delete(coord, now, first, true, &jobs, &n, &out, &fault), 0);
    settle("delete the first");
    ck_assert_uint_eq(n, 0); /* the second names the table */
    ck_assert_int_eq(coord_run_delete(coord, now, second, true, &jobs, &n, &out, &fault), 0);
    ck_assert_uint_eq(n, 1);
    settle("delete the second");
    pass(6000);
    coord_tick(coord, now, &out);
    settle("waited for gateways");
    finish((struct coord_finish){.token = pull(KIND_DROP).token, .outcome = OUTCOME_OK}, "drop");

    ck_assert_str_eq(value("SELECT count(*) FROM kiln.run"), "0");
    ck_assert_str_eq(value("SELECT state FROM kiln.generation"), "dropped");
}
END_TEST

START_TEST(lost_lease_stopped_run_and_failed_build_read_back_alike)
{
    take_load();
    const char *run = start_run();
    struct plan_target target = target_of("a", '1', PLAN_BUILD);
    plan(run, &target, 1);
    uint64_t first = pull(KIND_BUILD).token;
    pass(11000);
    coord_tick(coord, now, &out);
    settle("lease out");
    ck_assert_int_eq(coord_finish(coord, now,
                                  &(struct coord_finish){.token = first, .outcome = OUTCOME_OK},
                                  &out, &fault),
                     ERR_LEASE_LOST);
    pass(30000);
    coord_tick(coord, now, &out);
    settle("retry is due");
    uint64_t second = pull(KIND_BUILD).token;
    ck_assert_int_eq(coord_run_stop(coord, now, run, &out, &fault), 0);
    settle("stop");
    finish((struct coord_finish){.token = second, .outcome = OUTCOME_STOPPED}, "stopped");
    ck_assert_int_eq(state_of(run), RUN_CANCELLED);

    run = start_run();
    plan(run, &target, 1);
    finish((struct coord_finish){.token = pull(KIND_BUILD).token,
                                 .outcome = OUTCOME_ERROR,
                                 .error_code = ERR_WH_SQL,
                                 .error_text = "column \"x\" does not exist"},
           "failed");
    ck_assert_int_eq(state_of(run), RUN_FAILED);
}
END_TEST

START_TEST(reports_sweeps_and_a_deleted_unit_read_back_alike)
{
    take_load();
    (void)ready_run("a", '1');
    struct uuid boot = uuid_random();
    coord_instance(coord, now, "gateway-1", "gateway", &boot, "0.1.0", 0, &out);
    settle("instance");
    coord_sweep(coord, now, unit, "{\"schemas\":[\"public\"]}", &out);
    settle("sweep asked");
    finish((struct coord_finish){.token = pull(KIND_SWEEP).token, .outcome = OUTCOME_OK}, "sweep");
    coord_broken(coord, now, unit, coord_unit_set(coord, unit)->bindings[0].generation.id,
                 "baked_missing", &out);
    settle("broken");
    ck_assert_int_eq(coord_unbind(coord, now, unit, "reload", true, &out), 0);
    settle("reload");
    struct coord *again = loaded(); /* a restart rebinds what is still recorded */
    coord_started(again, now, &out);
    coord_free(again);
    arena_reset(&out_arena);
    coord_out_init(&out, &out_arena);
    ck_assert_int_eq(coord_unit_delete(coord, now, unit, &out, &fault), 0);
    settle("unit delete");

    ck_assert_str_eq(value("SELECT count(*) FROM kiln.unit WHERE deleted_at IS NULL"), "0");
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.run"), "0");
}
END_TEST

START_TEST(binding_set_reads_back_with_every_field)
{
    take_load();
    (void)ready_run("a", '1');
    const struct core_binding *want = &coord_unit_set(coord, unit)->bindings[0];

    struct coord *again = loaded();

    const struct core_binding_set *set = coord_unit_set(again, unit);
    const struct core_binding *got = &set->bindings[0];
    ck_assert_str_eq(got->source_id, want->source_id);
    ck_assert_str_eq(got->source_name, want->source_name);
    ck_assert_str_eq(got->model, want->model);
    ck_assert_str_eq(got->target.warehouse, want->target.warehouse);
    ck_assert_str_eq(got->target.schema, "public");
    ck_assert_str_eq(got->target.table, "a");
    ck_assert_str_eq(got->target.physical, "\"public\".\"a\"");
    ck_assert_str_eq(got->target.target_key, want->target.target_key);
    ck_assert_str_eq(got->target.build_id, want->target.build_id);
    ck_assert_str_eq(got->target.entity_id, want->target.entity_id);
    ck_assert(got->target.in_place);
    ck_assert_uint_eq(got->generation.token, want->generation.token);
    ck_assert_int_eq(got->generation.rows, 7);
    ck_assert_int_eq(got->generation.bytes, 8192);
    ck_assert_int_eq(got->generation.data_as_of_us, INT64_C(1766012345000001));
    ck_assert_uint_eq(got->generation.columns.n, 2);
    ck_assert_str_eq(got->generation.columns.items[1].element_type, "text");
    ck_assert_uint_eq(got->window_s, 3600);
    ck_assert_str_eq(value("SELECT convert_from(packed, 'UTF8') = 'set ' || epoch FROM "
                           "kiln.binding_set ORDER BY epoch DESC LIMIT 1"),
                     "t");
    ck_assert_uint_gt(coord_next_token(again, (struct coord_now){.unix_us = 1}), set->epoch);
    coord_free(again);
}
END_TEST

TCase *coord_case(void)
{
    TCase *tc = tcase_create("coord");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, run_reads_back_alike_after_every_step);
    tcase_add_test(tc, carried_run_deleted_run_and_its_drop_job_read_back_alike);
    tcase_add_test(tc, lost_lease_stopped_run_and_failed_build_read_back_alike);
    tcase_add_test(tc, reports_sweeps_and_a_deleted_unit_read_back_alike);
    tcase_add_test(tc, binding_set_reads_back_with_every_field);
    return tc;
}
