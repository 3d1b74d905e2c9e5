/* A planner_load from what the compiler reported: planned, and kept in the compiler pool. */
#include "common/log/log.h"
#include "services/planner/asked.h"
#include "services/planner/load.h"

struct planner_load *load_make(struct planner *p, struct planner_unit *u,
                               const struct load_source *from)
{
    struct planner_load *l = xcalloc(1, sizeof(*l));
    l->refs = 1;
    l->id = from->id;
    arena_init(&l->arena);
    l->compiler_version = arena_strdup(&l->arena, from->compiler_version);
    snprintf(l->text_id, sizeof(l->text_id), "l%llu", (unsigned long long)from->id);
    connections_for_plan(p, u, &l->arena, &l->connections, &l->n_connections);
    struct err e = {0};
    l->loaded = bus_unpack(&kiln__mc__loaded__descriptor, &l->arena, from->loaded_packed, &e);
    if (!l->loaded) {
        l->loaded = arena_alloc(&l->arena, sizeof(*l->loaded));
        kiln__mc__loaded__init(l->loaded);
        log_error("load.damaged", "load=%llu error=%s", (unsigned long long)from->id,
                  log_q(err_text(&e)));
    }
    const char **paths = arena_zalloc(&l->arena, (from->n_files + 1) * sizeof(*paths));
    const char **texts = arena_zalloc(&l->arena, (from->n_files + 1) * sizeof(*texts));
    size_t n = 0;
    for (size_t i = 0; i < from->n_files; i++) {
        if (is_model_path(from->files[i].path) && from->files[i].content.p) {
            paths[n] = arena_strdup(&l->arena, from->files[i].path);
            texts[n++] = arena_slice(&l->arena, from->files[i].content);
        }
    }
    struct plan_input in = {.environment = arena_strdup(&l->arena, u->environment_name),
                            .package = arena_strdup(&l->arena, u->name),
                            .manifest = from->manifest,
                            .loaded = l->loaded,
                            .paths = paths,
                            .texts = texts,
                            .n_files = n,
                            .connections = l->connections,
                            .n_connections = l->n_connections,
                            .collision_enforce = p->set->collision_enforce,
                            .storage_mode = p->set->storage_mode,
                            .publishing = from->publishing,
                            .policy_untouched = from->policy_untouched,
                            .location = arena_strdup(&l->arena, u->location)};
    package_plan_make(&l->arena, &in, &l->plan);
    l->planned = true;
    l->duckdb =
        asked_wh_new(p, u->environment_name, u->name, &from->version, from->files, from->n_files);
    asked_wh_add_others(l->duckdb, l->connections, l->n_connections);
    return l;
}

void load_keep(struct planner *p, struct planner_load *l, const struct planner_unit *u,
               const struct store_file *files, size_t n_files, const struct store_schema *schemas,
               size_t n_schemas, bool plan)
{
    auto_buf struct buf packed = {0};
    struct arena a;
    arena_init(&a);
    load_message_pack(&a, l->text_id, u->name, files, n_files, l->connections, l->n_connections,
                      schemas, n_schemas, plan, &packed);
    compiler_keep(p->compiler, l->text_id, buf_slice(&packed));
    arena_fini(&a);
}

/* ---- a stored load, at planner start ---- */
struct restore {
    struct planner *p;
    struct planner_unit *unit;
    struct arena arena;
    struct store_op op;
    struct store_load row;
    void (*done)(void *data, int rc, const struct err *e);
    void *data;
};

static void on_restored(struct store_op *op)
{
    struct restore *s = op->data;
    struct err e = op->err;
    int rc = op->rc;
    if (rc == 0) {
        json_t *manifest = package_manifest_parse(slice_of(s->row.manifest_json), &e);
        if (!manifest) {
            rc = ERR_PACKAGE;
        } else {
            struct load_source from = {
                .id = s->row.id,
                .loaded_packed = slice_make(s->row.loaded_packed, s->row.loaded_len),
                .manifest = manifest,
                .files = s->row.files,
                .n_files = s->row.n_files,
                .compiler_version = s->row.compiler_version,
                .version = s->row.version,
            };
            struct planner_load *l = load_make(s->p, s->unit, &from);
            load_keep(s->p, l, s->unit, s->row.files, s->row.n_files, s->row.schemas,
                      s->row.n_schemas, false);
            load_unref(s->p, s->unit->load);
            s->unit->load = l;
            json_decref(manifest);
        }
    }
    s->done(s->data, rc, &e);
    arena_fini(&s->arena);
    free(s);
}

void flow_restore_start(struct planner *p, struct planner_unit *u, uint64_t load,
                        void (*done)(void *data, int rc, const struct err *e), void *data)
{
    struct restore *s = xcalloc(1, sizeof(*s));
    s->p = p;
    s->unit = u;
    s->done = done;
    s->data = data;
    arena_init(&s->arena);
    s->op = (struct store_op){.arena = &s->arena, .done = on_restored, .data = s};
    store_get_load(p->store, &s->op, load, true, &s->row);
}
