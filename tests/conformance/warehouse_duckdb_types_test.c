/* Exact types: every type of DuckDB comes back as it was, or is refused. */
#include "tests/conformance/warehouse_duckdb_fixture.h"
#include "tests/conformance/warehouse_suites.h"

static const struct {
    const char *type, *sql;
    bool is_kept;
} cases[] = {
#define KEPT true
#define LOST false
#define DUCK_CASE(type, sql, json, kept) {type, sql, kept},
#include "tests/support/duck_cases.def"
#undef DUCK_CASE
};

struct row_told {
    struct wh_sink sink;
    char *row;
};

static int on_json(void *data, const struct slice *cells)
{
    struct row_told *t = data;
    t->row = arena_slice(&arena, cells[0]);
    return 0;
}

static const char *json_row(const char *sql)
{
    struct run r;
    struct row_told t = {.row = NULL};
    t.sink = (struct wh_sink){.data = &t, .on_row = on_json};
    struct wh_query q = {.sql = sql, .json_rows = true, .read_only = true};
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &t.sink);
    ck_assert_msg(wait_for(&r) == 0, "%s: %s", sql, r.op.err.text);
    ck_assert_ptr_nonnull(t.row);
    return t.row;
}

START_TEST(every_type_comes_back_exactly_or_is_refused_by_name)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run r;
        const char *source = arena_printf(&arena, "SELECT %s AS \"the v\"", cases[i].sql);
        int rc = do_build(&r, "typed", 1000 + i, source);
        if (!cases[i].is_kept) {
            ck_assert_msg(rc == ERR_UNSUPPORTED || rc == ERR_WH_SQL, "%s: %d", cases[i].sql, rc);
            ck_assert_msg(strstr(r.op.err.text, "the v"), "%s: %s", cases[i].sql, r.op.err.text);
            continue;
        }
        ck_assert_msg(rc == 0, "%s: %s", cases[i].sql, r.op.err.text);
        bind_names(1, (const char *const[]){"typed"}, (const uint64_t[]){1000 + i});
        ck_assert_msg(duck_bind(&r, 1000 + i) == 0, "%s: %s", cases[i].sql, r.op.err.text);
        const char *both = "SELECT \"the v\" AS v, typeof(\"the v\") AS t FROM";
        const char *live = json_row(arena_printf(&arena, "%s (%s)", both, source));
        const char *baked = json_row(arena_printf(&arena, "%s typed", both));
        if (strcmp(cases[i].type, "NULL") != 0) {
            ck_assert_str_eq(baked, live);
        }
    }
}
END_TEST

void add_duckdb_types_tests(TCase *tc)
{
    tcase_add_test(tc, every_type_comes_back_exactly_or_is_refused_by_name);
}
