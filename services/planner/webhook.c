/* Publish webhooks over HTTP: POST /hooks/publish and GET /hooks/events/{id} (decisions 3.6, 7.5).
 */
#include "common/log/log.h"
#include "services/planner/package/package.h"
#include "services/planner/planner.h"

struct hook {
    struct planner *p;
    struct http_req *r;
    struct store_op op;
    struct store_event event;
};

static void reply_event(struct http_req *r, int status, const struct store_event *e)
{
    json_t *v = json_object();
    json_set_str(v, "id", e->public_id);
    json_set_str(v, "state", e->state);
    json_set_str(v, "environment", e->environment);
    json_set_str(v, "package", e->name);
    json_set_str(v, "run", e->run);
    json_set_str(v, "error", e->error);
    auto_free char *text = json_text(v);
    json_decref(v);
    http_reply_json(r, status, slice_of(text));
}

static void on_inserted(struct store_op *op)
{
    struct hook *h = op->data;
    if (op->rc && op->rc != ERR_CONFLICT) {
        http_reply_error(h->r, op->rc, err_text(&op->err));
    } else {
        /* A repeated delivery gets the first one's event. */
        reply_event(h->r, 202, &h->event);
        loop_defer(h->p->loop, &h->p->event_task);
    }
    free(h);
}

static int authenticate(struct planner *p, struct http_req *r, struct slice *id, struct err *e)
{
    struct webhook_headers h = {.id = http_header_get(r, "webhook-id"),
                                .timestamp = http_header_get(r, "webhook-timestamp"),
                                .signature = http_header_get(r, "webhook-signature"),
                                .github_signature = http_header_get(r, "x-hub-signature-256"),
                                .github_delivery = http_header_get(r, "x-github-delivery"),
                                .github_event = http_header_get(r, "x-github-event")};
    if (p->set->webhook_secret[0]) {
        return webhook_verify(p->set->webhook_secret, &h, http_body(r), loop_unix_us() / 1000000,
                              id, e);
    }
    if (!http_is_local(r)) {
        return err_set(e, ERR_TOKEN,
                       "without KILN_WEBHOOK_SECRET webhooks are taken from this machine only; set "
                       "the secret here and at the sender");
    }
    *id = h.id.len ? h.id : h.github_delivery;
    return 0;
}

/* Environment, package, location and build from body and URL. */
static int read_hook(struct http_req *r, bool is_archive, bool is_github, json_t **body,
                     struct err *e)
{
    struct arena *a = http_arena(r);
    json_t *v = json_object();
    if (!is_archive) {
        json_t *sent = json_parse(http_body(r), e);
        if (!json_is_object(sent)) {
            json_decref(sent);
            json_decref(v);
            return err_set(e, ERR_INVALID,
                           "the body is neither a JSON object nor a zip or tar.gz archive");
        }
        static const char *const keys[] = {"environment", "package", "location", "build"};
        for (size_t i = 0; !is_github && i < ARRAY_LEN(keys); i++) {
            json_t *m = json_object_get(sent, keys[i]);
            if (m) {
                json_object_set(v, keys[i], m);
            }
        }
        json_decref(sent);
    }
    char *value = NULL;
    if (http_query_get(r, "environment", a, &value)) {
        json_set_str(v, "environment", value);
    }
    if (http_query_get(r, "package", a, &value)) {
        json_set_str(v, "package", value);
    }
    if (http_query_get(r, "build", a, &value)) {
        json_set_flag(v, "build", strcmp(value, "false") != 0 && strcmp(value, "0") != 0);
    }
    if (!json_str(v, "environment", NULL) || !json_str(v, "package", NULL)) {
        json_decref(v);
        return err_set(e, ERR_INVALID,
                       "environment and package are missing; put them into the body or the URL "
                       "(?environment=..&package=..)");
    }
    *body = v;
    return 0;
}

static bool looks_like_archive(struct slice body)
{
    return slice_starts(body, SLICE("PK\x03\x04")) || slice_starts(body, SLICE("\x1f\x8b"));
}

static void take_publish(struct planner *p, struct http_req *r)
{
    struct err e = {0};
    struct slice id = SLICE_NONE;
    int rc = authenticate(p, r, &id, &e);
    if (rc) {
        log_warn("webhook.refused", "error=%s", log_q(err_text(&e)));
        http_reply_error(r, rc, err_text(&e));
        return;
    }
    struct slice github = http_header_get(r, "x-github-event");
    if (slice_is(github, "ping")) {
        http_reply_json(r, 200, SLICE("{\"ok\":true}"));
        return;
    }
    if (github.len && !slice_is(github, "push") && !slice_is(github, "release")) {
        http_reply_json(r, 202, SLICE("{\"ignored\":true}"));
        return;
    }
    if (!p->open) {
        http_reply_error(r, ERR_NOT_LEADER, "this planner is not serving yet; deliver again");
        return;
    }
    bool is_archive = looks_like_archive(http_body(r));
    json_t *body = NULL;
    if (read_hook(r, is_archive, github.len > 0, &body, &e)) {
        http_reply_error(r, e.code, err_text(&e));
        return;
    }
    struct arena *a = http_arena(r);
    struct hook *h = xcalloc(1, sizeof(*h));
    h->p = p;
    h->r = r;
    struct coord_now now = planner_now(p);
    char *public_id = arena_alloc(a, ULID_TEXT);
    ulid_format((uint64_t)(now.unix_us / 1000), now.random, public_id);
    auto_free char *text = json_text(body);
    h->event =
        (struct store_event){.public_id = public_id,
                             .kind = "publish",
                             .delivery_id = id.len ? arena_slice(a, id) : NULL,
                             .environment = arena_strdup(a, json_str(body, "environment", "")),
                             .name = arena_strdup(a, json_str(body, "package", "")),
                             .body_json = arena_strdup(a, text),
                             .state = "received",
                             .archive = is_archive ? http_body(r) : SLICE_NONE};
    json_decref(body);
    if (!http_traceparent(http_header_get(r, "traceparent"), h->event.trace.b)) {
        h->event.trace = uuid_random();
    }
    h->op = (struct store_op){.arena = a, .done = on_inserted, .data = h};
    store_event_insert(p->store, &h->op, &h->event);
}

static void on_event_read(struct store_op *op)
{
    struct hook *h = op->data;
    if (op->rc) {
        http_reply_error(h->r, op->rc,
                         op->rc == ERR_NOT_FOUND
                             ? "this event does not exist (deliveries are kept for 7 days)"
                             : err_text(&op->err));
    } else {
        reply_event(h->r, 200, &h->event);
    }
    free(h);
}

void webhook_handle(void *data, struct http_req *r)
{
    struct planner *p = data;
    struct slice path = http_path(r);
    if (slice_is(path, "/hooks/publish")) {
        if (!slice_is(http_method(r), "POST")) {
            http_reply_error(r, ERR_INVALID, "publish webhooks are sent with POST");
            return;
        }
        take_publish(p, r);
        return;
    }
    struct slice prefix = SLICE("/hooks/events/");
    if (slice_starts(path, prefix) && p->open) {
        struct hook *h = xcalloc(1, sizeof(*h));
        h->p = p;
        h->r = r;
        h->op = (struct store_op){.arena = http_arena(r), .done = on_event_read, .data = h};
        char *id =
            http_decode(http_arena(r), slice_make(path.p + prefix.len, path.len - prefix.len));
        store_event_get(p->store, &h->op, id ? id : "", &h->event);
        return;
    }
    http_reply_error(
        r, ERR_NOT_FOUND,
        "only /hooks/publish, /hooks/events/{id}, /healthz, /readyz and /metrics are here");
}
