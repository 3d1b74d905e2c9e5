/* What can be said about a flow's table without running it. */
#include "common/flow/flow_graph.h"
#include "tests/unit/flow_fixture.h"
#include "tests/unit/flow_suites.h"

/* Stands in tables that are only looked at. */
static enum flow_next step_unused(struct flow *f)
{
    (void)f;
    return FLOW_END;
}

START_TEST(table_check_names_what_is_wrong)
{
    static const struct flow_step far[] = {
        {"A", step_unused, FLOW_TO(5), 0, NULL, NULL, false},
        {"END", step_unused, 0, 0, NULL, NULL, false},
    };
    static const struct flow_step lost[] = {
        {"A", step_unused, FLOW_TO(0), 0, NULL, NULL, false},
        {"END", step_unused, 0, 0, NULL, NULL, false},
    };
    static const struct flow_step on[] = {
        {"A", step_unused, FLOW_TO(1), 0, NULL, NULL, false},
        {"END", step_unused, FLOW_TO(0), 0, NULL, NULL, false},
    };

    ck_assert_ptr_null(flow_type_check(&job_type));
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"t", far, 2}),
                     "a successor is no step of the flow");
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"t", lost, 2}),
                     "a step, or END, cannot be reached from the first step");
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"t", on, 2}),
                     "the last step is END: it has no successor and no wait");
    ck_assert_str_eq(flow_type_check(&(struct flow_type){"", on, 2}), "the flow has no name");
}
END_TEST

START_TEST(graph_shows_every_step_and_arrow)
{
    auto_buf struct buf out;
    buf_init(&out);

    flow_graph(&job_type, &out);

    ck_assert_str_eq(buf_str(&out),
                     "stateDiagram-v2\n"
                     "    ASK: ASK - asks, then, waits (at most 100 ms)\n"
                     "    WORK: WORK - works (at most 100 ms)\n"
                     "    COMMIT: COMMIT - point of no return (at most 500 ms) [not cancellable]\n"
                     "    [*] --> ASK\n"
                     "    ASK --> WORK\n"
                     "    ASK --> CLEAN\n"
                     "    WORK --> COMMIT\n"
                     "    WORK --> CLEAN\n"
                     "    COMMIT --> CLEAN\n"
                     "    CLEAN --> DONE\n"
                     "    DONE --> [*]\n");
}
END_TEST

TCase *flow_table_tests(void)
{
    TCase *tc = tcase_create("tables");
    tcase_add_test(tc, table_check_names_what_is_wrong);
    tcase_add_test(tc, graph_shows_every_step_and_arrow);
    return tc;
}
