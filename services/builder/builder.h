/* The builder: what it owns. Pulls jobs, runs their SQL where the data is, swaps with a grant.
 * Holds no truth. */
#pragma once
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/bus/bus.h"
#include "common/generation/generation.h"
#include "common/sandbox/sandbox.h"
#include "common/service/metrics.h"
#include "common/service/service.h"
#include "common/warehouse/warehouse.h"
#include "proto/builder.pb-c.h"
#include "proto/gateway.pb-c.h"

struct builder_settings {
    const char *log_level, *log_format;
    const char *instance;
    const char *planner_call, *planner_event;
    const char *secret_key, *bus_key;
    const char *health_listen; /* HTTP for /healthz, /readyz, /metrics; "" off */
    int64_t slots;
    const char *connections;      /* those it reaches, separated by commas; "" all */
    int64_t statement_timeout_ms; /* 0: none */
    bool trusted_network;
    /* Packages' own DuckDB; all empty: none here. */
    const char *package_store, *generation_root, *state_dir;
    int64_t duckdb_memory; /* bytes; 0: half of the machine's */
    int64_t duckdb_idle_ms;
};
struct builder_conn { /* a warehouse connection, kept while its config epoch stands */
    char *key;        /* "<environment>/<name>" */
    struct wh *wh;
    uint64_t config_epoch;
    unsigned users;
    bool stale;     /* closed when the last user is gone */
    char **secrets; /* scrubbed from every error */
};
/* One PullJob that is out. */
struct builder_pull {
    struct builder *b;
    bool is_out;
    struct bus_call call;
    Kiln__PullJobReq req;
};
/* The generation root, taken for the installation and renewed (protocol.md 8). */
struct builder_root {
    bool asked, held; /* asked: the first answer is not there yet */
    bool claiming;    /* the job is out */
    bool boxes_closed;
    struct uuid installation;
    void (*closed)(void *data); /* while it closes */
    void *closed_data;
    struct generation_owner owner;
    struct err err;
    char fault[sizeof(((struct err *)NULL)->text)]; /* "": held, or not asked yet */
    int rc;
    struct offload_job job;
    struct loop_timer timer;
};
struct builder {
    struct service *service;
    struct loop *loop;
    const struct builder_settings *set;
    struct bus *bus;
    struct http_server *http;
    struct uuid boot;
    uint8_t secret_key[32];
    char **connections; /* of the setting, in the service's arena */
    size_t n_connections;
    struct map conns;         /* key -> builder_conn */
    struct list jobs;         /* struct flow_job in progress */
    unsigned running, asking; /* jobs with a slot; questions (describe, probe) */
    uint64_t highest_token;   /* greatest claim seen in a fence */
    bool said_hello, hello_out, renewing, draining;
    int64_t lease_ms;
    struct ms renewed; /* when the planner last answered a renewal */
    struct bus_call hello_call, renew_call;
    /* One for jobs while a slot is free, one for questions: they have a slot of their own. */
    struct builder_pull jobs_pull, asks_pull, leave_pull; /* the last one: while it drains */
    Kiln__HelloReq hello_req;
    Kiln__RenewLeaseReq renew_req;
    Kiln__Progress *progress; /* of the renewal in flight */
    Kiln__Progress **progress_list;
    struct loop_timer renew_timer, retry_timer;
    void (*drained)(void *data);
    void *drained_data;
    struct sandboxes *sandboxes; /* NULL: no DuckDB here */
    struct builder_root root;
    ProtobufCBinaryData root_id; /* of root.owner, as pulls have it */
    struct metric *m_jobs_ok, *m_jobs_failed, *m_rows;
};
/* ---- pull.c: hello, pulling, renewing ---- */
void builder_go(
    struct builder *b); /* does what is due: hello, then pull while there are free slots */
void builder_leave(struct builder *b); /* it drains: nothing more is to be given to it */
void builder_job_ended(struct builder *b, bool was_question);
void builder_renew_due(struct loop_timer *t);
void builder_see_token(struct builder *b, uint64_t claim);

/* ---- job.c: one job as a flow; which flow by its kind ---- */
struct flow_job {
    struct flow flow;
    struct list link;
    struct builder *b;
    Kiln__Job *job; /* in the flow's arena */
    struct wh *wh;  /* of conn or box */
    struct builder_conn *conn;
    struct sandbox *box;
    struct sandbox_get get;
    struct sandbox_file *box_files; /* NULL: not known yet */
    size_t n_box_files;
    const char *version;          /* of the files */
    struct wh_attached *attached; /* of the connection; NULL: none, or not known yet */
    size_t n_attached;
    const char **secrets; /* of it: scrubbed from every error */
    enum { JOB_ASKS, JOB_OPENS, JOB_BINDS } connecting;
    size_t at; /* describe: the table or block that is asked about */
    struct wh_op op;
    struct wh_table table;
    struct wh_build build;
    struct wh_publish publish;
    struct wh_sweep sweep;
    uint64_t *tokens;
    struct bus_call call;
    Kiln__GetConnectionReq connection_req;
    Kiln__GetPackageReq package_req;
    Kiln__RequestGrantReq grant_req;
    Kiln__FinishJobReq finish_req;
    Kiln__JobError finish_error;
    Kiln__FenceState finish_fence;
    uint8_t finish_id[16]; /* the same on every try */
    uint8_t trace[16];     /* of its run; all zero: none */
    Kiln__Outcome outcome;
    struct err error; /* the job's own failure */
    struct wh_facts facts;
    struct ms started;
    const char *stage;
    bool op_running; /* op has not completed */
    bool connected;
    bool stop; /* the planner said cancel */
    bool lost; /* the planner said the lease is gone, or nobody answered for a lease term */
};
/* Until its on_end; NULL: not a job that this builder knows. */
struct flow_job *flow_job_start(struct builder *b, const Kiln__Job *job);
void flow_job_stop(struct flow_job *j, bool lost); /* ends its statement; idempotent */
/* Starts j->call on behalf of the job's run; `data` becomes j. As bus_call_start. */
int job_call(struct flow_job *j, const struct bus_call *call) MUST_USE;
extern const struct flow_type flow_build_type, flow_resolve_type, flow_drop_type, flow_sweep_type,
    flow_describe_type, flow_probe_type;

/* job_connect.c: a step that gets the warehouse: a connection of the environment, or DuckDB, the
 * package's own or one of the environment, with what the job reads bound in it. `again` is the step
 * itself. */
enum flow_next job_connect(struct flow *f, unsigned again, unsigned next, unsigned end);
void job_cancel_connect(struct flow *f);
/* job_steps.c: what the flows share */
enum flow_next job_report(struct flow *f,
                          unsigned end); /* a step: FinishJob until it is recorded */
struct flow_job *job_of(struct flow *f);
void job_columns(struct flow_job *j, const struct wh_columns *in, Kiln__Column ***out,
                 size_t *n); /* as a message, in the job's arena */
void job_on_op(struct wh_op *op);
void job_cancel_op(struct flow *f);
struct wh_op *job_op(struct flow_job *j);
enum flow_next job_failed(struct flow *f, unsigned report, Kiln__Outcome outcome);

/* ---- duck.c: packages' own DuckDB ---- */
int builder_duck_start(struct builder *b, struct err *e) MUST_USE;
void builder_duck_hello(struct builder *b); /* the installation is known: the root is taken */
void builder_duck_close(struct builder *b, void (*done)(void *data), void *data);

/* ---- conns.c ---- */
struct builder_conn *builder_conn_find(struct builder *b, const char *environment, const char *name,
                                       uint64_t config_epoch);
int builder_conn_make(struct builder *b, const char *environment, const char *name,
                      const Kiln__GetConnectionRep *rep, struct builder_conn **out,
                      struct err *e) MUST_USE;
/* The settings in the clear. */
int builder_conn_unseal(const struct builder *b, const char *name,
                        const Kiln__GetConnectionRep *rep, struct buf *out, struct err *e) MUST_USE;
void builder_conn_put(struct builder *b, struct builder_conn *c);
void builder_conns_close(struct builder *b, void (*done)(void *data), void *data);
