#include "common/service/metrics.h"
#include "common/base/list.h"
#include "common/base/map.h"
#include <math.h>
#include <stdatomic.h>

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };
static const char *const kind_names[] = {"counter", "gauge", "histogram"};
static const double bounds[] = {0.25, 0.5, 1,   2.5,  5,    10,   25,   50,
                                100,  250, 500, 1000, 2500, 5000, 10000};

struct metric {
    struct list link; /* in its family */
    char *labels;
    _Atomic double value;                                /* histograms: the sum */
    atomic_uint_fast64_t buckets[ARRAY_LEN(bounds) + 1]; /* not summed up; the last one is +Inf */
};

struct family {
    char *name;
    char *help;
    enum metric_kind kind;
    struct list metrics;
};

/* The one registry of the process (house style 26 allows the log sink; metrics are of its kind). */
static struct map families; /* name to struct family, in order of first mention */

static struct family *family_get(const char *name, const char *help, enum metric_kind kind)
{
    struct family *f = map_get(&families, slice_of(name));
    if (f) {
        must(f->kind == kind);
        return f;
    }
    f = xcalloc(1, sizeof(*f));
    f->name = xstrdup(name);
    f->help = xstrdup(help);
    f->kind = kind;
    list_init(&f->metrics);
    must(!map_put(&families, slice_of(name), f));
    return f;
}

static struct metric *metric_get(const char *name, const char *labels, const char *help,
                                 enum metric_kind kind)
{
    struct family *f = family_get(name, help, kind);
    list_for_each (it, &f->metrics) {
        struct metric *m = list_entry(it, struct metric, link);
        if (strcmp(m->labels, labels) == 0) {
            return m;
        }
    }
    struct metric *m = xcalloc(1, sizeof(*m));
    m->labels = xstrdup(labels);
    list_add_tail(&f->metrics, &m->link);
    return m;
}

struct metric *metric_counter(const char *name, const char *labels, const char *help)
{
    return metric_get(name, labels, help, COUNTER);
}

struct metric *metric_gauge(const char *name, const char *labels, const char *help)
{
    return metric_get(name, labels, help, GAUGE);
}

struct metric *metric_histogram(const char *name, const char *labels, const char *help)
{
    return metric_get(name, labels, help, HISTOGRAM);
}

void metric_add(struct metric *m, double n)
{
    double old = atomic_load_explicit(&m->value, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&m->value, &old, old + n, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

void metric_set(struct metric *m, double v)
{
    atomic_store_explicit(&m->value, v, memory_order_relaxed);
}

void metric_observe(struct metric *m, double v)
{
    size_t at = 0;
    while (at < ARRAY_LEN(bounds) && v > bounds[at]) {
        at++;
    }
    atomic_fetch_add_explicit(&m->buckets[at], 1, memory_order_relaxed);
    metric_add(m, v);
}

double metric_value(const struct metric *m)
{
    return atomic_load_explicit(&m->value, memory_order_relaxed);
}

static void add_value(struct buf *out, double v)
{
    if (v == floor(v) && fabs(v) < 1e15) {
        buf_addf(out, " %.0f\n", v);
    } else {
        buf_addf(out, " %.9g\n", v);
    }
}

static void add_name(struct buf *out, const char *name, const char *suffix, const char *labels)
{
    buf_add_str(out, name);
    buf_add_str(out, suffix);
    if (labels[0]) {
        buf_addf(out, "{%s}", labels);
    }
}

static void print_histogram(const struct family *f, const struct metric *m, struct buf *out)
{
    uint64_t sum = 0;
    const char *comma = m->labels[0] ? "," : "";
    for (size_t i = 0; i <= ARRAY_LEN(bounds); i++) {
        sum += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        buf_addf(out, "%s_bucket{%s%sle=\"", f->name, m->labels, comma);
        if (i < ARRAY_LEN(bounds)) {
            buf_addf(out, "%g\"}", bounds[i]);
        } else {
            buf_add_str(out, "+Inf\"}");
        }
        add_value(out, (double)sum);
    }
    add_name(out, f->name, "_sum", m->labels);
    add_value(out, metric_value(m));
    add_name(out, f->name, "_count", m->labels);
    add_value(out, (double)sum);
}

void metric_label_escape(struct buf *out, const char *value)
{
    for (const char *p = value; *p; p++) {
        if (*p == '\n') {
            buf_add_str(out, "\\n");
            continue;
        }
        if (*p == '\\' || *p == '"') {
            buf_add_char(out, '\\');
        }
        buf_add_char(out, *p);
    }
}

void metrics_print(struct buf *out)
{
    for (struct map_iter it = map_begin(&families); map_next(&it);) {
        const struct family *f = it.value;
        buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
                 kind_names[f->kind]);
        list_for_each (at, &f->metrics) {
            const struct metric *m = list_entry(at, struct metric, link);
            if (f->kind == HISTOGRAM) {
                print_histogram(f, m, out);
            } else {
                add_name(out, f->name, "", m->labels);
                add_value(out, metric_value(m));
            }
        }
    }
}

static void family_free(struct family *f)
{
    for (struct list *it; (it = list_take_head(&f->metrics));) {
        struct metric *m = list_entry(it, struct metric, link);
        free(m->labels);
        free(m);
    }
    free(f->name);
    free(f->help);
    free(f);
}

void metrics_reset(void)
{
    for (struct map_iter it = map_begin(&families); map_next(&it);) {
        family_free(it.value);
    }
    map_fini(&families);
    map_init(&families);
}
