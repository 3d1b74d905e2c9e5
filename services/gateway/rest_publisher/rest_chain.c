/* Calls to the planner in a row, each followed by the wait until what it made is in force here, so
 * that the caller's next request on this gateway sees it. */
#include "services/gateway/rest_publisher/rest.h"

enum { GONE_POLL_MS = 20, WATCH_MS = 250 };
enum { CALL, FORCE, END };

static struct rest_chain *of(struct flow *f)
{
    return container_of(f, struct rest_chain, flow);
}

struct rest_chain *rest_chain_new(struct rest_call *c, void (*done)(struct rest_chain *ch))
{
    struct rest_chain *ch = xcalloc(1, sizeof(*ch));
    ch->c = c;
    ch->done = done;
    list_init(&ch->items);
    list_init(&ch->over);
    return ch;
}

struct rest_item *rest_chain_add(struct rest_chain *ch, enum bus_kind kind,
                                 const ProtobufCMessage *request)
{
    struct rest_item *it = arena_zalloc(ch->c->a, sizeof(*it));
    it->kind = kind;
    it->request = request;
    list_add_tail(&ch->items, &it->link);
    return it;
}

struct rest_item *rest_chain_add_status(struct rest_chain *ch, const char *environment,
                                        const char *package)
{
    Kiln__GetStatusReq *q = arena_alloc(ch->c->a, sizeof(*q));
    kiln__get_status_req__init(q);
    q->environment = bus_str(environment);
    q->package = bus_str(package);
    return rest_chain_add(ch, BUS_GET_STATUS, &q->base);
}

void rest_fail_item(struct rest_call *c, const struct rest_item *it)
{
    bool is_away = it->rc == ERR_BUS_TIMEOUT;
    unsigned again_ms = it->retry_after_ms || !is_away ? it->retry_after_ms : REST_AGAIN_MS;
    if (again_ms && err_code_http(it->rc) == 503) {
        char text[16];
        snprintf(text, sizeof(text), "%u", (again_ms + 999) / 1000);
        http_answer_header(c->r, SLICE("Retry-After"), slice_of(text));
    }
    if (is_away) {
        rest_fail(
            c, it->rc,
            "the planner does not answer: %s; packages in force are served on, try again when "
            "the planner is back",
            it->text);
        return;
    }
    rest_fail(c, it->rc, "%s", it->text);
}

/* ---- CALL ---- */
static int unpack(struct rest_call *c, struct rest_item *it, struct slice packed, struct err *e)
{
    Kiln__ListRunsRep *runs;
    Kiln__PublishRep *published;
    Kiln__RunRep *run;
    Kiln__JsonRep *json;
    switch (it->kind) {
    case BUS_LIST_RUNS:
        runs = bus_unpack(&kiln__list_runs_rep__descriptor, c->a, packed, e);
        it->list = runs ? runs->run_json : NULL;
        it->n_list = runs ? runs->n_run_json : 0;
        return runs ? 0 : e->code;
    case BUS_PUBLISH:
        published = bus_unpack(&kiln__publish_rep__descriptor, c->a, packed, e);
        it->json = published ? published->package_json : NULL;
        it->epoch = published ? published->epoch : 0;
        return published ? 0 : e->code;
    case BUS_CREATE_RUN:
    case BUS_STOP_RUN:
    case BUS_GET_RUN:
        run = bus_unpack(&kiln__run_rep__descriptor, c->a, packed, e);
        it->json = run ? run->run_json : NULL;
        return run ? 0 : e->code;
    default:
        json = bus_unpack(&kiln__json_rep__descriptor, c->a, packed, e);
        it->json = json ? json->json : NULL;
        it->epoch = json ? json->epoch : 0;
        return json ? 0 : e->code;
    }
}

static void on_answer(struct bus_call *call)
{
    struct rest_chain *ch = call->data;
    struct rest_item *it = ch->item;
    it->rc = call->rc ? call->rc : unpack(ch->c, it, call->reply, &call->err);
    if (it->rc) {
        it->text = arena_strdup(ch->c->a, err_text(&call->err));
        it->retry_after_ms = call->retry_after_ms;
    }
    flow_resume(&ch->flow, 0, NULL);
}

static void cancel_call(struct flow *f)
{
    gw_call_cancel(&of(f)->bus);
}

static void start_call(struct rest_chain *ch)
{
    struct rest_item *it = ch->item;
    ch->bus.call = (struct bus_call){.kind = it->kind,
                                     .request = it->request,
                                     .timeout = it->timeout,
                                     .unconnected = MS(REST_AWAY_MS),
                                     .done = on_answer,
                                     .data = ch};
    struct slice key = http_header_get(ch->c->r, "Idempotency-Key");
    if (key.len) {
        char place[16] = "";
        if (ch->c->n_calls > 0) {
            snprintf(place, sizeof(place), "%u", ch->c->n_calls);
        }
        rest_request_id(key, it->part ? it->part : place, ch->bus.call.request_id);
    }
    memcpy(ch->bus.call.trace_id, rest_trace(ch->c), sizeof(ch->bus.call.trace_id));
    ch->c->n_calls++;
    gw_call_start(ch->c->w, &ch->bus);
}

static enum flow_next step_call(struct flow *f)
{
    struct rest_chain *ch = of(f);
    if (f->entered) {
        ch->item = list_entry(list_take_head(&ch->items), struct rest_item, link);
        start_call(ch);
        return FLOW_WAIT;
    }
    struct rest_item *it = ch->item;
    list_add_tail(&ch->over, &it->link);
    if (f->cancel_asked || (it->rc && !it->may_fail)) {
        return flow_goto(f, END);
    }
    if (ch->after && (it->rc == 0 || it->may_fail)) {
        ch->after(ch, it);
    }
    if (it->rc == 0 && it->force != FORCE_NONE) {
        return flow_goto(f, FORCE);
    }
    return flow_goto(f, list_empty(&ch->items) ? END : CALL);
}

/* ---- FORCE ---- */
static void on_wait_over(struct gw_wait *w)
{
    struct rest_chain *ch = w->data;
    flow_resume(&ch->flow, 0, NULL);
}

static bool is_in_force(const struct rest_chain *ch)
{
    return ch->item->force == FORCE_GONE ? ch->wait.is_gone : ch->wait.rc == 0;
}

/* Nobody tells when a package has gone: look, often and not for long. */
static void start_wait(struct rest_chain *ch)
{
    struct rest_item *it = ch->item;
    uint64_t epoch = it->epoch > it->min_epoch ? it->epoch : it->min_epoch;
    struct ms left = ms_sub(ch->wait_until, loop_now(ch->c->w->loop));
    bool gone = it->force == FORCE_GONE;
    ch->wait = (struct gw_wait){.min_epoch = gone ? UINT64_MAX : epoch,
                                .wait = gone ? ms_min(left, MS(GONE_POLL_MS)) : left,
                                .done = on_wait_over,
                                .data = ch};
    snprintf(ch->wait.environment, sizeof(ch->wait.environment), "%s", ch->c->environment);
    snprintf(ch->wait.package, sizeof(ch->wait.package), "%s", it->package);
    gw_wait_start(ch->c->w, &ch->wait);
}

static void cancel_wait(struct flow *f)
{
    gw_wait_cancel(&of(f)->wait);
}

static enum flow_next step_force(struct flow *f)
{
    struct rest_chain *ch = of(f);
    struct rest_item *it = ch->item;
    struct ms now = loop_now(ch->c->w->loop);
    if (f->entered) {
        ch->wait_until = ms_add(now, it->wait);
        start_wait(ch);
        return FLOW_WAIT;
    }
    it->in_force = is_in_force(ch);
    if (f->cancel_asked) {
        return flow_goto(f, END);
    }
    if (it->force == FORCE_GONE && !it->in_force && ms_before(now, ch->wait_until)) {
        start_wait(ch);
        return FLOW_WAIT;
    }
    return flow_goto(f, list_empty(&ch->items) ? END : CALL);
}

/* ---- END ---- */
static enum flow_next step_end(struct flow *f)
{
    (void)f;
    return FLOW_END;
}

static void on_end(struct flow *f)
{
    struct rest_chain *ch = of(f);
    struct rest_item *it = ch->item;
    loop_timer_stop(&ch->watch);
    if (f->cancel_asked) {
        rest_fail(ch->c, ERR_SHUTDOWN, "this gateway ended before the planner answered");
    } else if (it->rc == 0 || it->may_fail) {
        ch->done(ch);
    } else if (ch->failed) {
        ch->failed(ch, it);
    } else {
        rest_fail_item(ch->c, it);
    }
    free(ch);
}

static const struct flow_step steps[] = {
    [CALL] = {"CALL", step_call, FLOW_TO(CALL) | FLOW_TO(FORCE) | FLOW_TO(END), 0, cancel_call,
              "the planner is asked", false},
    [FORCE] = {"FORCE", step_force, FLOW_TO(CALL) | FLOW_TO(END), 0, cancel_wait,
               "what it made comes into force here", false},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
static const struct flow_type rest_chain_type = {"rest", steps, ARRAY_LEN(steps)};

/* What a client began goes on without it, but does not hold up the gateway's end. */
static void on_watch(struct loop_timer *t)
{
    struct rest_chain *ch = t->data;
    if (atomic_load(&ch->c->w->g->draining)) {
        flow_cancel(&ch->flow);
    } else {
        loop_timer_start(t, MS(WATCH_MS));
    }
}

static void on_gone(struct http_req *r, void *data)
{
    struct rest_chain *ch = data;
    (void)r;
    on_watch(&ch->watch);
}

void rest_chain_start(struct rest_chain *ch)
{
    loop_timer_init(&ch->watch, ch->c->w->loop, on_watch, ch);
    http_on_gone(ch->c->r, on_gone, ch);
    snprintf(ch->flow.id, sizeof(ch->flow.id), "%.39s", ch->c->package ? ch->c->package : "");
    ch->flow.on_end = on_end;
    flow_start(&ch->flow, &rest_chain_type, loop_flows(ch->c->w->loop), NULL);
}
