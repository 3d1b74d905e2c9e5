/* What DuckDB promises beyond the suite: publishing by binding, and what stands between a package
 * and the rest of the machine. */
#include "common/generation/generation.h"
#include "tests/conformance/warehouse_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

UNUSED static int ask(struct run *r, struct sink_told *s, struct wh_query q)
{
    sink_init(s);
    run_init(r, wh);
    wh->ops->query(&r->op, &q, &s->sink);
    return wait_for(r);
}

START_TEST(nothing_is_swapped_in_place)
{
    struct run r;
    ck_assert_int_eq(wh->ops->cls, WH_CLASS_BY_BINDING);
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS n"), 0);
    ck_assert_int_eq(do_swap(&r, "sales", 100, "g1", false), ERR_UNSUPPORTED);
    ck_assert_int_eq(do_resolve(&r, "sales", 100), ERR_UNSUPPORTED);
}
END_TEST

void add_by_binding_tests(TCase *tc)
{
    tcase_add_test(tc, nothing_is_swapped_in_place);
}
