/* The probes every service answers: liveness, readiness, metrics. */
#include "common/service/metrics.h"
#include "common/service/service_internal.h"
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Resident bytes now; 0 where /proc is not there. */
static double resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long total = 0;
    unsigned long pages = 0;
    if (f) {
        if (fscanf(f, "%lu %lu", &total, &pages) != 2) {
            pages = 0;
        }
        (void)fclose(f);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void refresh_process_metrics(const struct service *s)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    double cpu = seconds(use.ru_utime) + seconds(use.ru_stime);
    metric_set(metric_counter("process_cpu_seconds_total", "", "CPU time of the process"), cpu);
    metric_set(metric_gauge("process_resident_memory_bytes", "", "Resident memory"),
               resident_bytes());
    metric_set(metric_gauge("kiln_ready", "", "1 when every required condition is ok"),
               health_ready(s));
    list_for_each (it, &s->conditions) {
        const struct health_condition *c = list_entry(it, struct health_condition, link);
        auto_buf struct buf labels = {0};
        buf_add_str(&labels, "condition=\"");
        metric_label_escape(&labels, c->name);
        buf_add_char(&labels, '"');
        metric_set(metric_gauge("kiln_condition_ok", buf_str(&labels), "1 when it is ok"), c->ok);
    }
}

static const char *const alive[] = {"/healthz", "/health", "/health/liveness"};
static const char *const ready[] = {"/readyz", "/health/readiness"};

static bool is_one_of(struct slice path, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_is(path, names[i])) {
            return true;
        }
    }
    return false;
}

bool service_is_probe(const struct http_req *r)
{
    struct slice path = http_path(r);
    bool is_read = slice_is(http_method(r), "GET") || slice_is(http_method(r), "HEAD");
    return is_read && (is_one_of(path, alive, ARRAY_LEN(alive)) ||
                       is_one_of(path, ready, ARRAY_LEN(ready)) || slice_is(path, "/metrics"));
}

void service_answer(struct service *s, struct slice path, struct service_answer *out)
{
    loop_assert_here(s->loop);
    *out = (struct service_answer){.status = 200, .type = "application/json; charset=utf-8"};
    if (is_one_of(path, alive, ARRAY_LEN(alive))) {
        buf_add_str(&out->body, "{\"status\":\"ok\"}");
    } else if (is_one_of(path, ready, ARRAY_LEN(ready))) {
        health_json(s, &out->body);
        out->status = health_ready(s) ? 200 : 503;
    } else {
        refresh_process_metrics(s);
        out->type = "text/plain; version=0.0.4; charset=utf-8";
        metrics_print(&out->body);
    }
}

bool service_answer_http(struct service *s, struct http_req *r)
{
    if (!service_is_probe(r)) {
        return false;
    }
    struct service_answer a;
    service_answer(s, http_path(r), &a);
    struct http_header type = {SLICE("Content-Type"), slice_of(a.type)};
    http_reply_buf(r, a.status, &type, 1, &a.body);
    return true;
}
