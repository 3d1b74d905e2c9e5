/* Calls of workers to the planner and to the compiler children, both of which are the main loop's.
 * Equal compiles of several workers are one; each gets a copy of its answer. */
#include "services/gateway/port.h"

/* ---- the planner ---- */
static void on_answer(struct bus_call *at_main)
{
    struct gw_call *c = at_main->data;
    c->call.rc = at_main->rc;
    c->call.err = at_main->err;
    c->call.retry_after_ms = at_main->retry_after_ms;
    buf_add_slice(&c->reply, at_main->reply);
    gw_errand_over(&c->errand);
}

static void run_call(struct gw_errand *e)
{
    struct gw_call *c = container_of(e, struct gw_call, errand);
    c->at_main = c->call;
    c->at_main.done = on_answer;
    c->at_main.data = c;
    int rc = bus_call_start(e->w->g->bus, &c->at_main);
    if (rc) {
        bool is_long = rc == ERR_LIMIT;
        c->call.rc = err_set(&c->call.err, is_long ? ERR_HTTP_TOO_LARGE : rc, "%s",
                             is_long ? err_text(&c->at_main.err)
                                     : "this gateway is ending; try again on another");
        gw_errand_over(e);
    }
}

static void stop_call(struct gw_errand *e)
{
    bus_call_cancel(&container_of(e, struct gw_call, errand)->at_main);
}

static void call_done(struct gw_errand *e)
{
    struct gw_call *c = container_of(e, struct gw_call, errand);
    auto_buf struct buf reply = c->reply; /* c may be gone after done */
    c->call.reply = buf_slice(&reply);
    c->call.done(&c->call);
}

void gw_call_start(struct gw_worker *w, struct gw_call *c)
{
    c->errand = (struct gw_errand){.w = w, .run = run_call, .stop = stop_call, .done = call_done};
    c->reply = (struct buf){0};
    gw_errand_start(&c->errand);
}

void gw_call_cancel(struct gw_call *c)
{
    gw_errand_cancel(&c->errand);
}

/* ---- the compiler ---- */
struct gw_shared_compile {
    struct gateway *g;
    struct sha256 key;
    bool is_keyed; /* in g->compiling: others may join */
    struct compiler_call call;
    struct list askers; /* of struct gw_compiling */
};

static struct slice key_slice(const struct sha256 *key)
{
    return slice_make(key->b, sizeof(key->b));
}

static void no_more_join(struct gw_shared_compile *s)
{
    if (s->is_keyed) {
        s->is_keyed = false;
        must(map_del(&s->g->compiling, key_slice(&s->key)) == s);
    }
}

static void give(struct gw_compiling *c, const struct compiler_call *from)
{
    c->call.rc = from->rc;
    c->call.err = from->err;
    snprintf(c->reply_kind, sizeof(c->reply_kind), "%s", from->reply_kind ? from->reply_kind : "");
    buf_add_slice(&c->reply, from->reply);
    buf_add_slice(&c->frame, from->frame);
    gw_errand_over(&c->errand);
}

static void on_compiled(struct compiler_call *call)
{
    struct gw_shared_compile *s = call->data;
    no_more_join(s);
    for (struct list *it; (it = list_take_head(&s->askers)) != NULL;) {
        give(list_entry(it, struct gw_compiling, link), call);
    }
    free(s);
}

static void compile(struct gateway *g, struct gw_compiling *first)
{
    struct gw_shared_compile *s = xcalloc(1, sizeof(*s));
    s->g = g;
    list_init(&s->askers);
    list_add_tail(&s->askers, &first->link);
    first->shared = s;
    if (first->key) {
        s->key = *first->key;
        s->is_keyed = true;
        must(!map_put(&g->compiling, key_slice(&s->key), s));
    }
    s->call = (struct compiler_call){.kind = first->call.kind,
                                     .load_id = first->call.load_id,
                                     .request = first->call.request,
                                     .timeout = first->call.timeout,
                                     .done = on_compiled,
                                     .data = s};
    compiler_call_start(g->compiler, &s->call);
}

static void run_compiling(struct gw_errand *e)
{
    struct gw_compiling *c = container_of(e, struct gw_compiling, errand);
    struct gateway *g = e->w->g;
    struct gw_shared_compile *s = c->key ? map_get(&g->compiling, key_slice(c->key)) : NULL;
    if (!s) {
        compile(g, c);
        return;
    }
    c->shared = s;
    list_add_tail(&s->askers, &c->link);
}

static void stop_compiling(struct gw_errand *e)
{
    struct gw_compiling *c = container_of(e, struct gw_compiling, errand);
    struct gw_shared_compile *s = c->shared;
    if (s->askers.next == s->askers.prev) { /* nobody else wants it */
        no_more_join(s);
        compiler_call_cancel(&s->call);
        return;
    }
    list_del(&c->link);
    c->call.rc = err_set(&c->call.err, ERR_CANCELLED, "cancelled");
    gw_errand_over(e);
}

static void compiling_done(struct gw_errand *e)
{
    struct gw_compiling *c = container_of(e, struct gw_compiling, errand);
    auto_buf struct buf reply = c->reply, frame = c->frame; /* c may be gone after done */
    c->call.reply_kind = c->reply_kind;
    c->call.reply = buf_slice(&reply);
    c->call.frame = buf_slice(&frame);
    c->call.done(&c->call);
}

void gw_compiling_start(struct gw_worker *w, struct gw_compiling *c)
{
    c->errand = (struct gw_errand){
        .w = w, .run = run_compiling, .stop = stop_compiling, .done = compiling_done};
    c->reply = c->frame = (struct buf){0};
    list_init(&c->link);
    gw_errand_start(&c->errand);
}

void gw_compiling_cancel(struct gw_compiling *c)
{
    gw_errand_cancel(&c->errand);
}
