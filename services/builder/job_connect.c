/* How a job gets its warehouse. */
#include "services/builder/builder.h"

static bool is_own_duckdb(const struct flow_job *j)
{
    return strcmp(j->job->target->connection, "duckdb") == 0;
}

static bool is_duckdb(const struct flow_job *j)
{
    return is_own_duckdb(j) || j->job->target->class_ == KILN__WH_CLASS__WH_BY_BINDING;
}

/* A duckdb connection of the environment is asked for what it attaches, by jobs that read; results
 * are looked at and dropped without it, even after it was deleted. */
static bool reads_attached(const struct flow_job *j)
{
    Kiln__JobKind kind = j->job->kind;
    return !is_own_duckdb(j) &&
           (kind == KILN__JOB_KIND__JOB_BUILD || kind == KILN__JOB_KIND__JOB_DESCRIBE);
}

static enum flow_next not_connected(struct flow *f, unsigned end)
{
    struct flow_job *j = job_of(f);
    j->error = f->err;
    j->error.code = f->rc;
    j->outcome = j->stop ? KILN__OUTCOME__OUTCOME_CANCELLED : KILN__OUTCOME__OUTCOME_FAILED;
    return flow_goto(f, end);
}

/* ---- a connection of the environment ---- */
static void on_connection(struct bus_call *c)
{
    struct flow_job *j = c->data;
    int rc = c->rc;
    struct err e = c->err;
    if (rc == 0) {
        Kiln__GetConnectionRep *rep =
            bus_unpack(&kiln__get_connection_rep__descriptor, &j->flow.arena, c->reply, &e);
        rc = rep ? builder_conn_make(j->b, j->job->environment, j->job->target->connection, rep,
                                     &j->conn, &e)
                 : e.code;
    }
    flow_resume(&j->flow, rc, &e);
}

static int ask_connection(struct flow_job *j, void (*done)(struct bus_call *c))
{
    kiln__get_connection_req__init(&j->connection_req);
    j->connection_req.environment = j->job->environment;
    j->connection_req.name = j->job->target->connection;
    return job_call(j, &(struct bus_call){.kind = BUS_GET_CONNECTION,
                                          .request = &j->connection_req.base,
                                          .done = done});
}

static enum flow_next connect_environment(struct flow *f, unsigned next, unsigned end)
{
    struct flow_job *j = job_of(f);
    if (f->entered) {
        j->conn = builder_conn_find(j->b, j->job->environment, j->job->target->connection,
                                    j->job->config_epoch);
        if (!j->conn) {
            int rc = ask_connection(j, on_connection);
            if (rc == 0) {
                return FLOW_WAIT;
            }
            f->rc = rc;
        }
    }
    if (f->rc) {
        return not_connected(f, end);
    }
    j->wh = j->conn->wh;
    return flow_goto(f, next);
}

/* ---- DuckDB ---- */
static int take_attached(struct flow_job *j, const Kiln__GetConnectionRep *rep, struct err *e)
{
    const char *name = j->job->target->connection;
    auto_buf struct buf plain = {0};
    if (strcmp(rep->type, "duckdb") != 0) {
        return err_set(e, ERR_CONFLICT, "connection '%s' is of type %s now; reload the package",
                       name, rep->type);
    }
    int rc = builder_conn_unseal(j->b, name, rep, &plain, e);
    if (rc == 0) {
        j->secrets = wh_secrets(&j->flow.arena, buf_str(&plain));
        rc = wh_attached_read(&j->flow.arena, name, buf_str(&plain), &j->attached, &j->n_attached,
                              e);
    }
    return rc;
}

static void on_attached(struct bus_call *c)
{
    struct flow_job *j = c->data;
    int rc = c->rc;
    struct err e = c->err;
    if (rc == 0) {
        Kiln__GetConnectionRep *rep =
            bus_unpack(&kiln__get_connection_rep__descriptor, &j->flow.arena, c->reply, &e);
        rc = rep ? take_attached(j, rep, &e) : e.code;
    }
    flow_resume(&j->flow, rc, &e);
}

static void file_take(struct flow_job *j, const char *path, uint64_t bytes,
                      const ProtobufCBinaryData *sum)
{
    struct sandbox_file *f = &j->box_files[j->n_box_files++];
    *f = (struct sandbox_file){.path = path, .bytes = bytes};
    if (sum->len == sizeof(f->sha256.b)) {
        memcpy(f->sha256.b, sum->data, sum->len);
    }
}

static void on_package(struct bus_call *c)
{
    struct flow_job *j = c->data;
    struct err e = c->err;
    int rc = c->rc;
    Kiln__GetPackageRep *rep =
        rc ? NULL : bus_unpack(&kiln__get_package_rep__descriptor, &j->flow.arena, c->reply, &e);
    if (rep) {
        j->version = rep->version;
        j->box_files = arena_zalloc(&j->flow.arena, (rep->n_files + 1) * sizeof(*j->box_files));
        for (size_t i = 0; i < rep->n_files; i++) {
            const Kiln__PackageFile *f = rep->files[i];
            if (f->is_data) {
                file_take(j, f->path, f->bytes, &f->sha256);
            }
        }
    }
    flow_resume(&j->flow, rc ? rc : rep ? 0 : e.code, &e);
}

/* A drop or a sweep needs no files, only where generations lie; nor does any job on a connection of
 * the environment, which has none. */
static void take_files_of_job(struct flow_job *j)
{
    static const char none[] = "none";
    const Kiln__Job *m = j->job;
    j->version = is_own_duckdb(j) && m->package_version[0] ? m->package_version : none;
    j->box_files = arena_zalloc(&j->flow.arena, (m->n_files + 1) * sizeof(*j->box_files));
    for (size_t i = 0; i < m->n_files; i++) {
        file_take(j, m->files[i]->path, m->files[i]->bytes, &m->files[i]->sha256);
    }
}

static void on_box(struct sandbox_get *q)
{
    struct flow_job *j = q->data;
    j->box = q->box;
    flow_resume(&j->flow, q->rc, &q->err);
}

static void open_box(struct flow_job *j)
{
    j->connecting = JOB_OPENS;
    j->get = (struct sandbox_get){.connection = j->job->target->connection,
                                  .digest = j->job->target->warehouse,
                                  .version = j->version,
                                  .files = j->box_files,
                                  .n_files = j->n_box_files,
                                  .attached = j->attached,
                                  .n_attached = j->n_attached,
                                  .is_alone = j->n_attached > 0, /* what it reads is of now */
                                  .done = on_box,
                                  .data = j};
    sandbox_get_start(j->b->sandboxes, &j->get);
}

static void bind_inputs(struct flow_job *j)
{
    size_t n = j->job->n_inputs;
    struct wh_duckdb_binding *list = arena_zalloc(&j->flow.arena, (n + 1) * sizeof(*list));
    for (size_t i = 0; i < n; i++) {
        const Kiln__Input *in = j->job->inputs[i];
        list[i] = (struct wh_duckdb_binding){in->name, in->generation, in->build_id};
    }
    j->connecting = JOB_BINDS;
    j->wh = sandbox_wh(j->box);
    wh_duckdb_bind(job_op(j), list, n, j->job->token); /* tokens grow, and so does what a run has */
}

static int ask_package(struct flow_job *j)
{
    j->connecting = JOB_ASKS;
    kiln__get_package_req__init(&j->package_req);
    j->package_req.load_id = j->job->load_id;
    return job_call(j, &(struct bus_call){.kind = BUS_GET_PACKAGE,
                                          .request = &j->package_req.base,
                                          .done = on_package});
}

static enum flow_next connect_duckdb(struct flow *f, unsigned again, unsigned next, unsigned end)
{
    struct flow_job *j = job_of(f);
    if (!f->entered) {
        if (f->rc) {
            return not_connected(f, end);
        }
        return flow_goto(f, j->connecting == JOB_BINDS ? next : again);
    }
    if (!j->b->sandboxes) {
        f->rc = err_set(&f->err, ERR_CONF,
                        "this builder has no package store: set builder.package_store and "
                        "builder.generation_root to build on DuckDB");
        return not_connected(f, end);
    }
    if (j->box) {
        bind_inputs(j);
        return FLOW_WAIT;
    }
    if (reads_attached(j) && !j->attached) {
        j->connecting = JOB_ASKS;
        f->rc = ask_connection(j, on_attached);
        return f->rc ? not_connected(f, end) : FLOW_WAIT;
    }
    if (!j->box_files && is_own_duckdb(j) && j->job->load_id[0]) {
        f->rc = ask_package(j);
        return f->rc ? not_connected(f, end) : FLOW_WAIT;
    }
    if (!j->box_files) {
        take_files_of_job(j);
    }
    open_box(j);
    return FLOW_WAIT;
}

enum flow_next job_connect(struct flow *f, unsigned again, unsigned next, unsigned end)
{
    return is_duckdb(job_of(f)) ? connect_duckdb(f, again, next, end)
                                : connect_environment(f, next, end);
}

void job_cancel_connect(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (!is_duckdb(j) || j->connecting == JOB_ASKS) {
        bus_call_cancel(&j->call);
    } else if (j->connecting == JOB_BINDS) {
        job_cancel_op(f);
    } /* an opening ends by itself */
}
