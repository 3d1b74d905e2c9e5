/* log.h for the simulation: lines carry scripted time and the process; quiet unless asked. */
#include "common/base/crypto.h"
#include "common/log/log.h"
#include "tests/sim/trio_world.h"

#include <stdio.h>

enum { QUOTED = 8, QUOTED_LEN = 1024 };

static void line(const char *level, const char *event, const char *fmt, va_list ap)
{
    if (!trio_verbose) {
        return;
    }
    const struct proc *p = proc_now();
    struct world *w = world_now();
    fprintf(stderr, "%9.3f %6llu %-10s %-5s %s ", w ? (double)w->time.now.v / 1000 : 0.0,
            w ? (unsigned long long)w->time.steps : 0, p ? p->name : "-", level, event);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void log_setup(const char *service, enum log_level level, enum log_form form)
{
    (void)service;
    (void)level;
    (void)form;
}

bool log_on(enum log_level level)
{
    return trio_verbose && level < LOG_DEBUG;
}

void log_error(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line("error", event, fmt, ap);
    va_end(ap);
}

void log_warn(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line("warn", event, fmt, ap);
    va_end(ap);
}

void log_info(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line("info", event, fmt, ap);
    va_end(ap);
}

void log_debug(const char *event, const char *fmt, ...)
{
    (void)event;
    (void)fmt;
}

void trio_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line("", "***", fmt, ap);
    va_end(ap);
}

const char *log_q(const char *value)
{
    static char texts[QUOTED][QUOTED_LEN];
    static size_t at;
    char *out = texts[at++ % QUOTED];
    snprintf(out, QUOTED_LEN, "\"%s\"", value ? value : "");
    return out;
}

const char *log_id(const uint8_t id[16])
{
    static char texts[QUOTED][33];
    static size_t at;
    char *out = texts[at++ % QUOTED];
    hex_encode(id, 16, out);
    return out;
}
