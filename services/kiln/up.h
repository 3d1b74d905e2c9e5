/* `kiln up`: what it owns. One loop, children, and the order in which they come and go. */
#pragma once
#include "common/base/map.h"
#include "common/httpc/httpc.h"
#include "services/kiln/up_child.h"
#include "services/kiln/up_paths.h"

struct up_settings { /* up_conf.c has the table */
    const char *log_level, *log_format;
    const char *server_root, *config, *host, *mcp_port, *watch_env;
    int64_t port, builders, webhook_port; /* webhook_port -1: port + 10; 0: off */
    bool init, trusted_network;
    const char *store, *redis; /* "": private ones */
    const char *pg_user, *bin_dir, *node, *compiler;
};
extern const struct conf_spec up_conf;

/* The private PostgreSQL (up_postgres.c). */
struct up_postgres {
    char *bin;        /* directory of initdb and postgres */
    char *data;       /* <state>/pg */
    char *socket_dir; /* <run>/pg */
    char *log;        /* <state>/pg.log */
    struct up_user user;
    struct flow flow;      /* up_flow_postgres.c */
    struct up_child maker; /* initdb, then the single-user postgres: once */
    struct up_child server;
    struct loop_timer poll; /* the flow's: it looks how the server is */
};

enum up_probe_at { UP_PROBE_GATEWAY, UP_PROBE_PLANNER, UP_PROBES };
struct up_probe { /* one /readyz (up_ready.c) */
    struct httpc_call call;
    struct up_child *child;
    char url[128];
    char socket[UP_SOCKET_MAX]; /* "": TCP */
    bool in_flight, ok;
    int64_t starts; /* the child's count of starts when the question went out */
    char *why;      /* the last answer in words */
};

struct up {
    struct loop *loop;
    const struct up_settings *set;
    struct arena arena; /* lives as long as the process */
    char root[PATH_MAX], state[PATH_MAX], run[UP_SOCKET_MAX];
    char secret_key[65];
    int lock_fd;
    int webhook_port;
    const char *config; /* absolute; "" none */
    const char *node, *compiler, *bin_dir;
    bool has_postgres, has_redis; /* private ones */
    struct up_postgres pg;
    struct up_child redis, planner, gateway;
    struct up_child *builders;
    size_t n_builders;
    struct up_child *all[64]; /* every child, in the order of their start */
    size_t n_all;
    struct httpc *http;
    struct up_probe probes[UP_PROBES];
    struct loop_timer probe_timer;
    uv_signal_t hangup; /* its close ends with the loop's last turns */
    struct ms begun, said_waiting;
    bool ready; /* PUBLISHER_READY is out */
    /* the end (up_stop.c) */
    bool stopping;
    int phase;
    struct ms stop_begun;
    struct loop_timer stop_timer;
    int exit_code;
    char *failure; /* the sentence it ends with; NULL: none */
};

/* up_plan.c: finds programs, directories and ports, before anything is started. */
int up_prepare(struct up *u, struct err *e) MUST_USE;
/* up_services.c: command lines and environments of our own programs and Redis. */
void up_services_init(struct up *u);
void up_add(struct up *u, struct up_child *c);
/* Environment of a child: ours without what `kiln up` decides itself; `more` ("NAME=value", NULL
 * ends) is added. */
char **up_environment(struct up *u, const char *const *more);
/* up_postgres.c */
int up_postgres_find(struct up *u, struct err *e) MUST_USE;
int up_postgres_prepare(struct up *u,
                        struct err *e) MUST_USE; /* directories; needs state and run */
int up_postgres_version(const char *data);       /* PG_VERSION of a data directory; 0: none there */
/* up_flow_postgres.c */
extern const struct flow_type up_postgres_flow;
void up_postgres_start(struct up *u);
const char *up_postgres_url(struct up *u); /* libpq conninfo */
/* up_ready.c */
void up_ready_init(struct up *u);
void up_ready_start(struct up *u);
void up_ready_stop(struct up *u);
void up_ready_fini(struct up *u);
/* Called by the flow when the run store can be reached: starts the planner. */
void up_store_is_there(struct up *u);
/* up_stop.c: ends everything, in order. A second call hurries. */
void up_stop(struct up *u);
void up_stop_child_gone(struct up *u); /* a child has ended while we stop */
/* Remembers the first sentence and begins the end with exit code 1. */
void up_fail(struct up *u, const char *fmt, ...) PRINTF_LIKE(2, 3);
