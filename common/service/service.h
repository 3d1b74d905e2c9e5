/* The frame every service runs in: configuration, log, loop, start order, health with reasons,
 * signals, drain. */
#pragma once
#include "common/conf/conf.h"
#include "common/http/http.h"
#include "common/loop/loop.h"

struct service;
/* One thing a service is made of; started in order, closed in reverse. */
struct service_part {
    const char *name;
    int (*start)(struct service *s, struct err *e); /* synchronous set-up; an error ends the process
                                                       with the sentence and exit code 1 */
    void (*close)(struct service *s); /* begins the end; calls service_part_closed(s) exactly once,
                                         maybe later; NULL: nothing to do */
};
struct service_desc {
    const char *name; /* "planner" */
    const struct conf_spec *conf;
    size_t settings_size; /* of the program's settings struct, zeroed before conf_load */
    size_t state_size;    /* of the program's own struct, zeroed */
    /* offsets of the common settings every service has */
    size_t log_level_offset, log_format_offset; /* const char * members */
    const struct service_part *parts;
    size_t n_parts;
    struct ms drain;  /* longest drain; then the process ends anyway */
    bool has_threads; /* a drain that is cut short ends the process at once: they may still run */
};
/* Exit codes of service_run: what service_fail was given, else 0 after a drain, 1 when a part did
 * not start, 2 for bad configuration, 3 when the drain was cut short by a second signal or by its
 * limit. */
/* Runs to the end: conf_load, log_setup, loop, parts; SIGTERM or SIGINT drains (second one ends at
 * once). Returns the exit code. */
int service_run(const struct service_desc *d, int argc, char **argv);
struct loop *service_loop(struct service *s);
void *service_settings(struct service *s);
void *service_state(struct service *s);
struct arena *service_arena(struct service *s); /* lives as long as the process */
void service_part_closed(struct service *s);
bool service_is_draining(const struct service *s);
/* Ends the process through the drain, with an exit code and one sentence in the log. */
void service_fail(struct service *s, int exit_code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* What stood behind the options on the command line; NULL-terminated, empty unless the conf_spec
 * allows it. */
char **service_rest(struct service *s);

/* Health: named conditions, each ok or with a reason in words. Ready = all that are required are
 * ok. */
void health_set(struct service *s, const char *name, bool required, bool ok, const char *reason);
bool health_ready(const struct service *s);
void health_json(const struct service *s,
                 struct buf *out); /* {"ready":true,"parts":{"redis":{"ok":false,"reason":".."}}} */
/* Answers /healthz (200 while alive), /readyz (200 or 503 with reasons), /metrics, /health,
 * /health/liveness, /health/readiness. False: not one of them. */
bool service_answer_http(struct service *s, struct http_req *r);
/* The same in two halves, for connections on another loop: is it one of them (any thread), and what
 * is the answer (the service's loop; body is the caller's to free). */
struct service_answer {
    int status;
    const char *type;
    struct buf body;
};
bool service_is_probe(const struct http_req *r);
void service_answer(struct service *s, struct slice path, struct service_answer *out);
