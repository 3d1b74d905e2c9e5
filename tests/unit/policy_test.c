#include "tests/support/suite.h"
#include "tests/unit/plan_fixture.h"

static const char *const good_crons[] = {
    "* * * * *",
    "0 6 * * *",
    "*/15 0-6,18 1 JAN-MAR,dec sun",
    "  5\t4 31 12 7  ",
    "0-30/10 2/3 * * MON-FRI",
};

START_TEST(five_field_cron_is_understood)
{
    ck_assert_ptr_null(cron_check(&pw.a, good_crons[_i]));
}
END_TEST

static const struct {
    const char *text, *fragment;
} bad_crons[] = {
    {"", "0 fields"},
    {"@daily", "1 fields"},
    {"0 0 0 * * *", "6 fields"},
    {"60 * * * *", "minute '60'"},
    {"* 24 * * *", "hour '24'"},
    {"* * 0 * *", "day of month '0'"},
    {"* * L * *", "day of month 'L'"},
    {"* * 15W * *", "day of month '15W'"},
    {"* * * 13 *", "month '13'"},
    {"* * * * 1#2", "day of week '1#2'"},
    {"* * ? * *", "day of month '?'"},
    {"5-1 * * * *", "minute '5-1'"},
    {"1- * * * *", "minute '1-'"},
    {"*/0 * * * *", "minute '*/0'"},
    {"*/ * * * *", "minute '*/'"},
    {"*/99 * * * *", "minute '*/99'"},
    {"1,,2 * * * *", "minute '1,,2'"},
    {",1 * * * *", "minute ',1'"},
    {"1, * * * *", "ends with a comma"},
    {"* * * MAY-FOO *", "month 'MAY-FOO'"},
};

START_TEST(other_schedules_are_refused_with_the_field)
{
    const char *problem = cron_check(&pw.a, bad_crons[_i].text);
    ck_assert_ptr_nonnull(problem);
    ck_assert_msg(has_text(problem, bad_crons[_i].fragment), "%s", problem);
}
END_TEST

START_TEST(durations_are_read_in_seconds)
{
    ck_assert_int_eq(duration_seconds("24h"), 86400);
    ck_assert_int_eq(duration_seconds("30m"), 1800);
    ck_assert_int_eq(duration_seconds("7d"), 604800);
    ck_assert_int_eq(duration_seconds("90s"), 90);
    ck_assert_int_eq(duration_seconds("1w"), 604800);
    ck_assert_int_eq(duration_seconds(" 1h 30m "), 5400);
    ck_assert_int_eq(duration_seconds("1h30"), -1);
    ck_assert_int_eq(duration_seconds(""), -1);
    ck_assert_int_eq(duration_seconds("h"), -1);
    ck_assert_int_eq(duration_seconds("10"), -1);
    ck_assert_int_eq(duration_seconds("5 y"), -1);
    ck_assert_int_eq(duration_seconds("99999999999d"), -1);
    ck_assert_int_eq(duration_seconds("99999999999999999999999s"), -1);
}
END_TEST

static void scheduled(const char *scope, const char *rest)
{
    pw_manifest(arena_printf(&pw.a,
                             "{\"materialization\":{\"scope\":\"%s\",\"schedule\":\"0 6 * * "
                             "*\"%s}}",
                             scope, rest));
}

START_TEST(policy_without_a_schedule_has_no_violation)
{
    pw_manifest("{\"materialization\":{\"freshness\":{\"window\":\"24h\"}}}");
    pw_plan();
    ck_assert_ptr_null(package_policy_violations(&pw.a, pw.in.manifest, &pw.plan));
}
END_TEST

START_TEST(coherent_schedule_has_no_violation)
{
    scheduled("version", "");
    pw_source(pw_model("a.malloy", NULL), "s", "t");
    const struct package_plan *p = pw_plan();
    ck_assert_ptr_null(package_policy_violations(&pw.a, pw.in.manifest, &pw.plan));
    ck_assert_uint_eq(json_array_size(p->warnings), 0);
}
END_TEST

START_TEST(schedule_needs_scope_version_and_excludes_freshness_everywhere)
{
    scheduled("package", ",\"freshness\":{\"fallback\":\"live\"}");
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_tag(pw_source(m, "daily", "t"), "freshness.window", "1h");

    pw_plan();

    const char *all = package_policy_violations(&pw.a, pw.in.manifest, &pw.plan);
    ck_assert(has_text(all, "requires materialization.scope \"version\"; "));
    ck_assert(has_text(all, "excludes materialization.freshness"));
    ck_assert(has_text(all, "remove it from daily"));
}
END_TEST

START_TEST(bad_cron_is_a_violation)
{
    pw_manifest("{\"materialization\":{\"scope\":\"version\",\"schedule\":\"@daily\"}}");
    pw_plan();
    ck_assert(has_text(package_policy_violations(&pw.a, pw.in.manifest, &pw.plan),
                       "schedule '@daily' in publisher.json is no cron"));
}
END_TEST

START_TEST(violations_warn_at_a_load_and_reject_a_publish)
{
    Kiln__Mc__Source *s = pw_source(pw_model("a.malloy", NULL), "s", "t");
    pw_tag(s, "sharing", "version");
    pw_tag(s, "schedule", "0 0 * * *");

    const struct package_plan *p = pw_plan();
    ck_assert_ptr_null(p->load_error);
    ck_assert(has_note(p->warnings, NULL,
                       "sharing= on source 's' in a.malloy is retired: it is "
                       "package-level now"));
    ck_assert(has_note(p->warnings, NULL, "schedule= on source 's'"));

    pw.in.publishing = true;
    p = pw_plan();
    ck_assert_int_eq(p->load_status, 400);
    ck_assert(has_text(p->load_error, "sharing= on source"));
    ck_assert(has_text(p->load_error, "; schedule= on source"));
    ck_assert_uint_eq(p->n_retired_options, 2);

    pw.in.policy_untouched = true;
    ck_assert_ptr_null(pw_plan()->load_error);
    ck_assert(has_note(pw.plan.warnings, NULL, "schedule= on source 's'"));
}
END_TEST

START_TEST(missing_explores_warn_at_a_load_and_reject_a_publish)
{
    pw_manifest("{\"explores\":[\"a.malloy\",\"b.malloy\",\"n.malloynb\"]}");
    pw_model("a.malloy", NULL);
    pw_model("n.malloynb", NULL);

    const struct package_plan *p = pw_plan();
    ck_assert_ptr_null(p->load_error);
    ck_assert_uint_eq(json_array_size(json_object_get(p->package, "exploresWarnings")), 2);

    pw.in.publishing = true;
    p = pw_plan();
    ck_assert_int_eq(p->load_status, 400);
    ck_assert(has_text(p->load_error, "names 'b.malloy'"));
    ck_assert(has_text(p->load_error, "; explores in publisher.json names 'n.malloynb'"));
    pw_manifest("{\"explores\":[\"a.malloy\"]}");
    ck_assert_ptr_null(package_explores_violations(&pw.a, pw.in.manifest, pw.paths, pw.in.n_files));
}
END_TEST

START_TEST(load_failure_keeps_its_status_beside_a_publish_rejection)
{
    pw.in.publishing = true;
    pw_manifest("{\"explores\":[\"gone.malloy\"]}");
    pw_model("a.malloy", NULL)->error = arena_strdup(&pw.a, "bad");
    ck_assert_int_eq(pw_plan()->load_status, 424);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("policy");
    tcase_add_checked_fixture(tc, plan_up, plan_down);
    tcase_add_loop_test(tc, five_field_cron_is_understood, 0, (int)ARRAY_LEN(good_crons));
    tcase_add_loop_test(tc, other_schedules_are_refused_with_the_field, 0,
                        (int)ARRAY_LEN(bad_crons));
    tcase_add_test(tc, durations_are_read_in_seconds);
    tcase_add_test(tc, policy_without_a_schedule_has_no_violation);
    tcase_add_test(tc, coherent_schedule_has_no_violation);
    tcase_add_test(tc, schedule_needs_scope_version_and_excludes_freshness_everywhere);
    tcase_add_test(tc, bad_cron_is_a_violation);
    tcase_add_test(tc, violations_warn_at_a_load_and_reject_a_publish);
    tcase_add_test(tc, missing_explores_warn_at_a_load_and_reject_a_publish);
    tcase_add_test(tc, load_failure_keeps_its_status_beside_a_publish_rejection);
    Suite *s = suite_create("policy");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
