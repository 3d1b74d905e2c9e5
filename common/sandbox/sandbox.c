/* Which sandboxes there are, who uses them, when they open and close. */
#include "common/log/log.h"
#include "common/sandbox/sandbox_files.h"
#include "common/sandbox/sandbox_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDLE_MS = 300000, OPEN_MOST = 64 };
#define SPILL_BYTES (UINT64_C(16) << 30)

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
    s->server_timeout = c->server_timeout;
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
void sandbox_free(struct sandbox *b)
{
    loop_timer_stop(&b->idle);
    for (size_t i = 0; i < b->n_attached; i++) {
        sandbox_release(&b->holds[i]);
    }
    arena_fini(&b->arena);
    free(b->key);
    free(b->connection);
    free(b->what);
    free(b->digest);
    free(b->version);
    free(b->dir);
    free(b->spill);
    free(b);
}

void sandboxes_settle(struct sandboxes *s)
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
    sandbox_free(b);
    s->n_closing--;
    sandboxes_settle(s);
}

/* The instance is closed, and nobody reads the files any more: what is used again is laid out
 * again. */
static void remove_offload(struct offload_job *job)
{
    struct sandbox *b = job->data;
    duck_instance_unref(b->instance);
    for (size_t i = 0; i < b->n_attached; i++) {
        sandbox_release(&b->holds[i]);
    }
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
        if (map_get(&b->set->boxes, slice_of(b->key)) == b) {
            map_del(&b->set->boxes, slice_of(b->key));
        }
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

void sandbox_on_idle(struct loop_timer *t)
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
    sandboxes_settle(s);
}

/* ---- getting ---- */
static void on_got(struct loop_task *t)
{
    struct sandbox_get *q = t->data;
    q->done(q);
}

/* Nobody else gets it; whoever uses it keeps it. */
static void outdate(struct sandbox *b)
{
    detach(b);
    if (b->users == 0) {
        box_close(b);
    }
}

static void check_offload(struct offload_job *job)
{
    struct sandbox_get *q = job->data;
    const struct sandbox *b = q->box;
    q->is_old = false;
    for (size_t i = 0; i < b->n_attached; i++) {
        const struct wh_attached *at = &b->attached[i];
        q->is_old = q->is_old || (at->file && sandbox_hold_is_old(&b->holds[i], at->file));
    }
}

static void on_checked(struct offload_job *job)
{
    struct sandbox_get *q = job->data;
    struct sandbox *b = q->box;
    struct sandboxes *s = b->set;
    if (!q->is_old || s->closed) {
        q->done(q);
        return;
    }
    detach(b);
    sandbox_put(b);
    q->box = NULL;
    sandbox_get_start(s, q);
}

static bool has_files(const struct sandbox *b)
{
    for (size_t i = 0; i < b->n_attached; i++) {
        if (b->attached[i].file) {
            return true;
        }
    }
    return false;
}

static void give_open(struct sandbox *b, struct sandbox_get *q)
{
    struct loop *l = b->set->loop;
    q->rc = 0;
    q->box = sandbox_ref(b);
    if (has_files(b)) {
        q->job = (struct offload_job){.work_offload = check_offload, .done = on_checked, .data = q};
        loop_offload(l, &q->job);
    } else {
        loop_task_init(&q->task, on_got, q);
        loop_defer(l, &q->task);
    }
}

/* ---- what is lacking ---- */
struct renewal {
    struct sandbox_get get;
    struct sandbox *old;
};

static size_t count_lacks(const struct sandbox *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_attached; i++) {
        n += b->lacks[i].code != 0;
    }
    return n;
}

static void adopt(struct sandbox *b)
{
    b->detached = false;
    b->set->n_closing--;
    map_put(&b->set->boxes, slice_of(b->key), b);
}

static void on_renewed(struct sandbox_get *q)
{
    struct renewal *r = q->data;
    struct sandbox *old = r->old;
    struct sandboxes *s = old->set;
    old->renewing = false;
    old->retry = ms_add(loop_now(s->loop), MS(SANDBOX_RETRY_MS));
    if (q->box && !s->closed && !old->detached && count_lacks(q->box) < count_lacks(old)) {
        detach(old);
        adopt(q->box);
    }
    sandbox_put(q->box);
    sandbox_put(old);
    free(r);
}

/* A server that is away may take seconds to say nothing: what is baked does not wait for it. */
static void renew(struct sandbox *b, const struct sandbox_get *q)
{
    struct renewal *r = xcalloc(1, sizeof(*r));
    b->renewing = true;
    r->old = sandbox_ref(b);
    r->get = *q;
    r->get.is_alone = true;
    r->get.done = on_renewed;
    r->get.data = r;
    sandbox_get_start(b->set, &r->get);
}

static bool lacks_server(const struct sandbox *b)
{
    for (size_t i = 0; i < b->n_attached; i++) {
        if (b->lacks[i].code && !b->attached[i].file) {
            return true;
        }
    }
    return false;
}

/* The one to use: this one, or NULL for a new one. */
static struct sandbox *look_again(struct sandbox *b, const struct sandbox_get *q)
{
    bool is_outdated = wh_duckdb_is_outdated(b->wh);
    if (!is_outdated && lacks_server(b)) {
        if (!b->renewing) {
            renew(b, q);
        }
        return b;
    }
    if (!is_outdated && !wh_duckdb_is_lacking(b->wh)) {
        return b;
    }
    outdate(b);
    return NULL;
}

void sandbox_get_start(struct sandboxes *s, struct sandbox_get *q)
{
    loop_assert_here(s->loop);
    must(!s->closed);
    auto_free char *key =
        xasprintf("%s/%s/%s", q->connection ? q->connection : "duckdb", q->digest, q->version);
    struct sandbox *b = q->is_alone ? NULL : map_get(&s->boxes, slice_of(key));
    if (b && b->wh && !ms_before(loop_now(s->loop), b->retry)) {
        b = look_again(b, q);
    }
    if (b && b->wh) {
        give_open(b, q);
        return;
    }
    if (b) {
        list_add_tail(&b->waiting, &q->link);
    } else {
        sandbox_new(s, key, q);
    }
}

bool sandbox_may_change(const struct sandbox *b)
{
    return has_files(b) || wh_duckdb_is_lacking(b->wh) || wh_duckdb_is_outdated(b->wh);
}

void sandboxes_root_is_back(struct sandboxes *s)
{
    for (struct map_iter it = map_begin(&s->boxes); map_next(&it);) {
        struct sandbox *b = it.value;
        if (b->wh) {
            wh_duckdb_root_is_back(b->wh);
        }
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
