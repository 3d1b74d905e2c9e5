/* Questions to builders: who has which, and their end. */
#include "services/planner/asked.h"
#include "services/planner/asked_internal.h"

/* ---- life of one ---- */
static void ask_end(struct ask *k, int rc, const char *sqlstate, const char *text)
{
    struct wh_op *op = k->op;
    op->rc = rc;
    if (rc) {
        (void)err_set(&op->err, rc, "%s", text);
        snprintf(op->err.sqlstate, sizeof(op->err.sqlstate), "%s", sqlstate);
    }
    op->impl = NULL;
    list_del(&k->link);
    loop_timer_stop(&k->deadline);
    loop_task_cancel(&k->end);
    arena_fini(&k->arena);
    free(k);
    op->done(op);
}

static void on_deadline(struct loop_timer *t)
{
    struct ask *k = t->data;
    const struct planner *p = k->wh->p;
    const char *why = "no_capable_builder: no builder that reaches the package store and a "
                      "generation root has asked for work; start one";
    if (k->given && ms_before(loop_now(p->loop), k->lease_until)) {
        why = "the builder did not answer in time";
    } else if (p->root_fault[0]) {
        why = arena_printf(&k->arena, "no_capable_builder: %s", p->root_fault);
    }
    ask_end(k, ERR_TIMEOUT, "", why);
}

void asked_note_root(struct planner *p, const char *builder, bool has_root, const char *why)
{
    if (has_root) {
        p->root_fault[0] = '\0';
    } else if (why[0]) {
        snprintf(p->root_fault, sizeof(p->root_fault), "builder '%s': %s", builder, why);
    }
}

static void on_end(struct loop_task *t)
{
    struct ask *k = t->data;
    ask_end(k, k->answered ? 0 : ERR_CANCELLED, "", "cancelled");
}

void ask_answer(struct ask *k)
{
    k->answered = k->given = true;
    k->lease_until = MS_NONE;
    loop_defer(k->wh->p->loop, &k->end);
}

void ask_cancel(struct wh_op *op)
{
    struct ask *k = op->impl;
    if (k) {
        k->answered = false;
        loop_defer(k->wh->p->loop, &k->end);
    }
}

struct ask *ask_new(struct wh_op *op, Kiln__JobKind kind)
{
    struct ask *k = xcalloc(1, sizeof(*k));
    struct planner *p = asked_of(op->wh)->p;
    k->wh = asked_of(op->wh);
    k->op = op;
    op->impl = k;
    arena_init(&k->arena);
    k->job = arena_alloc(&k->arena, sizeof(*k->job));
    kiln__job__init(k->job);
    k->job->kind = kind;
    k->job->token = coord_next_token(p->coord, planner_now(p));
    k->job->environment = k->wh->environment;
    k->job->package = k->wh->package;
    k->job->package_version = k->wh->version;
    k->job->files = k->wh->files;
    k->job->n_files = k->wh->n_files;
    k->target = (Kiln__Target)KILN__TARGET__INIT;
    k->target.connection = k->wh->connection;
    k->target.warehouse = k->wh->digest;
    k->target.class_ = KILN__WH_CLASS__WH_BY_BINDING;
    k->job->config_epoch = store_config_epoch(p->store);
    k->job->target = &k->target;
    loop_timer_init(&k->deadline, p->loop, on_deadline, k);
    loop_task_init(&k->end, on_end, k);
    list_add_tail(&p->asks, &k->link);
    loop_timer_start(&k->deadline, op->timeout.v ? op->timeout : MS(ASK_MS));
    loop_defer(p->loop, &p->pull_task);
    return k;
}

/* ---- builders ---- */
static bool is_free(const struct ask *k, const struct coord_builder *b, struct ms now)
{
    bool again = memcmp(k->pull_request, b->request_id, sizeof(k->pull_request)) == 0;
    bool reborn = strcmp(k->builder, b->instance) == 0 && !uuid_eq(&k->boot, &b->boot);
    return !k->given || again || reborn || !ms_before(now, k->lease_until);
}

size_t asked_take(struct planner *p, const struct coord_builder *b, Kiln__Job **out, size_t max)
{
    struct ms now = loop_now(p->loop);
    size_t n = 0;
    list_for_each (it, &p->asks) {
        struct ask *k = list_entry(it, struct ask, link);
        bool reaches = coord_reaches(&b->reach, k->wh->environment, k->wh->connection);
        if (n == max || !reaches || !b->reach.has_root || !is_free(k, b, now)) {
            continue;
        }
        k->given = true;
        snprintf(k->builder, sizeof(k->builder), "%s", b->instance);
        k->boot = b->boot;
        memcpy(k->pull_request, b->request_id, sizeof(k->pull_request));
        k->lease_until = ms_add(now, MS(p->set->lease_ms));
        out[n++] = k->job;
    }
    return n;
}

static struct ask *by_token(const struct planner *p, uint64_t token)
{
    list_for_each (it, &p->asks) {
        struct ask *k = list_entry(it, struct ask, link);
        if (k->job->token == token) {
            return k;
        }
    }
    return NULL;
}

bool asked_renew(struct planner *p, const struct coord_builder *b, uint64_t token)
{
    struct ask *k = by_token(p, token);
    if (k && uuid_eq(&k->boot, &b->boot)) {
        k->lease_until = ms_add(loop_now(p->loop), MS(p->set->lease_ms));
    }
    return k != NULL;
}

bool asked_finish(struct planner *p, const Kiln__FinishJobReq *q)
{
    struct ask *k = by_token(p, q->token);
    if (!k) {
        return false;
    }
    if (q->outcome == KILN__OUTCOME__OUTCOME_SUCCEEDED) {
        int rc = k->take(k, q);
        ask_end(k, rc, "", rc ? "the builder's answer does not fit the question" : NULL);
        return true;
    }
    int code = q->error && q->error->code < 0 ? q->error->code : ERR_INTERNAL;
    ask_end(k, code, q->error ? q->error->sqlstate : "",
            q->error ? q->error->text : "the builder gave no reason");
    return true;
}
