/* Queries through the compiler child, once per text: equal ones in flight share one compile, of
 * this worker by its cache and of all workers by its key. It belongs to nobody's request and ends
 * also when all of them have gone. */
#include "services/gateway/query/query.h"

#include "common/bus/bus.h"

struct compile {
    struct gw_worker *w;
    struct gw_package *package; /* counted: its load must stay with the compiler */
    struct sha256 key;
    struct gw_compiling compiling;
    Kiln__Mc__Query request;
    struct arena arena; /* of the request: texts of whoever asked may go before the answer comes */
    struct list link;   /* in the query half's compiles */
};

/* ---- the key ---- */
static void add_part(struct buf *out, const char *text)
{
    size_t len = text ? strlen(text) + 1 : 0; /* absent is not empty */
    buf_add(out, &len, sizeof(len));
    buf_add_str(out, text);
}

static struct sha256 key_of(const struct gw_worker *w, const struct gw_compile_ask *ask)
{
    auto_buf struct buf text = {0};
    int64_t limit = w->g->set->default_row_limit;
    buf_reserve(&text, 512);
    buf_add(&text, &ask->package->epoch, sizeof(ask->package->epoch));
    buf_add(&text, &limit, sizeof(limit));
    buf_add_char(&text, ask->ask->is_live ? 'l' : 'a');
    add_part(&text, ask->package->load_id);
    add_part(&text, ask->model);
    add_part(&text, ask->ask->text);
    add_part(&text, ask->ask->source);
    add_part(&text, ask->ask->query);
    add_part(&text, ask->ask->givens);
    for (size_t i = 0; i < ask->n_left_out && !ask->ask->is_live; i++) {
        buf_add(&text, &ask->left_out[i].binding, sizeof(ask->left_out[i].binding));
    }
    return sha256_of(text.p, text.len);
}

/* ---- the request ---- */
static Kiln__Mc__ManifestEntry *entry(struct arena *a, const char *build_id, const char *table)
{
    Kiln__Mc__ManifestEntry *m = arena_alloc(a, sizeof(*m));
    kiln__mc__manifest_entry__init(m);
    m->build_id = bus_str(build_id);
    m->table = bus_str(table);
    return m;
}

/* The compiler only tells which persisted sources a query reads while it looks into a manifest, so
 * one is offered that nothing matches: receipts name what is not baked, too. */
static const char no_build[] = "0000000000000000000000000000000000000000000000000000000000000000";

Kiln__Mc__ManifestEntry **gw_manifest_make(struct arena *a, const struct gw_view *v, bool is_live,
                                           const struct decide_left_out *left_out,
                                           size_t n_left_out, size_t *n)
{
    const struct decide_package *p = &v->facts;
    Kiln__Mc__ManifestEntry **list = arena_alloc(a, (p->n_bindings + 1) * sizeof(*list));
    *n = 0;
    for (size_t i = 0; i < p->n_bindings && !is_live; i++) {
        if (decide_is_offered(p, i, left_out, n_left_out)) {
            list[(*n)++] = entry(a, p->bindings[i].build_id, p->bindings[i].table);
        }
    }
    if (*n == 0 && p->n_planned > 0) {
        list[(*n)++] = entry(a, no_build, "\"none\"");
    }
    return list;
}

static void fill_request(const struct gw_worker *w, const struct gw_compile_ask *ask,
                         struct arena *a, Kiln__Mc__Query *q)
{
    kiln__mc__query__init(q);
    q->load_id = ask->package->load_id;
    q->model = bus_str(arena_strdup(a, ask->model));
    q->text = bus_str(arena_strdup(a, ask->ask->text));
    q->source_name = bus_str(arena_strdup(a, ask->ask->source));
    q->query_name = bus_str(arena_strdup(a, ask->ask->query));
    q->givens_json = bus_str(arena_strdup(a, ask->ask->givens));
    q->default_row_limit = (uint32_t)w->g->set->default_row_limit;
    q->manifest = gw_manifest_make(a, ask->package->view, ask->ask->is_live, ask->left_out,
                                   ask->n_left_out, &q->n_manifest);
}

/* ---- the answer ---- */
static struct slice escaped(struct arena *a, const char *json)
{
    auto_buf struct buf out = {0};
    result_escape(&out, slice_of(json));
    return slice_make(arena_slice(a, buf_slice(&out)), out.len);
}

static void take_used(struct gw_compiled *c, const Kiln__Mc__Compiled *m)
{
    c->n_hits = m->n_hits;
    c->n_used = m->n_hits + m->n_misses;
    struct decide_used *list = arena_zalloc(&c->arena, (c->n_used + 1) * sizeof(*list));
    for (size_t i = 0; i < c->n_used; i++) {
        const char *build_id = i < m->n_hits ? m->hits[i] : m->misses[i - m->n_hits];
        const char *source_id = i < m->n_persist_sources ? m->persist_sources[i] : "";
        list[i] = (struct decide_used){.build_id = arena_strdup(&c->arena, build_id),
                                       .source_id = arena_strdup(&c->arena, source_id),
                                       .is_hit = i < m->n_hits};
    }
    c->used = list;
}

static const char *statement_name(struct arena *a, const char *sql, const char *tag)
{
    auto_buf struct buf text = {0};
    add_part(&text, tag);
    buf_add_str(&text, sql);
    struct sha256 digest = sha256_of(buf_str(&text), text.len);
    char hex[33];
    hex_encode(digest.b, 16, hex);
    return arena_printf(a, "kq_%s", hex);
}

static struct gw_compiled *take_answer(const Kiln__Mc__Compiled *m, struct err *e)
{
    struct gw_compiled *c = gw_compiled_new();
    struct arena *a = &c->arena;
    c->schema = result_schema_make(a, slice_of(m->schema_json), e);
    if (!c->schema) {
        gw_compiled_unref(c);
        return NULL;
    }
    c->sql = arena_strdup(a, m->sql);
    c->connection = arena_strdup(a, m->connection);
    c->source = arena_strdup(a, m->source);
    c->head = escaped(a, m->head_json);
    c->tail = escaped(a, m->tail_json);
    c->row_limit = m->row_limit;
    c->limit_added = m->limit_added;
    c->is_flagged = m->flagged;
    take_used(c, m);
    for (size_t i = 0; i < m->n_problems; i++) {
        c->given_refused =
            c->given_refused || strcmp(m->problems[i]->code, "given_in_persisted_query") == 0;
    }
    return c;
}

/* The comment is the same for every run of a query, so that its prepared statement stays one. */
static void set_tag(struct gw_compiled *c, const struct compile *by, const Kiln__Mc__Compiled *m)
{
    struct arena *a = &c->arena;
    struct gw_properties said = {.n = 0};
    for (size_t i = 0; i < m->n_query_metadata; i++) {
        gw_properties_put(&said, a, m->query_metadata[i]->key, m->query_metadata[i]->value);
    }
    gw_properties_put_all(&said, a, &by->package->view->said);
    if (said.n > 0 && gw_is_tagged(by->w->g)) {
        const struct gw_tag_about about = {.environment = by->package->environment,
                                           .package = by->package->name,
                                           .model = by->request.model,
                                           .source = c->source};
        c->said = arena_dup(a, &said, sizeof(said));
        c->tag = gw_tag_text(a, &said, &about);
    }
    c->prepare_as = statement_name(a, c->sql, c->tag);
}

static int code_of(const char *error_code)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {{"bad_request", ERR_INVALID},  {"not_found", ERR_NOT_FOUND},
                 {"model_failed", ERR_PACKAGE}, {"compile_error", ERR_COMPILE},
                 {"too_complex", ERR_COMPILE},  {"not_loaded", ERR_COMPILER_NOT_LOADED},
                 {"internal", ERR_INTERNAL}};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (strcmp(codes[i].name, error_code) == 0) {
            return codes[i].code;
        }
    }
    return ERR_COMPILE;
}

static void add_problems(const Kiln__Mc__Frame *f, struct buf *out)
{
    for (size_t i = 0; i < f->n_problems && i < 10; i++) {
        const Kiln__Mc__Problem *p = f->problems[i];
        if (strcmp(p->severity, "error") != 0) {
            continue;
        }
        buf_addf(out, "%s%s%s%u: %s", out->len ? "\n" : "", p->path[0] ? p->path : "line ",
                 p->path[0] ? ":" : "", p->line + 1, p->message);
    }
}

void gw_compile_error(const struct compiler_call *call, struct err *e)
{
    *e = call->err;
    e->code = call->rc;
    Kiln__Mc__Frame *f = NULL;
    if (call->rc == ERR_COMPILE) {
        f = kiln__mc__frame__unpack(NULL, call->frame.len, (const uint8_t *)call->frame.p);
    }
    if (!f) {
        return;
    }
    auto_buf struct buf text = {0};
    add_problems(f, &text);
    err_set(e, code_of(f->error_code), "%s", text.len ? buf_str(&text) : f->error_text);
    kiln__mc__frame__free_unpacked(f, NULL);
}

static void on_compiled(struct compiler_call *call)
{
    struct compile *c = call->data;
    struct gw_worker *w = c->w;
    struct gw_compiled *value = NULL;
    struct err e = {0};
    if (call->rc) {
        gw_compile_error(call, &e);
    } else {
        Kiln__Mc__Compiled *m =
            kiln__mc__compiled__unpack(NULL, call->reply.len, (const uint8_t *)call->reply.p);
        value = m ? take_answer(m, &e) : NULL;
        if (value) {
            set_tag(value, c, m);
        }
        if (!m) {
            err_set(&e, ERR_INTERNAL, "the Malloy compiler's answer does not decode");
        }
        kiln__mc__compiled__free_unpacked(m, NULL);
    }
    gw_cache_made(w->cache, &c->key, value, e.code, &e);
    list_del(&c->link); /* not before: the part must outlive the waits just told */
    gw_package_unref(c->package);
    arena_fini(&c->arena);
    free(c);
    gw_part_settle(w);
}

static void compile_start(struct gw_worker *w, const struct gw_compile_ask *ask,
                          const struct sha256 *key)
{
    struct compile *c = xcalloc(1, sizeof(*c));
    c->w = w;
    c->key = *key;
    c->package = gw_package_ref(ask->package);
    arena_init(&c->arena);
    fill_request(w, ask, &c->arena, &c->request);
    list_add_tail(&w->query_half->compiles, &c->link);
    c->compiling.key = &c->key;
    c->compiling.call = (struct compiler_call){.kind = "query",
                                               .load_id = c->package->load_id,
                                               .request = &c->request.base,
                                               .timeout = MS(GW_COMPILE_MS),
                                               .done = on_compiled,
                                               .data = c};
    gw_compiling_start(w, &c->compiling);
}

enum gw_cache_found gw_compile_get(struct gw_worker *w, const struct gw_compile_ask *ask,
                                   struct gw_cache_wait *wait, struct gw_compiled **value)
{
    struct sha256 key = key_of(w, ask);
    enum gw_cache_found found = gw_cache_find(w->cache, &key, wait, value);
    metric_add(found == GW_CACHE_MISS ? w->query_half->cache_misses : w->query_half->cache_hits, 1);
    if (found == GW_CACHE_MISS) {
        compile_start(w, ask, &key);
    }
    return found;
}

void gw_compiles_cancel(struct gw_worker *w)
{
    list_for_each (it, &w->query_half->compiles) {
        gw_compiling_cancel(&list_entry(it, struct compile, link)->compiling);
    }
}
