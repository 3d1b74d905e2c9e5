/* Inside of sandbox*.c: a sandbox, and the process's set of them. */
#pragma once
#include "common/base/map.h"
#include "common/sandbox/sandbox_attach.h"
#include "common/service/metrics.h"

enum { SANDBOX_RETRY_MS = 1000 };
struct sandboxes {
    struct loop *loop;
    char *package_store, *dir, *root; /* root: NULL: none */
    struct uuid installation;
    uint64_t resident_bytes, spill_bytes;
    unsigned threads;
    struct ms idle, server_timeout;
    struct duck_pool *pool;
    struct duck_budget *memory;
    struct list unused; /* of struct sandbox: longest unused first */
    struct map boxes;   /* "<digest>/<version>" -> struct sandbox */
    uint64_t opened;    /* so many so far: a directory is never used twice */
    size_t n_closing;
    struct metric *open;        /* instances */
    void (*closed)(void *data); /* while everything closes */
    void *closed_data;
};
struct sandbox {
    struct sandboxes *set;
    char *key, *connection, *what, *digest, *version, *dir, *spill;
    size_t users;
    bool detached;       /* no longer in the set: nobody else gets it */
    bool renewing;       /* another one opens that may lack less */
    struct wh *wh;       /* NULL: it opens */
    struct list waiting; /* of struct sandbox_get */
    struct loop_timer idle;
    struct list unused;
    /* of the opening; the job's while it runs */
    struct offload_job job;
    struct sandbox_file *files;
    size_t n_files;
    bool reads_xlsx;
    struct arena arena;
    struct wh_attached *attached;
    struct sandbox_hold *holds; /* as many */
    struct err *lacks;          /* as many; code 0: it is attached */
    size_t n_attached;
    bool reads_postgres;
    struct duck_instance *instance;
    int rc;
    struct err err;
    struct err missing; /* a data file that is not here; */
    struct ms retry;    /* whoever comes after this tries again */
};

void sandbox_free(struct sandbox *b);       /* that never opened, or has closed */
void sandboxes_settle(struct sandboxes *s); /* tells when all is closed */
void sandbox_on_idle(struct loop_timer *t); /* of a sandbox that nobody uses */
/* sandbox_open.c: a new one, into which q waits; it opens. */
void sandbox_new(struct sandboxes *s, const char *key, struct sandbox_get *q);
