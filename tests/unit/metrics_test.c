#include "common/service/metrics.h"
#include "tests/support/suite.h"
#include <pthread.h>

START_TEST(counters_and_gauges_are_printed_once_per_family)
{
    auto_buf struct buf out = {0};
    metric_add(metric_counter("kiln_jobs_total", "outcome=\"built\"", "Jobs by outcome"), 2);
    metric_add(metric_counter("kiln_jobs_total", "outcome=\"failed\"", "Jobs by outcome"), 1);
    metric_set(metric_gauge("kiln_load", "", "Load"), 0.25);
    metric_add(metric_counter("kiln_jobs_total", "outcome=\"built\"", "Jobs by outcome"), 3);

    metrics_print(&out);

    ck_assert_str_eq(buf_str(&out), "# HELP kiln_jobs_total Jobs by outcome\n"
                                    "# TYPE kiln_jobs_total counter\n"
                                    "kiln_jobs_total{outcome=\"built\"} 5\n"
                                    "kiln_jobs_total{outcome=\"failed\"} 1\n"
                                    "# HELP kiln_load Load\n"
                                    "# TYPE kiln_load gauge\n"
                                    "kiln_load 0.25\n");
    metrics_reset();
}
END_TEST

START_TEST(histogram_buckets_add_up)
{
    auto_buf struct buf out = {0};
    struct metric *m = metric_histogram("kiln_took_ms", "kind=\"q\"", "Time taken");
    const double values[] = {0.1, 0.25, 3, 9999, 20000};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        metric_observe(m, values[i]);
    }

    metrics_print(&out);

    ck_assert_ptr_nonnull(strstr(out.p, "# TYPE kiln_took_ms histogram\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_bucket{kind=\"q\",le=\"0.25\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_bucket{kind=\"q\",le=\"2.5\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_bucket{kind=\"q\",le=\"5\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_bucket{kind=\"q\",le=\"10000\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_bucket{kind=\"q\",le=\"+Inf\"} 5\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_sum{kind=\"q\"} 30002.35\n"));
    ck_assert_ptr_nonnull(strstr(out.p, "kiln_took_ms_count{kind=\"q\"} 5\n"));
    metrics_reset();
}
END_TEST

enum { THREADS = 4, ROUNDS = 20000 };

static void *count(void *data)
{
    for (int i = 0; i < ROUNDS; i++) {
        metric_add(data, 1);
    }
    return NULL;
}

START_TEST(threads_may_count_together)
{
    struct metric *m = metric_counter("kiln_n_total", "", "Count");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count, m), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }

    ck_assert(metric_value(m) == THREADS * ROUNDS);
    metrics_reset();
}
END_TEST

START_TEST(label_values_are_escaped)
{
    auto_buf struct buf out = {0};

    metric_label_escape(&out, "a\"b\\c\nd");

    ck_assert_str_eq(buf_str(&out), "a\\\"b\\\\c\\nd");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("metrics");
    tcase_add_test(tc, counters_and_gauges_are_printed_once_per_family);
    tcase_add_test(tc, histogram_buckets_add_up);
    tcase_add_test(tc, threads_may_count_together);
    tcase_add_test(tc, label_values_are_escaped);
    Suite *s = suite_create("metrics");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
