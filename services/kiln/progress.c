#include "services/kiln/progress.h"
#include "services/kiln/table.h"
#include <stdio.h>
#include <unistd.h>

#define BAR 24

void progress_count(struct buf *out, int64_t n)
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    double v = (double)n;
    size_t unit = 0;
    if (n < 10000) {
        buf_addf(out, "%lld", (long long)n);
        return;
    }
    while (v >= 1000 && unit + 1 < ARRAY_LEN(units)) {
        v /= 1000;
        unit++;
    }
    buf_addf(out, "%.1f%s", v, units[unit]);
}

void progress_span(struct buf *out, int64_t ms)
{
    if (ms < 1000) {
        buf_addf(out, "%lld ms", (long long)ms);
    } else if (ms < 60000) {
        buf_addf(out, "%.1f s", (double)ms / 1000);
    } else {
        buf_addf(out, "%lld min %lld s", (long long)(ms / 60000), (long long)(ms / 1000 % 60));
    }
}

static const char *stage_of(const json_t *run)
{
    const char *status = json_str(run, "status", "PENDING");
    return json_str(json_object_get(run, "progress"), "stage",
                    strcmp(status, "PENDING") == 0 ? "waiting" : status);
}

static void add_bar(struct buf *out, int64_t done, int64_t targets)
{
    int64_t full = targets > 0 ? done * BAR / targets : 0;
    buf_add_char(out, '[');
    for (int64_t i = 0; i < BAR; i++) {
        buf_add_char(out, i < full ? '#' : '.');
    }
    buf_add_str(out, "] ");
}

void progress_line(const json_t *run, int64_t elapsed_ms, size_t width, struct buf *out)
{
    const json_t *p = json_object_get(run, "progress");
    int64_t targets = json_int(p, "targets", 0), done = json_int(p, "done", 0);
    if (width >= 70) {
        add_bar(out, done, targets);
    }
    buf_addf(out, "%s %lld/%lld targets, ", stage_of(run), (long long)done, (long long)targets);
    progress_count(out, json_int(p, "rows", 0));
    buf_add_str(out, " rows, ");
    progress_span(out, elapsed_ms);
}

void progress_begin(struct progress *p, struct ms now)
{
    *p = (struct progress){.on_terminal = terminal_width(STDERR_FILENO) > 0, .begun = now};
}

void progress_show(struct progress *p, const json_t *run, struct ms now)
{
    auto_buf struct buf line = {0};
    int64_t elapsed = ms_sub(now, p->begun).v;
    if (p->on_terminal) {
        progress_line(run, elapsed, terminal_width(STDERR_FILENO), &line);
        (void)fprintf(stderr, "\r\033[K%s", buf_str(&line));
        (void)fflush(stderr);
        return;
    }
    const json_t *g = json_object_get(run, "progress");
    char now_said[sizeof(p->said)];
    (void)snprintf(now_said, sizeof(now_said), "%.24s %lld/%lld", stage_of(run),
                   (long long)json_int(g, "done", 0), (long long)json_int(g, "targets", 0));
    if (strcmp(now_said, p->said) != 0) {
        progress_line(run, elapsed, 0, &line);
        (void)fprintf(stderr, "kiln: %s\n", buf_str(&line));
        memcpy(p->said, now_said, sizeof(p->said));
    }
}

void progress_end(struct progress *p)
{
    if (p->on_terminal) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}
