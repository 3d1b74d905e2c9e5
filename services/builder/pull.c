/* The builder's side of leases: hello, then PullJob while there are free slots, RenewLease every
 * second with all progress (protocol.md 9, 10). */
#include "common/log/log.h"
#include "services/builder/builder.h"

#define RENEW_EVERY_MS 1000
#define RETRY_MS 250
#define HOLD_MS 10000
#define LEAVE_MS 1000

void builder_see_token(struct builder *b, uint64_t claim)
{
    if (claim > b->highest_token) {
        b->highest_token = claim;
    }
}

/* ---- hello ---- */
static void on_hello(struct bus_call *c)
{
    struct builder *b = c->data;
    b->hello_out = false;
    struct arena a;
    arena_init(&a);
    Kiln__HelloRep *rep =
        c->rc ? NULL : bus_unpack(&kiln__hello_rep__descriptor, &a, c->reply, NULL);
    if (rep) {
        b->said_hello = true;
        b->lease_ms = rep->lease_ms;
        b->renewed = loop_now(b->loop);
        health_set(b->service, "planner", true, true, "");
        builder_duck_hello(b);
        log_info("builder.hello", "term=%llu lease_ms=%u", (unsigned long long)rep->term,
                 rep->lease_ms);
    } else {
        health_set(b->service, "planner", true, false, err_text(&c->err));
    }
    arena_fini(&a);
    if (!b->draining) {
        loop_timer_start(&b->retry_timer, MS(rep ? 0 : RETRY_MS));
    }
}

static void hello(struct builder *b)
{
    b->hello_out = true;
    kiln__hello_req__init(&b->hello_req);
    b->hello_req.program = bus_str("kiln-builder");
    b->hello_req.version = bus_str(KILN_VERSION);
    b->hello_req.role = bus_str("builder");
    b->hello_req.connections = b->connections;
    b->hello_req.n_connections = b->n_connections;
    b->hello_req.slots = (uint32_t)b->set->slots;
    b->hello_req.highest_token = b->highest_token;
    b->hello_call = (struct bus_call){
        .kind = BUS_HELLO, .request = &b->hello_req.base, .done = on_hello, .data = b};
    if (bus_call_start(b->bus, &b->hello_call)) {
        b->hello_out = false;
        loop_timer_start(&b->retry_timer, MS(RETRY_MS));
    }
}

/* ---- pull ---- */
static void on_pulled(struct bus_call *c)
{
    struct builder_pull *p = c->data;
    struct builder *b = p->b;
    p->is_out = false;
    if (c->rc) {
        if (c->rc != ERR_CANCELLED && c->rc != ERR_SHUTDOWN) {
            log_debug("builder.pull", "rc=%s text=%s", err_code_name(c->rc),
                      log_q(err_text(&c->err)));
            b->said_hello = false; /* maybe another planner: say who we are first */
        }
    } else {
        struct arena a;
        arena_init(&a);
        Kiln__PullJobRep *rep = bus_unpack(&kiln__pull_job_rep__descriptor, &a, c->reply, NULL);
        for (size_t i = 0; rep && i < rep->n_jobs; i++) {
            struct flow_job *j = flow_job_start(b, rep->jobs[i]);
            if (j && b->draining) {
                flow_job_stop(j, false); /* back at once, for another builder */
            }
        }
        if (rep && rep->lease_ms) {
            b->lease_ms = rep->lease_ms;
        }
        arena_fini(&a);
    }
    if (b->draining) {
        builder_go(b);
        return;
    }
    loop_timer_start(&b->retry_timer, MS(c->rc ? RETRY_MS : 0));
}

static void pull(struct builder *b, struct builder_pull *p, unsigned slots)
{
    if (p->is_out) {
        return;
    }
    p->b = b;
    p->is_out = true;
    kiln__pull_job_req__init(&p->req);
    p->req.free_slots = slots;
    p->req.hold_ms = HOLD_MS;
    p->req.connections = b->connections;
    p->req.n_connections = b->n_connections;
    p->req.root_ids = &b->root_id;
    p->req.n_root_ids = b->root.held;
    p->req.root_error = b->root.fault;
    p->call = (struct bus_call){
        .kind = BUS_PULL_JOB, .request = &p->req.base, .done = on_pulled, .data = p};
    if (bus_call_start(b->bus, &p->call)) {
        p->is_out = false;
        loop_timer_start(&b->retry_timer, MS(RETRY_MS));
    }
}

static bool at_rest(const struct builder *b)
{
    return b->running + b->asking == 0 && !b->jobs_pull.is_out && !b->asks_pull.is_out &&
           !b->leave_pull.is_out;
}

/* The planner has answered what was held, or does not answer at all. */
static void on_left(struct bus_call *c)
{
    struct builder_pull *p = c->data;
    struct builder *b = p->b;
    p->is_out = false;
    struct builder_pull *const pulls[] = {&b->jobs_pull, &b->asks_pull};
    for (size_t i = 0; i < ARRAY_LEN(pulls) && c->rc; i++) {
        if (pulls[i]->is_out) {
            bus_call_cancel(&pulls[i]->call);
        }
    }
    builder_go(b);
}

void builder_leave(struct builder *b)
{
    struct builder_pull *p = &b->leave_pull;
    p->b = b;
    p->is_out = true;
    kiln__pull_job_req__init(&p->req);
    p->req.leaving = true;
    p->call = (struct bus_call){.kind = BUS_PULL_JOB,
                                .request = &p->req.base,
                                .timeout = MS(LEAVE_MS),
                                .done = on_left,
                                .data = p};
    p->call.rc = bus_call_start(b->bus, &p->call);
    if (p->call.rc) {
        on_left(&p->call);
    }
}

void builder_go(struct builder *b)
{
    if (b->draining) {
        if (at_rest(b) && b->drained) {
            void (*drained)(void *data) = b->drained;
            b->drained = NULL;
            drained(b->drained_data);
        }
        return;
    }
    if (!b->said_hello) {
        if (!b->hello_out && !b->jobs_pull.is_out && !b->asks_pull.is_out) {
            hello(b);
        }
        return;
    }
    if (b->root.asked) {
        return; /* its answer comes here again */
    }
    if (b->running < (unsigned)b->set->slots) {
        pull(b, &b->jobs_pull, (unsigned)b->set->slots - b->running);
    }
    if (b->root.held && b->asking == 0) {
        pull(b, &b->asks_pull, 0);
    }
}

void builder_job_ended(struct builder *b, bool was_question)
{
    *(was_question ? &b->asking : &b->running) -= 1;
    builder_go(b); /* a held pull that asked for fewer slots asks again by its answer or its end */
}

/* ---- renew ---- */
static struct flow_job *job_by_token(struct builder *b, uint64_t token)
{
    list_for_each (it, &b->jobs) {
        struct flow_job *j = list_entry(it, struct flow_job, link);
        if (j->job->token == token) {
            return j;
        }
    }
    return NULL;
}

static void on_renewed(struct bus_call *c)
{
    struct builder *b = c->data;
    b->renewing = false;
    struct arena a;
    arena_init(&a);
    Kiln__RenewLeaseRep *rep =
        c->rc ? NULL : bus_unpack(&kiln__renew_lease_rep__descriptor, &a, c->reply, NULL);
    if (rep) {
        b->renewed = loop_now(b->loop);
        for (size_t i = 0; i < rep->n_cancel; i++) {
            struct flow_job *j = job_by_token(b, rep->cancel[i]);
            if (j) {
                flow_job_stop(j, false);
            }
        }
        for (size_t i = 0; i < rep->n_lost; i++) {
            struct flow_job *j = job_by_token(b, rep->lost[i]);
            if (j) {
                flow_job_stop(j, true);
            }
        }
    }
    arena_fini(&a);
    free(b->progress);
    free(b->progress_list);
    b->progress = NULL;
    b->progress_list = NULL;
}

/* Nobody answered for a whole lease term: another builder may have the job now, so its statement is
 * ended (protocol.md 5). */
static void give_up_silent(struct builder *b)
{
    if (ms_sub(loop_now(b->loop), b->renewed).v < b->lease_ms) {
        return;
    }
    list_for_each (it, &b->jobs) {
        flow_job_stop(list_entry(it, struct flow_job, link), true);
    }
}

static void renew(struct builder *b)
{
    b->renewing = true;
    size_t n_jobs = b->running + b->asking;
    b->progress = xcalloc(n_jobs, sizeof(*b->progress));
    b->progress_list = xcalloc(n_jobs, sizeof(*b->progress_list));
    size_t n = 0;
    list_for_each (it, &b->jobs) {
        struct flow_job *j = list_entry(it, struct flow_job, link);
        Kiln__Progress *m = &b->progress[n];
        kiln__progress__init(m);
        struct wh_progress now = {.stage = j->stage, .fraction = -1};
        if (j->op_running) {
            j->op.wh->ops->progress(&j->op, &now);
        }
        m->token = j->job->token;
        m->stage = bus_str(now.stage ? now.stage : j->stage);
        m->rows = now.rows;
        m->bytes = now.bytes;
        m->has_fraction = now.fraction >= 0;
        m->fraction = now.fraction >= 0 ? now.fraction : 0;
        b->progress_list[n++] = m;
    }
    kiln__renew_lease_req__init(&b->renew_req);
    b->renew_req.attempts = b->progress_list;
    b->renew_req.n_attempts = n;
    b->renew_call = (struct bus_call){.kind = BUS_RENEW_LEASE,
                                      .request = &b->renew_req.base,
                                      .done = on_renewed,
                                      .data = b,
                                      .timeout = MS(2000)};
    if (bus_call_start(b->bus, &b->renew_call)) {
        b->renewing = false;
        free(b->progress);
        free(b->progress_list);
        b->progress = NULL;
        b->progress_list = NULL;
    }
}

void builder_renew_due(struct loop_timer *t)
{
    struct builder *b = t->data;
    if (b->running + b->asking > 0) {
        give_up_silent(b);
        if (!b->renewing) {
            renew(b);
        }
    } else {
        b->renewed = loop_now(b->loop);
    }
    loop_timer_start(t, MS(b->lease_ms && b->lease_ms < 4000 ? b->lease_ms / 4 : RENEW_EVERY_MS));
}
