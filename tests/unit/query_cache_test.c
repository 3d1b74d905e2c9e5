/* The compile cache: counts, sharing, least recently used out. */
#include "services/gateway/query/cache.h"
#include "tests/support/suite.h"

struct waiter {
    struct gw_cache_wait w;
    int done;
    struct waiter *leaves; /* its wait is left when this one is told */
};

static void on_made(struct gw_cache_wait *w)
{
    struct waiter *me = w->data;
    me->done++;
    if (me->leaves) {
        gw_cache_leave(&me->leaves->w);
    }
    gw_compiled_unref(w->value);
}

static void waiter_init(struct waiter *x)
{
    *x = (struct waiter){.w = {.done = on_made, .data = x}};
}

static struct sha256 key_of(int n)
{
    return sha256_of(&n, sizeof(n));
}

static struct gw_compiled *compiled(size_t bytes)
{
    struct gw_compiled *c = gw_compiled_new();
    c->sql = arena_zalloc(&c->arena, bytes);
    return c;
}

static void put(struct gw_cache *c, int n, size_t bytes)
{
    struct waiter x;
    struct gw_compiled *v = NULL;
    struct sha256 key = key_of(n);
    waiter_init(&x);
    ck_assert_int_eq(gw_cache_find(c, &key, &x.w, &v), GW_CACHE_MISS);
    gw_cache_made(c, &key, compiled(bytes), 0, NULL);
    ck_assert_int_eq(x.done, 1);
    ck_assert_int_eq(x.w.rc, 0);
}

static bool has(struct gw_cache *c, int n)
{
    struct waiter x;
    struct gw_compiled *v = NULL;
    struct sha256 key = key_of(n);
    struct err e = {0};
    waiter_init(&x);
    if (gw_cache_find(c, &key, &x.w, &v) == GW_CACHE_HIT) {
        gw_compiled_unref(v);
        return true;
    }
    gw_cache_made(c, &key, NULL, err_set(&e, ERR_COMPILE, "no"), &e);
    return false;
}

START_TEST(a_value_is_found_again_and_outlives_the_cache_with_its_user)
{
    struct gw_cache *c = gw_cache_new(10, 1 << 20);
    struct gw_compiled *v = NULL;
    struct waiter x;
    struct sha256 key = key_of(1);
    waiter_init(&x);
    put(c, 1, 10);

    ck_assert_int_eq(gw_cache_find(c, &key, &x.w, &v), GW_CACHE_HIT);
    gw_cache_free(c);

    ck_assert_uint_eq(v->refs, 1);
    ck_assert_int_eq(x.done, 0);
    gw_compiled_unref(v);
    gw_compiled_unref(NULL);
}
END_TEST

START_TEST(equal_misses_share_one_making)
{
    struct gw_cache *c = gw_cache_new(10, 1 << 20);
    struct gw_cache_stats s;
    struct gw_compiled *v = NULL;
    struct waiter x[3];
    struct sha256 key = key_of(1);
    for (int i = 0; i < 3; i++) {
        waiter_init(&x[i]);
        ck_assert_int_eq(gw_cache_find(c, &key, &x[i].w, &v),
                         i == 0 ? GW_CACHE_MISS : GW_CACHE_JOINED);
    }

    gw_cache_made(c, &key, compiled(10), 0, NULL);

    gw_cache_stats(c, &s);
    ck_assert_int_eq(x[0].done + x[1].done + x[2].done, 3);
    ck_assert_uint_eq(s.misses, 1);
    ck_assert_uint_eq(s.joined, 2);
    ck_assert_uint_eq(s.entries, 1);
    gw_cache_free(c);
}
END_TEST

START_TEST(who_has_left_is_not_told)
{
    struct gw_cache *c = gw_cache_new(10, 1 << 20);
    struct gw_compiled *v = NULL;
    struct waiter x[3];
    struct sha256 key = key_of(1);
    for (int i = 0; i < 3; i++) {
        waiter_init(&x[i]);
        (void)!gw_cache_find(c, &key, &x[i].w, &v);
    }
    gw_cache_leave(&x[0].w);
    gw_cache_leave(&x[0].w);
    x[1].leaves = &x[2]; /* while it is being told */

    gw_cache_made(c, &key, compiled(10), 0, NULL);

    ck_assert_int_eq(x[0].done, 0);
    ck_assert_int_eq(x[1].done, 1);
    ck_assert_int_eq(x[2].done, 0);
    ck_assert(has(c, 1)); /* made all the same */
    gw_cache_free(c);
}
END_TEST

START_TEST(errors_are_told_and_not_kept)
{
    struct gw_cache *c = gw_cache_new(10, 1 << 20);
    struct gw_compiled *v = NULL;
    struct waiter x;
    struct err e = {0};
    struct sha256 key = key_of(1);
    waiter_init(&x);
    (void)!gw_cache_find(c, &key, &x.w, &v);

    gw_cache_made(c, &key, NULL, err_set(&e, ERR_COMPILE, "no 'run:'"), &e);

    ck_assert_int_eq(x.w.rc, ERR_COMPILE);
    ck_assert_str_eq(x.w.err.text, "no 'run:'");
    ck_assert(!has(c, 1));
    gw_cache_free(c);
}
END_TEST

START_TEST(the_least_recently_used_goes_first)
{
    struct gw_cache *c = gw_cache_new(2, 1 << 20);
    put(c, 1, 10);
    put(c, 2, 10);
    ck_assert(has(c, 1));

    put(c, 3, 10);

    ck_assert(has(c, 1));
    ck_assert(!has(c, 2));
    ck_assert(has(c, 3));
    gw_cache_free(c);
}
END_TEST

START_TEST(large_values_push_others_out_but_are_served)
{
    struct gw_cache *c = gw_cache_new(100, 10000);
    struct gw_cache_stats s;
    put(c, 1, 3000);
    put(c, 2, 3000);
    put(c, 3, 3000);
    ck_assert(has(c, 1));

    put(c, 4, 50000);

    ck_assert(!has(c, 1));
    ck_assert(has(c, 4));
    gw_cache_stats(c, &s);
    ck_assert_uint_eq(s.entries, 1);
    put(c, 5, 10);
    ck_assert(!has(c, 4));
    gw_cache_free(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("query_cache");
    TCase *t = tcase_create("cache");
    tcase_add_test(t, a_value_is_found_again_and_outlives_the_cache_with_its_user);
    tcase_add_test(t, equal_misses_share_one_making);
    tcase_add_test(t, who_has_left_is_not_told);
    tcase_add_test(t, errors_are_told_and_not_kept);
    tcase_add_test(t, the_least_recently_used_goes_first);
    tcase_add_test(t, large_values_push_others_out_but_are_served);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
