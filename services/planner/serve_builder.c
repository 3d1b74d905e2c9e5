/* What builders ask: hello, jobs (held until there is one), leases, grants, results (protocol.md 4,
 * 5, 9). */
#include "common/log/log.h"
#include "services/planner/asked.h"

#define PULL_MAX 16
#define PULL_HOLD_MS 10000
#define RENEW_MAX 256

static struct coord_builder builder_of(const struct bus_request *r)
{
    struct coord_builder b = {.instance = r->instance, .boot = r->boot};
    memcpy(b.request_id, r->request_id, 16);
    return b;
}

/* Replies with an error when a decision could not be committed; true when it did so. */
static bool failed(struct decision *d, struct bus_request *r)
{
    if (d->rc == 0) {
        return false;
    }
    bus_reply_error(r, d->rc, err_text(&d->err), 100);
    return true;
}

static void reply_hello(struct decision *d)
{
    struct bus_request *r = d->data;
    if (failed(d, r)) {
        return;
    }
    Kiln__HelloRep rep = KILN__HELLO_REP__INIT;
    rep.term = d->p->term;
    rep.config_epoch = store_config_epoch(d->p->store);
    rep.lease_ms = (uint32_t)d->p->set->lease_ms;
    rep.installation.data = (uint8_t *)(uintptr_t)store_installation(d->p->store)->b;
    rep.installation.len = 16;
    bus_reply(r, &rep.base);
}

static void hello(struct planner *p, struct bus_request *r)
{
    Kiln__HelloReq *q = serve_unpack(r, &kiln__hello_req__descriptor);
    if (!q) {
        return;
    }
    struct decision *d = decision_new(p);
    coord_instance(p->coord, planner_now(p), r->instance, q->role, &r->boot, q->version,
                   q->highest_token, &d->out);
    for (size_t i = 0; i < q->n_epochs; i++) {
        coord_raise(p->coord, q->epochs[i]->epoch);
    }
    log_info("instance.hello", "instance=%s role=%s version=%s", log_q(r->instance), log_q(q->role),
             log_q(q->version));
    decision_commit(d, reply_hello, r);
}

/* ---- PullJob ---- */
struct held_pull {
    struct list link;
    struct planner *p;
    struct bus_request *r;
    const Kiln__PullJobReq *q; /* lives with r */
    struct loop_timer timer;
};

struct pull_answer {
    struct bus_request *r;
    struct held_pull *held;
    struct coord_lease leases[PULL_MAX];
    size_t n;
};

static Kiln__Target *target_message(struct arena *a, const struct core_target *t)
{
    Kiln__Target *m = arena_alloc(a, sizeof(*m));
    kiln__target__init(m);
    m->connection = bus_str(t->connection);
    m->physical = bus_str(t->physical);
    m->schema = bus_str(t->schema);
    m->table = bus_str(t->table);
    m->target_key = bus_str(t->target_key);
    m->build_id = bus_str(t->build_id);
    m->entity_id = bus_str(t->entity_id);
    m->warehouse = bus_str(t->warehouse);
    m->class_ = t->in_place ? KILN__WH_CLASS__WH_IN_PLACE : KILN__WH_CLASS__WH_BY_BINDING;
    return m;
}

static void by_binding_message(struct arena *a, const struct coord_lease *l, Kiln__Job *m)
{
    m->load_id = l->load ? arena_printf(a, "l%llu", (unsigned long long)l->load) : "";
    m->inputs = arena_zalloc(a, (l->n_inputs + 1) * sizeof(*m->inputs));
    for (size_t i = 0; i < l->n_inputs; i++) {
        Kiln__Input *in = arena_alloc(a, sizeof(*in));
        kiln__input__init(in);
        in->name = bus_str(l->inputs[i].table);
        in->generation = bus_str(l->inputs[i].generation);
        in->build_id = bus_str(l->inputs[i].build_id);
        m->inputs[m->n_inputs++] = in;
    }
}

static Kiln__Job *job_message(struct planner *p, struct arena *a, const struct coord_lease *l)
{
    Kiln__Job *m = arena_alloc(a, sizeof(*m));
    kiln__job__init(m);
    m->job = l->job;
    m->token = l->token;
    m->kind = (Kiln__JobKind)l->kind;
    m->run = bus_str(l->run);
    m->trace_id.data = arena_dup(a, l->trace.b, sizeof(l->trace.b));
    m->trace_id.len = sizeof(l->trace.b);
    m->generation = bus_str(l->generation);
    if (l->target) {
        m->target = target_message(a, l->target);
    }
    m->n_earlier_tokens = l->n_earlier;
    m->earlier_tokens = (uint64_t *)(uintptr_t)l->earlier;
    m->allow_take_over = l->take_over;
    m->config_epoch = store_config_epoch(p->store);
    by_binding_message(a, l, m);
    struct planner_unit *u = catalog_unit_id(p, l->unit);
    m->environment = u ? u->environment_name : "";
    m->package = u ? u->name : "";
    json_t *spec = l->spec ? json_parse(slice_of(l->spec), NULL) : NULL;
    m->sql = arena_strdup(a, json_str(spec, "sql", ""));
    m->query_tag = arena_strdup(a, json_str(spec, "tag", ""));
    m->source_name = arena_strdup(a, json_str(spec, "sourceName", ""));
    if (json_str(spec, "environment", NULL)) {
        m->environment = arena_strdup(a, json_str(spec, "environment", ""));
    }
    if (l->kind == KIND_SWEEP) {
        json_t *schemas = json_object_get(spec, "schemas");
        m->schemas = arena_zalloc(a, (json_array_size(schemas) + 1) * sizeof(char *));
        for (size_t i = 0; i < json_array_size(schemas); i++) {
            m->schemas[m->n_schemas++] =
                arena_strdup(a, json_string_value(json_array_get(schemas, i)));
        }
        uint64_t *live = arena_alloc(a, 4096 * sizeof(*live));
        m->n_live_tokens = coord_live_tokens(p->coord, live, 4096);
        m->live_tokens = live;
        const char *const *keep;
        m->n_keep_generations = coord_live_generations(p->coord, a, &keep);
        m->keep_generations = (char **)(uintptr_t)keep;
        m->older_than_us = (uint64_t)json_int(spec, "olderThanUs", 0);
        if (!m->target) {
            const char *connection = json_str(spec, "connection", "");
            struct core_target t = {.connection = arena_strdup(a, connection),
                                    .in_place = strcmp(connection, "duckdb") != 0,
                                    .warehouse = arena_strdup(a, json_str(spec, "warehouse", ""))};
            m->target = target_message(a, &t);
        }
    }
    json_decref(spec);
    return m;
}

static void reply_pull(struct decision *d)
{
    struct pull_answer *ans = d->data;
    if (!failed(d, ans->r)) {
        Kiln__PullJobRep rep = KILN__PULL_JOB_REP__INIT;
        rep.lease_ms = (uint32_t)d->p->set->lease_ms;
        rep.jobs = arena_zalloc(&d->arena, (ans->n + 1) * sizeof(*rep.jobs));
        for (size_t i = 0; i < ans->n; i++) {
            const struct coord_lease *l = &ans->leases[i];
            rep.jobs[rep.n_jobs++] = job_message(d->p, &d->arena, l);
            log_info("job.leased", "job=%llu token=%llu run=%s builder=%s trace=%s",
                     (unsigned long long)l->job, (unsigned long long)l->token,
                     l->run ? l->run : "-", log_q(ans->r->instance), log_id(l->trace.b));
        }
        bus_reply(ans->r, &rep.base);
    }
    free(ans);
}

/* Questions go before all else, a builder with no free slot has room for them (decisions 2.4). */
static bool pull_asked(struct planner *p, struct bus_request *r, const struct coord_builder *b,
                       size_t slots)
{
    Kiln__Job *jobs[PULL_MAX];
    size_t n = asked_take(p, b, jobs, slots < 1 ? 1 : slots < PULL_MAX ? slots : PULL_MAX);
    if (n == 0) {
        return false;
    }
    Kiln__PullJobRep rep = KILN__PULL_JOB_REP__INIT;
    rep.lease_ms = (uint32_t)p->set->lease_ms;
    rep.jobs = jobs;
    rep.n_jobs = n;
    bus_reply(r, &rep.base);
    return true;
}

/* Takes what is there; false when there is nothing yet and nothing was answered. */
static bool pull_try(struct planner *p, struct bus_request *r, const Kiln__PullJobReq *q, bool last)
{
    size_t slots = q->free_slots;
    struct decision *d = decision_new(p);
    struct pull_answer *ans = xcalloc(1, sizeof(*ans));
    ans->r = r;
    struct coord_builder b = builder_of(r);
    b.reach = (struct coord_reach){(const char *const *)q->connections, q->n_connections,
                                   q->n_root_ids > 0};
    asked_note_root(p, b.instance, b.reach.has_root, q->root_error);
    if (pull_asked(p, r, &b, slots)) {
        decision_drop(d);
        free(ans);
        return true;
    }
    ans->n = coord_pull(p->coord, planner_now(p), &b, slots < PULL_MAX ? slots : PULL_MAX,
                        ans->leases, &d->out);
    if (ans->n == 0 && !last) {
        free(ans);
        decision_commit(d, NULL, NULL); /* ending a former boot's leases may have made rows */
        return false;
    }
    if (ans->n == 0) {
        coord_pull_over(p->coord, r->request_id);
    }
    decision_commit(d, reply_pull, ans);
    return true;
}

static void held_end(struct held_pull *h)
{
    list_del(&h->link);
    loop_timer_stop(&h->timer);
    free(h);
}

static void on_hold_over(struct loop_timer *t)
{
    struct held_pull *h = t->data;
    struct planner *p = h->p;
    struct bus_request *r = h->r;
    const Kiln__PullJobReq *q = h->q;
    held_end(h);
    pull_try(p, r, q, true);
}

void held_pulls_wake(struct planner *p)
{
    if (!p->open) {
        return;
    }
    list_for_each (it, &p->held) {
        struct held_pull *h = list_entry(it, struct held_pull, link);
        if (pull_try(p, h->r, h->q, false)) {
            held_end(h);
        }
    }
}

void held_pulls_fail(struct planner *p)
{
    list_for_each (it, &p->held) {
        struct held_pull *h = list_entry(it, struct held_pull, link);
        serve_not_leader(h->r);
        held_end(h);
    }
}

/* The same builder asking again ends its older question: one held pull of each kind is enough. One
 * that leaves ends both. */
static void drop_older_pull(struct planner *p, const struct bus_request *r,
                            const Kiln__PullJobReq *q)
{
    bool for_asks = q->free_slots == 0;
    list_for_each (it, &p->held) {
        struct held_pull *h = list_entry(it, struct held_pull, link);
        bool same = q->leaving || (h->q->free_slots == 0) == for_asks;
        if (same && strcmp(h->r->instance, r->instance) == 0) {
            Kiln__PullJobRep rep = KILN__PULL_JOB_REP__INIT;
            coord_pull_over(p->coord, h->r->request_id);
            bus_reply(h->r, &rep.base);
            held_end(h);
        }
    }
}

static void pull(struct planner *p, struct bus_request *r)
{
    Kiln__PullJobReq *q = serve_unpack(r, &kiln__pull_job_req__descriptor);
    if (!q) {
        return;
    }
    drop_older_pull(p, r, q);
    if (q->leaving) {
        Kiln__PullJobRep rep = KILN__PULL_JOB_REP__INIT;
        coord_builder_left(p->coord, r->instance);
        coord_pull_over(p->coord, r->request_id);
        bus_reply(r, &rep.base);
        return;
    }
    bool at_once = q->hold_ms == 0;
    if (pull_try(p, r, q, at_once)) {
        return;
    }
    struct held_pull *h = xcalloc(1, sizeof(*h));
    h->p = p;
    h->r = r;
    h->q = q;
    list_add_tail(&p->held, &h->link);
    loop_timer_init(&h->timer, p->loop, on_hold_over, h);
    loop_timer_start(&h->timer, MS(q->hold_ms < PULL_HOLD_MS ? (int64_t)q->hold_ms : PULL_HOLD_MS));
}

/* ---- RenewLease ---- */
struct renew_answer {
    struct bus_request *r;
    uint64_t cancel[RENEW_MAX], lost[RENEW_MAX];
    size_t n_cancel, n_lost;
};

static void reply_renew(struct decision *d)
{
    struct renew_answer *ans = d->data;
    if (!failed(d, ans->r)) {
        Kiln__RenewLeaseRep rep = KILN__RENEW_LEASE_REP__INIT;
        rep.lease_ms = (uint32_t)d->p->set->lease_ms;
        rep.cancel = ans->cancel;
        rep.n_cancel = ans->n_cancel;
        rep.lost = ans->lost;
        rep.n_lost = ans->n_lost;
        bus_reply(ans->r, &rep.base);
    }
    free(ans);
}

static void renew(struct planner *p, struct bus_request *r)
{
    Kiln__RenewLeaseReq *q = serve_unpack(r, &kiln__renew_lease_req__descriptor);
    if (!q) {
        return;
    }
    if (q->n_attempts > RENEW_MAX) {
        bus_reply_error(r, ERR_LIMIT, "at most 256 attempts per renewal", 0);
        return;
    }
    struct decision *d = decision_new(p);
    struct coord_progress *list = arena_zalloc(&d->arena, (q->n_attempts + 1) * sizeof(*list));
    struct coord_builder b = builder_of(r);
    size_t n = 0;
    for (size_t i = 0; i < q->n_attempts; i++) {
        const Kiln__Progress *m = q->attempts[i];
        if (asked_renew(p, &b, m->token)) {
            continue;
        }
        list[n++] = (struct coord_progress){m->token, m->rows, m->bytes, m->stage,
                                            m->has_fraction ? m->fraction : -1};
    }
    struct renew_answer *ans = xcalloc(1, sizeof(*ans));
    ans->r = r;
    ans->n_cancel = RENEW_MAX;
    ans->n_lost = RENEW_MAX;
    coord_renew(p->coord, planner_now(p), &b, list, n, ans->cancel, &ans->n_cancel, ans->lost,
                &ans->n_lost, &d->out);
    decision_commit(d, reply_renew, ans);
}

/* ---- RequestGrant, FinishJob ---- */
static void reply_grant(struct decision *d)
{
    struct bus_request *r = d->data;
    if (failed(d, r)) {
        return;
    }
    Kiln__RequestGrantRep rep = KILN__REQUEST_GRANT_REP__INIT;
    rep.granted = true;
    bus_reply(r, &rep.base);
}

static void grant(struct planner *p, struct bus_request *r)
{
    Kiln__RequestGrantReq *q = serve_unpack(r, &kiln__request_grant_req__descriptor);
    if (!q) {
        return;
    }
    struct decision *d = decision_new(p);
    struct coord_facts f = {.rows = q->rows, .bytes = q->bytes, .data_as_of_us = q->data_as_of_us};
    columns_from_proto(&d->arena, q->columns, q->n_columns, &f.columns);
    struct err e = {0};
    int rc = coord_grant(p->coord, planner_now(p), q->token, &f, &d->out, &e);
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
        decision_drop(d);
        return;
    }
    decision_commit(d, reply_grant, r);
}

static void reply_finish(struct decision *d)
{
    struct bus_request *r = d->data;
    if (failed(d, r)) {
        return;
    }
    Kiln__FinishJobRep rep = KILN__FINISH_JOB_REP__INIT;
    rep.recorded = true;
    bus_reply(r, &rep.base);
}

static enum coord_outcome outcome_of(Kiln__Outcome o)
{
    switch (o) {
    case KILN__OUTCOME__OUTCOME_SUCCEEDED:
        return OUTCOME_OK;
    case KILN__OUTCOME__OUTCOME_UNKNOWN:
        return OUTCOME_UNKNOWN_;
    case KILN__OUTCOME__OUTCOME_CANCELLED:
        return OUTCOME_STOPPED;
    case KILN__OUTCOME__OUTCOME_FENCED:
        return OUTCOME_FENCED_;
    default:
        return OUTCOME_ERROR;
    }
}

static void finish(struct planner *p, struct bus_request *r)
{
    Kiln__FinishJobReq *q = serve_unpack(r, &kiln__finish_job_req__descriptor);
    if (!q) {
        return;
    }
    if (asked_finish(p, q)) {
        Kiln__FinishJobRep rep = KILN__FINISH_JOB_REP__INIT;
        rep.recorded = true;
        bus_reply(r, &rep.base);
        return;
    }
    struct decision *d = decision_new(p);
    struct coord_finish f = {
        .token = q->token, .outcome = outcome_of(q->outcome), .took_ms = q->took_ms};
    f.facts =
        (struct coord_facts){.rows = q->rows, .bytes = q->bytes, .data_as_of_us = q->data_as_of_us};
    columns_from_proto(&d->arena, q->columns, q->n_columns, &f.facts.columns);
    if (q->root_id.len == sizeof(f.facts.root.b)) {
        memcpy(f.facts.root.b, q->root_id.data, sizeof(f.facts.root.b));
    }
    if (q->fence) {
        f.has_fence = true;
        f.fence_claim = q->fence->claim;
        f.fence_published = q->fence->published;
        f.fence_still_there = q->fence->still_there;
    }
    if (q->error) {
        f.error_code = q->error->code;
        f.error_text = q->error->text;
    }
    struct err e = {0};
    int rc = coord_finish(p->coord, planner_now(p), &f, &d->out, &e);
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
        decision_drop(d);
        return;
    }
    log_info("job.reported", "token=%llu outcome=%d builder=%s trace=%s",
             (unsigned long long)q->token, (int)q->outcome, log_q(r->instance),
             log_id(r->trace_id));
    decision_commit(d, reply_finish, r);
}

void serve_builder(struct planner *p, struct bus_request *r)
{
    switch (r->kind) {
    case BUS_HELLO:
        hello(p, r);
        return;
    case BUS_PULL_JOB:
        pull(p, r);
        return;
    case BUS_RENEW_LEASE:
        renew(p, r);
        return;
    case BUS_REQUEST_GRANT:
        grant(p, r);
        return;
    default:
        finish(p, r);
        return;
    }
}
