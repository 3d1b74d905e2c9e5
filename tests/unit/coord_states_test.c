/* Names and moves from states.def, the rules of the run store in memory. */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

#define ROUND_TRIP(kind, type, last)                                                               \
    for (int i = 0; i <= (int)(last); i++) {                                                       \
        enum type out;                                                                             \
        ck_assert_int_eq(kind##_parse(kind##_name((enum type)i), &out), 0);                        \
        ck_assert_int_eq((int)out, i);                                                             \
        ck_assert_int_eq(kind##_parse("no such state", &out), -1);                                 \
    }

START_TEST(every_state_has_a_name_that_parses_back)
{
    ROUND_TRIP(run_state, run_state, RUN_CANCELLED)
    ROUND_TRIP(job_state, job_state, JOB_CANCELLED)
    ROUND_TRIP(attempt_state, attempt_state, ATTEMPT_CANCELLED)
    ROUND_TRIP(generation_state, generation_state, GENERATION_LOST)
    enum job_kind kind;
    ck_assert_int_eq(job_kind_parse("sweep", &kind), 0);
    ck_assert_int_eq(kind, KIND_SWEEP);
    ck_assert_str_eq(job_kind_name(KIND_BUILD), "build");
    ck_assert_int_eq(job_kind_parse("bake", &kind), -1);
}
END_TEST

START_TEST(run_states_read_as_the_rest_api_says_them)
{
    ck_assert_str_eq(run_state_name(RUN_BINDING), "binding");
    ck_assert_str_eq(run_state_rest(RUN_PLANNING), "PENDING");
    ck_assert_str_eq(run_state_rest(RUN_BINDING), "MANIFEST_ROWS_READY");
    ck_assert_str_eq(run_state_rest(RUN_READY), "MANIFEST_FILE_READY");
    ck_assert(run_state_active(RUN_BINDING));
    ck_assert(!run_state_active(RUN_FAILED));
    ck_assert(job_state_ended(JOB_CARRIED));
    ck_assert(!job_state_ended(JOB_RESOLVING));
}
END_TEST

START_TEST(every_move_joins_two_states_and_leaves_no_end_but_a_lost_attempt)
{
    size_t n_states, n_moves;
    const struct state_row *states = states_rows(&n_states);
    const struct move_row *moves = states_moves(&n_moves);
    ck_assert_uint_eq(n_states, 7 + 10 + 6 + 7);
    for (size_t i = 0; i < n_moves; i++) {
        size_t found = 0;
        for (size_t k = 0; k < n_states; k++) {
            bool mine = strcmp(states[k].machine, moves[i].machine) == 0;
            bool from = mine && strcmp(states[k].name, moves[i].from) == 0;
            bool to = mine && strcmp(states[k].name, moves[i].to) == 0;
            found += (size_t)from + (size_t)to;
            bool is_end = from && strchr(states[k].flags, 'E');
            ck_assert(!is_end || strcmp(moves[i].from, "lost") == 0);
        }
        ck_assert_uint_eq(found, 2);
        ck_assert(moves[i].on[0] != '\0');
    }
    ck_assert(states_move_allowed("job", "publishing", "resolving"));
    ck_assert(!states_move_allowed("job", "publishing", "failed"));
    ck_assert(!states_move_allowed("run", "publishing", "resolving"));
}
END_TEST

START_TEST(the_store_refuses_a_move_from_a_state_that_does_not_stand)
{
    struct memory_store *s = memory_store_new();
    struct arena a;
    arena_init(&a);
    struct rows rows = {.arena = &a};
    uint64_t unit = memory_store_add_unit(s, "dev", "p1");
    const char *id = "1766012345678-00000000a";
    rows_add(&rows, ROW_RUN_INSERT)->u.run =
        (struct row_run){.id = id, .unit = unit, .trigger = "ON_DEMAND"};
    ck_assert_ptr_null(memory_store_apply(s, &rows));
    rows.n = 0;
    struct row_run *r = &rows_add(&rows, ROW_RUN_MOVE)->u.run;
    *r =
        (struct row_run){.id = id, .from = RUN_PLANNING, .state = RUN_CANCELLED, .completed_us = 1};
    ck_assert_ptr_nonnull(strstr(memory_store_apply(s, &rows), "not planning"));
    r->from = RUN_REQUESTED;
    r->state = RUN_READY;
    ck_assert_ptr_nonnull(strstr(memory_store_apply(s, &rows), "may not move"));
    rows.n = 0;
    rows_add(&rows, ROW_RUN_INSERT)->u.run =
        (struct row_run){.id = "1766012345678-00000000b", .unit = unit, .trigger = "ON_DEMAND"};
    ck_assert_ptr_nonnull(strstr(memory_store_apply(s, &rows), "two active runs"));
    arena_fini(&a);
    memory_store_free(s);
}
END_TEST

TCase *coord_states_tests(void)
{
    TCase *tc = tcase_create("states");
    tcase_add_test(tc, every_state_has_a_name_that_parses_back);
    tcase_add_test(tc, run_states_read_as_the_rest_api_says_them);
    tcase_add_test(tc, every_move_joins_two_states_and_leaves_no_end_but_a_lost_attempt);
    tcase_add_test(tc, the_store_refuses_a_move_from_a_state_that_does_not_stand);
    return tc;
}
