/* Log lines: a level, a dotted event name, key=value fields. Text on a terminal, JSON lines
 * elsewhere. */
#pragma once
#include "common/base/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_form { LOG_FORM_AUTO, LOG_FORM_TEXT, LOG_FORM_JSON };

/* Once, before the first line. `service` is copied. Level and form may be changed later. Writes to
 * stderr. */
void log_setup(const char *service, enum log_level level, enum log_form form);
int log_level_parse(const char *text,
                    enum log_level *out) MUST_USE; /* error warn info debug; -1 else */
bool log_on(enum log_level level);
/* fmt gives "key=value key2=value2"; values with blanks are the caller's to quote with log_q. Any
 * thread. */
void log_error(const char *event, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_warn(const char *event, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_info(const char *event, const char *fmt, ...) PRINTF_LIKE(2, 3);
void log_debug(const char *event, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Quotes a value for a log line into one of 8 rotating thread-local buffers of 1 KiB: "a \"b\"".
 * NULL gives "". */
const char *log_q(const char *value);
/* 16 bytes as 32 hex digits, into one of 8 more such buffers; "-" for all zero. A trace id is
 * printed as trace=%s by every line that belongs to one request, hook or run. */
const char *log_id(const uint8_t id[16]);
