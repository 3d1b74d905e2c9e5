/* POST /connections/test: a connection that is not stored is opened, greeted and closed. 200 either
 * way; what went wrong is in the answer. */
#include "services/gateway/boxes.h"
#include "services/gateway/query/query.h"

struct trial {
    struct gw_work work;
    struct gw_worker *w;
    struct http_req *r;
    struct arena arena;
    struct wh *wh;
    struct wh_op op;
    const char **secrets;  /* never in an answer */
    struct gw_box_get get; /* of type duckdb */
    struct sandbox *box;
    bool is_gone;
};

static void reply(struct http_req *r, const char **secrets, int rc, struct err *e)
{
    auto_buf struct buf body = {0};
    buf_addf(&body, "{\"status\":\"%s\",\"errorMessage\":", rc ? "failed" : "ok");
    for (size_t i = 0; secrets && secrets[i]; i++) {
        err_scrub(e, secrets[i]);
    }
    jsonw_str(&body, slice_of(rc ? err_text(e) : ""));
    buf_add_char(&body, '}');
    http_reply_json(r, 200, buf_slice(&body));
}

static void on_closed(void *data)
{
    struct trial *t = data;
    wh_free(t->wh);
    if (t->box) {
        gw_box_give(t->w, t->box);
    }
    arena_fini(&t->arena);
    gw_work_end(t->w, &t->work);
    free(t);
}

static void on_tested(struct wh_op *op)
{
    struct trial *t = op->data;
    http_on_gone(t->r, NULL, NULL);
    op->err.code = op->rc;
    reply(t->r, t->secrets, op->rc, &op->err);
    t->wh->ops->close(t->wh, on_closed, t);
}

static void on_gone(struct http_req *r, void *data)
{
    struct trial *t = data;
    (void)r;
    t->is_gone = true;
    if (t->wh) {
        t->wh->ops->cancel(&t->op);
    } /* an opening ends by itself */
}

static void greet(struct trial *t)
{
    t->op = (struct wh_op){.wh = t->wh, .arena = &t->arena, .data = t, .done = on_tested};
    t->wh->ops->test(&t->op);
}

/* ---- DuckDB, whose instance the main loop opens ---- */
static void on_box(struct gw_box_get *get)
{
    struct trial *t = get->data;
    if (get->rc == 0) {
        t->box = get->box;
        t->wh = wh_duckdb_share(t->w->loop, sandbox_wh(t->box));
        greet(t);
        if (t->is_gone) {
            t->wh->ops->cancel(&t->op);
        }
        return;
    }
    http_on_gone(t->r, NULL, NULL);
    reply(t->r, t->secrets, get->rc, &get->err);
    arena_fini(&t->arena);
    gw_work_end(t->w, &t->work);
    free(t);
}

static int open_duckdb(struct trial *t, const char *name, const char *config, struct err *e)
{
    struct wh_attached *attached;
    size_t n;
    int rc = wh_attached_read(&t->arena, name, config, &attached, &n, e);
    if (rc == 0) {
        t->get = (struct gw_box_get){.connection = arena_strdup(&t->arena, name),
                                     .digest = "",
                                     .version = "test",
                                     .attached = attached,
                                     .n_attached = n,
                                     .is_alone = true,
                                     .done = on_box,
                                     .data = t};
    }
    return rc;
}

/* ---- the trial ---- */
static int open_trial(struct trial *t, const json_t *body, const char *type, struct err *e)
{
    auto_buf struct buf config = {0};
    json_print(body, &config);
    const char *name = json_str(body, "name", "connection");
    t->secrets = wh_secrets(&t->arena, buf_str(&config));
    if (strcmp(type, "duckdb") == 0) {
        return open_duckdb(t, name, buf_str(&config), e);
    }
    struct wh_settings s = {
        .name = name, .type = type, .config_json = buf_str(&config), .sessions = 1};
    return wh_open(t->w->loop, &s, &t->wh, e);
}

static void start(struct gw_worker *w, struct http_req *r, const json_t *body, const char *type)
{
    struct trial *t = xcalloc(1, sizeof(*t));
    struct err e = {0};
    t->w = w;
    t->r = r;
    int rc = open_trial(t, body, type, &e);
    if (rc) {
        reply(r, t->secrets, rc, &e);
        arena_fini(&t->arena);
        free(t);
        return;
    }
    gw_work_begin(w, &t->work, NULL);
    if (t->wh) {
        greet(t);
    } else {
        gw_box_get_start(w, &t->get);
    }
    http_on_gone(r, on_gone, t);
}

void gw_connection_test_handle(struct gw_worker *w, struct http_req *r)
{
    struct err e = {0};
    const char *type = NULL;
    json_t *body = gw_body_object(r, &e);
    if (!body) {
        gw_reply_error(r, e.code, err_text(&e));
        return;
    }
    int rc = gw_body_str(body, "type", &type, &e);
    if (rc == 0 && !type) {
        rc = err_set(&e, ERR_INVALID, "'type' is missing: name the connection's type");
    }
    if (rc) {
        gw_reply_error(r, rc, err_text(&e));
    } else {
        start(w, r, body, type);
    }
    json_decref(body);
}
