/* GET models/{path}: what the compiler tells about a model. One wait. */
#include "services/gateway/query/query.h"

struct describe {
    struct gw_work work;
    struct gw_worker *w;
    struct http_req *r;
    struct gw_package *p; /* counted */
    Kiln__Mc__DescribeModel request;
    struct gw_compiling compiling;
};

static void answer(struct describe *d)
{
    struct err e = {0};
    const struct compiler_call *call = &d->compiling.call;
    if (call->rc) {
        gw_compile_error(call, &e);
        gw_reply_error(d->r, e.code, err_text(&e));
        return;
    }
    Kiln__Mc__ModelInfo *m =
        kiln__mc__model_info__unpack(NULL, call->reply.len, (const uint8_t *)call->reply.p);
    if (!m || m->json[0] != '{') {
        gw_reply_error(d->r, ERR_INTERNAL, "the Malloy compiler's answer does not decode");
    } else {
        auto_buf struct buf body = {0};
        buf_add_slice(&body, SLICE("{\"resource\":"));
        jsonw_str(&body, http_path(d->r));
        buf_addf(&body, "%s%s", m->json[1] == '}' ? "" : ",", m->json + 1);
        http_reply_json(d->r, 200, buf_slice(&body));
    }
    kiln__mc__model_info__free_unpacked(m, NULL);
}

static void on_described(struct compiler_call *call)
{
    struct describe *d = call->data;
    http_on_gone(d->r, NULL, NULL);
    answer(d);
    gw_package_unref(d->p);
    gw_work_end(d->w, &d->work);
    free(d);
}

static void on_gone(struct http_req *r, void *data)
{
    struct describe *d = data;
    (void)r;
    gw_compiling_cancel(&d->compiling);
}

void gw_model_handle(struct gw_worker *w, struct http_req *r, struct gw_package *p,
                     const char *model)
{
    struct err e = {0};
    if (gw_refuse_version(r, NULL, &e)) {
        gw_reply_error(r, e.code, err_text(&e));
        return;
    }
    struct describe *d = xcalloc(1, sizeof(*d));
    d->w = w;
    d->r = r;
    d->p = gw_package_ref(p);
    kiln__mc__describe_model__init(&d->request);
    d->request.load_id = p->load_id;
    d->request.model = bus_str(model);
    d->compiling.call = (struct compiler_call){.kind = "describe_model",
                                               .load_id = p->load_id,
                                               .request = &d->request.base,
                                               .timeout = MS(GW_COMPILE_MS),
                                               .done = on_described,
                                               .data = d};
    gw_work_begin(w, &d->work, NULL);
    gw_compiling_start(w, &d->compiling);
    http_on_gone(r, on_gone, d);
}
