/* Every change of a state, in memory and as a row at once, so that the two cannot part. */
#include "services/planner/core/coord_internal.h"

void job_queue(struct coord *c, struct job *j, struct ms mono)
{
    list_del(&j->todo);
    if (j->state != JOB_READY && j->state != JOB_RESOLVING) {
        return;
    }
    if (ms_before(mono, j->due)) {
        list_add_tail(&c->delayed, &j->todo);
    } else {
        list_add_tail(j->state == JOB_READY ? &c->ready : &c->resolving, &j->todo);
    }
}

static bool job_holds_place(enum job_state s)
{
    return s == JOB_LEASED || s == JOB_PUBLISHING || s == JOB_RESOLVING;
}

static void fill_job(struct turn *t, struct row_job *row, const struct job *j)
{
    struct arena *a = t->o->rows.arena;
    *row = (struct row_job){
        .id = j->id,
        .run = j->run ? arena_strdup(a, j->run->id) : NULL,
        .kind = j->kind,
        .place = j->place ? j->place->id : 0,
        .target = j->target ? j->target->t.target_id : 0,
        .unit = j->unit,
        .source_id = arena_strdup(a, j->source_id),
        .from = j->state,
        .state = j->state,
        .stop_requested = j->stop_requested,
        .granted_ever = j->granted_ever,
        .attempts = j->attempts,
        .retry_at_us = j->retry_at_us,
        .error_code = j->error_code,
        .error = arena_strdup(a, j->error),
    };
}

void insert_job(struct turn *t, struct job *j)
{
    struct arena *a = t->o->rows.arena;
    struct row_job *row = &rows_add(&t->o->rows, ROW_JOB_INSERT)->u.job;
    fill_job(t, row, j);
    row->spec = arena_strdup(a, j->spec);
    uint64_t *parents = arena_alloc(a, (j->n_parents + 1) * sizeof(*parents));
    for (size_t i = 0; i < j->n_parents; i++) {
        parents[i] = j->parents[i]->id;
    }
    row->parents = parents;
    row->n_parents = j->n_parents;
}

void update_job(struct turn *t, struct job *j)
{
    fill_job(t, &rows_add(&t->o->rows, ROW_JOB_UPDATE)->u.job, j);
}

void move_job(struct turn *t, struct job *j, enum job_state to)
{
    enum job_state from = j->state;
    must(states_move_allowed("job", job_state_name(from), job_state_name(to)));
    j->state = to;
    if (j->place && job_holds_place(to) && !job_holds_place(from)) {
        must(j->place->holder == NULL);
        j->place->holder = j;
    } else if (j->place && !job_holds_place(to) && job_holds_place(from)) {
        must(j->place->holder == j);
        j->place->holder = NULL;
    }
    job_queue(t->c, j, t->now.mono);
    struct row_job *row = &rows_add(&t->o->rows, ROW_JOB_MOVE)->u.job;
    fill_job(t, row, j);
    row->from = from;
}

void move_run(struct turn *t, struct run *r, enum run_state to, struct row_run *more)
{
    must(states_move_allowed("run", run_state_name(r->state), run_state_name(to)));
    struct row_run *row = &rows_add(&t->o->rows, ROW_RUN_MOVE)->u.run;
    if (more) {
        *row = *more;
    }
    row->id = arena_strdup(t->o->rows.arena, r->id);
    row->unit = r->unit->row.id;
    row->load = r->load;
    row->epoch = r->epoch;
    row->from = r->state;
    row->state = to;
    row->started_us = r->started_us;
    r->state = to;
    if (!run_state_active(to)) {
        r->completed_us = t->now.unix_us;
        row->completed_us = r->completed_us;
        r->unit->active = NULL;
    }
    struct coord_note *n = coord_note(t, NOTE_RUN);
    memcpy(n->run, r->id, sizeof(n->run));
    n->state = to;
    n->trace = r->trace;
    n->unit = r->unit->row.id;
}

void move_attempt(struct turn *t, struct attempt *a, enum attempt_state to, int code,
                  const char *text)
{
    struct arena *mem = t->o->rows.arena;
    enum attempt_state from = a->state;
    must(states_move_allowed("attempt", attempt_state_name(from), attempt_state_name(to)));
    a->state = to;
    if (to != ATTEMPT_GRANTED && list_linked(&a->live_link)) {
        list_del(&a->live_link);
        t->c->n_leased--;
    }
    struct row_attempt *row = &rows_add(&t->o->rows, ROW_ATTEMPT_MOVE)->u.attempt;
    *row = (struct row_attempt){
        .token = a->token,
        .job = a->job->id,
        .number = a->number,
        .is_resolve = a->is_resolve,
        .from = from,
        .state = to,
        .generation = a->generation[0] ? arena_strdup(mem, a->generation) : NULL,
        .progress = a->has_facts ? facts_text(mem, a) : NULL,
        .error_code = code,
        .error = arena_strdup(mem, text),
    };
}

void move_generation(struct turn *t, struct generation *g, enum generation_state to)
{
    must(states_move_allowed("generation", generation_state_name(g->state),
                             generation_state_name(to)));
    struct row_generation *row = &rows_add(&t->o->rows, ROW_GENERATION_MOVE)->u.generation;
    struct arena *a = t->o->rows.arena;
    *row = (struct row_generation){
        .g = {.id = arena_strdup(a, g->id), .token = g->g.token},
        .target = g->target->t.target_id,
        .from = g->state,
        .state = to,
    };
    list_del(&g->retired_link);
    g->state = to;
    if (to == GENERATION_RETIRED) {
        retire_begin(t->c, g, t->now.mono);
    }
    if (to == GENERATION_DROPPED || to == GENERATION_OVERWRITTEN || to == GENERATION_LOST) {
        generation_forget(t->c, g);
    }
}

void row_unit(struct turn *t, const struct unit *u)
{
    rows_add(&t->o->rows, ROW_UNIT)->u.unit = (struct row_unit){
        u->row.id,
        u->row.load,
        u->row.epoch,
        u->row.reload_emptied,
    };
}
