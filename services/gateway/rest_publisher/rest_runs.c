/* Materializations: create, plan, list, get, stop, delete
 * (spec/malloy-persistence.md 3.2-3.4, 3.9). Records are the planner's. */
#include "services/gateway/rest_publisher/rest.h"

enum { RUN_ID_LEN = 23, PAGE = 100, ENVIRONMENT_CAP = 500 };

/* ---- create and plan ---- */
static void on_created(struct rest_chain *ch)
{
    struct rest_call *c = ch->c;
    json_t *run = json_parse(slice_of(ch->item->json), NULL);
    const char *location =
        arena_printf(c->a, "%.*s/%s", SLICE_FMT(http_path(c->r)), json_str(run, "id", ""));
    json_decref(run);
    http_answer_header(c->r, SLICE("Location"), slice_of(location));
    rest_reply(c, 201, slice_of(ch->item->json));
}

static void on_answered(struct rest_chain *ch)
{
    rest_reply(ch->c, 200, slice_of(ch->item->json));
}

static void start_create(struct rest_call *c, const struct rest_run *body)
{
    Kiln__CreateRunReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__create_run_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->force_refresh = body->force_refresh;
    q->reseed = body->reseed;
    q->take_over = body->take_over;
    q->has_source_names = body->has_names;
    q->n_source_names = body->n_names;
    q->source_names = rest_texts(c->a, body->names, body->n_names);
    q->trigger = bus_str("ON_DEMAND");
    q->run_context_json = bus_str(body->run_context);
    struct rest_chain *ch = rest_chain_new(c, on_created);
    rest_chain_add(ch, BUS_CREATE_RUN, &q->base);
    rest_chain_start(ch);
}

static void start_plan(struct rest_call *c, const struct rest_run *body)
{
    Kiln__PlanPreviewReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__plan_preview_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->force_refresh = body->force_refresh;
    q->has_source_names = body->has_names;
    q->n_source_names = body->n_names;
    q->source_names = rest_texts(c->a, body->names, body->n_names);
    struct rest_chain *ch = rest_chain_new(c, on_answered);
    rest_chain_add(ch, BUS_PLAN_PREVIEW, &q->base);
    rest_chain_start(ch);
}

void rest_run_create(struct rest_call *c)
{
    struct rest_run body;
    struct err e = {0};
    const char *action = rest_query(c, "action");
    bool plans = action && strcmp(action, "plan") == 0;
    if (action && !plans) {
        rest_fail(c, ERR_INVALID,
                  "action '%s' is not possible on materializations: leave it out to create a run, "
                  "or say plan to see what one would do",
                  action);
        return;
    }
    if (!rest_take_body(c, true)) {
        return;
    }
    if (rest_body_run(c->a, c->body, &body, &e)) {
        rest_fail_err(c, &e);
    } else if (plans) {
        start_plan(c, &body);
    } else {
        start_create(c, &body);
    }
}

char **rest_texts(struct arena *a, const char *const *texts, size_t n)
{
    char **list = arena_zalloc(a, (n + 1) * sizeof(*list));
    for (size_t i = 0; i < n; i++) {
        list[i] = bus_str(texts[i]);
    }
    return list;
}

/* ---- lists ---- */
static void add_page(struct rest_chain *ch, uint32_t limit, uint32_t offset)
{
    struct rest_call *c = ch->c;
    Kiln__ListRunsReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__list_runs_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->limit = limit;
    q->offset = offset;
    q->has_limit = true;
    rest_chain_add(ch, BUS_LIST_RUNS, &q->base);
}

struct paging {
    uint32_t left, offset; /* of the pages not asked for yet */
};

/* A whole history may be larger than a bus message: it is read page by page. */
static void add_next_page(struct rest_chain *ch, struct rest_item *it)
{
    struct paging *p = ch->data;
    if (it->n_list == PAGE && p->left > 0) {
        uint32_t n = p->left < PAGE ? p->left : PAGE;
        add_page(ch, n, p->offset);
        p->left -= n;
        p->offset = p->offset > UINT32_MAX - n ? UINT32_MAX : p->offset + n;
    }
}

static void on_listed(struct rest_chain *ch)
{
    auto_buf struct buf text = {0};
    buf_add_char(&text, '[');
    list_for_each (link, &ch->over) {
        const struct rest_item *it = list_entry(link, struct rest_item, link);
        for (size_t i = 0; i < it->n_list; i++) {
            buf_addf(&text, "%s%s", text.len > 1 ? "," : "", it->list[i]);
        }
    }
    buf_add_char(&text, ']');
    rest_reply(ch->c, 200, buf_slice(&text));
}

static void start_list(struct rest_call *c, uint32_t cap)
{
    const char *limit = rest_query(c, "limit"), *offset = rest_query(c, "offset");
    struct paging *p = arena_zalloc(c->a, sizeof(*p));
    struct err e = {0};
    p->left = cap;
    if ((limit && rest_paging_number("limit", limit, &p->left, &e)) ||
        (offset && rest_paging_number("offset", offset, &p->offset, &e))) {
        rest_fail_err(c, &e);
        return;
    }
    struct rest_chain *ch = rest_chain_new(c, on_listed);
    ch->data = p;
    ch->after = add_next_page;
    uint32_t n = p->left < PAGE ? p->left : PAGE;
    add_page(ch, n, p->offset);
    p->left -= n;
    p->offset = p->offset > UINT32_MAX - n ? UINT32_MAX : p->offset + n;
    rest_chain_start(ch);
}

void rest_runs_of_package(struct rest_call *c)
{
    start_list(c, UINT32_MAX);
}

void rest_runs_of_environment(struct rest_call *c)
{
    start_list(c, ENVIRONMENT_CAP);
}

/* ---- one run ---- */
/* Ids have one length; a longer text must not be taken for the run whose id it begins with. */
static bool has_run_id(struct rest_call *c)
{
    if (strlen(c->id) == RUN_ID_LEN) {
        return true;
    }
    rest_fail(c, ERR_NOT_FOUND, "materialization '%s' does not exist", c->id);
    return false;
}

void rest_run_get(struct rest_call *c)
{
    if (!has_run_id(c)) {
        return;
    }
    Kiln__GetRunReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__get_run_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->id = bus_str(c->id);
    struct rest_chain *ch = rest_chain_new(c, on_answered);
    rest_chain_add(ch, BUS_GET_RUN, &q->base);
    rest_chain_start(ch);
}

void rest_run_stop(struct rest_call *c)
{
    const char *action = rest_query(c, "action");
    if (!action || strcmp(action, "stop") != 0) {
        rest_fail(c, ERR_INVALID,
                  "action '%s' is not possible on a materialization: use ?action=stop",
                  action ? action : "");
        return;
    }
    if (!has_run_id(c)) {
        return;
    }
    Kiln__StopRunReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__stop_run_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->id = bus_str(c->id);
    struct rest_chain *ch = rest_chain_new(c, on_answered);
    rest_chain_add(ch, BUS_STOP_RUN, &q->base);
    rest_chain_start(ch);
}

static void on_deleted(struct rest_chain *ch)
{
    rest_reply_empty(ch->c, 204);
}

void rest_run_delete(struct rest_call *c)
{
    if (!has_run_id(c)) {
        return;
    }
    Kiln__DeleteRunReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__delete_run_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->id = bus_str(c->id);
    q->drop_tables = rest_query_is(c, "dropTables", "true");
    struct rest_chain *ch = rest_chain_new(c, on_deleted);
    struct rest_item *it = rest_chain_add(ch, BUS_DELETE_RUN, &q->base);
    it->force = FORCE_EPOCH; /* its bindings may have gone with it */
    it->package = c->package;
    it->wait = MS(REST_RELOAD_MS);
    rest_chain_start(ch);
}
