/* Control calls are idempotent by their request id (protocol.md 9): what one was answered with is
 * kept, and a repeat gets that and changes nothing. What a handler knows of its answer is stored in
 * the transaction of its change (answered_note*); the answer itself before it goes out. */
#include "common/log/log.h"
#include "services/planner/planner.h"

struct control { /* of one request, in its arena; bus_request.data */
    struct planner *p;
    struct bus_request *r;
    struct list link; /* planner->controls */
    struct store_op op;
    struct store_answer found, noted, kept;
    const char *subject;
    struct bus_answer answer; /* copied */
};

static const ProtobufCMessageDescriptor *request_of(enum bus_kind kind)
{
    switch (kind) {
    case BUS_PUBLISH:
        return &kiln__publish_req__descriptor;
    case BUS_RELOAD:
        return &kiln__reload_req__descriptor;
    case BUS_PATCH:
        return &kiln__patch_req__descriptor;
    case BUS_DELETE_PACKAGE:
        return &kiln__delete_req__descriptor;
    case BUS_CREATE_RUN:
        return &kiln__create_run_req__descriptor;
    case BUS_STOP_RUN:
        return &kiln__stop_run_req__descriptor;
    case BUS_DELETE_RUN:
        return &kiln__delete_run_req__descriptor;
    case BUS_PUT_CONNECTION:
        return &kiln__put_connection_req__descriptor;
    case BUS_DELETE_CONNECTION:
        return &kiln__delete_connection_req__descriptor;
    case BUS_PUT_ENVIRONMENT:
        return &kiln__put_environment_req__descriptor;
    default:
        return NULL;
    }
}

bool answered_is_for(enum bus_kind kind)
{
    return request_of(kind) != NULL;
}

/* What a call is about: its names, as far as its kind has them. Bodies are left out: a sealed one
 * differs each time. */
static const char *subject_of(struct arena *a, const ProtobufCMessageDescriptor *d, const void *m)
{
    static const char *const names[] = {"environment", "package", "name", "id", "method"};
    const char *text = "";
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(d, names[i]);
        if (f) {
            must(f->type == PROTOBUF_C_TYPE_STRING && f->label == PROTOBUF_C_LABEL_NONE);
            char *const *value = (char *const *)((const char *)m + f->offset);
            text = arena_printf(a, "%s%s\n", text, *value);
        }
    }
    return text;
}

static void begin_op(struct control *c, void (*done)(struct store_op *op))
{
    c->op = (struct store_op){.arena = &c->r->arena, .done = done, .data = c};
    c->p->n_answering++;
}

static void end_op(struct planner *p)
{
    p->n_answering--;
    planner_settle(p);
}

static void pack(struct control *c, Kiln__StoredAnswer *s, struct store_answer *out)
{
    s->subject = bus_str(c->subject);
    size_t len = kiln__stored_answer__get_packed_size(s);
    uint8_t *bytes = arena_alloc(&c->r->arena, len + 1);
    kiln__stored_answer__pack(s, bytes);
    memcpy(out->request_id, c->r->request_id, sizeof(out->request_id));
    out->kind = (int)c->r->kind;
    out->reply = slice_make(bytes, len);
}

/* ---- the answer ---- */
static void give(struct control *c)
{
    const struct bus_request *r = c->r;
    log_info("control.answered", "kind=%s from=%s error=%s trace=%s",
             bus_kind_find((uint32_t)r->kind)->name, log_q(r->instance),
             c->answer.code ? err_code_name(c->answer.code) : "-", log_id(r->trace_id));
    list_del(&c->link);
    if (c->answer.code) {
        bus_reply_error(c->r, c->answer.code, c->answer.text, c->answer.retry_after_ms);
    } else {
        bus_reply_packed(c->r, c->answer.packed);
    }
}

static void on_kept(struct store_op *op)
{
    struct control *c = op->data;
    struct planner *p = c->p;
    if (op->rc) { /* the change is made all the same, and noted */
        log_warn("answered.not_kept", "kind=%d why=%s", (int)c->r->kind, log_q(err_text(&op->err)));
    }
    give(c);
    end_op(p);
}

/* What changes by itself, or when people see to it, is asked anew. */
static bool is_final(const struct bus_answer *a)
{
    return a->code == 0 ||
           (err_code_class(a->code) == ERR_CLASS_PERMANENT && a->retry_after_ms == 0 &&
            a->code != ERR_CONF && a->code != ERR_FROZEN && a->code != ERR_LIMIT);
}

static void on_answer(struct bus_request *r, const struct bus_answer *a)
{
    struct control *c = r->data;
    struct arena *mem = &r->arena;
    c->answer = *a;
    c->answer.text = arena_strdup(mem, a->text);
    c->answer.packed =
        slice_make(arena_dup(mem, a->packed.p ? a->packed.p : "", a->packed.len), a->packed.len);
    if (!is_final(a)) {
        give(c);
        return;
    }
    Kiln__StoredAnswer s = KILN__STORED_ANSWER__INIT;
    union {
        const void *in;
        uint8_t *out;
    } bytes = {c->answer.packed.p};
    s.reply = (ProtobufCBinaryData){.len = c->answer.packed.len, .data = bytes.out};
    s.error_code = a->code;
    s.error_text = bus_str(c->answer.text);
    pack(c, &s, &c->kept);
    begin_op(c, on_kept);
    store_answered_put(c->p->store, &c->op, &c->kept);
}

/* ---- what is known before it ---- */
static void note(struct bus_request *r, struct store_op *op, Kiln__StoredAnswer *s)
{
    struct control *c = r->data;
    pack(c, s, &c->noted);
    op->answer = &c->noted;
}

void answered_note(struct bus_request *r, struct store_op *op, const ProtobufCMessage *reply)
{
    Kiln__StoredAnswer s = KILN__STORED_ANSWER__INIT;
    s.reply.len = protobuf_c_message_get_packed_size(reply);
    s.reply.data = arena_alloc(&r->arena, s.reply.len + 1);
    protobuf_c_message_pack(reply, s.reply.data);
    note(r, op, &s);
}

void answered_note_run(struct bus_request *r, struct store_op *op, const char *run, uint64_t unit)
{
    Kiln__StoredAnswer s = KILN__STORED_ANSWER__INIT;
    s.run = bus_str(run);
    s.unit = unit;
    note(r, op, &s);
}

void answered_note_package(struct bus_request *r, struct store_op *op)
{
    Kiln__StoredAnswer s = KILN__STORED_ANSWER__INIT;
    s.package_now = true;
    note(r, op, &s);
}

/* ---- a repeat ---- */
static void answer_again(struct control *c)
{
    struct bus_request *r = c->r;
    struct err e = {0};
    const Kiln__StoredAnswer *s =
        bus_unpack(&kiln__stored_answer__descriptor, &r->arena, c->found.reply, &e);
    if (!s) {
        bus_reply_error(r, ERR_INTERNAL, err_text(&e), 0);
    } else if (c->found.kind != (int)r->kind || strcmp(s->subject, c->subject) != 0) {
        bus_reply_error(r, ERR_INVALID,
                        "this Idempotency-Key was used for another call; give every call a key of "
                        "its own, and only its repeats the same one",
                        0);
    } else if (s->error_code) {
        bus_reply_error(r, s->error_code, s->error_text, 0);
    } else if (s->run[0]) {
        serve_reply_run(c->p, r, s->run, s->unit);
    } else if (s->package_now) {
        serve_package_again(c->p, r);
    } else {
        bus_reply_packed(r, slice_make(s->reply.data, s->reply.len));
    }
}

static void on_found(struct store_op *op)
{
    struct control *c = op->data;
    struct planner *p = c->p;
    if (op->rc == ERR_NOT_FOUND && p->open) {
        c->r->on_answer = on_answer;
        planner_dispatch(p, c->r);
    } else {
        list_del(&c->link);
        if (op->rc == 0) {
            answer_again(c);
        } else if (p->open) {
            bus_reply_error(c->r, op->rc, err_text(&op->err), 100);
        } else {
            serve_not_leader(c->r);
        }
    }
    end_op(p);
}

static bool is_at_work(const struct planner *p, const struct bus_request *r)
{
    list_for_each (it, &p->controls) {
        const struct control *c = list_entry(it, struct control, link);
        if (memcmp(c->r->request_id, r->request_id, sizeof(r->request_id)) == 0) {
            return true;
        }
    }
    return false;
}

void answered_serve(struct planner *p, struct bus_request *r)
{
    const ProtobufCMessageDescriptor *d = request_of(r->kind);
    const void *m = serve_unpack(r, d);
    if (!m) {
        return;
    }
    if (is_at_work(p, r)) { /* by way of another gateway: its bus asks again */
        bus_reply_error(r, ERR_BUS_AT_WORK, "the same call is still being worked on", 200);
        return;
    }
    struct control *c = arena_zalloc(&r->arena, sizeof(*c));
    c->p = p;
    c->r = r;
    c->subject = subject_of(&r->arena, d, m);
    r->data = c;
    list_add_tail(&p->controls, &c->link);
    begin_op(c, on_found);
    store_answered_get(p->store, &c->op, r->request_id, &c->found);
}
