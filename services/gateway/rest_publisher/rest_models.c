/* Models and notebooks of a package; queries and compiles are handed on with the package in force.
 */
#include "services/gateway/rest_publisher/rest.h"

/* ---- the package in force ---- */
struct with_package {
    void (*then)(struct rest_call *c, struct gw_package *p);
    uint64_t min_epoch;
};

/* Kiln-Min-Epoch (protocol.md 6); false when it answered 400. */
static bool min_epoch(struct rest_call *c, uint64_t *out)
{
    struct slice text = slice_trim(http_header_get(c->r, "Kiln-Min-Epoch"));
    *out = 0;
    if (text.len && slice_to_u64(text, out)) {
        rest_fail(c, ERR_INVALID, "Kiln-Min-Epoch must be the number of a Kiln-Epoch header");
        return false;
    }
    return true;
}

static void finish_with(struct rest_call *c, const struct with_package *with, const char *why)
{
    struct gw_package *p = gw_shelf_find(c->w, c->environment, c->package);
    if (p && p->epoch >= with->min_epoch) {
        with->then(c, p);
        return;
    }
    http_answer_header(c->r, SLICE("Retry-After"), SLICE("1"));
    if (p) {
        rest_fail(c, ERR_LIMIT,
                  "package '%s' is at epoch %llu on this gateway, before Kiln-Min-Epoch %llu%s%s; "
                  "try again",
                  c->package, (unsigned long long)p->epoch, (unsigned long long)with->min_epoch,
                  why[0] ? ": " : "", why);
    } else {
        rest_fail(c, ERR_LIMIT, "package '%s' is not in force on this gateway yet: %s; try again",
                  c->package, why[0] ? why : "it is being loaded");
    }
}

static void on_planner_knows(struct rest_chain *ch)
{
    finish_with(ch->c, ch->data, ch->wait.why);
}

struct min_wait {
    struct gw_wait wait;
    struct rest_call *c;
    struct with_package *with;
};

static void on_waited(struct gw_wait *wait)
{
    struct min_wait *m = wait->data;
    finish_with(m->c, m->with, wait->why);
}

static void wait_for_epoch(struct rest_call *c, struct with_package *with)
{
    struct min_wait *m = arena_zalloc(c->a, sizeof(*m));
    m->c = c;
    m->with = with;
    m->wait = (struct gw_wait){
        .min_epoch = with->min_epoch, .wait = MS(REST_RELOAD_MS), .done = on_waited, .data = m};
    snprintf(m->wait.environment, sizeof(m->wait.environment), "%s", c->environment);
    snprintf(m->wait.package, sizeof(m->wait.package), "%s", c->package);
    gw_wait_start(c->w, &m->wait);
}

/* Not known here: the planner tells whether it does not exist, does not load, or is on its way. */
static void ask_planner(struct rest_call *c, struct with_package *with)
{
    struct rest_chain *ch = rest_chain_new(c, on_planner_knows);
    ch->data = with;
    struct rest_item *it = rest_chain_add_status(ch, c->environment, c->package);
    it->timeout = MS(REST_READ_MS);
    it->force = FORCE_EPOCH;
    it->package = c->package;
    it->min_epoch = with->min_epoch;
    it->wait = MS(REST_CHANGE_MS);
    rest_chain_start(ch);
}

void rest_with_package(struct rest_call *c, void (*then)(struct rest_call *c, struct gw_package *p))
{
    uint64_t min = 0;
    if (!min_epoch(c, &min)) {
        return;
    }
    struct gw_package *p = gw_shelf_find(c->w, c->environment, c->package);
    if (p && p->epoch >= min) {
        then(c, p);
        return;
    }
    struct with_package *with = arena_alloc(c->a, sizeof(*with));
    *with = (struct with_package){then, min};
    if (p) {
        wait_for_epoch(c, with);
    } else {
        ask_planner(c, with);
    }
}

/* ---- lists ---- */
static json_t *paths_json(const struct gw_package *p, const char *kind, const char *const *paths,
                          size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *v = json_object();
        auto_free char *resource = xasprintf("/api/v0/environments/%s/packages/%s/%s/%s",
                                             p->environment, p->name, kind, paths[i]);
        json_set_str(v, "resource", resource);
        json_set_str(v, "environmentName", p->environment);
        json_set_str(v, "packageName", p->name);
        json_set_str(v, "path", paths[i]);
        must(json_array_append_new(list, v) == 0);
    }
    return list;
}

static void on_models(struct rest_call *c, struct gw_package *p)
{
    rest_reply_json(c, 200, paths_json(p, "models", p->models, p->n_models));
}

static void on_notebooks(struct rest_call *c, struct gw_package *p)
{
    rest_reply_json(c, 200, paths_json(p, "notebooks", p->notebooks, p->n_notebooks));
}

void rest_models_list(struct rest_call *c)
{
    rest_with_package(c, on_models);
}

void rest_notebooks_list(struct rest_call *c)
{
    rest_with_package(c, on_notebooks);
}

/* ---- handed on ---- */
static bool has_path(const char *const *paths, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(paths[i], path) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_model(struct rest_call *c, const struct gw_package *p)
{
    if (has_path(p->models, p->n_models, c->path) ||
        has_path(p->notebooks, p->n_notebooks, c->path)) {
        rest_epoch_header(c);
        return true;
    }
    rest_fail(c, ERR_NOT_FOUND, "model '%s' does not exist in package '%s'", c->path, c->package);
    return false;
}

static void on_query(struct rest_call *c, struct gw_package *p)
{
    if (is_model(c, p)) {
        gw_query_handle(c->w, c->r, p, c->path);
    }
}

static void on_compile(struct rest_call *c, struct gw_package *p)
{
    if (is_model(c, p)) {
        gw_compile_handle(c->w, c->r, p, c->path);
    }
}

static void on_model(struct rest_call *c, struct gw_package *p)
{
    if (is_model(c, p)) {
        gw_model_handle(c->w, c->r, p, c->path);
    }
}

static void on_notebook(struct rest_call *c, struct gw_package *p)
{
    if (!has_path(p->notebooks, p->n_notebooks, c->path)) {
        rest_fail(c, ERR_NOT_FOUND, "notebook '%s' does not exist in package '%s'", c->path,
                  c->package);
        return;
    }
    rest_epoch_header(c);
    gw_model_handle(c->w, c->r, p, c->path);
}

void rest_model_query(struct rest_call *c)
{
    rest_with_package(c, on_query);
}

void rest_model_compile(struct rest_call *c)
{
    rest_with_package(c, on_compile);
}

void rest_model_get(struct rest_call *c)
{
    rest_with_package(c, on_model);
}

void rest_notebook_get(struct rest_call *c)
{
    rest_with_package(c, on_notebook);
}
