/* The author's names as views over generations, all of them swapped in one transaction. */
#include "common/warehouse/wh_duckdb_internal.h"

#include <errno.h>
#include <sys/stat.h>

/* ---- the bindings in force ---- */

struct duck_bound *duck_bound_get(struct duck_package *p)
{
    pthread_mutex_lock(&p->lock);
    struct duck_bound *b = p->bound;
    if (b) {
        atomic_fetch_add(&b->refs, 1);
    }
    pthread_mutex_unlock(&p->lock);
    return b;
}

void duck_bound_unref(struct duck_bound *b)
{
    if (b && atomic_fetch_sub(&b->refs, 1) == 1) {
        arena_fini(&b->arena);
        free(b);
    }
}

const struct duck_bound_item *duck_bound_find(const struct duck_bound *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->items[i].name, name) == 0) {
            return &b->items[i];
        }
    }
    return NULL;
}

static int read_file(struct duck_bound_file *f)
{
    struct stat st;
    if (stat(f->path, &st) < 0) {
        return -1;
    }
    f->inode = st.st_ino;
    f->bytes = st.st_size;
    f->changed_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    return 0;
}

int duck_bound_check(const struct duck_package *p, const struct duck_bound_item *item,
                     struct err *e)
{
    for (size_t i = 0; i < item->n_files; i++) {
        const struct duck_bound_file *was = &item->files[i];
        struct duck_bound_file is = {.path = was->path};
        if (read_file(&is) < 0) {
            return err_set(e, ERR_WH_MISSING, "connection '%s': \"%s\": cannot read '%s': %s",
                           p->name, item->name, was->path, strerror(errno));
        }
        if (is.inode != was->inode || is.bytes != was->bytes || is.changed_ns != was->changed_ns) {
            return err_set(e, ERR_WH_MISSING,
                           "connection '%s': \"%s\": '%s' was changed by someone else; materialize "
                           "the package again",
                           p->name, item->name, was->path);
        }
    }
    return 0;
}

uint64_t wh_duckdb_epoch(const struct wh *wh)
{
    struct duck_package *p = ((const struct wh_duck *)wh->impl)->package;
    struct duck_bound *b = duck_bound_get(p);
    uint64_t epoch = b ? b->epoch : 0;
    duck_bound_unref(b);
    return epoch;
}

void wh_duckdb_root_is_back(struct wh *wh)
{
    struct duck_package *p = ((struct wh_duck *)wh->impl)->package;
    struct duck_bound *b = duck_bound_get(p);
    if (b && b->lacks_root) {
        atomic_store(&p->outdated, true);
    }
    duck_bound_unref(b);
}

/* ---- making them ---- */

static struct duck_bound *bound_new(const struct duck_op *o)
{
    struct duck_bound *b = xcalloc(1, sizeof(*b));
    atomic_init(&b->refs, 1);
    b->epoch = o->epoch;
    b->lacks_root = o->lacks_root;
    arena_init(&b->arena);
    b->items = arena_zalloc(&b->arena, (o->n + 1) * sizeof(*b->items));
    return b;
}

static void add_select(struct buf *sql, const struct generation_ref *ref,
                       const struct generation_manifest *m, struct arena *a)
{
    buf_add_str(sql, "SELECT ");
    for (size_t i = 0; i < m->n_columns; i++) {
        const struct generation_column *c = &m->columns[i];
        bool as_is = strcmp(c->type, c->stored) == 0;
        buf_add_str(sql, i > 0 ? ", " : "");
        buf_add_str(sql, as_is ? "" : "CAST(");
        duck_quote_name(sql, c->name);
        if (!as_is) {
            buf_addf(sql, " AS %s) AS ", c->type);
            duck_quote_name(sql, c->name);
        }
    }
    buf_add_str(sql, " FROM read_parquet([");
    for (size_t i = 0; i < m->n_files; i++) {
        buf_add_str(sql, i > 0 ? ", " : "");
        duck_quote_text(sql, generation_file_path(a, ref, m->files[i].name));
    }
    /* A folder key=value above a file replaces a column of that name otherwise. */
    buf_add_str(sql, "], hive_partitioning = false)");
}

static int bind_files(struct duck_bound *b, struct duck_bound_item *item,
                      const struct generation_ref *ref, const struct generation_manifest *m)
{
    item->files = arena_zalloc(&b->arena, (m->n_files + 1) * sizeof(*item->files));
    for (size_t i = 0; i < m->n_files; i++) {
        item->files[i].path = generation_file_path(&b->arena, ref, m->files[i].name);
        if (read_file(&item->files[i]) < 0) {
            return ERR_NOT_FOUND;
        }
        item->n_files++;
    }
    return 0;
}

/* Reading a small file costs more than the query does: such results are kept in memory, in a schema
 * of their own, by the generation's id. */
enum { RESIDENT_ROWS = 200000, RESIDENT_SHARE = 4 };

static bool becomes_resident(const struct duck_op *o, const struct duck_bound *bound,
                             const struct generation_manifest *m)
{
    uint64_t most = o->package->resident_bytes, used = 0;
    for (size_t i = 0; i < bound->n; i++) {
        used += bound->items[i].is_resident ? bound->items[i].bytes : 0;
    }
    return m->rows <= RESIDENT_ROWS && m->bytes <= most / RESIDENT_SHARE && used + m->bytes <= most;
}

static const struct duck_bound_item *resident_in(const struct duck_bound *b, const char *generation)
{
    for (size_t i = 0; b && i < b->n; i++) {
        if (b->items[i].is_resident && strcmp(b->items[i].generation, generation) == 0) {
            return &b->items[i];
        }
    }
    return NULL;
}

static int read_in(struct duck_op *o, struct duck_conn *conn, const struct generation_ref *ref,
                   const struct generation_manifest *m, struct err *e)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "CREATE OR REPLACE TABLE kiln.");
    duck_quote_name(&sql, m->id);
    buf_add_str(&sql, " AS ");
    add_select(&sql, ref, m, &o->scratch);
    return duck_exec(conn, buf_str(&sql), e);
}

static int read_manifest(struct duck_op *o, const struct wh_duckdb_binding *b,
                         struct generation_ref *ref, struct generation_manifest *m, struct err *e)
{
    const struct wh_table t = {.name = {"", b->name}, .generation = b->generation};
    int rc = duck_ref_of(o, &t, ref, e);
    if (rc == 0) {
        rc = generation_read(&o->scratch, ref, m, e);
    }
    if (rc == 0) {
        rc = generation_verify(ref, m, GENERATION_TOUCHED, e);
    }
    if (rc < 0) {
        (void)err_wrap(e, "connection '%s': %s cannot be bound", o->package->name, b->name);
        return rc == ERR_NOT_FOUND ? e->code = ERR_WH_MISSING : rc;
    }
    return 0;
}

static int bind_one(struct duck_op *o, struct duck_conn *conn, const struct wh_duckdb_binding *b,
                    const struct duck_bound *old, struct duck_bound *bound, struct err *e)
{
    struct generation_ref ref;
    struct generation_manifest m;
    int rc = read_manifest(o, b, &ref, &m, e);
    if (rc < 0) {
        return rc;
    }
    bool resident = becomes_resident(o, bound, &m);
    if (resident && !resident_in(old, m.id)) {
        rc = read_in(o, conn, &ref, &m, e);
    }
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "CREATE OR REPLACE VIEW main.");
    duck_quote_name(&sql, b->name);
    buf_add_str(&sql, " AS ");
    if (resident) {
        buf_add_str(&sql, "SELECT * FROM kiln.");
        duck_quote_name(&sql, m.id);
    } else {
        add_select(&sql, &ref, &m, &o->scratch);
    }
    rc = rc < 0 ? rc : duck_exec(conn, buf_str(&sql), e);
    struct arena *a = &bound->arena;
    bound->items[bound->n++] = (struct duck_bound_item){.name = arena_strdup(a, b->name),
                                                        .generation = arena_strdup(a, m.id),
                                                        .build_id = arena_strdup(a, b->build_id),
                                                        .token = m.token,
                                                        .rows = m.rows,
                                                        .bytes = m.bytes,
                                                        .data_as_of_us = m.data_as_of_us,
                                                        .is_resident = resident};
    if (rc == 0 && bind_files(bound, &bound->items[bound->n - 1], &ref, &m) < 0) {
        rc = err_set(e, ERR_WH_MISSING, "connection '%s': %s cannot be bound: a file of it is gone",
                     o->package->name, b->name);
    }
    return rc;
}

static int unbind_others(struct duck_conn *conn, const struct duck_bound *old,
                         const struct duck_bound *bound, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; old && i < old->n && rc == 0; i++) {
        if (!duck_bound_find(bound, old->items[i].name)) {
            auto_buf struct buf sql = {0};
            buf_add_str(&sql, "DROP VIEW IF EXISTS main.");
            duck_quote_name(&sql, old->items[i].name);
            rc = duck_exec(conn, buf_str(&sql), e);
        }
    }
    for (size_t i = 0; old && i < old->n && rc == 0; i++) {
        const struct duck_bound_item *x = &old->items[i];
        if (x->is_resident && !resident_in(bound, x->generation)) {
            auto_buf struct buf sql = {0};
            buf_add_str(&sql, "DROP TABLE IF EXISTS kiln.");
            duck_quote_name(&sql, x->generation);
            rc = duck_exec(conn, buf_str(&sql), e);
        }
    }
    return rc;
}

/* ---- the swap ---- */

static void set_sequence(struct duck_package *p, uint64_t step, struct duck_bound *bound)
{
    pthread_mutex_lock(&p->lock);
    p->sequence += step;
    struct duck_bound *old = NULL;
    if (bound) {
        old = p->bound;
        p->bound = bound;
    }
    pthread_cond_broadcast(&p->even);
    pthread_mutex_unlock(&p->lock);
    duck_bound_unref(old);
}

static int swap(struct duck_op *o, struct duck_conn *conn, const struct duck_bound *old,
                struct duck_bound *bound, struct err *e)
{
    int rc = duck_exec(conn, "BEGIN", e);
    if (rc == 0 && o->package->resident_bytes) {
        rc = duck_exec(conn, "CREATE SCHEMA IF NOT EXISTS kiln", e);
    }
    for (size_t i = 0; i < o->n && rc == 0; i++) {
        rc = bind_one(o, conn, &o->bindings[i], old, bound, e);
    }
    if (rc == 0) {
        rc = unbind_others(conn, old, bound, e);
    }
    if (rc < 0) {
        struct err ignored; /* of a BEGIN that failed */
        (void)!duck_exec(conn, "ROLLBACK", &ignored);
        return rc;
    }
    set_sequence(o->package, 1, NULL);
    rc = duck_exec(conn, "COMMIT", e);
    set_sequence(o->package, 1, rc == 0 ? bound : NULL);
    return rc;
}

static void begin_binding(struct duck_package *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->binding) {
        pthread_cond_wait(&p->even, &p->lock);
    }
    p->binding = true;
    pthread_mutex_unlock(&p->lock);
}

static void end_binding(struct duck_package *p)
{
    pthread_mutex_lock(&p->lock);
    p->binding = false;
    pthread_cond_broadcast(&p->even);
    pthread_mutex_unlock(&p->lock);
}

static int work_bind(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct duck_op *o = duck_op_of(job);
    struct duck_package *p = o->package;
    int rc = 0;
    begin_binding(p);
    struct duck_bound *old = duck_bound_get(p);
    if (!old || old->epoch < o->epoch) {
        struct duck_bound *bound = bound_new(o);
        rc = swap(o, conn, old, bound, e);
        if (rc < 0) {
            duck_bound_unref(bound);
        }
    }
    duck_bound_unref(old);
    end_binding(p);
    return rc;
}

static struct duck_op *bind_op(struct wh_op *op, const struct wh_duckdb_binding *bindings, size_t n,
                               uint64_t epoch)
{
    struct duck_op *o = duck_op_new(op, "binding", work_bind);
    o->bindings = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->bindings));
    for (size_t i = 0; i < n; i++) {
        o->bindings[i] = (struct wh_duckdb_binding){duck_op_text(o, bindings[i].name),
                                                    duck_op_text(o, bindings[i].generation),
                                                    duck_op_text(o, bindings[i].build_id)};
    }
    o->n = n;
    o->epoch = epoch;
    return o;
}

void wh_duckdb_bind(struct wh_op *op, const struct wh_duckdb_binding *bindings, size_t n,
                    uint64_t epoch)
{
    duck_op_go(bind_op(op, bindings, n, epoch), true, MS(15000));
}

void wh_duckdb_bind_rest(struct wh_op *op, const struct wh_duckdb_binding *bindings, size_t n,
                         uint64_t epoch)
{
    struct duck_op *o = bind_op(op, bindings, n, epoch);
    o->lacks_root = true;
    duck_op_go(o, true, MS(15000));
}
