/* The run store on a PostgreSQL of its own: migrations and schema here, the rest in the other
 * cases. */
#include "common/log/log.h"
#include "tests/conformance/store_fixture.h"
#include "tests/support/suite.h"

#include <stdio.h>

START_TEST(migrations_run_once_and_a_second_start_changes_nothing)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    struct uuid first = *store_installation(one.s);
    peer_close(&one);
    const char *before =
        value("SELECT string_agg(number || name || applied_at, ' ') FROM kiln.migration");

    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);

    ck_assert_str_eq(
        before, value("SELECT string_agg(number || name || applied_at, ' ') FROM kiln.migration"));
    ck_assert(uuid_eq(&first, store_installation(one.s)));
    ck_assert_uint_eq(one.term, 2);
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.meta"), "1");
}
END_TEST

START_TEST(two_planners_that_start_at_once_migrate_once)
{
    peer_open(&one, "planner-1", 50, 60000);
    peer_open(&two, "planner-2", 50, 60000);

    turn_until(two.loop, (loop_turn(one.loop, MS(1)), one.heard && two.heard));

    ck_assert(one.is_up && two.is_up);
    ck_assert_int_eq(one.leaders + two.leaders, 1);
}
END_TEST

START_TEST(changed_migration_is_refused_by_name)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    peer_close(&one);
    sql("UPDATE kiln.migration SET sha256 = sha256('other')");

    peer_open(&one, "planner-1", 50, 500);
    turn_until(one.loop, one.heard);

    ck_assert(!one.is_up);
    ck_assert_ptr_nonnull(strstr(one.why, "001_run_store.sql"));
    ck_assert_int_eq(one.leaders, 0);
}
END_TEST

START_TEST(run_store_of_a_newer_version_is_refused)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    peer_close(&one);
    sql("INSERT INTO kiln.migration (number, name, sha256) SELECT max(number) + 1, "
        "'from_the_future.sql', sha256('x') FROM "
        "kiln.migration");

    peer_open(&one, "planner-1", 50, 500);
    turn_until(one.loop, one.heard);

    ck_assert(!one.is_up);
    ck_assert_ptr_nonnull(strstr(one.why, "newer"));
}
END_TEST

static size_t quotes_in(const char *text)
{
    size_t n = 0;
    for (; *text; text++) {
        n += *text == '\'';
    }
    return n;
}

START_TEST(states_in_the_schema_are_those_of_states_def)
{
    static const char *const machines[] = {"run", "job", "attempt", "generation"};
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    size_t n = 0;
    const struct state_row *rows = states_rows(&n);

    for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
        const char *def =
            value(arena_printf(&arena,
                               "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname "
                               "= '%s_state' AND conrelid = 'kiln.%s'::regclass",
                               machines[m], machines[m]));
        size_t states = 0;
        for (size_t i = 0; i < n; i++) {
            if (strcmp(rows[i].machine, machines[m]) == 0) {
                states++;
                ck_assert_msg(strstr(def, arena_printf(&arena, "'%s'", rows[i].name)) != NULL,
                              "%s %s", machines[m], rows[i].name);
            }
        }
        ck_assert_uint_eq(quotes_in(def), 2 * states);
    }
}
END_TEST

/* Everything in the schema that counts on which states are active or ended agrees with the table.
 */
START_TEST(partial_indexes_name_the_active_states)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    size_t n = 0;
    const struct state_row *rows = states_rows(&n);
    const char *run = value("SELECT pg_get_indexdef('kiln.run_one_active'::regclass)");
    const char *job = value("SELECT pg_get_indexdef('kiln.job_open'::regclass)");

    for (size_t i = 0; i < n; i++) {
        const char *name = arena_printf(&arena, "'%s'", rows[i].name);
        if (strcmp(rows[i].machine, "run") == 0) {
            ck_assert_int_eq(strchr(rows[i].flags, 'A') != NULL, strstr(run, name) != NULL);
        }
        if (strcmp(rows[i].machine, "job") == 0) {
            ck_assert_int_eq(strchr(rows[i].flags, 'E') != NULL, strstr(job, name) != NULL);
        }
    }
}
END_TEST

static TCase *schema_case(void)
{
    TCase *tc = tcase_create("schema");
    tcase_add_checked_fixture(tc, fresh_database, end_database);
    tcase_add_test(tc, migrations_run_once_and_a_second_start_changes_nothing);
    tcase_add_test(tc, two_planners_that_start_at_once_migrate_once);
    tcase_add_test(tc, changed_migration_is_refused_by_name);
    tcase_add_test(tc, run_store_of_a_newer_version_is_refused);
    tcase_add_test(tc, states_in_the_schema_are_those_of_states_def);
    tcase_add_test(tc, partial_indexes_name_the_active_states);
    return tc;
}

int main(void)
{
    log_setup("store_test", LOG_ERROR, LOG_FORM_TEXT);
    pg_server_start(&server);
    Suite *s = suite_create("store");
    suite_add_tcase(s, schema_case());
    suite_add_tcase(s, leader_case());
    suite_add_tcase(s, coord_case());
    suite_add_tcase(s, records_case());
    int rc = suite_run(s);
    pg_server_stop(&server);
    return rc;
}
