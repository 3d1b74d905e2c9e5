#include "common/log/log.h"

#include "common/base/crypto.h"
#include "common/json/json.h"
#include "common/log/log_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static char service_name[64] = "kiln";
static atomic_int current_level = LOG_INFO;
static atomic_bool as_json;

void log_setup(const char *service, enum log_level level, enum log_form form)
{
    if (service) {
        snprintf(service_name, sizeof service_name, "%s", service);
    }
    atomic_store(&current_level, (int)level);
    atomic_store(&as_json, form == LOG_FORM_AUTO ? !isatty(STDERR_FILENO) : form == LOG_FORM_JSON);
}

int log_level_parse(const char *text, enum log_level *out)
{
    for (size_t i = 0; text && i < ARRAY_LEN(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

bool log_on(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* One write per line, so that lines of several threads or processes never mix. A log that cannot be
 * written is no reason to stop. */
static void write_line(const struct buf *line)
{
    ssize_t n;
    do {
        n = write(STDERR_FILENO, line->p, line->len);
    } while (n < 0 && errno == EINTR);
}

static void format_time(char out[32])
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char day[24];
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, 32, "%s.%03dZ", day, (int)(now.tv_nsec / 1000000));
}

static void add_member(struct buf *line, const char *key, struct slice value)
{
    buf_add_char(line, line->len ? ',' : '{');
    jsonw_str(line, slice_of(key));
    buf_add_char(line, ':');
    jsonw_str(line, value);
}

static bool is_reserved(struct slice key)
{
    return slice_is(key, "ts") || slice_is(key, "level") || slice_is(key, "service") ||
           slice_is(key, "event") || slice_is(key, "text");
}

/* Words that belong to no key are gathered in "text". */
static void add_fields(struct buf *line, struct slice fields)
{
    struct slice key;
    auto_buf struct buf value = {0};
    auto_buf struct buf words = {0};
    auto_buf struct buf name = {0};
    while (log_next_field(&fields, &key, &value)) {
        if (key.len == 0) {
            buf_addf(&words, "%s%s", words.len ? " " : "", buf_str(&value));
            continue;
        }
        buf_clear(&name);
        buf_addf(&name, "%.*s%s", SLICE_FMT(key), is_reserved(key) ? "_" : "");
        add_member(line, buf_str(&name), buf_slice(&value));
    }
    if (words.len) {
        add_member(line, "text", buf_slice(&words));
    }
}

static void json_line(struct buf *line, enum log_level level, const char *event,
                      struct slice fields)
{
    char ts[32];
    format_time(ts);
    add_member(line, "ts", slice_of(ts));
    add_member(line, "level", slice_of(level_names[level]));
    add_member(line, "service", slice_of(service_name));
    add_member(line, "event", slice_of(event));
    add_fields(line, fields);
    buf_add_str(line, "}\n");
}

static void text_line(struct buf *line, enum log_level level, const char *event,
                      struct slice fields)
{
    char ts[32];
    format_time(ts);
    buf_addf(line, "%s %-5s %s %s ", ts, level_names[level], service_name, event);
    for (size_t i = 0; i < fields.len; i++) {
        unsigned char c = (unsigned char)fields.p[i];
        /* A stray control byte must neither break the line nor drive the terminal. */
        buf_add_char(line, c < 0x20 || c == 0x7f ? ' ' : (char)c);
    }
    while (line->len && line->p[line->len - 1] == ' ') {
        line->len--;
    }
    buf_add_char(line, '\n');
}

static void PRINTF_LIKE(3, 0)
    log_line(enum log_level level, const char *event, const char *fmt, va_list ap)
{
    if (!log_on(level)) {
        return;
    }
    int saved_errno = errno;
    auto_buf struct buf fields = {0};
    auto_buf struct buf line = {0};
    buf_vaddf(&fields, fmt, ap);
    if (atomic_load_explicit(&as_json, memory_order_relaxed)) {
        json_line(&line, level, event, buf_slice(&fields));
    } else {
        text_line(&line, level, event, buf_slice(&fields));
    }
    write_line(&line);
    errno = saved_errno;
}

void log_error(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_line(LOG_ERROR, event, fmt, ap);
    va_end(ap);
}

void log_warn(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_line(LOG_WARN, event, fmt, ap);
    va_end(ap);
}

void log_info(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_line(LOG_INFO, event, fmt, ap);
    va_end(ap);
}

void log_debug(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_line(LOG_DEBUG, event, fmt, ap);
    va_end(ap);
}

static size_t quote_char(unsigned char c, char out[5])
{
    const char *escape = c == '"'    ? "\\\""
                         : c == '\\' ? "\\\\"
                         : c == '\n' ? "\\n"
                         : c == '\r' ? "\\r"
                         : c == '\t' ? "\\t"
                                     : NULL;
    if (escape) {
        memcpy(out, escape, 2);
        return 2;
    }
    if (c < 0x20 || c == 0x7f) {
        return (size_t)snprintf(out, 5, "\\x%02x", c);
    }
    out[0] = (char)c;
    return 1;
}

const char *log_q(const char *value)
{
    enum { BUFFERS = 8, LEN = 1024 };
    static _Thread_local char buffers[BUFFERS][LEN];
    static _Thread_local unsigned turn;
    char *out = buffers[turn++ % BUFFERS];
    size_t at = 0;
    out[at++] = '"';
    for (const char *p = value ? value : ""; *p; p++) {
        char quoted[5];
        size_t n = quote_char((unsigned char)*p, quoted);
        if (at + n > LEN - 5) { /* room for "...", quote and NUL */
            memcpy(out + at, "...", 3);
            at += 3;
            break;
        }
        memcpy(out + at, quoted, n);
        at += n;
    }
    out[at++] = '"';
    out[at] = '\0';
    return out;
}

const char *log_id(const uint8_t id[16])
{
    enum { BUFFERS = 8, LEN = 33 };
    static _Thread_local char buffers[BUFFERS][LEN];
    static _Thread_local unsigned turn;
    if (id16_is_zero(id)) {
        return "-";
    }
    char *out = buffers[turn++ % BUFFERS];
    hex_encode(id, 16, out);
    return out;
}
