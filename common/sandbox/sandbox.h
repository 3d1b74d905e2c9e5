/* DuckDB instances of this process, shared by all loops; opened on first use, closed when nobody
 * has used them for a while (decisions 2.1, protocol.md 14). A package's own has its data files,
 * laid out in a private directory; one for a package on a duckdb connection of its environment has
 * what that connection attaches, read-only. The main loop, unless it says so. */
#pragma once
#include "common/warehouse/wh_attached.h"
#include "common/warehouse/wh_duckdb.h"

struct sandbox_conf {
    const char *package_store; /* data files by content hash, shared by all hosts; absolute */
    const char *dir; /* this process's own: layouts, spilled data, and the empty working directory;
                        absolute; emptied at the start */
    const char *generation_root; /* absolute; NULL or "": nothing is built or bound here */
    uint64_t memory_bytes;       /* for all instances together; 0: half of the machine's */
    uint64_t resident_bytes;     /* wh_duckdb.h, of each package */
    uint64_t spill_bytes;        /* an instance's temporary files */
    unsigned threads;            /* statements at once, and DuckDB's own; 0: the number of cores */
    struct ms idle;              /* closed after this without use; 0: 5 min */
    struct ms server_timeout;    /* of a statement that an attached server works on, which DuckDB
                                    waits for and cannot interrupt; 0: none */
};
struct sandboxes;
/* Blocking, at the start of the process, before any thread: the working directory changes.
 * ERR_CONF, ERR_IO. */
int sandboxes_new(struct loop *l, const struct sandbox_conf *c, struct sandboxes **out,
                  struct err *e) MUST_USE;
/* Fence rows and manifests carry it; before the first sandbox_get. */
void sandboxes_installation(struct sandboxes *s, const struct uuid *installation);
/* All were put back; done comes when every instance is closed and no thread is left. */
void sandboxes_close(struct sandboxes *s, void (*done)(void *data), void *data);
void sandboxes_free(struct sandboxes *s);
size_t sandboxes_open(const struct sandboxes *s); /* instances that are open, or about to be */

struct sandbox_file {
    const char *path; /* relative, checked when the package was taken in */
    uint64_t bytes;
    struct sha256 sha256;
};
struct sandbox; /* counted */
struct sandbox_get {
    const char *connection;           /* NULL: "duckdb", the package's own */
    const char *digest;               /* its identity: the folder of its generations */
    const char *version;              /* of its files; or what else tells two of them apart */
    const struct sandbox_file *files; /* data files; must stay until done */
    size_t n_files;
    const struct wh_attached *attached; /* copied */
    size_t n_attached;
    bool is_alone; /* nobody else gets it, and it is closed when it is put back */
    void (*done)(struct sandbox_get *q); /* later, once */
    void *data;
    int rc;
    struct err err;
    struct sandbox *box; /* the caller's reference; sandbox_put */
    struct list link;
    struct loop_task task;
    struct offload_job job;
    bool is_old;
};
/* ERR_CONF (a file is not in the package store, settings that DuckDB refuses), ERR_IO. */
void sandbox_get_start(struct sandboxes *s, struct sandbox_get *q);
struct sandbox *sandbox_ref(struct sandbox *b);
void sandbox_put(struct sandbox *b); /* NULL is fine */
/* Getting it again may give another one: it lacks something, or files beside it can be replaced.
 * Any thread that holds it. */
bool sandbox_may_change(const struct sandbox *b);
/* The generation root is reachable again: sandboxes that results were left out of for it are opened
 * anew on their next use. */
void sandboxes_root_is_back(struct sandboxes *s);
/* The main loop's handle, as long as the sandbox is held; wh_duckdb_share makes others. */
struct wh *sandbox_wh(const struct sandbox *b);
/* Name of a package's folder under the generation root; in the arena. */
char *sandbox_dataset(struct arena *a, const char *digest) MUST_USE;
