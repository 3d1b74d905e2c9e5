/* The simulated planner: the coordinator over the run store in memory. It decides, commits, then
 * tells; it may die in between. */
#include "tests/sim/sim_world.h"

#include <stdio.h>

static const struct coord_limits limits = {
    .lease = {10000},
    .attempts = 3,
    .bound_wait = {10000},
    .bound_wait_loading = {600000},
    .gateway_live = {5000},
    .gateway_gone = {60000},
    .gateway_comes = {5000},
};

void sim_planner_stop(struct sim *s)
{
    coord_free(s->planner.c);
    s->planner = (struct sim_planner){.up_at = (int64_t)(s->now_ms + sim_random(s, 3000))};
}

void sim_planner_start(struct sim *s)
{
    if (s->trace) {
        printf("%8llu  -- the planner starts\n", (unsigned long long)s->now_ms);
    }
    static const struct uuid installation;
    s->planner.c = coord_new(&installation, &limits);
    memory_store_load(s->store, s->planner.c, sim_now(s));
    struct arena a;
    struct coord_out o;
    arena_init(&a);
    coord_out_init(&o, &a);
    coord_started(s->planner.c, sim_now(s), &o);
    (void)sim_commit(s, &o);
    arena_fini(&a);
}

bool sim_commit(struct sim *s, struct coord_out *o)
{
    if (o->rows.n && sim_chance(s, s->faults.crash_commit)) {
        sim_planner_stop(s);
        return false;
    }
    s->commits += o->rows.n > 0;
    s->changed = s->changed || o->rows.n > 0;
    sim_trace(s, &o->rows);
    const char *wrong = memory_store_apply(s->store, &o->rows);
    if (wrong) {
        sim_fail(s, "the run store refuses: %s", wrong);
    }
    wrong = coord_check(s->planner.c);
    if (wrong) {
        sim_fail(s, "%s", wrong);
    }
    if (o->rows.n && sim_chance(s, s->faults.crash_commit)) {
        sim_planner_stop(s);
        return false;
    }
    return true;
}

/* ---- requests ---- */
static void call_id(uint64_t call, uint8_t out[16])
{
    memset(out, 0xab, 16);
    memcpy(out, &call, sizeof(call));
}

static void fill_lease(const struct coord_lease *l, struct sim_lease *out)
{
    *out = (struct sim_lease){.job = l->job, .token = l->token, .kind = l->kind};
    if (l->target) {
        out->table = sim_table_of(l->target->physical);
        out->by_binding = !l->target->in_place;
        snprintf(out->build_id, sizeof(out->build_id), "%s", l->target->build_id);
    }
    if (l->generation) {
        snprintf(out->generation, sizeof(out->generation), "%s", l->generation);
    }
    for (size_t i = 0; i < l->n_earlier && i < SIM_EARLIER; i++) {
        out->earlier[out->n_earlier++] = l->earlier[i];
    }
}

static void on_pull(struct sim *s, const struct sim_msg *m, struct sim_msg *r, struct coord_out *o)
{
    struct coord_builder b = {
        .instance = s->builders[m->peer].name, .boot = m->boot, .reach = {.has_root = true}};
    call_id(m->call, b.request_id);
    struct coord_lease leases[SIM_SLOTS];
    r->n_leases = coord_pull(s->planner.c, sim_now(s), &b, m->n_leases, leases, o);
    if (r->n_leases == 0) {
        coord_pull_over(s->planner.c, b.request_id);
    }
    for (size_t i = 0; i < r->n_leases; i++) {
        fill_lease(&leases[i], &r->leases[i]);
        s->n_resolves += leases[i].kind == KIND_RESOLVE;
        s->n_drops += leases[i].kind == KIND_DROP;
    }
    r->n_live = coord_live_tokens(s->planner.c, r->live, 64);
    const char *const *keep;
    r->n_keep = coord_live_generations(s->planner.c, o->rows.arena, &keep);
    must(r->n_keep <= SIM_KEEP);
    for (size_t i = 0; i < r->n_keep; i++) {
        snprintf(r->keep[i], sizeof(r->keep[i]), "%s", keep[i]);
    }
}

static void on_renew(struct sim *s, const struct sim_msg *m, struct sim_msg *r, struct coord_out *o)
{
    struct coord_builder b = {.instance = s->builders[m->peer].name, .boot = m->boot};
    struct coord_progress p[SIM_SLOTS];
    for (size_t i = 0; i < m->n_tokens; i++) {
        p[i] = (struct coord_progress){m->tokens[i], s->steps, s->steps * 8, "build", 0.5};
    }
    coord_renew(s->planner.c, sim_now(s), &b, p, m->n_tokens, r->cancel, &r->n_cancel, r->lost,
                &r->n_lost, o);
}

static void on_report(struct sim *s, const struct sim_msg *m, struct coord_out *o)
{
    struct coord_gateway_unit u[SIM_UNITS];
    size_t n = 0;
    for (size_t k = 1; k <= SIM_UNITS; k++) {
        if (m->epochs[k]) {
            u[n++] = (struct coord_gateway_unit){k, m->epochs[k], 0, m->epochs[k], m->loading};
        }
    }
    if (m->incarnation == s->gateways[m->peer].incarnation) {
        struct sim_gateway *g = &s->gateways[m->peer];
        g->silent_call = (int64_t)s->now_ms - g->heard > 55000 ? s->calls : g->silent_call;
        g->heard = (int64_t)s->now_ms;
    }
    coord_gateway_report(s->planner.c, sim_now(s), s->gateways[m->peer].name, &m->boot, u, n, o);
    if (m->broken[0]) {
        coord_broken(s->planner.c, sim_now(s), 0, m->broken, "table_missing", o);
    }
}

static void on_fetch(struct sim *s, struct sim_msg *r)
{
    for (size_t k = 1; k <= SIM_UNITS; k++) {
        const struct core_binding_set *set = coord_unit_set(s->planner.c, k);
        r->epochs[k] = set ? set->epoch : 0;
        sim_set_copy(set, &r->sets[k]);
    }
}

static void answer(struct sim *s, const struct sim_msg *m, struct sim_msg *r, struct coord_out *o)
{
    static struct core_column column = {"n", "bigint", NULL, false};
    struct coord_facts facts = {.rows = m->token % 1000, .bytes = 64, .columns = {&column, 1}};
    struct err e = {0};
    switch (m->kind) {
    case MSG_PULL:
        on_pull(s, m, r, o);
        return;
    case MSG_RENEW:
        on_renew(s, m, r, o);
        return;
    case MSG_GRANT:
        r->rc = coord_grant(s->planner.c, sim_now(s), m->token, &facts, o, &e);
        return;
    case MSG_FINISH:
        r->rc = coord_finish(s->planner.c, sim_now(s), &m->finish, o, &e);
        return;
    case MSG_REPORT:
        on_report(s, m, o);
        return;
    case MSG_FETCH:
        on_fetch(s, r);
        return;
    }
}

void sim_planner_request(struct sim *s, const struct sim_msg *m)
{
    if (!s->planner.c) {
        return;
    }
    struct arena a;
    struct coord_out o;
    arena_init(&a);
    coord_out_init(&o, &a);
    struct sim_msg r = {
        .is_reply = true,
        .kind = m->kind,
        .peer = m->peer,
        .boot = m->boot,
        .incarnation = m->incarnation,
        .call = m->call,
        .token = m->token,
    };
    answer(s, m, &r, &o);
    if (sim_commit(s, &o)) {
        sim_send(s, &r);
    }
    arena_fini(&a);
}

/* ---- its own doing ---- */
static void tick(struct sim *s)
{
    struct arena a;
    struct coord_out o;
    arena_init(&a);
    coord_out_init(&o, &a);
    coord_tick(s->planner.c, sim_now(s), &o);
    (void)sim_commit(s, &o);
    arena_fini(&a);
}

static void take_run(struct sim *s)
{
    const char *run = coord_run_to_plan(s->planner.c);
    if (!run) {
        return;
    }
    struct arena a;
    struct coord_out o;
    arena_init(&a);
    coord_out_init(&o, &a);
    snprintf(s->planner.run, sizeof(s->planner.run), "%s", run);
    s->planner.planning = true;
    s->planner.plan_at = (int64_t)(s->now_ms + sim_random(s, 200));
    if (coord_run_planning(s->planner.c, sim_now(s), s->planner.run, &o) != 0) {
        sim_fail(s, "run %s waits for planning and may not be planned", s->planner.run);
    }
    (void)sim_commit(s, &o);
    arena_fini(&a);
}

void sim_planner_step(struct sim *s)
{
    if (!s->planner.c) {
        if (s->planner.up_at <= (int64_t)s->now_ms) {
            s->n_reloads++;
            sim_planner_start(s);
        }
        return;
    }
    if (!ms_before(MS((int64_t)s->now_ms), coord_next_due(s->planner.c))) {
        tick(s);
    } else if (!s->planner.planning) {
        take_run(s);
    } else if (s->planner.plan_at <= (int64_t)s->now_ms) {
        char run[24];
        memcpy(run, s->planner.run, sizeof(run));
        s->planner.planning = false;
        sim_plan(s, run);
    }
}
