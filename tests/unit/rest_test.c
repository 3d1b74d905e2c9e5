/* The routing table and its matcher. */
#include "common/base/buf.h"
#include "rest_suites.h"
#include "services/gateway/rest_publisher/rest_routes.h"
#include "tests/support/suite.h"
#include <stdio.h>

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_fini(&arena);
}

static struct rest_match match(const char *method, const char *path)
{
    struct rest_match m;
    struct err e = {0};
    rest_match(&arena, slice_of(method), slice_of(path), &m, &e);
    ck_assert(m.status != 400 || e.text[0] != '\0');
    return m;
}

static const char *path_of(const struct rest_match *m)
{
    ck_assert_int_eq(m->status, 200);
    return rest_routes[m->route].path;
}

#define E "/api/v0/environments/{E}"
#define P E "/packages/{P}"
#define AT "/api/v0/environments/malloy/packages/shop"

static const struct {
    const char *method, *path, *takes;
} found[] = {
    {"GET", "/", "/"},
    {"GET", "/api/v0", "/api/v0"},
    {"GET", "/api/v0/status", "/api/v0/status"},
    {"GET", "/api/v0/status/", "/api/v0/status"},
    {"HEAD", "/api/v0/environments", "/api/v0/environments"},
    {"POST", "/api/v0/environments", "/api/v0/environments"},
    {"PATCH", "/api/v0/environments/malloy", E},
    {"GET", "/api/v0/projects/malloy", E},
    {"GET", "/api/v0/projects/malloy/packages/shop/models", P "/models"},
    {"POST", "/api/v0/environments/malloy/connections/pg/sqlQuery", E "/connections/{C}/sqlQuery"},
    {"POST", AT "/connections/pg/sqlQuery", P "/connections/{C}/sqlQuery"},
    {"POST", "/api/v0/connections/test", "/api/v0/connections/test"},
    {"GET", AT, P},
    {"DELETE", AT "/materializations/1766012345678-ab12cd34e", P "/materializations/{ID}"},
    {"POST", AT "/models/a.malloy/query", P "/models/{PATH...}/query"},
    {"POST", AT "/models/a.malloy/compile", P "/models/{PATH...}/compile"},
    {"GET", AT "/models/a.malloy", P "/models/{PATH...}"},
    {"GET", AT "/notebooks/a.malloynb/cells/2", P "/notebooks/{PATH...}/cells/{X}"},
    {"GET", AT "/notebooks/cells/2", P "/notebooks/{PATH...}"},
};

START_TEST(each_path_is_taken_by_its_row_under_both_spellings)
{
    for (size_t i = 0; i < ARRAY_LEN(found); i++) {
        struct rest_match m = match(found[i].method, found[i].path);
        ck_assert_str_eq(path_of(&m), found[i].takes);
    }
}
END_TEST

START_TEST(materializations_of_an_environment_win_over_a_package_of_that_name)
{
    struct rest_match m = match("GET", "/api/v0/environments/malloy/packages/materializations");
    ck_assert_str_eq(path_of(&m), E "/packages/materializations");
    ck_assert_ptr_null(m.param[REST_PACKAGE]);

    ck_assert_int_eq(
        match("DELETE", "/api/v0/environments/malloy/packages/materializations").status, 405);
}
END_TEST

START_TEST(model_paths_keep_their_slashes_encoded_or_not)
{
    struct rest_match m = match("POST", AT "/models/a/b%20c/d.malloy/query");
    ck_assert_str_eq(path_of(&m), P "/models/{PATH...}/query");
    ck_assert_str_eq(m.param[REST_PATH], "a/b c/d.malloy");
    ck_assert_str_eq(m.param[REST_ENVIRONMENT], "malloy");
    ck_assert_str_eq(m.param[REST_PACKAGE], "shop");

    m = match("POST", AT "/models/a%2Fb%20c%2Fd.malloy/compile");
    ck_assert_str_eq(path_of(&m), P "/models/{PATH...}/compile");
    ck_assert_str_eq(m.param[REST_PATH], "a/b c/d.malloy");

    m = match("POST", AT "/models/query/query");
    ck_assert_str_eq(m.param[REST_PATH], "query");
    ck_assert_int_eq(match("POST", AT "/models/query").status, 405);
}
END_TEST

START_TEST(unknown_paths_are_404)
{
    static const char *const paths[] = {"/api/v1/status",           "/status", "/api/v0/nothing",
                                        AT "/materializations/1/2", AT "/x",   "/api",
                                        "/api/v0/projects/x/y"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct rest_match m = match("GET", paths[i]);
        ck_assert_int_eq(m.status, 404);
        ck_assert_ptr_null(m.param[REST_ENVIRONMENT]);
    }
}
END_TEST

START_TEST(wrong_method_is_405_and_tells_which_ones_there_are)
{
    struct rest_match m = match("PUT", AT "/materializations");
    ck_assert_int_eq(m.status, 405);
    ck_assert_str_eq(rest_allow_text(&arena, m.allow), "GET, HEAD, POST, OPTIONS");

    m = match("BREW", "/api/v0/theme");
    ck_assert_int_eq(m.status, 405);
    ck_assert_str_eq(rest_allow_text(&arena, m.allow), "GET, HEAD, PUT, DELETE, OPTIONS");

    ck_assert_int_eq(match("GET", AT "/models/a.malloy/query").status, 405);
    ck_assert_int_eq(match("HEAD", AT "/models/a.malloy/query").status, 405);
}
END_TEST

START_TEST(names_and_model_paths_that_lead_elsewhere_are_400)
{
    static const char *const paths[] = {
        "/api/v0/environments/..",
        "/api/v0/environments/a%2Fb",
        "/api/v0/environments/a%5Cb/packages",
        "/api/v0/environments/a%0Ab",
        "/api/v0/environments/a..b",
        "/api/v0/environments/%FF%FE",
        "/api/v0/environments/x/packages/..%2F..%2Fetc",
        "/api/v0/environments//packages",
        "/api/v0/environments/x/connections/%7F",
        AT "/models/../a.malloy",
        AT "/models/%2Fetc%2Fpasswd",
        AT "/models/a//b.malloy",
        AT "/models/a%00.malloy",
        AT "/models/%zz",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        ck_assert_msg(match("GET", paths[i]).status == 400, "%s", paths[i]);
    }
    ck_assert_int_eq(match("GET", "/api/v0/environments/gr%C3%BCn%20x.y").status, 200);
}
END_TEST

START_TEST(names_are_bounded)
{
    struct err e = {0};
    char name[200];
    memset(name, 'a', sizeof(name));
    name[127] = '\0';
    ck_assert_int_eq(rest_name_check("package name", name, &e), 0);
    name[127] = 'a';
    name[128] = '\0';
    ck_assert_int_eq(rest_name_check("package name", name, &e), ERR_INVALID);
    ck_assert_str_eq(err_text(&e), "the package name is longer than 127 bytes");
}
END_TEST

START_TEST(path_of_too_many_pieces_is_refused)
{
    auto_buf struct buf path = {0};
    buf_add_str(&path, AT "/models");
    for (int i = 0; i < 100; i++) {
        buf_add_str(&path, "/a");
    }
    ck_assert_int_eq(match("GET", buf_str(&path)).status, 400);
}
END_TEST

START_TEST(no_row_is_hidden_by_one_above_it)
{
    for (size_t i = 0; i < rest_n_routes(); i++) {
        auto_buf struct buf path = {0};
        struct slice rest = slice_of(rest_routes[i].path + 1), piece;
        while (slice_cut(&rest, '/', &piece)) {
            if (slice_is(piece, "{PATH...}")) {
                buf_add_str(&path, "/dir/m.malloy");
            } else if (piece.p[0] == '{') {
                buf_add_str(&path, "/n");
            } else {
                buf_addf(&path, "/%.*s", SLICE_FMT(piece));
            }
        }
        static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
        size_t at = 0;
        while ((1u << at) != rest_routes[i].method) {
            at++;
        }
        struct rest_match m = match(names[at], path.len ? buf_str(&path) : "/");
        ck_assert_msg(m.status == 200 && m.route == i, "%s %s", names[at], buf_str(&path));
    }
}
END_TEST

START_TEST(every_row_says_something)
{
    for (size_t i = 0; i < rest_n_routes(); i++) {
        ck_assert(strlen(rest_routes[i].doc) >= 9);
        ck_assert(!rest_routes[i].is_later || strstr(rest_routes[i].doc, "not built yet"));
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("routes");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, each_path_is_taken_by_its_row_under_both_spellings);
    tcase_add_test(tc, materializations_of_an_environment_win_over_a_package_of_that_name);
    tcase_add_test(tc, model_paths_keep_their_slashes_encoded_or_not);
    tcase_add_test(tc, unknown_paths_are_404);
    tcase_add_test(tc, wrong_method_is_405_and_tells_which_ones_there_are);
    tcase_add_test(tc, names_and_model_paths_that_lead_elsewhere_are_400);
    tcase_add_test(tc, names_are_bounded);
    tcase_add_test(tc, path_of_too_many_pieces_is_refused);
    tcase_add_test(tc, no_row_is_hidden_by_one_above_it);
    tcase_add_test(tc, every_row_says_something);
    Suite *s = suite_create("rest");
    suite_add_tcase(s, tc);
    suite_add_tcase(s, rest_body_case());
    return suite_run(s);
}
