/* Counters, gauges and histograms of a process as Prometheus text. Making, printing and resetting:
 * main loop thread only; metric_add, metric_set, metric_observe and metric_value: any thread. */
#pragma once
#include "common/base/buf.h"

struct metric;
/* `labels` is the inside of the braces, already escaped: "outcome=\"built\"", or "". The same name
 * and labels give the same metric. */
struct metric *metric_counter(const char *name, const char *labels, const char *help);
struct metric *metric_gauge(const char *name, const char *labels, const char *help);
/* Buckets in ms: 0.25 0.5 1 2.5 5 10 25 50 100 250 500 1000 2500 5000 10000. */
struct metric *metric_histogram(const char *name, const char *labels, const char *help);
void metric_add(struct metric *m, double n);
void metric_set(struct metric *m, double v);
void metric_observe(struct metric *m, double v);
double metric_value(const struct metric *m);
/* Escapes one label value: backslash, quote, line end. Appends to out. */
void metric_label_escape(struct buf *out, const char *value);
void metrics_print(struct buf *out);
void metrics_reset(void); /* tests */
