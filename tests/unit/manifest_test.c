#include "tests/support/suite.h"
#include "tests/unit/plan_fixture.h"

static struct err err;

static json_t *parse(const char *text)
{
    err = (struct err){0};
    return package_manifest_parse(slice_of(text), &err);
}

static const struct {
    const char *text, *fragment;
} broken[] = {
    {"{", "publisher.json"},
    {"[]", "must hold a JSON object"},
    {"{\"scope\":\"global\"}", "\"scope\" must be \"package\" or \"version\""},
    {"{\"scope\":7}", "\"scope\" must be"},
    {"{\"materialization\":{\"scope\":\"x\"}}", "materialization \"scope\" must be"},
    {"{\"scope\":\"version\",\"materialization\":{\"scope\":\"package\"}}",
     "scope is \"version\" at the root and \"package\" in materialization"},
};

START_TEST(broken_manifest_fails_the_load_with_a_sentence)
{
    ck_assert_ptr_null(parse(broken[_i].text));
    ck_assert_msg(has_text(err_text(&err), broken[_i].fragment), "%s", err_text(&err));
    ck_assert_int_eq(err.code, ERR_PACKAGE);
    ck_assert_ptr_null(package_manifest_parse(slice_of(broken[_i].text), NULL));
}
END_TEST

START_TEST(name_that_is_no_string_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *is;
    } bad[] = {{"{\"name\":7}", "a number"},
               {"{\"name\":null}", "null"},
               {"{\"name\":[\"a\"]}", "an array"},
               {"{\"name\":{}}", "an object"},
               {"{\"name\":true}", "true or false"}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_t *m = parse(bad[i].text);
        ck_assert_ptr_nonnull(m); /* a stored load is read back all the same */
        ck_assert_int_eq(package_manifest_check(m, &err), ERR_PACKAGE);
        auto_free char *want = xasprintf("publisher.json: \"name\" must be a string, such as "
                                         "\"sales\", and it is %s",
                                         bad[i].is);
        ck_assert_str_eq(err_text(&err), want);
        json_decref(m);
    }
    json_t *none = parse("{}"), *text = parse("{\"name\":\"p\"}");
    ck_assert_int_eq(package_manifest_check(none, NULL), 0);
    ck_assert_int_eq(package_manifest_check(text, NULL), 0);
    json_decref(none);
    json_decref(text);
}
END_TEST

START_TEST(both_homes_may_say_the_same_in_silence)
{
    pw_manifest("{\"scope\":\"version\",\"materialization\":{\"scope\":\"version\"}}");
    const struct package_plan *p = pw_plan();
    ck_assert_uint_eq(json_array_size(p->warnings), 0);
    ck_assert_str_eq(json_str(p->package, "scope", ""), "version");
}
END_TEST

START_TEST(old_homes_are_warned_about)
{
    pw_manifest("{\"scope\":\"version\",\"materialization\":{\"queryMetadata\":{\"a\":\"b\"}}}");
    pw_source(pw_model("a.malloy", NULL), "s", "t");
    const struct package_plan *p = pw_plan();
    ck_assert(has_note(p->warnings, NULL, "scope at the root of publisher.json is deprecated"));
    ck_assert(has_note(p->warnings, NULL,
                       "materialization.queryMetadata in publisher.json is "
                       "deprecated"));
    ck_assert(has_text(pw_target("s")->tag, "a=\"b\""));
    ck_assert_str_eq(json_str(p->package, "scope", ""), "version");
}
END_TEST

START_TEST(root_metadata_wins_over_a_different_old_home)
{
    pw_manifest("{\"queryMetadata\":{\"a\":\"root\",\"b\":\"1\"},"
                "\"materialization\":{\"queryMetadata\":{\"a\":\"old\"}}}");
    pw_source(pw_model("a.malloy", NULL), "s", "t");
    const struct package_plan *p = pw_plan();
    ck_assert(has_note(p->warnings, NULL, "the root one is used"));
    ck_assert(has_text(pw_target("s")->tag, "a=\"root\""));

    pw_manifest("{\"queryMetadata\":{\"a\":\"x\",\"b\":\"1\"},"
                "\"materialization\":{\"queryMetadata\":{\"b\":\"1\",\"a\":\"x\"}}}");
    ck_assert_uint_eq(json_array_size(pw_plan()->warnings), 0);
}
END_TEST

START_TEST(odd_members_are_warned_about_and_do_no_harm)
{
    pw_manifest("{\"materialization\":7,\"queryableSources\":\"some\",\"queryMetadata\":3,"
                "\"manifestLocation\":\"s3://b/m.json\",\"explores\":\"a\"}");
    const struct package_plan *p = pw_plan();
    ck_assert(has_note(p->warnings, NULL, "materialization in publisher.json is no object"));
    ck_assert(has_note(p->warnings, NULL, "manifestLocation 's3://b/m.json'"));
    ck_assert_str_eq(json_str(p->package, "queryableSources", ""), "declared");
    ck_assert(json_is_null(json_object_get(p->package, "materialization")));
    ck_assert_ptr_null(json_object_get(p->package, "explores"));
}
END_TEST

START_TEST(package_object_has_the_fields_of_the_api)
{
    pw_manifest(
        "{\"description\":\"d\",\"queryableSources\":\"all\",\"queryMetadata\":{\"a\":\"b\"},"
        "\"explores\":[\"a.malloy\",\"gone.malloy\",\"n.malloynb\",5],"
        "\"materialization\":{\"freshness\":{\"window\":\"1h\",\"fallback\":\"odd\"},"
        "\"queryMetadata\":{\"a\":\"b\"},\"schedule\":9}}");
    pw_source(pw_model("a.malloy", NULL), "s", "t");
    pw_model("n.malloynb", NULL);
    const json_t *v = pw_plan()->package;
    ck_assert_str_eq(json_str(v, "resource", ""), "/api/v0/environments/prod/packages/sales");
    ck_assert_str_eq(json_str(v, "name", ""), "sales");
    ck_assert_str_eq(json_str(v, "description", ""), "d");
    ck_assert_str_eq(json_str(v, "location", ""), "/srv/sales");
    ck_assert_str_eq(json_str(v, "scope", ""), "package");
    ck_assert_str_eq(json_str(v, "queryableSources", ""), "all");
    ck_assert_uint_eq(json_array_size(json_object_get(v, "explores")), 4);
    ck_assert_uint_eq(json_array_size(json_object_get(v, "exploresWarnings")), 3);
    ck_assert(json_is_null(json_object_get(v, "manifestLocation")));
    const json_t *m = json_object_get(v, "materialization");
    ck_assert(json_is_null(json_object_get(m, "schedule")));
    ck_assert_str_eq(json_str(json_object_get(m, "freshness"), "window", ""), "1h");
    ck_assert(json_is_null(json_object_get(json_object_get(m, "freshness"), "fallback")));
    ck_assert_str_eq(json_str(json_object_get(m, "queryMetadata"), "a", ""), "b");
    ck_assert_ptr_nonnull(json_object_get(json_object_get(v, "buildPlan"), "sources"));
    ck_assert(json_is_array(json_object_get(v, "warnings")));
    ck_assert(json_is_array(json_object_get(v, "advisories")));
}
END_TEST

START_TEST(package_object_without_optional_members_has_nulls)
{
    json_t *none = pw.in.manifest;
    pw.in.manifest = NULL;
    const json_t *v = pw_plan()->package;
    ck_assert(json_is_null(json_object_get(v, "description")));
    ck_assert(json_is_null(json_object_get(v, "buildPlan")));
    ck_assert(json_is_null(json_object_get(v, "queryMetadata")));
    pw.in.manifest = none;
}
END_TEST

/* ---- PATCH ---- */

static bool touched;

static json_t *patched(const char *manifest, const char *body)
{
    json_t *m = manifest ? json_parse(slice_of(manifest), NULL) : NULL;
    json_t *b = json_parse(slice_of(body), NULL);
    err = (struct err){0};
    touched = false;
    json_t *out = package_manifest_patch(m, b, &touched, &err);
    json_decref(m);
    json_decref(b);
    return out;
}

static void assert_patched(const char *manifest, const char *body, const char *want)
{
    json_t *out = patched(manifest, body);
    ck_assert_msg(out != NULL, "%s", err_text(&err));
    json_t *expected = json_parse(slice_of(want), NULL);
    auto_free char *text = json_text(out);
    ck_assert_msg(json_equal(out, expected), "%s", text);
    json_decref(out);
    json_decref(expected);
}

#define HOMES "\"scope\":\"package\",\"materialization\":{\"scope\":\"package\"}"

START_TEST(patch_of_the_description_alone_writes_scope_in_both_homes)
{
    assert_patched("{\"scope\":\"version\",\"x\":{\"kept\":1},\"description\":\"old\"}",
                   "{\"description\":\"new\",\"name\":null}",
                   "{\"scope\":\"version\",\"x\":{\"kept\":1},\"description\":\"new\","
                   "\"materialization\":{\"scope\":\"version\"}}");
    ck_assert(!touched);
    assert_patched(NULL, "{}", "{" HOMES "}");
}
END_TEST

START_TEST(null_clears_what_can_be_cleared_and_keeps_the_rest)
{
    assert_patched("{\"description\":\"d\",\"queryableSources\":\"all\",\"explores\":[\"a\"],"
                   "\"queryMetadata\":{\"a\":\"b\"},\"manifestLocation\":\"u\"," HOMES "}",
                   "{\"description\":null,\"queryableSources\":null,\"explores\":null,"
                   "\"queryMetadata\":null,\"manifestLocation\":\"\",\"scope\":null,"
                   "\"materialization\":null}",
                   "{\"explores\":[\"a\"],\"queryMetadata\":{\"a\":\"b\"}," HOMES "}");
    ck_assert(!touched);
    assert_patched("{\"manifestLocation\":\"u\"}", "{\"manifestLocation\":null}", "{" HOMES "}");
}
END_TEST

START_TEST(materialization_replaces_the_whole_block_and_keeps_the_scope)
{
    assert_patched(
        "{\"materialization\":{\"scope\":\"version\",\"freshness\":{\"window\":\"1h\"}}}",
        "{\"materialization\":{\"schedule\":\"0 0 * * *\"}}",
        "{\"scope\":\"version\",\"materialization\":{\"scope\":\"version\","
        "\"schedule\":\"0 0 * * *\"}}");
    ck_assert(touched);
    assert_patched("{" HOMES "}", "{\"materialization\":{\"scope\":\"version\"}}",
                   "{\"scope\":\"version\",\"materialization\":{\"scope\":\"version\"}}");
    assert_patched("{" HOMES "}", "{\"scope\":\"version\"}",
                   "{\"scope\":\"version\",\"materialization\":{\"scope\":\"version\"}}");
    ck_assert(touched);
}
END_TEST

START_TEST(metadata_goes_to_the_root_and_to_an_old_home_that_exists)
{
    assert_patched("{" HOMES "}",
                   "{\"queryMetadata\":{\"a\":\"b\"},\"name\":\"n\","
                   "\"explores\":[\"m.malloy\"],\"queryableSources\":\"all\"}",
                   "{\"queryMetadata\":{\"a\":\"b\"},\"name\":\"n\",\"explores\":[\"m.malloy\"],"
                   "\"queryableSources\":\"all\"," HOMES "}");
    assert_patched("{\"materialization\":{\"queryMetadata\":{\"o\":\"1\"}}}",
                   "{\"queryMetadata\":{}}",
                   "{\"scope\":\"package\",\"queryMetadata\":{},"
                   "\"materialization\":{\"scope\":\"package\",\"queryMetadata\":{}}}");
    assert_patched("{" HOMES "}", "{\"materialization\":{\"queryMetadata\":{\"n\":\"2\"}}}",
                   "{\"scope\":\"package\",\"queryMetadata\":{\"n\":\"2\"},"
                   "\"materialization\":{\"scope\":\"package\",\"queryMetadata\":{\"n\":\"2\"}}}");
}
END_TEST

static const struct {
    const char *body, *fragment;
} bad_bodies[] = {
    {"[]", "must be a JSON object"},
    {"{\"name\":1}", "'name' must be a string"},
    {"{\"description\":[]}", "'description' must be"},
    {"{\"materialization\":\"x\"}", "'materialization' must be an object"},
    {"{\"explores\":[1]}", "'explores' must be an array of model paths"},
    {"{\"queryableSources\":\"some\"}", "'queryableSources' must be"},
    {"{\"scope\":\"x\"}", "\"scope\" must be"},
    {"{\"scope\":\"package\",\"materialization\":{\"scope\":\"version\"}}", "scope is"},
};

START_TEST(bad_body_is_refused_by_field)
{
    ck_assert_ptr_null(patched("{}", bad_bodies[_i].body));
    ck_assert_int_eq(err.code, ERR_INVALID);
    ck_assert_msg(has_text(err_text(&err), bad_bodies[_i].fragment), "%s", err_text(&err));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("manifest");
    tcase_add_checked_fixture(tc, plan_up, plan_down);
    tcase_add_loop_test(tc, broken_manifest_fails_the_load_with_a_sentence, 0,
                        (int)ARRAY_LEN(broken));
    tcase_add_test(tc, name_that_is_no_string_is_refused_with_a_sentence);
    tcase_add_test(tc, both_homes_may_say_the_same_in_silence);
    tcase_add_test(tc, old_homes_are_warned_about);
    tcase_add_test(tc, root_metadata_wins_over_a_different_old_home);
    tcase_add_test(tc, odd_members_are_warned_about_and_do_no_harm);
    tcase_add_test(tc, package_object_has_the_fields_of_the_api);
    tcase_add_test(tc, package_object_without_optional_members_has_nulls);
    tcase_add_test(tc, patch_of_the_description_alone_writes_scope_in_both_homes);
    tcase_add_test(tc, null_clears_what_can_be_cleared_and_keeps_the_rest);
    tcase_add_test(tc, materialization_replaces_the_whole_block_and_keeps_the_scope);
    tcase_add_test(tc, metadata_goes_to_the_root_and_to_an_old_home_that_exists);
    tcase_add_loop_test(tc, bad_body_is_refused_by_field, 0, (int)ARRAY_LEN(bad_bodies));
    Suite *s = suite_create("manifest");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
