/* Flow: the newest set of a unit comes into force. DISK (is the load there?), PACKAGE and FILES
 * from the planner, COMPILE (one child warm before traffic), KEEP_LOAD and KEEP_SET on the disk,
 * ROOT (are results by binding where they should be?), APPLY between two queries, END. A load that
 * is in force already skips to KEEP_SET (protocol.md 6, 14). */
#include "common/generation/generation.h"
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"

enum { DISK, PACKAGE, FILES, COMPILE, KEEP_LOAD, KEEP_SET, ROOT, APPLY, END };
#define COMPILE_MS 30000

struct flow_bind {
    struct flow flow;
    struct gateway *g;
    uint64_t unit;
    uint64_t epoch;
    Kiln__BindingSet *set; /* in the flow's arena */
    struct slice packed;   /* the same, packed */
    struct gw_load *load;
    bool fresh; /* came from the planner: goes to the disk */
    struct offload_job job;
    char *path;
    struct bus_call call;
    Kiln__GetPackageReq package_req;
    Kiln__GetFileReq file_req;
    size_t at;
    struct buf file;
    struct compiler_call compile;
    struct uuid root; /* that the set's results stand in */
    struct err root_err;
};

static struct flow_bind *of(struct flow *f)
{
    return container_of(f, struct flow_bind, flow);
}

static struct gw_unit *unit_of(struct flow_bind *f)
{
    return f->g->binder ? map_get_u64(&f->g->binder->units, f->unit) : NULL;
}

static void read_offload(struct offload_job *job)
{
    struct flow_bind *f = job->data;
    f->load = binder_load_read_offload(f->g, f->path, f->set->load_id);
}

static void on_read(struct offload_job *job)
{
    struct flow_bind *f = job->data;
    flow_resume(&f->flow, 0, NULL);
}

static enum flow_next step_disk(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    struct gw_unit *u = unit_of(f);
    if (!flow->entered) {
        return flow_goto(flow, f->load ? COMPILE : PACKAGE);
    }
    f->epoch = u->known;
    f->packed = slice_make(arena_dup(&flow->arena, u->packed.p, u->packed.len), u->packed.len);
    f->set = bus_unpack(&kiln__binding_set__descriptor, &flow->arena, f->packed, NULL);
    must(f->set != NULL);
    if (u->in_force && strcmp(u->in_force->load_id, f->set->load_id) == 0) {
        f->load = gw_load_ref(u->in_force->load);
        return flow_goto(flow, KEEP_SET);
    }
    f->path = binder_load_path(&flow->arena, f->g, f->set->load_id);
    f->job = (struct offload_job){.work_offload = read_offload, .done = on_read, .data = f};
    loop_offload(f->g->loop, &f->job);
    return FLOW_WAIT;
}

/* ---- from the planner ---- */
static void on_package(struct bus_call *c)
{
    struct flow_bind *f = c->data;
    struct err e = c->err;
    int rc = c->rc;
    if (rc == 0) {
        f->load = gw_load_make(f->g, c->reply, f->set->load_id);
        f->fresh = true;
        rc = f->load ? 0 : err_set(&e, ERR_BUS_FRAME, "the planner's package does not decode");
    }
    flow_resume(&f->flow, rc, &e);
}

static void cancel_call(struct flow *flow)
{
    bus_call_cancel(&of(flow)->call);
}

static enum flow_next step_package(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    if (flow->entered) {
        kiln__get_package_req__init(&f->package_req);
        f->package_req.load_id = f->set->load_id;
        f->call = (struct bus_call){.kind = BUS_GET_PACKAGE,
                                    .request = &f->package_req.base,
                                    .done = on_package,
                                    .data = f};
        int rc = bus_call_start(f->g->bus, &f->call);
        return rc ? flow_fail(flow, END, rc, "the bus takes no more calls") : FLOW_WAIT;
    }
    if (flow->rc) {
        return flow_fail(flow, END, flow->rc, "load %s: %s", f->set->load_id, err_text(&flow->err));
    }
    return flow_goto(flow, FILES);
}

static void on_file(struct bus_call *c)
{
    struct flow_bind *f = c->data;
    struct err e = c->err;
    int rc = c->rc;
    if (rc == 0) {
        struct arena a;
        arena_init(&a);
        Kiln__GetFileRep *rep = bus_unpack(&kiln__get_file_rep__descriptor, &a, c->reply, &e);
        rc = rep ? 0 : e.code;
        if (rep) {
            buf_add(&f->file, rep->data.data, rep->data.len);
            rc = rep->data.len == 0 && f->file.len < rep->total
                     ? err_set(&e, ERR_BUS_FRAME, "a piece of a file is empty")
                     : 0;
        }
        arena_fini(&a);
    }
    flow_resume(&f->flow, rc, &e);
}

static enum flow_next next_file(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    const Kiln__PackageFile *file = f->load->rep->files[f->at];
    if (f->file.len < file->bytes) {
        return flow_goto(flow, FILES);
    }
    struct sha256 h = sha256_of(f->file.p, f->file.len);
    if (file->sha256.len != 32 || memcmp(h.b, file->sha256.data, 32) != 0) {
        return flow_fail(flow, END, ERR_PACKAGE, "file %s of load %s arrived damaged", file->path,
                         f->set->load_id);
    }
    f->load->contents[f->at] =
        slice_make(arena_slice(&f->load->arena, buf_slice(&f->file)), f->file.len);
    buf_clear(&f->file);
    f->at++;
    return flow_goto(flow, FILES);
}

static enum flow_next step_files(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    if (!flow->entered) {
        return flow->rc ? flow_fail(flow, END, flow->rc, "load %s: %s", f->set->load_id,
                                    err_text(&flow->err))
                        : next_file(flow);
    }
    const Kiln__GetPackageRep *rep = f->load->rep;
    while (f->at < rep->n_files &&
           (!gw_is_model(rep->files[f->at]->path) || rep->files[f->at]->bytes == 0)) {
        if (gw_is_model(rep->files[f->at]->path)) {
            f->load->contents[f->at] = SLICE("");
        }
        f->at++;
    }
    if (f->at >= rep->n_files) {
        return flow_goto(flow, COMPILE);
    }
    kiln__get_file_req__init(&f->file_req);
    f->file_req.sha256 = rep->files[f->at]->sha256;
    f->file_req.offset = f->file.len;
    f->call = (struct bus_call){
        .kind = BUS_GET_FILE, .request = &f->file_req.base, .done = on_file, .data = f};
    int rc = bus_call_start(f->g->bus, &f->call);
    return rc ? flow_fail(flow, END, rc, "the bus takes no more calls") : FLOW_WAIT;
}

/* ---- COMPILE ---- */
static void on_compiled(struct compiler_call *c)
{
    struct flow_bind *f = c->data;
    struct err e = c->err;
    int rc = c->rc;
    if (rc == 0 && strcmp(c->reply_kind, "loaded") != 0) {
        rc = err_set(
            &e, ERR_PACKAGE,
            "the stored schemas do not cover what the models read; publish the package again");
    }
    flow_resume(&f->flow, rc, &e);
}

static void cancel_compile(struct flow *flow)
{
    compiler_call_cancel(&of(flow)->compile);
}

static enum flow_next step_compile(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    if (!flow->entered) {
        return flow->rc ? flow_fail(flow, END, flow->rc, "load %s: %s", f->set->load_id,
                                    err_text(&flow->err))
                        : flow_goto(flow, KEEP_LOAD);
    }
    gw_load_finish(f->load);
    auto_buf struct buf packed = {0};
    gw_load_message(f->load, &flow->arena, &packed);
    compiler_keep(f->g->compiler, f->load->load_id, buf_slice(&packed));
    Kiln__Mc__Load *m =
        bus_unpack(&kiln__mc__load__descriptor, &flow->arena, buf_slice(&packed), NULL);
    f->compile = (struct compiler_call){.kind = "load",
                                        .request = &m->base,
                                        .timeout = MS(COMPILE_MS),
                                        .done = on_compiled,
                                        .data = f};
    compiler_call_start(f->g->compiler, &f->compile);
    return FLOW_WAIT;
}

/* ---- KEEP: on the disk before it is in force, so that a gateway that dies never comes back with
 * less than it has served ---- */
static void on_kept(void *data)
{
    struct flow_bind *f = data;
    flow_resume(&f->flow, 0, NULL);
}

static enum flow_next step_keep_load(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    if (flow->entered && f->fresh) {
        binder_disk_load(f->load, on_kept, f);
        return FLOW_WAIT;
    }
    return flow_goto(flow, KEEP_SET);
}

static enum flow_next step_keep_set(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    if (flow->entered && unit_of(f)) {
        binder_disk_set(f->g->binder, f->unit, f->epoch, f->packed, on_kept, f);
        return FLOW_WAIT;
    }
    return flow_goto(flow, ROOT);
}

/* ---- ROOT ---- */
static void root_offload(struct offload_job *job)
{
    struct flow_bind *f = job->data;
    (void)!generation_root_is(f->g->set->generation_root, bus_installation(f->g->bus), &f->root,
                              &f->root_err);
}

/* True: some result of the set stands in a root. */
static bool has_root(struct flow_bind *f)
{
    for (size_t i = 0; i < f->set->n_bindings; i++) {
        const Kiln__Binding *b = f->set->bindings[i];
        if (b->class_ == KILN__WH_CLASS__WH_BY_BINDING) {
            if (b->root_id.len == sizeof(f->root.b)) {
                memcpy(f->root.b, b->root_id.data, sizeof(f->root.b));
            }
            return true;
        }
    }
    return false;
}

static enum flow_next step_root(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    if (!flow->entered || !has_root(f)) {
        return flow_goto(flow, APPLY);
    }
    if (!f->g->set->generation_root[0]) {
        (void)err_set(&f->root_err, ERR_CONF,
                      "this gateway has no generation root: set gateway.generation_root to the "
                      "directory that the builders write to");
        return flow_goto(flow, APPLY);
    }
    f->job = (struct offload_job){.work_offload = root_offload, .done = on_read, .data = f};
    loop_offload(f->g->loop, &f->job);
    return FLOW_WAIT;
}

static enum flow_next step_apply(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    struct gw_unit *u = unit_of(f);
    if (u) {
        binder_apply(u, gw_package_make(f->load, f->set));
        if (f->root_err.code) {
            binder_lacks_root(u, f->epoch, err_text(&f->root_err));
        }
    }
    return flow_goto(flow, END);
}

static enum flow_next step_end(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    gw_load_unref(f->load);
    buf_fini(&f->file);
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [DISK] = {"DISK", step_disk, FLOW_TO(PACKAGE) | FLOW_TO(COMPILE) | FLOW_TO(KEEP_SET), 0, NULL,
              "a load kept from before", true},
    [PACKAGE] = {"PACKAGE", step_package, FLOW_TO(FILES) | FLOW_TO(END), 0, cancel_call,
                 "files, schemas and plan of the load", false},
    [FILES] = {"FILES", step_files, FLOW_TO(FILES) | FLOW_TO(COMPILE) | FLOW_TO(END), 0,
               cancel_call, "model files by content hash", false},
    [COMPILE] = {"COMPILE", step_compile, FLOW_TO(KEEP_LOAD) | FLOW_TO(END), 0, cancel_compile,
                 "a child is warm before traffic", false},
    [KEEP_LOAD] = {"KEEP_LOAD", step_keep_load, FLOW_TO(KEEP_SET), 0, NULL,
                   "the load goes to the disk", true},
    [KEEP_SET] = {"KEEP_SET", step_keep_set, FLOW_TO(ROOT), 0, NULL,
                  "the set goes to the disk, then into force", true},
    [ROOT] = {"ROOT", step_root, FLOW_TO(APPLY), 0, NULL,
              "is the generation root the one of its results", true},
    [APPLY] = {"APPLY", step_apply, FLOW_TO(END), 0, NULL, "swapped between two queries", false},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_bind_type = {"bind", steps, ARRAY_LEN(steps)};

static bool tries_again(int rc)
{
    return err_code_class(rc) == ERR_CLASS_TRANSIENT;
}

static void on_end(struct flow *flow)
{
    struct flow_bind *f = of(flow);
    struct gw_unit *u = unit_of(f);
    struct gw_binder *b = f->g->binder;
    if (u && u->loading == flow) {
        u->loading = NULL;
        if (b->closing) {
            binder_settle(b);
        } else if (flow->final_rc && tries_again(flow->final_rc)) {
            log_warn("binder.retry", "unit=%llu error=%s", (unsigned long long)f->unit,
                     log_q(err_text(&flow->err)));
        } else if (flow->final_rc) {
            binder_failed(u, f->epoch, flow->final_rc, err_text(&flow->err));
        }
        if (flow->final_rc == 0) {
            binder_advance(u); /* a newer set may have come meanwhile */
        }
    }
    free(f);
}

struct flow *binder_load_start(struct gw_unit *u)
{
    struct flow_bind *f = xcalloc(1, sizeof(*f));
    f->g = u->g;
    f->unit = u->id;
    snprintf(f->flow.id, sizeof(f->flow.id), "%llu", (unsigned long long)u->id);
    f->flow.on_end = on_end;
    flow_start(&f->flow, &flow_bind_type, loop_flows(u->g->loop), NULL);
    return &f->flow;
}
