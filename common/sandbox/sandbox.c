/* Which sandboxes there are, who uses them, when they open and close. */
#include "common/sandbox/sandbox.h"

#include "common/base/map.h"
#include "common/log/log.h"
#include "common/sandbox/sandbox_files.h"
#include "common/service/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDLE_MS = 300000, RETRY_MS = 1000, OPEN_MOST = 64 };
#define SPILL_BYTES (UINT64_C(16) << 30)

struct sandboxes {
    struct loop *loop;
    char *package_store, *dir, *root; /* root: NULL: none */
    struct uuid installation;
    uint64_t resident_bytes, spill_bytes;
    unsigned threads;
    struct ms idle;
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
    char *key, *digest, *version, *dir, *spill;
    size_t users;
    bool detached;       /* no longer in the set: nobody else gets it */
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
    struct duck_instance *instance;
    int rc;
    struct err err;
    struct err missing; /* a data file that is not here; */
    struct ms retry;    /* whoever comes after this tries again */
};

/* ---- the process's ---- */
static int make_dir(const char *path, struct err *e)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST) {
        return 0;
    }
    return err_set(e, ERR_CONF, "cannot make the directory '%s': %s", path, strerror(errno));
}

static int start_dir(const struct sandboxes *s, struct err *e)
{
    int rc = sandbox_remove(s->dir, e);
    for (char *at = strchr(s->dir + 1, '/'); rc == 0 && at; at = strchr(at + 1, '/')) {
        *at = '\0';
        rc = make_dir(s->dir, e);
        *at = '/';
    }
    rc = rc < 0 ? rc : make_dir(s->dir, e);
    auto_free char *empty = xasprintf("%s/empty", s->dir);
    rc = rc < 0 ? rc : make_dir(empty, e);
    if (rc == 0 && chdir(empty) != 0) {
        rc = err_set(e, ERR_CONF, "cannot go to the directory '%s': %s", empty, strerror(errno));
    }
    return rc;
}

static uint64_t half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : UINT64_C(1) << 30;
}

/* The working directory changes: what is relative is so to the one of now. */
static char *absolute(const char *path)
{
    auto_free char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    return here ? xasprintf("%s/%s", here, path) : xstrdup(path);
}

int sandboxes_new(struct loop *l, const struct sandbox_conf *c, struct sandboxes **out,
                  struct err *e)
{
    struct sandboxes *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->package_store = absolute(c->package_store);
    s->dir = absolute(c->dir);
    s->root = c->generation_root && c->generation_root[0] ? absolute(c->generation_root) : NULL;
    s->memory = duck_budget_new(c->memory_bytes ? c->memory_bytes : half_of_memory());
    s->resident_bytes = c->resident_bytes;
    s->spill_bytes = c->spill_bytes ? c->spill_bytes : SPILL_BYTES;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    s->threads = c->threads ? c->threads : cores > 0 ? (unsigned)cores : 1;
    s->idle = c->idle.v ? c->idle : MS(IDLE_MS);
    map_init(&s->boxes);
    list_init(&s->unused);
    int rc = start_dir(s, e);
    if (rc < 0) {
        sandboxes_free(s);
        return rc;
    }
    s->pool = duck_pool_new(s->threads + 1, 1);
    s->open = metric_gauge("kiln_duckdb_instances", "", "DuckDB instances that are open");
    *out = s;
    return 0;
}

void sandboxes_installation(struct sandboxes *s, const struct uuid *installation)
{
    s->installation = *installation;
}

size_t sandboxes_open(const struct sandboxes *s)
{
    return map_len(&s->boxes) + s->n_closing;
}

void sandboxes_free(struct sandboxes *s)
{
    if (!s) {
        return;
    }
    must(map_len(&s->boxes) == 0);
    if (s->pool) {
        duck_pool_free(s->pool);
    }
    duck_budget_free(s->memory);
    map_fini(&s->boxes);
    free(s->package_store);
    free(s->dir);
    free(s->root);
    free(s);
}

/* ---- closing ---- */
static void box_free(struct sandbox *b)
{
    loop_timer_stop(&b->idle);
    arena_fini(&b->arena);
    free(b->key);
    free(b->digest);
    free(b->version);
    free(b->dir);
    free(b->spill);
    free(b);
}

static void settle(struct sandboxes *s)
{
    if (s->closed && s->n_closing == 0 && map_len(&s->boxes) == 0) {
        void (*closed)(void *data) = s->closed;
        s->closed = NULL;
        closed(s->closed_data);
    }
}

static void on_removed(struct offload_job *job)
{
    struct sandbox *b = job->data;
    struct sandboxes *s = b->set;
    metric_add(s->open, -1);
    if (b->rc < 0) {
        log_warn("sandbox.left", "error=%s", log_q(err_text(&b->err)));
    }
    box_free(b);
    s->n_closing--;
    settle(s);
}

/* The instance is closed, and nobody reads the files any more: what is used again is laid out
 * again. */
static void remove_offload(struct offload_job *job)
{
    struct sandbox *b = job->data;
    duck_instance_unref(b->instance);
    b->rc = sandbox_remove(b->dir, &b->err);
    b->rc = b->rc < 0 ? b->rc : sandbox_remove(b->spill, &b->err);
}

static void on_closed(void *data)
{
    struct sandbox *b = data;
    wh_free(b->wh);
    b->job = (struct offload_job){.work_offload = remove_offload, .done = on_removed, .data = b};
    loop_offload(b->set->loop, &b->job);
}

static void detach(struct sandbox *b)
{
    if (!b->detached) {
        b->detached = true;
        map_del(&b->set->boxes, slice_of(b->key));
        b->set->n_closing++;
    }
}

static void box_close(struct sandbox *b)
{
    must(b->users == 0 && b->wh);
    log_debug("sandbox.close", "version=%.12s", b->version);
    loop_timer_stop(&b->idle);
    list_del(&b->unused);
    detach(b);
    b->wh->ops->close(b->wh, on_closed, b);
}

static void on_idle(struct loop_timer *t)
{
    box_close(t->data);
}

void sandboxes_close(struct sandboxes *s, void (*done)(void *data), void *data)
{
    s->closed = done;
    s->closed_data = data;
    for (struct map_iter it = map_begin(&s->boxes); map_next(&it);) {
        struct sandbox *b = it.value;
        if (b->wh && b->users == 0) {
            box_close(b);
        }
    }
    settle(s);
}

/* ---- opening ---- */
char *sandbox_dataset(struct arena *a, const char *digest)
{
    return arena_printf(a, "package-%.24s", digest);
}

static int open_instance(struct sandbox *b)
{
    const struct sandboxes *s = b->set;
    auto_free char *results =
        s->root ? xasprintf("%s/%s", s->root, sandbox_dataset(&b->arena, b->digest)) : NULL;
    const char *const dirs[] = {".", b->dir, results, NULL};
    const char *const extensions[] = {b->reads_xlsx ? "excel" : NULL, NULL};
    const struct duck_settings d = {.what = "connection 'duckdb'",
                                    .connections = s->threads,
                                    .threads = s->threads,
                                    .budget = s->memory,
                                    .temp_dir = b->spill,
                                    .temp_bytes = s->spill_bytes,
                                    .extensions = extensions,
                                    .allowed_dirs = dirs,
                                    .search_path = b->dir};
    return duck_instance_open(&d, &b->instance, &b->err);
}

static void open_offload(struct offload_job *job)
{
    struct sandbox *b = job->data;
    b->rc =
        sandbox_lay_out(b->set->package_store, b->dir, b->files, b->n_files, &b->missing, &b->err);
    b->rc = b->rc < 0 ? b->rc : open_instance(b);
}

static void get_end(struct sandbox *b, struct sandbox_get *q)
{
    q->rc = b->rc;
    q->err = b->err;
    q->box = b->rc == 0 ? sandbox_ref(b) : NULL;
    q->done(q);
}

static void on_open(struct offload_job *job)
{
    struct sandbox *b = job->data;
    struct sandboxes *s = b->set;
    if (b->rc == 0) {
        auto_free char *dataset = xasprintf("%s", sandbox_dataset(&b->arena, b->digest));
        const struct wh_duckdb_settings w = {.name = "duckdb",
                                             .pool = s->pool,
                                             .instance = b->instance,
                                             .root = s->root,
                                             .dataset = dataset,
                                             .installation = s->installation,
                                             .resident_bytes = s->resident_bytes,
                                             .fault = b->missing.code ? b->missing.text : NULL};
        if (b->missing.code) {
            b->retry = ms_add(loop_now(s->loop), MS(RETRY_MS));
            log_warn("sandbox.incomplete", "error=%s", log_q(err_text(&b->missing)));
        }
        b->rc = wh_duckdb_open(s->loop, &w, &b->wh, &b->err);
        if (b->rc < 0) {
            duck_instance_unref(b->instance);
        }
        metric_add(s->open, b->rc == 0);
    }
    arena_reset(&b->arena);
    struct list waiting;
    list_init(&waiting);
    for (struct list *it; (it = list_take_head(&b->waiting));) {
        list_add_tail(&waiting, it);
    }
    b->users++; /* while they are told */
    if (b->rc < 0) {
        map_del(&s->boxes, slice_of(b->key));
    }
    for (struct list *it; (it = list_take_head(&waiting));) {
        get_end(b, list_entry(it, struct sandbox_get, link));
    }
    if (b->rc == 0) {
        sandbox_put(b);
        return;
    }
    box_free(b);
    settle(s);
}

static struct sandbox *box_new(struct sandboxes *s, const char *key, const struct sandbox_get *q)
{
    struct sandbox *b = xcalloc(1, sizeof(*b));
    b->set = s;
    b->key = xstrdup(key);
    b->digest = xstrdup(q->digest);
    b->version = xstrdup(q->version);
    b->dir = xasprintf("%s/%.16s-%.16s-%llu", s->dir, q->digest, q->version,
                       (unsigned long long)++s->opened);
    b->spill = xasprintf("%s.spill", b->dir);
    list_init(&b->waiting);
    list_init(&b->unused);
    arena_init(&b->arena);
    loop_timer_init(&b->idle, s->loop, on_idle, b);
    b->files = arena_zalloc(&b->arena, (q->n_files + 1) * sizeof(*b->files));
    for (size_t i = 0; i < q->n_files; i++) {
        const char *path = q->files[i].path;
        size_t len = strlen(path);
        b->files[i] = q->files[i];
        b->files[i].path = arena_strdup(&b->arena, path);
        b->reads_xlsx = b->reads_xlsx || (len > 5 && strcmp(path + len - 5, ".xlsx") == 0);
    }
    b->n_files = q->n_files;
    map_put(&s->boxes, slice_of(b->key), b);
    return b;
}

static void on_got(struct loop_task *t)
{
    struct sandbox_get *q = t->data;
    q->done(q);
}

void sandbox_get_start(struct sandboxes *s, struct sandbox_get *q)
{
    loop_assert_here(s->loop);
    must(!s->closed);
    auto_free char *key = xasprintf("%s/%s", q->digest, q->version);
    struct sandbox *b = map_get(&s->boxes, slice_of(key));
    if (b && b->wh && b->missing.code && !ms_before(loop_now(s->loop), b->retry)) {
        detach(b); /* the file may be there by now; its users keep it */
        if (b->users == 0) {
            box_close(b);
        }
        b = NULL;
    }
    if (b && b->wh) {
        q->rc = 0;
        q->box = sandbox_ref(b);
        loop_task_init(&q->task, on_got, q);
        loop_defer(s->loop, &q->task);
        return;
    }
    bool is_new = !b;
    b = b ? b : box_new(s, key, q);
    list_add_tail(&b->waiting, &q->link);
    if (is_new) {
        b->job = (struct offload_job){.work_offload = open_offload, .done = on_open, .data = b};
        loop_offload(s->loop, &b->job);
    }
}

/* ---- users ---- */
struct sandbox *sandbox_ref(struct sandbox *b)
{
    loop_timer_stop(&b->idle);
    list_del(&b->unused);
    b->users++;
    return b;
}

/* Each costs some megabytes and threads of its own: however many packages there are, only so many
 * stay open unused. */
static void close_surplus(struct sandboxes *s)
{
    while (map_len(&s->boxes) > OPEN_MOST && !list_empty(&s->unused)) {
        box_close(list_entry(s->unused.next, struct sandbox, unused));
    }
}

void sandbox_put(struct sandbox *b)
{
    if (!b || --b->users > 0) {
        return;
    }
    if (b->set->closed || b->detached) {
        box_close(b);
    } else {
        loop_timer_start(&b->idle, b->set->idle);
        list_add_tail(&b->set->unused, &b->unused);
        close_surplus(b->set);
    }
}

struct wh *sandbox_wh(const struct sandbox *b)
{
    return b->wh;
}
