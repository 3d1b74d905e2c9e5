/* A sandbox opens: files are laid out, databases beside it attached, the instance locked. */
#include "common/log/log.h"
#include "common/sandbox/sandbox_files.h"
#include "common/sandbox/sandbox_internal.h"

/* ---- off the loop ---- */
/* What names files is made of hex digits alone, whatever a fingerprint or a version says. */
static const char *plain_digest(struct arena *a, const char *digest)
{
    size_t len = strspn(digest, "0123456789abcdef");
    if (len == 64 && !digest[len]) {
        return digest;
    }
    struct sha256 sum = sha256_of(digest, strlen(digest));
    char *hex = arena_zalloc(a, 65);
    hex_encode(sum.b, sizeof(sum.b), hex);
    return hex;
}

char *sandbox_dataset(struct arena *a, const char *digest)
{
    return arena_printf(a, "package-%.24s", plain_digest(a, digest));
}

/* Those that can be had; the others are lacking. */
static size_t hold_files(struct sandbox *b, struct duck_attach *list, size_t *which)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_attached; i++) {
        const struct wh_attached *at = &b->attached[i];
        if (at->file && sandbox_hold(b->what, at, &b->holds[i], &b->lacks[i]) < 0) {
            continue;
        }
        which[n] = i;
        list[n++].setup = sandbox_attach_statements(&b->arena, at, b->set->server_timeout);
    }
    return n;
}

/* An attachment that fails is told as the server's or the file's. */
static void note_lack(struct sandbox *b, size_t i, const struct err *e)
{
    const struct wh_attached *at = &b->attached[i];
    const char *why = err_text(e);
    size_t n = strlen(b->what);
    bool leads = strncmp(why, b->what, n) == 0 && strncmp(why + n, ": ", 2) == 0;
    (void)err_set(&b->lacks[i], ERR_WH_CONNECT, "%s: the attached database '%s': %s", b->what,
                  at->name, leads ? why + n + 2 : why);
    if (at->password && at->password[0]) {
        err_scrub(&b->lacks[i], at->password);
    }
}

static int open_instance(struct sandbox *b)
{
    const struct sandboxes *s = b->set;
    auto_free char *results =
        s->root ? xasprintf("%s/%s", s->root, sandbox_dataset(&b->arena, b->digest)) : NULL;
    const char *const dirs[] = {".", b->dir, results, NULL};
    const char *extensions[3] = {NULL};
    size_t n = 0;
    if (b->reads_xlsx) {
        extensions[n++] = "excel";
    }
    if (b->reads_postgres) {
        extensions[n++] = "postgres_scanner";
    }
    struct duck_attach *attach = arena_zalloc(&b->arena, (b->n_attached + 1) * sizeof(*attach));
    size_t *which = arena_zalloc(&b->arena, (b->n_attached + 1) * sizeof(*which));
    struct duck_settings d = {.what = b->what,
                              .connections = s->threads,
                              .threads = s->threads,
                              .budget = s->memory,
                              .temp_dir = b->spill,
                              .temp_bytes = s->spill_bytes,
                              .extensions = extensions,
                              .allowed_dirs = dirs,
                              .search_path = b->dir,
                              .attach = attach,
                              .n_attach = hold_files(b, attach, which),
                              .forbidden = b->n_attached > 0 ? sandbox_forbidden() : NULL};
    int rc = duck_instance_open(&d, &b->instance, &b->err);
    for (size_t i = 0; i < d.n_attach; i++) {
        if (attach[i].err.code) {
            note_lack(b, which[i], &attach[i].err);
        }
    }
    return rc;
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

/* ---- on the loop ---- */
static size_t list_lacks(const struct sandbox *b, struct wh_duckdb_lack *out)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_attached; i++) {
        const struct err *e = &b->lacks[i];
        if (e->code) {
            out[n++] = (struct wh_duckdb_lack){b->attached[i].name, e->code, e->text};
            log_warn("sandbox.not_attached", "error=%s", log_q(err_text(e)));
        }
    }
    return n;
}

static void on_open(struct offload_job *job)
{
    struct sandbox *b = job->data;
    struct sandboxes *s = b->set;
    if (b->rc == 0) {
        struct wh_duckdb_lack *lacks =
            arena_zalloc(&b->arena, (b->n_attached + 1) * sizeof(*lacks));
        const struct wh_duckdb_settings w = {.name = b->connection,
                                             .pool = s->pool,
                                             .instance = b->instance,
                                             .root = s->root,
                                             .dataset = sandbox_dataset(&b->arena, b->digest),
                                             .installation = s->installation,
                                             .resident_bytes = s->resident_bytes,
                                             .fault = b->missing.code ? b->missing.text : NULL,
                                             .lacks = lacks,
                                             .n_lacks = list_lacks(b, lacks)};
        if (b->missing.code) {
            log_warn("sandbox.incomplete", "error=%s", log_q(err_text(&b->missing)));
        }
        b->retry = ms_add(loop_now(s->loop), MS(SANDBOX_RETRY_MS));
        b->rc = wh_duckdb_open(s->loop, &w, &b->wh, &b->err);
        if (b->rc < 0) {
            duck_instance_unref(b->instance);
        }
        metric_add(s->open, b->rc == 0);
    }
    struct list waiting;
    list_init(&waiting);
    for (struct list *it; (it = list_take_head(&b->waiting));) {
        list_add_tail(&waiting, it);
    }
    b->users++; /* while they are told */
    if (b->rc < 0 && !b->detached) {
        map_del(&s->boxes, slice_of(b->key));
    }
    for (struct list *it; (it = list_take_head(&waiting));) {
        get_end(b, list_entry(it, struct sandbox_get, link));
    }
    if (b->rc == 0) {
        sandbox_put(b);
        return;
    }
    s->n_closing -= b->detached;
    sandbox_free(b);
    sandboxes_settle(s);
}

static void copy_attached(struct sandbox *b, const struct sandbox_get *q)
{
    struct arena *a = &b->arena;
    b->attached = arena_zalloc(a, (q->n_attached + 1) * sizeof(*b->attached));
    b->holds = arena_zalloc(a, (q->n_attached + 1) * sizeof(*b->holds));
    b->lacks = arena_zalloc(a, (q->n_attached + 1) * sizeof(*b->lacks));
    b->n_attached = q->n_attached;
    for (size_t i = 0; i < q->n_attached; i++) {
        b->attached[i] = wh_attached_copy(a, &q->attached[i]);
        b->holds[i].fd = -1;
        b->reads_postgres = b->reads_postgres || !b->attached[i].file;
    }
}

static struct sandbox *box_new(struct sandboxes *s, const char *key, const struct sandbox_get *q)
{
    struct sandbox *b = xcalloc(1, sizeof(*b));
    b->set = s;
    b->key = xstrdup(key);
    b->connection = xstrdup(q->connection ? q->connection : "duckdb");
    b->what = xasprintf("connection '%s'", b->connection);
    b->digest = xstrdup(q->digest);
    b->version = xstrdup(q->version);
    arena_init(&b->arena);
    b->dir = xasprintf("%s/%.16s-%.16s-%llu", s->dir, plain_digest(&b->arena, q->digest),
                       plain_digest(&b->arena, q->version), (unsigned long long)++s->opened);
    b->spill = xasprintf("%s.spill", b->dir);
    list_init(&b->waiting);
    list_init(&b->unused);
    copy_attached(b, q);
    loop_timer_init(&b->idle, s->loop, sandbox_on_idle, b);
    b->files = arena_zalloc(&b->arena, (q->n_files + 1) * sizeof(*b->files));
    for (size_t i = 0; i < q->n_files; i++) {
        const char *path = q->files[i].path;
        size_t len = strlen(path);
        b->files[i] = q->files[i];
        b->files[i].path = arena_strdup(&b->arena, path);
        b->reads_xlsx = b->reads_xlsx || (len > 5 && strcmp(path + len - 5, ".xlsx") == 0);
    }
    b->n_files = q->n_files;
    if (q->is_alone) {
        b->detached = true;
        s->n_closing++;
    } else {
        map_put(&s->boxes, slice_of(b->key), b);
    }
    return b;
}

void sandbox_new(struct sandboxes *s, const char *key, struct sandbox_get *q)
{
    struct sandbox *b = box_new(s, key, q);
    list_add_tail(&b->waiting, &q->link);
    b->job = (struct offload_job){.work_offload = open_offload, .done = on_open, .data = b};
    loop_offload(s->loop, &b->job);
}
