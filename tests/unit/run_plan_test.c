#include "tests/support/suite.h"
#include "tests/unit/run_plan_fixture.h"

/* ---- carry or build ---- */

START_TEST(new_target_is_built_with_all_that_a_job_needs)
{
    rp_one_source();

    const struct plan_target *t = rp_make();

    ck_assert_uint_eq(rp.run.n, 1);
    ck_assert_uint_eq(rp.run.load, 7);
    ck_assert_str_eq(rp.run.compiler_version, "0.0.1");
    ck_assert_int_eq(t->action, PLAN_BUILD);
    ck_assert_str_eq(t->target.warehouse, "D1");
    ck_assert(t->target.in_place);
    ck_assert_str_eq(t->target.physical, "\"mart\".\"daily\"");
    ck_assert_str_eq(t->target.target_key, "daily");
    ck_assert_str_eq(t->target.build_id, "build-daily");
    ck_assert_str_eq(t->sql, "SELECT 'daily'");
    ck_assert_str_eq(t->why, "nothing is recorded for it yet");
    ck_assert_ptr_null(t->upstream_reuse);
    ck_assert_uint_eq(rp.run.n_authored, 1);
    ck_assert(!rp.run.named_refused);
    ck_assert_ptr_null(rp.run.fail);
}
END_TEST

START_TEST(undotted_name_is_planned_in_the_schema_that_the_warehouse_told)
{
    pw_source(pw_model("a.malloy", NULL), "s", "t");
    rp_ready();
    rp.states[0].schema = "current";
    ck_assert_str_eq(rp_make()->target.physical, "\"current\".\"t\"");
}
END_TEST

START_TEST(proven_generation_is_carried_even_where_a_swap_would_be_refused)
{
    rp_one_source();
    rp_stands(0);
    rp.states[0].schema_writable = false;
    rp.states[0].dependents = rp_names("view public.v");
    rp.states[0].n_dependents = 1;

    const struct plan_target *t = rp_make();

    ck_assert_int_eq(t->action, PLAN_CARRY);
    ck_assert_str_eq(t->generation.id, "G");
    ck_assert_int_eq(t->generation.rows, 42);
}
END_TEST

START_TEST(nothing_is_carried_without_proof)
{
    rp_one_source();
    rp_stands(0);
    rp.in.force_refresh = true;
    ck_assert_str_eq(rp_make()->why, "a refresh is forced");
    rp.in.force_refresh = false;
    rp.states[0].fence_generation = "OTHER";
    ck_assert_str_eq(rp_make()->why, "its table holds a result that is not the recorded one");
    rp_stands(0);
    rp.states[0].still_there = false;
    ck_assert_str_eq(rp_make()->why, "its table was replaced by someone else");
    rp_stands(0);
    rp.states[0].fence_build_id = "build-else";
    ck_assert_str_eq(rp_make()->why, "its table holds another build");
    rp_stands(0);
    rp.states[0].relkind = 0;
    rp.states[0].still_there = false;
    ck_assert_str_eq(rp_make()->why, "its table is gone");
    ck_assert_int_eq(rp.run.targets[0].action, PLAN_BUILD);
    rp_stands(0);
    rp.states[0].has_fence = false;
    rp.states[0].is_empty = true;
    ck_assert_int_eq(rp_make()->action, PLAN_BUILD);
    rp_stands(0);
    rp.generations[0].g.id = NULL;
    ck_assert_int_eq(rp_make()->action, PLAN_BUILD);
}
END_TEST

/* ---- what fails at one target ---- */

static void assert_fails(int code, const char *fragment)
{
    const struct plan_target *t = rp_make();
    ck_assert_int_eq(t->action, PLAN_FAIL);
    ck_assert_int_eq(t->fail_code, code);
    ck_assert_msg(has_text(t->fail_text, fragment), "%s", t->fail_text);
}

START_TEST(warehouse_that_cannot_be_asked_fails_its_targets)
{
    rp_one_source();
    rp.states[0].error = "connection 'pg': refused";
    assert_fails(ERR_WH_CONNECT, "connection 'pg': refused");
    rp.states[0].error_code = ERR_WH_DENIED;
    assert_fails(ERR_WH_DENIED, "refused");
    rp.states[0] = (struct target_state){0};
    assert_fails(ERR_INTERNAL, "was not asked");
}
END_TEST

START_TEST(missing_and_unwritable_schemas_are_named_with_the_remedy)
{
    rp_one_source();
    rp.states[0].schema_exists = false;
    assert_fails(ERR_WH_MISSING, "schema 'mart' does not exist on connection 'pg': create it");
    rp.states[0].schema_exists = true;
    rp.states[0].schema_writable = false;
    assert_fails(ERR_WH_DENIED, "schema 'mart' on connection 'pg' is not writable: grant CREATE");
}
END_TEST

START_TEST(view_at_the_targets_name_is_refused)
{
    rp_one_source();
    rp.states[0].relkind = 'v';
    assert_fails(ERR_WH_TARGET, "target_not_a_table: mart.daily on connection 'pg'");
}
END_TEST

START_TEST(foreign_table_is_refused_unless_it_is_empty_or_taken_over)
{
    rp_one_source();
    rp.states[0].relkind = 'r';
    assert_fails(ERR_WH_TARGET, "target_exists: mart.daily");
    rp.states[0].has_fence = true; /* claimed, but nothing of ours was ever published there */
    assert_fails(ERR_WH_TARGET, "target_exists: mart.daily");
    rp.in.take_over = true;
    ck_assert_int_eq(rp_make()->action, PLAN_BUILD);
    rp.in.take_over = false;
    rp.states[0].is_empty = true;
    ck_assert_int_eq(rp_make()->action, PLAN_BUILD);
}
END_TEST

START_TEST(dependents_and_what_cannot_be_carried_are_listed)
{
    rp_one_source();
    rp_stands(0);
    rp.in.force_refresh = true;
    rp.states[0].dependents = (const char *const[]){"view public.v", "foreign key on public.c"};
    rp.states[0].n_dependents = 2;
    assert_fails(ERR_WH_DEPENDENTS, "(view public.v, foreign key on public.c)");
    rp.states[0].n_dependents = 0;
    rp.states[0].cannot_carry = rp_names("column grants");
    rp.states[0].n_cannot_carry = 1;
    assert_fails(ERR_WH_TARGET, "target_cannot_be_carried: mart.daily");
    ck_assert(has_text(rp.run.targets[0].fail_text, "(column grants)"));
}
END_TEST

START_TEST(table_of_another_installation_is_taken_over_or_refused_when_enforced)
{
    rp_one_source();
    rp_stands(0);
    rp.states[0].ours = false;
    rp.states[0].fence_generation = "THEIRS";
    ck_assert_int_eq(rp_make()->action, PLAN_BUILD);
    ck_assert_uint_eq(rp.run.n_warnings, 1);
    ck_assert(has_text(rp.run.warnings[0], "target_taken_over: mart.daily"));
    rp.in.collision_enforce = true;
    assert_fails(ERR_WH_TARGET, "target_taken_over");
}
END_TEST

START_TEST(targets_that_turn_out_to_be_one_place_collide)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "one", "mart.t");
    pw_source(m, "two", "t");
    pw_source(m, "three", "orders");
    pw_reads(m, "pg", "mart.orders");
    pw_reads(m, "nowhere", "mart.orders");
    rp_ready();
    ck_assert_uint_eq(pw.plan.n_refusals, 0);
    rp.states[1].schema = rp.states[2].schema = "mart";

    rp_make();

    ck_assert_int_eq(rp.run.targets[0].action, PLAN_BUILD);
    ck_assert_int_eq(rp.run.targets[1].action, PLAN_FAIL);
    ck_assert(has_text(rp.run.targets[1].fail_text, "target_collision: mart.t"));
    ck_assert(has_text(rp.run.targets[2].fail_text, "target_is_a_source"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("run_plan");
    tcase_add_checked_fixture(tc, plan_up, plan_down);
    tcase_add_test(tc, new_target_is_built_with_all_that_a_job_needs);
    tcase_add_test(tc, undotted_name_is_planned_in_the_schema_that_the_warehouse_told);
    tcase_add_test(tc, proven_generation_is_carried_even_where_a_swap_would_be_refused);
    tcase_add_test(tc, nothing_is_carried_without_proof);
    tcase_add_test(tc, warehouse_that_cannot_be_asked_fails_its_targets);
    tcase_add_test(tc, missing_and_unwritable_schemas_are_named_with_the_remedy);
    tcase_add_test(tc, view_at_the_targets_name_is_refused);
    tcase_add_test(tc, foreign_table_is_refused_unless_it_is_empty_or_taken_over);
    tcase_add_test(tc, dependents_and_what_cannot_be_carried_are_listed);
    tcase_add_test(tc, table_of_another_installation_is_taken_over_or_refused_when_enforced);
    tcase_add_test(tc, targets_that_turn_out_to_be_one_place_collide);
    Suite *s = suite_create("run_plan");
    suite_add_tcase(s, tc);
    int failed = suite_run(s);
    return failed | suite_run(run_plan_scope_suite());
}
