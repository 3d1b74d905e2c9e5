#include "common/warehouse/warehouse.h"
#include "tests/support/suite.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

static void is_name(const char *text, const char *schema, const char *table)
{
    struct wh_name n;
    struct err e;
    ck_assert_msg(wh_name_parse(&arena, text, &n, &e) == 0, "%s: %s", text, e.text);
    ck_assert_str_eq(n.schema, schema);
    ck_assert_str_eq(n.table, table);
}

START_TEST(names_are_split_as_their_author_wrote_them)
{
    is_name("sales", "", "sales");
    is_name("mart.sales", "mart", "sales");
    is_name("\"mart\".\"sales\"", "mart", "sales");
    is_name("mart.\"a.b\"\"c \"", "mart", "a.b\"c ");
    is_name("gr\u00fcn.x", "gr\u00fcn", "x");
    is_name("Mart.Sales", "Mart", "Sales");
}
END_TEST

START_TEST(broken_names_are_refused_with_the_remedy)
{
    static const char *const broken[] = {"",       ".",       "a.",    ".a",
                                         "a..b",   "\"a",     "\"\"",  "a\"b",
                                         "\"a\"b", "a.b.c.d", "a.\"b", "\"a\".\"\""};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct wh_name n;
        struct err e;
        ck_assert_msg(wh_name_parse(&arena, broken[i], &n, &e) == -1, "%s", broken[i]);
        ck_assert_ptr_nonnull(strstr(e.text, "schema.table"));
    }
    struct wh_name n;
    struct err e;
    ck_assert_int_eq(wh_name_parse(&arena, "db.s.t", &n, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.text, "database"));
}
END_TEST

START_TEST(quoted_names_parse_back)
{
    const struct wh_name names[] = {{"", "t"}, {"s", "t"}, {"a\"b", "c.d"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        is_name(wh_name_quoted(&arena, &names[i]), names[i].schema, names[i].table);
    }
    ck_assert_str_eq(wh_name_quoted(&arena, &names[2]), "\"a\"\"b\".\"c.d\"");
}
END_TEST

START_TEST(every_type_has_its_dialect_and_postgres_and_duckdb_a_driver)
{
    ck_assert_str_eq(wh_dialect("postgres"), "postgres");
    ck_assert_str_eq(wh_dialect("bigquery"), "standardsql");
    ck_assert_str_eq(wh_dialect("ducklake"), "duckdb");
    ck_assert_ptr_null(wh_dialect("oracle"));
    ck_assert_ptr_null(wh_dialect(NULL));
    ck_assert(wh_has_driver("postgres"));
    ck_assert(wh_has_driver("duckdb"));
    ck_assert(!wh_has_driver("ducklake"));
    ck_assert(!wh_has_driver("oracle"));
}
END_TEST

START_TEST(opening_what_cannot_be_opened_says_why)
{
    struct wh *wh = NULL;
    struct err e;
    struct wh_settings s = {.name = "lake", .type = "ducklake", .config_json = "{}"};
    ck_assert_int_eq(wh_open(NULL, &s, &wh, &e), ERR_WH_NO_DRIVER);
    ck_assert_ptr_nonnull(strstr(e.text, "lake"));
    s.type = "oracle";
    ck_assert_int_eq(wh_open(NULL, &s, &wh, &e), ERR_INVALID);
    s.type = "postgres";
    ck_assert_int_eq(wh_open(NULL, &s, &wh, &e), ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "postgresConnection"));
    s.config_json = "not json";
    ck_assert_int_eq(wh_open(NULL, &s, &wh, &e), ERR_INVALID);
    ck_assert_ptr_null(wh);
}
END_TEST

#define PG(members) "{\"name\":\"x\",\"type\":\"postgres\",\"postgresConnection\":{" members "}}"
static const char *digest(const char *config)
{
    return wh_digest(&arena, "postgres", config);
}

START_TEST(the_digest_is_over_place_and_user_and_never_the_password)
{
    const char *a = digest(
        PG("\"host\":\"h\",\"port\":5432,\"databaseName\":\"d\",\"userName\":\"u\",\"password\":"
           "\"one\""));
    ck_assert_uint_eq(strlen(a), 64);
    ck_assert_str_eq(a, digest(PG("\"host\":\"h\",\"databaseName\":\"d\",\"userName\":\"u\","
                                  "\"password\":\"two\",\"sslmode\":\"require\"")));
    ck_assert_str_eq(
        a,
        digest(PG("\"host\":\"h\",\"port\":\"5432\",\"databaseName\":\"d\",\"userName\":\"u\"")));
    ck_assert_str_eq(a, digest(PG("\"connectionString\":\"postgresql://u:three@h/d\"")));
    ck_assert_str_ne(a, digest(PG("\"host\":\"i\",\"databaseName\":\"d\",\"userName\":\"u\"")));
    ck_assert_str_ne(a, digest(PG("\"host\":\"h\",\"databaseName\":\"e\",\"userName\":\"u\"")));
    ck_assert_str_ne(a, digest(PG("\"host\":\"h\",\"databaseName\":\"d\",\"userName\":\"v\"")));
    ck_assert_str_eq(digest("{\"fingerprint\":\"mine\"}"), "mine");
    ck_assert_str_eq(
        wh_digest(&arena, "trino", "{\"trinoConnection\":{\"server\":\"s\",\"password\":\"a\"}}"),
        wh_digest(&arena, "trino", "{\"trinoConnection\":{\"password\":\"b\",\"server\":\"s\"}}"));
}
END_TEST

static bool has_secret(const char *const *secrets, const char *text)
{
    for (; *secrets; secrets++) {
        if (strcmp(*secrets, text) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(secrets_are_found_wherever_they_are_written)
{
    const char **s = wh_secrets(
        &arena, "{\"postgresConnection\":{\"host\":\"h\",\"password\":\"p1\",\"connectionString\":"
                "\"postgresql://u:p%402@h/d\"},\"proxy\":{\"ssh\":{\"privateKey\":\"p3\","
                "\"privateKeyPass\":\"p4\"}},\"s3Connection\":{\"secretAccessKey\":\"p5\"}}");
    ck_assert(has_secret(s, "p1"));
    ck_assert(has_secret(s, "p@2"));
    ck_assert(has_secret(s, "p%402"));
    ck_assert(has_secret(s, "p3"));
    ck_assert(has_secret(s, "p4"));
    ck_assert(has_secret(s, "p5"));
    ck_assert(!has_secret(s, "h"));
    ck_assert_ptr_null(wh_secrets(&arena, "{}")[0]);
    ck_assert_ptr_null(wh_secrets(&arena, NULL)[0]);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("warehouse");
    TCase *tc = tcase_create("connections");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, names_are_split_as_their_author_wrote_them);
    tcase_add_test(tc, broken_names_are_refused_with_the_remedy);
    tcase_add_test(tc, quoted_names_parse_back);
    tcase_add_test(tc, every_type_has_its_dialect_and_postgres_and_duckdb_a_driver);
    tcase_add_test(tc, opening_what_cannot_be_opened_says_why);
    tcase_add_test(tc, the_digest_is_over_place_and_user_and_never_the_password);
    tcase_add_test(tc, secrets_are_found_wherever_they_are_written);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
