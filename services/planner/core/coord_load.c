/* From rows back to memory: whatever was committed is enough to go on with (protocol.md 1). */
#include "services/planner/core/coord_internal.h"

#include <stdio.h>

void coord_load_numbers(struct coord *c, uint64_t greatest, uint64_t next_job, uint64_t next_place,
                        uint64_t next_target)
{
    coord_raise(c, greatest);
    c->next_job = next_job > c->next_job ? next_job : c->next_job;
    c->next_place = next_place > c->next_place ? next_place : c->next_place;
    c->next_target = next_target > c->next_target ? next_target : c->next_target;
}

static void run_fields(struct coord *c, struct run *r, const struct row_run *row)
{
    r->state = row->state;
    r->load = row->load;
    r->epoch = row->epoch;
    r->event = row->event;
    r->trigger = coord_intern(c, row->trigger ? row->trigger : "ON_DEMAND");
    r->force_refresh = row->force_refresh;
    r->reseed = row->reseed;
    r->take_over = row->take_over;
    r->stop_requested = row->stop_requested;
    r->has_names = row->has_names;
    r->names = strings_copy(&r->mem, row->names, row->n_names);
    r->n_names = row->n_names;
    if (row->request_id) {
        memcpy(r->request_id, row->request_id, sizeof(r->request_id));
        r->has_request_id = true;
    }
    r->trace = row->trace;
    r->created_us = row->created_us;
    r->started_us = row->started_us;
    r->completed_us = row->completed_us;
}

static void run_place(struct coord *c, struct run *r, const struct row_run *row)
{
    switch (r->state) {
    case RUN_REQUESTED:
    case RUN_PLANNING:
        list_add_tail(&c->to_plan, &r->todo_link);
        break;
    case RUN_BUILDING:
        plan_from_text(c, r, row->plan);
        break;
    case RUN_FAILED:
    case RUN_CANCELLED:
        list_add_tail(&c->ended, &r->ended_link);
        c->n_ended++;
        held_from_text(c, r, row->plan);
        break;
    case RUN_BINDING:
        r->metadata = arena_strdup(&r->mem, row->metadata);
        held_from_text(c, r, row->plan);
        break;
    case RUN_READY:
        held_from_text(c, r, row->plan);
        break;
    }
}

void coord_load_run(struct coord *c, const struct row_run *row)
{
    struct unit *u = coord_find_unit(c, row->unit);
    if (!u || coord_find_run(c, row->id)) {
        return;
    }
    struct run *r = run_new(c, u, row->id);
    run_fields(c, r, row);
    run_place(c, r, row);
    if (run_state_active(r->state)) {
        u->active = r;
    }
    long long unix_ms = 0;
    if (sscanf(row->id, "%13lld-", &unix_ms) == 1 && unix_ms > c->last_run_ms) {
        c->last_run_ms = unix_ms;
    }
}

void job_spec(struct coord *c, struct job *j)
{
    json_t *v = json_parse(slice_of(j->spec), NULL);
    if (j->kind == KIND_SWEEP) {
        j->t.connection = coord_intern(c, json_str(v, "connection", NULL));
    } else {
        j->t = target_from_json(c, json_object_get(v, "target"));
    }
    const char *generation = json_str(v, j->kind == KIND_DROP ? "generation" : "had", "");
    snprintf(j->generation, sizeof(j->generation), "%s", generation);
    j->wait_epoch = (uint64_t)json_int(v, "epoch", 0);
    json_decref(v);
}

static void job_fields(struct coord *c, struct job *j, const struct row_job *row)
{
    j->state = row->state;
    j->unit = row->unit;
    j->source_id = coord_intern(c, row->source_id);
    j->stop_requested = row->stop_requested;
    j->granted_ever = row->granted_ever;
    j->attempts = row->attempts;
    j->retry_at_us = row->retry_at_us;
    j->error_code = row->error_code;
    j->error = row->error ? xstrdup(row->error) : NULL;
    j->spec = xstrdup(row->spec ? row->spec : "{}");
    job_spec(c, j);
    j->target = target_by_id(c, row->target);
    j->place = j->target ? j->target->place : NULL;
    if (j->place && !job_state_ended(j->state)) {
        list_add_tail(&j->place->jobs, &j->place_link);
    }
    if (j->state == JOB_LEASED || j->state == JOB_PUBLISHING || j->state == JOB_RESOLVING) {
        if (j->place) {
            j->place->holder = j;
        }
    }
}

static void job_parents(struct coord *c, struct job *j, const struct row_job *row)
{
    struct job **parents = xcalloc(row->n_parents, sizeof(*parents));
    size_t n = 0;
    for (size_t i = 0; i < row->n_parents; i++) {
        struct job *parent = map_get_u64(&c->jobs, row->parents[i]);
        if (parent) {
            parents[n++] = parent;
        }
    }
    job_link(j, parents, n);
    free(parents);
}

void coord_load_job(struct coord *c, const struct row_job *row)
{
    struct run *r = row->run ? coord_find_run(c, row->run) : NULL;
    if (row->id >= c->next_job) {
        c->next_job = row->id + 1;
    }
    bool wanted = row->run ? r && r->state == RUN_BUILDING : !job_state_ended(row->state);
    if (!wanted) { /* of a run that only waits for its gateways: its plan is forgotten already */
        return;
    }
    struct job *j = job_new(c, row->kind, row->id);
    job_fields(c, j, row);
    if (!r) {
        list_add_tail(&c->loose, &j->loose_link);
        return;
    }
    j->item = map_get_u64(&r->by_target, row->target);
    must(j->item != NULL);
    j->item->job = j;
    job_parents(c, j, row);
    run_add_job(r, j);
}

static void attempt_fields(struct coord *c, struct attempt *a, const struct row_attempt *row)
{
    a->number = row->number;
    a->is_resolve = row->is_resolve;
    a->state = row->state;
    a->builder = coord_intern(c, row->builder);
    a->boot = row->boot;
    a->pull_index = row->pull_index;
    memcpy(a->pull_request, row->pull_request, sizeof(a->pull_request));
    snprintf(a->generation, sizeof(a->generation), "%s", row->generation ? row->generation : "");
    facts_from_text(c, row->progress, a);
    bool live = a->state == ATTEMPT_LEASED || a->state == ATTEMPT_GRANTED;
    a->reported = !live && row->error_code != ERR_LEASE_LOST;
}

void coord_load_attempt(struct coord *c, const struct row_attempt *row, struct coord_now now)
{
    coord_raise(c, row->token);
    pull_remember(c, row->pull_request);
    struct job *j = map_get_u64(&c->jobs, row->job);
    if (!j) {
        c->recent[c->at_recent % RECENT_TOKENS].token = row->token;
        c->recent[c->at_recent % RECENT_TOKENS].recorded =
            row->state != ATTEMPT_LOST || row->error_code != ERR_LEASE_LOST;
        c->at_recent++;
        return;
    }
    struct attempt *a = attempt_add(c, j, row->token);
    attempt_fields(c, a, row);
    if (a->state == ATTEMPT_LEASED || a->state == ATTEMPT_GRANTED) {
        a->lease_until = ms_add(now.mono, c->lim.lease);
        a->row_until = a->saved_at =
            now.mono; /* the row may be short: the next renewal writes it */
        list_add_tail(&c->live, &a->live_link);
        c->n_leased++;
    }
}

/* ---- going on ---- */
static bool has_live_attempt(const struct job *j)
{
    list_for_each (it, &j->attempt_list) {
        if (list_linked(&list_entry(it, struct attempt, link)->live_link)) {
            return true;
        }
    }
    return false;
}

/* Waits are monotonic inside a process and stored as a point of wall time: never longer than the
 * longest one. */
enum { WAIT_MAX_MS = 30000 };

static void jobs_queue(struct turn *t)
{
    for (struct map_iter it = map_begin(&t->c->jobs); map_next(&it);) {
        struct job *j = it.value;
        if (j->retry_at_us) {
            int64_t left = (j->retry_at_us - t->now.unix_us) / 1000;
            left = left > WAIT_MAX_MS ? WAIT_MAX_MS : left;
            j->due = left > 0 ? ms_add(t->now.mono, MS(left)) : MS(0);
        }
        if (!has_live_attempt(j)) {
            job_queue(t->c, j, t->now.mono);
        }
    }
    if (map_len(&t->c->jobs) > 0) {
        coord_note(t, NOTE_JOBS);
    }
}

static void run_go_on(struct turn *t, struct run *r)
{
    if (r->state == RUN_BUILDING && r->n_open == 0) {
        list_add_tail(&t->c->ending, &r->ending_link);
    } else if (r->state == RUN_BINDING) {
        run_bind_start(t, r);
        run_check_bound(t, r);
    } else if ((r->state == RUN_PLANNING || r->state == RUN_REQUESTED) && r->stop_requested) {
        run_cancel(t, r);
    } else if (run_state_active(r->state)) {
        struct coord_note *n = coord_note(t, NOTE_RUN);
        memcpy(n->run, r->id, sizeof(n->run));
        n->unit = r->unit->row.id;
        n->trace = r->trace;
        n->state = r->state;
    }
}

void coord_started(struct coord *c, struct coord_now now, struct coord_out *o)
{
    struct turn t = {c, now, o};
    /* who has just taken over has not heard the gateways yet that are out there */
    c->unheard_until = map_len(&c->units) > 0 ? ms_add(now.mono, c->lim.gateway_comes) : now.mono;
    jobs_queue(&t);
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        struct unit *u = it.value;
        if (u->row.reload_emptied && !u->active) {
            unit_restore(&t, u);
        }
        if (u->set) {
            unit_await(&t, u);
        }
    }
    retire_loaded(&t);
    for (struct map_iter it = map_begin(&c->runs); map_next(&it);) {
        run_go_on(&t, it.value);
    }
    coord_turn_end(&t);
}
