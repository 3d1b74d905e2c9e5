/* The simulated builders: pull, build into staging, ask for the grant, swap, report until it is
 * recorded (protocol.md 5). */
#include "tests/sim/sim_world.h"

#include <stdio.h>

enum { RESEND_MS = 400, RENEW_MS = 1000 };

void sim_builder_start(struct sim *s, int i)
{
    struct sim_builder *b = &s->builders[i];
    *b = (struct sim_builder){.boot = sim_uuid(s), .incarnation = ++s->incarnations};
    snprintf(b->name, sizeof(b->name), "builder-%d", i + 1);
}

bool sim_builder_idle(const struct sim_builder *b)
{
    for (size_t k = 0; k < SIM_SLOTS; k++) {
        if (b->work[k].stage != WORK_NONE) {
            return false;
        }
    }
    return true;
}

static struct sim_msg message(struct sim *s, int i, enum msg_kind kind, uint64_t call)
{
    const struct sim_builder *b = &s->builders[i];
    return (struct sim_msg){
        .kind = kind, .peer = i, .boot = b->boot, .incarnation = b->incarnation, .call = call};
}

/* ---- sending ---- */
static void pull(struct sim *s, int i)
{
    struct sim_builder *b = &s->builders[i];
    size_t free_slots = 0;
    for (size_t k = 0; k < SIM_SLOTS; k++) {
        free_slots += b->work[k].stage == WORK_NONE;
    }
    int64_t now = (int64_t)s->now_ms;
    if (free_slots == 0 || (b->pull_waiting && now - b->pull_sent < RESEND_MS)) {
        return;
    }
    if (!b->pull_waiting) {
        b->pull_call = ++s->calls;
        b->pull_waiting = true;
        b->pull_slots = free_slots;
    }
    b->pull_sent = now;
    struct sim_msg m = message(s, i, MSG_PULL, b->pull_call);
    m.n_leases = b->pull_slots;
    sim_send(s, &m);
}

static void renew(struct sim *s, int i)
{
    struct sim_builder *b = &s->builders[i];
    if ((int64_t)s->now_ms - b->renewed < RENEW_MS) {
        return;
    }
    b->renewed = (int64_t)s->now_ms;
    struct sim_msg m = message(s, i, MSG_RENEW, ++s->calls);
    for (size_t k = 0; k < SIM_SLOTS; k++) {
        if (b->work[k].stage != WORK_NONE && b->work[k].stage != WORK_FINISH) {
            m.tokens[m.n_tokens++] = b->work[k].lease.token;
        }
    }
    if (m.n_tokens) {
        sim_send(s, &m);
    }
}

static void call(struct sim *s, int i, struct sim_work *w, enum msg_kind kind)
{
    int64_t now = (int64_t)s->now_ms;
    if (w->waiting && now - w->sent_at < RESEND_MS) {
        return;
    }
    if (!w->waiting) {
        w->call = ++s->calls;
        w->waiting = true;
    }
    w->sent_at = now;
    struct sim_msg m = message(s, i, kind, w->call);
    m.token = w->lease.token;
    m.finish = w->finish;
    sim_send(s, &m);
}

static void statement(struct sim *s, int i, size_t slot, enum stmt_kind kind)
{
    struct sim_work *w = &s->builders[i].work[slot];
    if (w->running) {
        return;
    }
    w->running = true;
    struct sim_stmt st = {
        .kind = kind,
        .builder = i,
        .slot = (int)slot,
        .table = w->lease.table,
        .by_binding = w->lease.by_binding,
        .job = w->lease.job,
        .incarnation = s->builders[i].incarnation,
        .token = w->lease.token,
    };
    memcpy(st.generation, w->lease.generation, sizeof(st.generation));
    memcpy(st.build_id, w->lease.build_id, sizeof(st.build_id));
    if (kind == STMT_BUILD) {
        sim_staging_drop(s, w->lease.earlier, w->lease.n_earlier);
        sim_results_discard(s, w->lease.earlier, w->lease.n_earlier);
    }
    sim_stmt_send(s, &st);
}

static void finish_as(struct sim_work *w, enum coord_outcome outcome, int code)
{
    w->stage = WORK_FINISH;
    w->running = w->waiting = false;
    w->finish.token = w->lease.token;
    w->finish.outcome = outcome;
    w->finish.error_code = code;
    w->finish.error_text = code ? err_code_text(code) : NULL;
}

static void work_step(struct sim *s, int i, size_t slot)
{
    struct sim_work *w = &s->builders[i].work[slot];
    switch (w->stage) {
    case WORK_NONE:
        return;
    case WORK_BUILD:
        statement(s, i, slot, STMT_BUILD);
        return;
    case WORK_GRANT:
        call(s, i, w, MSG_GRANT);
        return;
    case WORK_SWAP:
        statement(s, i, slot, STMT_SWAP);
        return;
    case WORK_RESOLVE:
        statement(s, i, slot, STMT_RESOLVE);
        return;
    case WORK_DROP:
        statement(s, i, slot, STMT_DROP);
        return;
    case WORK_SWEEP:
        statement(s, i, slot, STMT_SWEEP);
        return;
    case WORK_FINISH:
        call(s, i, w, MSG_FINISH);
        return;
    }
}

void sim_builder_step(struct sim *s, int i)
{
    if (sim_chance(s, s->faults.crash_builder)) {
        sim_builder_start(s, i);
        return;
    }
    renew(s, i);
    pull(s, i);
    work_step(s, i, sim_random(s, SIM_SLOTS));
}

/* ---- replies of the planner ---- */
static void take_leases(struct sim *s, struct sim_builder *b, const struct sim_msg *m)
{
    b->pull_waiting = false;
    for (size_t n = 0; n < m->n_leases; n++) {
        struct sim_work *w = NULL;
        for (size_t k = 0; k < SIM_SLOTS; k++) {
            w = !w && b->work[k].stage == WORK_NONE ? &b->work[k] : w;
        }
        if (!w) {
            sim_fail(s, "a builder got more work than it asked for");
        }
        *w = (struct sim_work){.lease = m->leases[n]};
        memcpy(w->live, m->live, sizeof(w->live));
        w->n_live = m->n_live;
        memcpy(w->keep, m->keep, sizeof(w->keep));
        w->n_keep = m->n_keep;
        static const enum work_stage first[] = {
            [KIND_BUILD] = WORK_BUILD,
            [KIND_RESOLVE] = WORK_RESOLVE,
            [KIND_DROP] = WORK_DROP,
            [KIND_SWEEP] = WORK_SWEEP,
        };
        w->stage = first[w->lease.kind];
    }
}

static struct sim_work *work_of(struct sim_builder *b, uint64_t token)
{
    for (size_t k = 0; k < SIM_SLOTS; k++) {
        if (b->work[k].stage != WORK_NONE && b->work[k].lease.token == token) {
            return &b->work[k];
        }
    }
    return NULL;
}

static void forget(struct sim *s, struct sim_work *w)
{
    if (w->lease.kind == KIND_BUILD) {
        sim_staging_drop(s, &w->lease.token, 1);
    }
    *w = (struct sim_work){0};
}

static void take_renewal(struct sim *s, struct sim_builder *b, const struct sim_msg *m)
{
    for (size_t n = 0; n < m->n_cancel; n++) {
        struct sim_work *w = work_of(b, m->cancel[n]);
        if (w && w->stage != WORK_FINISH && w->stage != WORK_SWAP) {
            sim_staging_drop(s, &w->lease.token, 1);
            sim_results_discard(s, &w->lease.token, 1);
            finish_as(w, OUTCOME_STOPPED, ERR_STOPPED);
        }
    }
    for (size_t n = 0; n < m->n_lost; n++) {
        struct sim_work *w = work_of(b, m->lost[n]);
        if (w && w->stage != WORK_FINISH && w->stage != WORK_SWAP) {
            forget(s, w);
        }
    }
}

static void take_grant(struct sim *s, struct sim_work *w, int rc)
{
    if (rc == 0) {
        w->stage = WORK_SWAP;
        w->waiting = false;
    } else if (rc == ERR_STOPPED) {
        sim_staging_drop(s, &w->lease.token, 1);
        finish_as(w, OUTCOME_STOPPED, rc);
    } else {
        forget(s, w);
    }
}

void sim_builder_reply(struct sim *s, int i, const struct sim_msg *m)
{
    struct sim_builder *b = &s->builders[i];
    if (m->incarnation != b->incarnation) {
        return; /* for a process that is gone */
    }
    struct sim_work *w = work_of(b, m->token);
    switch (m->kind) {
    case MSG_PULL:
        if (b->pull_waiting && m->call == b->pull_call) {
            take_leases(s, b, m);
        }
        return;
    case MSG_RENEW:
        take_renewal(s, b, m);
        return;
    case MSG_GRANT:
        if (w && w->stage == WORK_GRANT && w->waiting && w->call == m->call) {
            take_grant(s, w, m->rc);
        }
        return;
    default:
        if (w && w->stage == WORK_FINISH && w->waiting && w->call == m->call) {
            forget(s, w); /* recorded, or the lease was lost: nothing more to do */
        }
        return;
    }
}

/* ---- answers of the warehouse ---- */
static void answer_resolve(struct sim_work *w, const struct sim_answer *a)
{
    finish_as(w, a->error ? OUTCOME_ERROR : OUTCOME_OK, a->error);
    w->finish.has_fence = !a->error;
    w->finish.fence_claim = a->claim;
    w->finish.fence_published = a->published;
    w->finish.fence_still_there = a->still_there;
}

static void answer_swap(struct sim_work *w, int error)
{
    if (error == ERR_WH_UNKNOWN_OUTCOME) {
        finish_as(w, OUTCOME_UNKNOWN_, error);
    } else if (error == ERR_FENCED) {
        finish_as(w, OUTCOME_FENCED_, error);
    } else {
        finish_as(w, error ? OUTCOME_ERROR : OUTCOME_OK, error);
        w->finish.facts.rows = w->lease.token % 1000;
    }
}

static void sweep(struct sim *s, struct sim_work *w)
{
    for (size_t i = 0; i < s->n_staging;) {
        bool live = false;
        for (size_t k = 0; k < w->n_live; k++) {
            live = live || w->live[k] == s->staging[i];
        }
        if (live) {
            i++;
        } else {
            s->staging[i] = s->staging[--s->n_staging];
        }
    }
}

void sim_builder_answer(struct sim *s, const struct sim_stmt *st, const struct sim_answer *a)
{
    struct sim_builder *b = &s->builders[st->builder];
    struct sim_work *w = &b->work[st->slot];
    if (b->incarnation != st->incarnation || !w->running || w->lease.token != st->token) {
        return;
    }
    w->running = false;
    switch (st->kind) {
    case STMT_BUILD:
        if (a->error) {
            sim_staging_drop(s, &st->token, 1);
            sim_results_discard(s, &st->token, 1);
            finish_as(w, OUTCOME_ERROR, a->error);
        } else if (st->by_binding) { /* its record is its publication */
            finish_as(w, OUTCOME_OK, 0);
            w->finish.facts.rows = w->lease.token % 1000;
        } else {
            w->stage = WORK_GRANT;
        }
        return;
    case STMT_SWAP:
        if (a->error && a->error != ERR_WH_UNKNOWN_OUTCOME) {
            sim_staging_drop(s, &st->token, 1);
        }
        answer_swap(w, a->error);
        return;
    case STMT_RESOLVE:
        answer_resolve(w, a);
        return;
    case STMT_DROP:
        finish_as(w,
                  a->error == ERR_FENCED ? OUTCOME_FENCED_
                  : a->error             ? OUTCOME_ERROR
                                         : OUTCOME_OK,
                  a->error);
        return;
    case STMT_SWEEP:
        sweep(s, w);
        sim_results_sweep(s, w->lease.token, w->keep, w->n_keep);
        finish_as(w, OUTCOME_OK, 0);
        return;
    }
}
