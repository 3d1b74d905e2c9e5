/* What callers send, checked. */
#include "rest_suites.h"
#include "services/gateway/rest_publisher/rest_body.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_fini(&arena);
}

static json_t *object(const char *text)
{
    struct err e = {0};
    json_t *v = rest_body_parse(slice_of(text), false, &e);
    ck_assert_msg(v != NULL, "%s: %s", text, err_text(&e));
    return v;
}

static const struct {
    const char *body, *says;
} bad_runs[] = {
    {"{\"forceRefresh\":\"yes\"}", "'forceRefresh' must be true or false"},
    {"{\"reseed\":1}", "'reseed' must be true or false"},
    {"{\"takeOver\":[]}", "'takeOver' must be true or false"},
    {"{\"sourceNames\":\"a\"}", "'sourceNames' must be a list of strings"},
    {"{\"sourceNames\":[\"a\",2]}", "'sourceNames' must be a list of strings"},
    {"{\"runContext\":[]}", "'runContext' must be an object"},
    {"{\"runContext\":{\"trigger\":\"cron\"}}",
     "'runContext.trigger' must be publish, on_demand or scheduler"},
    {"{\"runContext\":{\"trigger\":3}}",
     "'runContext.trigger' must be publish, on_demand or scheduler"},
    {"{\"runContext\":{\"runId\":7}}", "'runContext.runId' must be printable ASCII"},
    {"{\"runContext\":{\"runId\":\"a\\\"b\"}}", "'runContext.runId' must be printable ASCII"},
    {"{\"runContext\":{\"runId\":\"gr\\u00fcn\"}}", "'runContext.runId' must be printable ASCII"},
    {"{\"buildInstructions\":1}", "'buildInstructions' must be an object"},
};

START_TEST(run_body_of_a_wrong_type_is_refused_and_the_field_is_named)
{
    for (size_t i = 0; i < ARRAY_LEN(bad_runs); i++) {
        json_t *body = object(bad_runs[i].body);
        struct rest_run run;
        struct err e = {0};
        ck_assert_int_eq(rest_body_run(&arena, body, &run, &e), ERR_INVALID);
        ck_assert_msg(strstr(err_text(&e), bad_runs[i].says) != NULL, "%s", err_text(&e));
        json_decref(body);
    }
}
END_TEST

START_TEST(run_body_is_taken_whole_and_unknown_keys_are_ignored)
{
    json_t *body = object("{\"forceRefresh\":true,\"reseed\":true,\"takeOver\":true,\"trigger\":"
                          "\"SCHEDULER\",\"sourceNames\":[\"a\",\"b\"],"
                          "\"runContext\":{\"trigger\":\"publish\",\"runId\":\"x 1\"}}");
    struct rest_run run;
    struct err e = {0};
    ck_assert_int_eq(rest_body_run(&arena, body, &run, &e), 0);
    ck_assert(run.force_refresh && run.reseed && run.take_over && run.has_names);
    ck_assert_uint_eq(run.n_names, 2);
    ck_assert_str_eq(run.names[1], "b");
    ck_assert_str_eq(run.run_context, "{\"trigger\":\"publish\",\"runId\":\"x 1\"}");
    json_decref(body);
}
END_TEST

START_TEST(nulls_count_as_absent_and_an_empty_list_of_names_does_not)
{
    json_t *body = object("{\"forceRefresh\":null,\"sourceNames\":null,\"runContext\":null,"
                          "\"buildInstructions\":null}");
    struct rest_run run;
    struct err e = {0};
    ck_assert_int_eq(rest_body_run(&arena, body, &run, &e), 0);
    ck_assert(!run.force_refresh && !run.has_names && !run.run_context);
    json_decref(body);

    body = object("{\"sourceNames\":[]}");
    ck_assert_int_eq(rest_body_run(&arena, body, &run, &e), 0);
    ck_assert(run.has_names && run.n_names == 0);
    json_decref(body);
}
END_TEST

START_TEST(build_instructions_are_501)
{
    json_t *body = object("{\"buildInstructions\":{}}");
    struct rest_run run;
    struct err e = {0};
    ck_assert_int_eq(rest_body_run(&arena, body, &run, &e), ERR_UNSUPPORTED);
    ck_assert_int_eq(err_code_http(e.code), 501);
    json_decref(body);
}
END_TEST

START_TEST(body_must_be_an_object_and_may_be_empty_only_where_that_is_said)
{
    struct err e = {0};
    json_t *v = rest_body_parse(SLICE("  \n"), true, &e);
    ck_assert(json_is_object(v));
    json_decref(v);
    ck_assert_ptr_null(rest_body_parse(SLICE_NONE, false, &e));
    ck_assert_ptr_null(rest_body_parse(SLICE("[1]"), true, &e));
    ck_assert_str_eq(err_text(&e), "the body must be a JSON object");
    ck_assert_ptr_null(rest_body_parse(SLICE("{\"a\":"), true, &e));
    ck_assert_msg(strncmp(err_text(&e), "the body is not JSON: line 1", 28) == 0, "%s",
                  err_text(&e));
}
END_TEST

START_TEST(version_id_is_seen_at_the_top_level_only)
{
    ck_assert(rest_body_has_version(SLICE("{\"versionId\":\"1\"}")));
    ck_assert(rest_body_has_version(SLICE("{\"query\":\"x\",\"versionId\":0}")));
    ck_assert(!rest_body_has_version(SLICE("{\"versionId\":null}")));
    ck_assert(!rest_body_has_version(SLICE("{\"query\":\"\\\"versionId\\\"\"}")));
    ck_assert(!rest_body_has_version(SLICE("{\"a\":{\"versionId\":\"1\"}}")));
    ck_assert(!rest_body_has_version(SLICE_NONE));
}
END_TEST

START_TEST(package_body_needs_a_name_that_may_stand_in_a_path)
{
    static const struct {
        const char *body, *says;
    } bad[] = {{"{}", "'name' is missing"},
               {"{\"name\":7}", "'name' must be a string"},
               {"{\"name\":\"\"}", "the package name is empty"},
               {"{\"name\":\"a/b\"}", "must not have slashes"},
               {"{\"name\":\"materializations\"}", "that name is reserved"},
               {"{\"name\":\"a\",\"location\":{}}", "'location' must be a string"}};
    struct rest_package p;
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *body = object(bad[i].body);
        ck_assert_int_eq(rest_body_package(body, &p, &e), ERR_INVALID);
        ck_assert_msg(strstr(err_text(&e), bad[i].says) != NULL, "%s", err_text(&e));
        json_decref(body);
    }
    json_t *body = object("{\"name\":\"shop\",\"location\":\"/x\",\"description\":\"\"}");
    ck_assert_int_eq(rest_body_package(body, &p, &e), 0);
    ck_assert_str_eq(p.location, "/x");
    ck_assert_str_eq(p.description, "");
    json_decref(body);
}
END_TEST

START_TEST(package_patch_takes_nulls_and_refuses_another_name)
{
    struct err e = {0};
    json_t *body =
        object("{\"name\":\"shop\",\"manifestLocation\":null,\"materialization\":{},\"scope\":null,"
               "\"explores\":[\"a.malloy\"],\"queryMetadata\":{\"team\":\"x\"}}");
    ck_assert_int_eq(rest_body_package_patch(body, "shop", &e), 0);
    ck_assert_int_eq(rest_body_package_patch(body, "other", &e), ERR_INVALID);
    ck_assert_msg(strstr(err_text(&e), "renaming is not possible") != NULL, "%s", err_text(&e));
    json_decref(body);

    body = object("{\"materialization\":\"hourly\"}");
    ck_assert_int_eq(rest_body_package_patch(body, "shop", &e), ERR_INVALID);
    ck_assert_str_eq(err_text(&e), "'materialization' must be an object");
    json_decref(body);
}
END_TEST

START_TEST(environment_body_is_checked_down_to_its_members)
{
    static const struct {
        const char *body, *says;
    } bad[] = {{"{}", "'name' is missing"},
               {"{\"name\":\"e\",\"connections\":{}}", "'connections' must be a list"},
               {"{\"name\":\"e\",\"connections\":[1]}", "'connections[0].name'"},
               {"{\"name\":\"e\",\"connections\":[{\"name\":\"a\"}]}", "'type' is missing"},
               {"{\"name\":\"e\",\"packages\":[{\"name\":\"a\"},{}]}", "packages[1]"},
               {"{\"name\":\"e\",\"packages\":[\"a\"]}", "'packages[0]' must be an object"}};
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *body = object(bad[i].body);
        ck_assert_int_eq(rest_body_environment(body, NULL, &e), ERR_INVALID);
        ck_assert_msg(strstr(err_text(&e), bad[i].says) != NULL, "%s", err_text(&e));
        json_decref(body);
    }
    json_t *body =
        object("{\"readme\":\"x\",\"connections\":[{\"name\":\"a\",\"type\":\"postgres\"}]}");
    ck_assert_int_eq(rest_body_environment(body, "e", &e), 0);
    json_decref(body);
}
END_TEST

START_TEST(connection_needs_a_type_when_it_is_new)
{
    struct err e = {0};
    json_t *body = object("{\"postgresConnection\":{}}");
    ck_assert_int_eq(rest_body_connection(body, "pg", true, &e), ERR_INVALID);
    ck_assert_int_eq(rest_body_connection(body, "pg", false, &e), 0);
    json_decref(body);
    body = object("{\"name\":\"other\",\"type\":\"postgres\"}");
    ck_assert_int_eq(rest_body_connection(body, "pg", true, &e), ERR_INVALID);
    json_decref(body);
}
END_TEST

START_TEST(paging_takes_non_negative_integers_only)
{
    static const char *const bad[] = {"", "-1", "1.5", "x", " 1", "1 ", "+1", "0x1"};
    struct err e = {0};
    uint32_t n = 7;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(rest_paging_number("limit", bad[i], &n, &e), ERR_INVALID);
        ck_assert_str_eq(err_text(&e), "'limit' must be a non-negative integer");
    }
    ck_assert_int_eq(rest_paging_number("limit", "0", &n, &e), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(rest_paging_number("limit", "99999999999999999999999", &n, &e), 0);
    ck_assert_uint_eq(n, UINT32_MAX);
}
END_TEST

START_TEST(request_id_is_of_the_key_and_differs_between_the_calls_of_a_request)
{
    static const uint8_t sha_of_abc[16] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                           0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23};
    uint8_t first[16], second[16];
    rest_request_id(SLICE("abc"), "", first);
    rest_request_id(SLICE("abc"), "1", second);
    ck_assert_mem_eq(first, sha_of_abc, 16);
    ck_assert_mem_ne(first, second, 16);
}
END_TEST

TCase *rest_body_case(void)
{
    TCase *tc = tcase_create("body");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, run_body_of_a_wrong_type_is_refused_and_the_field_is_named);
    tcase_add_test(tc, run_body_is_taken_whole_and_unknown_keys_are_ignored);
    tcase_add_test(tc, nulls_count_as_absent_and_an_empty_list_of_names_does_not);
    tcase_add_test(tc, build_instructions_are_501);
    tcase_add_test(tc, body_must_be_an_object_and_may_be_empty_only_where_that_is_said);
    tcase_add_test(tc, version_id_is_seen_at_the_top_level_only);
    tcase_add_test(tc, package_body_needs_a_name_that_may_stand_in_a_path);
    tcase_add_test(tc, package_patch_takes_nulls_and_refuses_another_name);
    tcase_add_test(tc, environment_body_is_checked_down_to_its_members);
    tcase_add_test(tc, connection_needs_a_type_when_it_is_new);
    tcase_add_test(tc, paging_takes_non_negative_integers_only);
    tcase_add_test(tc, request_id_is_of_the_key_and_differs_between_the_calls_of_a_request);
    return tc;
}
