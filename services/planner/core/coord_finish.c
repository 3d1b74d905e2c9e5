/* What builders report: the grant, the end of an attempt, the answer of a resolve (protocol.md 4,
 * 5). */
#include "services/planner/core/coord_internal.h"

static void take_facts(struct turn *t, struct attempt *a, const struct coord_facts *f,
                       int64_t took_ms)
{
    struct core_columns columns = columns_keep(t->c, &f->columns);
    free(a->facts.columns.items);
    a->facts = (struct facts){
        .rows = (int64_t)f->rows,
        .bytes = (int64_t)f->bytes,
        .data_as_of_us = f->data_as_of_us,
        .root = f->root,
        .took_ms = took_ms,
        .columns = columns,
    };
    a->has_facts = true;
}

static int lease_lost(struct err *e, uint64_t token)
{
    return err_set(e, ERR_LEASE_LOST, "token %llu is of no live attempt: its lease was given up",
                   (unsigned long long)token);
}

int coord_grant(struct coord *c, struct coord_now now, uint64_t token, const struct coord_facts *f,
                struct coord_out *o, struct err *e)
{
    struct turn t = {c, now, o};
    struct attempt *a = coord_find_attempt(c, token);
    if (a && a->state == ATTEMPT_GRANTED) {
        return 0;
    }
    if (!a || a->state != ATTEMPT_LEASED || a->is_resolve || a->job->kind != KIND_BUILD) {
        return lease_lost(e, token);
    }
    struct job *j = a->job;
    if (j->stop_requested) {
        return err_set(e, ERR_STOPPED, "the run was stopped");
    }
    if (!j->place->in_place) {
        return err_set(e, ERR_ARG, "a target published by binding needs no grant");
    }
    take_facts(&t, a, f, -1);
    move_attempt(&t, a, ATTEMPT_GRANTED, 0, NULL);
    j->granted_ever = true;
    move_job(&t, j, JOB_PUBLISHING);
    return 0;
}

/* ---- builds ---- */
static void build_published(struct turn *t, struct job *j, struct attempt *a)
{
    move_attempt(t, a, ATTEMPT_SUCCEEDED, 0, NULL);
    j->error_code = 0;
    free(j->error);
    j->error = NULL;
    move_job(t, j, JOB_DONE);
    generation_record(t, j, a);
    row_entry(t, j->run, j->item);
    struct place *p = j->place;
    job_ended(t, j);
    place_settle(t, p);
}

static void build_cancelled(struct turn *t, struct job *j, struct attempt *a, const char *text)
{
    move_attempt(t, a, ATTEMPT_CANCELLED, ERR_STOPPED, text);
    job_retry(t, j, ERR_STOPPED, text);
}

static int error_of(const struct coord_finish *f)
{
    if (f->error_code) {
        return f->error_code;
    }
    switch (f->outcome) {
    case OUTCOME_STOPPED:
        return ERR_STOPPED;
    case OUTCOME_FENCED_:
        return ERR_FENCED;
    case OUTCOME_UNKNOWN_:
        return ERR_WH_UNKNOWN_OUTCOME;
    default:
        return ERR_INTERNAL;
    }
}

/* After a grant nothing but the warehouse knows what came of it. */
static void build_unsure(struct turn *t, struct job *j, struct attempt *a, int code,
                         const char *text)
{
    move_attempt(t, a, ATTEMPT_LOST, code, text);
    char *copy = xstrdup(text);
    free(j->error);
    j->error = copy;
    j->error_code = code;
    job_resolve(t, j);
}

static void finish_build(struct turn *t, struct job *j, struct attempt *a,
                         const struct coord_finish *f)
{
    bool may_publish = a->state == ATTEMPT_GRANTED || (!j->place->in_place && !j->stop_requested);
    int code = error_of(f);
    const char *text = f->error_text && f->error_text[0] ? f->error_text : err_code_text(code);
    if (f->outcome == OUTCOME_OK && may_publish) {
        if (f->facts.columns.n || !a->has_facts) {
            take_facts(t, a, &f->facts, f->took_ms);
        }
        a->facts.took_ms = f->took_ms;
        build_published(t, j, a);
    } else if (a->state == ATTEMPT_GRANTED) {
        build_unsure(t, j, a, code, text);
    } else if (j->stop_requested) {
        build_cancelled(t, j, a, text);
    } else {
        if (f->outcome == OUTCOME_OK) {
            code = ERR_INTERNAL;
            text = "the builder finished a build without asking for its grant";
        }
        move_attempt(t, a, ATTEMPT_FAILED, code, text);
        job_retry(t, j, code, text);
    }
}

/* ---- resolves ---- */
static struct attempt *attempt_of_job(const struct job *j, uint64_t token)
{
    list_for_each (it, &j->attempt_list) {
        struct attempt *a = list_entry(it, struct attempt, link);
        if (a->token == token && !a->is_resolve && a->has_facts && a->state == ATTEMPT_LOST) {
            return a;
        }
    }
    return NULL;
}

/* The fence says what stands at the name: a result it does not name is gone, whoever took it away.
 */
static void place_disowns(struct turn *t, struct place *p, const struct coord_finish *f)
{
    list_for_each (it, &p->targets) {
        struct target *x = list_entry(it, struct target, link);
        list_for_each (at, &x->generations) {
            struct generation *g = list_entry(at, struct generation, link);
            if (g->g.token != f->fence_published || !f->fence_still_there) {
                move_generation(t, g, GENERATION_LOST);
            }
        }
    }
}

/* The fence now holds a claim above every swap of this job: what it names as published is final. */
static void finish_resolve(struct turn *t, struct job *j, struct attempt *a,
                           const struct coord_finish *f)
{
    if (f->outcome != OUTCOME_OK || !f->has_fence) {
        move_attempt(t, a, ATTEMPT_FAILED, error_of(f), f->error_text);
        job_resolve_again(t, j);
        return;
    }
    move_attempt(t, a, ATTEMPT_SUCCEEDED, 0, NULL);
    struct attempt *swapped = attempt_of_job(j, f->fence_published);
    if (swapped && f->fence_still_there) {
        build_published(t, j, swapped);
        return;
    }
    place_disowns(t, j->place, f);
    int code = j->error_code ? j->error_code : ERR_LEASE_LOST;
    auto_free char *text = xstrdup(j->error ? j->error : "the builder was lost while publishing");
    struct place *p = j->place;
    job_retry(t, j, code, text);
    place_settle(t, p);
}

/* ---- drops and sweeps ---- */
static void finish_loose(struct turn *t, struct job *j, struct attempt *a,
                         const struct coord_finish *f)
{
    if (f->outcome == OUTCOME_OK) {
        move_attempt(t, a, ATTEMPT_SUCCEEDED, 0, NULL);
        move_job(t, j, JOB_DONE);
        struct generation *g = j->kind == KIND_DROP ? generation_find(t->c, j->generation) : NULL;
        if (g && g->state == GENERATION_DROPPING) {
            move_generation(t, g, GENERATION_DROPPED);
        }
        job_ended(t, j);
        return;
    }
    int code = error_of(f);
    move_attempt(t, a, ATTEMPT_FAILED, code, f->error_text);
    job_retry(t, j, code, f->error_text ? f->error_text : err_code_text(code));
}

static bool recorded_before(const struct coord *c, uint64_t token)
{
    for (size_t i = 0; i < RECENT_TOKENS; i++) {
        if (c->recent[i].token == token) {
            return c->recent[i].recorded;
        }
    }
    return false;
}

int coord_finish(struct coord *c, struct coord_now now, const struct coord_finish *f,
                 struct coord_out *o, struct err *e)
{
    struct turn t = {c, now, o};
    if (f->has_fence) {
        coord_raise(c, f->fence_claim);
    }
    struct attempt *a = coord_find_attempt(c, f->token);
    if (!a) {
        return recorded_before(c, f->token) ? 0 : lease_lost(e, f->token);
    }
    if (!list_linked(&a->live_link)) {
        return a->state != ATTEMPT_LOST || a->reported ? 0 : lease_lost(e, f->token);
    }
    a->reported = true;
    if (a->is_resolve) {
        finish_resolve(&t, a->job, a, f);
    } else if (a->job->kind == KIND_BUILD) {
        finish_build(&t, a->job, a, f);
    } else {
        finish_loose(&t, a->job, a, f);
    }
    coord_turn_end(&t);
    return 0;
}
