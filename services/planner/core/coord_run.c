/* Runs from their creation to the jobs: create, plan. Their end is coord_end.c,
 * their deletion coord_delete.c. */
#include "services/planner/core/coord_internal.h"

/* ---- create ---- */
/* Milliseconds and nine digits of a counter, so that ids sort by time as text (decisions 7.7). */
static void run_name(struct coord *c, struct coord_now now, char out[RUN_ID])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    int64_t unix_ms = now.unix_us / 1000;
    if (unix_ms < c->last_run_ms) {
        unix_ms = c->last_run_ms;
    }
    c->last_run_ms = unix_ms;
    uint64_t counter = coord_next_token(c, now);
    char suffix[10] = {0};
    for (size_t i = 9; i-- > 0;) {
        suffix[i] = digits[counter % 36];
        counter /= 36;
    }
    for (size_t i = 13; i-- > 0;) {
        out[i] = digits[unix_ms % 10];
        unix_ms /= 10;
    }
    out[13] = '-';
    memcpy(out + 14, suffix, sizeof(suffix));
}

static struct run *run_of_request(const struct unit *u, const uint8_t *request_id)
{
    list_for_each (it, &u->runs) {
        struct run *r = list_entry(it, struct run, unit_link);
        if (request_id && r->has_request_id && memcmp(r->request_id, request_id, 16) == 0) {
            return r;
        }
    }
    return NULL;
}

struct run *run_new(struct coord *c, struct unit *u, const char *id)
{
    struct run *r = xcalloc(1, sizeof(*r));
    strncpy(r->id, id, sizeof(r->id) - 1);
    r->unit = u;
    r->bind_until = r->loading_until = r->check_due = MS_NONE;
    arena_init(&r->mem);
    map_init(&r->by_target);
    list_init(&r->todo_link);
    list_init(&r->ending_link);
    list_init(&r->ended_link);
    struct list *before = u->runs.prev; /* by id, that is by time */
    while (before != &u->runs && strcmp(list_entry(before, struct run, unit_link)->id, r->id) > 0) {
        before = before->prev;
    }
    list_add_head(before, &r->unit_link);
    map_put(&c->runs, slice_of(r->id), r);
    return r;
}

static void run_fill(struct coord *c, struct run *r, const struct coord_run_new *n)
{
    r->event = n->event;
    r->trigger = coord_intern(c, n->trigger);
    r->force_refresh = n->force_refresh;
    r->reseed = n->reseed;
    r->take_over = n->take_over;
    r->has_names = n->has_names;
    r->names = strings_copy(&r->mem, n->names, n->n_names);
    r->n_names = n->n_names;
    r->trace = n->trace;
    if (n->request_id) {
        memcpy(r->request_id, n->request_id, sizeof(r->request_id));
        r->has_request_id = true;
    }
}

static void row_run_insert(struct turn *t, const struct run *r, const char *run_context)
{
    struct arena *a = t->o->rows.arena;
    const struct counts none = {0};
    rows_add(&t->o->rows, ROW_RUN_INSERT)->u.run = (struct row_run){
        .id = arena_strdup(a, r->id),
        .unit = r->unit->row.id,
        .from = RUN_REQUESTED,
        .state = RUN_REQUESTED,
        .trigger = arena_strdup(a, r->trigger),
        .force_refresh = r->force_refresh,
        .reseed = r->reseed,
        .take_over = r->take_over,
        .has_names = r->has_names,
        .names = strings_copy(a, r->names, r->n_names),
        .n_names = r->n_names,
        .run_context = arena_strdup(a, run_context),
        .request_id = r->has_request_id ? arena_dup(a, r->request_id, 16) : NULL,
        .trace = r->trace,
        .event = r->event,
        .metadata = run_metadata(a, r, &none, 0),
        .created_us = r->created_us,
    };
}

int coord_run_create(struct coord *c, struct coord_now now, const struct coord_run_new *n,
                     char out_id[24], struct coord_out *o, struct err *e)
{
    struct turn t = {c, now, o};
    struct unit *u = coord_find_unit(c, n->unit);
    if (!u) {
        return err_set(e, ERR_NOT_FOUND, "no such package");
    }
    const struct run *same = run_of_request(u, n->request_id);
    if (same) {
        memcpy(out_id, same->id, RUN_ID);
        return 0;
    }
    if (u->active) {
        return err_set(e, ERR_RUN_ACTIVE, "package '%s' already has an active materialization: %s",
                       u->row.name, u->active->id);
    }
    char id[RUN_ID];
    run_name(c, now, id);
    struct run *r = run_new(c, u, id);
    run_fill(c, r, n);
    r->created_us = now.unix_us;
    u->active = r;
    list_add_tail(&c->to_plan, &r->todo_link);
    row_run_insert(&t, r, n->run_context);
    struct coord_note *note = coord_note(&t, NOTE_RUN);
    memcpy(note->run, r->id, sizeof(note->run));
    note->unit = u->row.id;
    note->trace = r->trace;
    note->state = RUN_REQUESTED;
    memcpy(out_id, id, RUN_ID);
    return 0;
}

/* ---- planning ---- */
const char *coord_run_to_plan(const struct coord *c)
{
    if (list_empty(&c->to_plan)) {
        return NULL;
    }
    return list_entry(c->to_plan.next, struct run, todo_link)->id;
}

const char *coord_run_next_to_plan(const struct coord *c, const char *after)
{
    bool seen = after == NULL;
    list_for_each (it, &c->to_plan) {
        const struct run *r = list_entry(it, struct run, todo_link);
        if (seen) {
            return r->id;
        }
        seen = strcmp(r->id, after) == 0;
    }
    return NULL;
}

uint64_t coord_run_unit(const struct coord *c, const char *run)
{
    const struct run *r = coord_find_run(c, run);
    return r ? r->unit->row.id : 0;
}

bool coord_run_request(const struct coord *c, const char *run, struct coord_run_new *out)
{
    const struct run *r = coord_find_run(c, run);
    if (!r || !run_state_active(r->state)) {
        return false;
    }
    *out = (struct coord_run_new){
        .unit = r->unit->row.id,
        .event = r->event,
        .trigger = r->trigger,
        .force_refresh = r->force_refresh,
        .reseed = r->reseed,
        .take_over = r->take_over,
        .has_names = r->has_names,
        .names = r->names,
        .n_names = r->n_names,
        .request_id = r->has_request_id ? r->request_id : NULL,
        .trace = r->trace,
    };
    return true;
}

int coord_run_planning(struct coord *c, struct coord_now now, const char *run, struct coord_out *o)
{
    struct turn t = {c, now, o};
    struct run *r = coord_find_run(c, run);
    if (!r) {
        return ERR_NOT_FOUND;
    }
    if (r->taken || (r->state != RUN_REQUESTED && r->state != RUN_PLANNING)) {
        return ERR_RUN_STATE;
    }
    r->taken = true;
    list_del(&r->todo_link);
    if (r->state == RUN_REQUESTED) {
        r->started_us = now.unix_us;
        move_run(&t, r, RUN_PLANNING, NULL);
    }
    return 0;
}

static struct run *run_in_planning(const struct coord *c, const char *id, int *rc)
{
    struct run *r = coord_find_run(c, id);
    *rc = !r ? ERR_NOT_FOUND : r->state != RUN_PLANNING ? ERR_RUN_STATE : 0;
    return r;
}

int coord_run_plan_failed(struct coord *c, struct coord_now now, const char *run, const char *text,
                          struct coord_out *o)
{
    struct turn t = {c, now, o};
    int rc;
    struct run *r = run_in_planning(c, run, &rc);
    if (rc) {
        return rc;
    }
    if (r->stop_requested) {
        run_cancel(&t, r);
    } else {
        run_fail(&t, r, text, NULL);
    }
    coord_turn_end(&t);
    return 0;
}

/* A plan that cannot be carried out is the planner's mistake; one that is out of date is nobody's.
 */
static int plan_check(const struct turn *t, const struct run *r, const struct run_plan *p)
{
    struct map places;
    map_init(&places);
    int rc = p->load == r->unit->row.load ? 0 : ERR_STORE_MOVED;
    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        const struct plan_target *x = &p->targets[i];
        auto_buf struct buf key = {0};
        buf_addf(&key, "%s\x1f%s", x->target.warehouse, x->target.physical);
        if (map_put(&places, buf_slice(&key), &places)) {
            rc = ERR_ARG;
        }
        for (size_t k = 0; k < x->n_parents; k++) {
            rc = x->parents[k] >= i ? ERR_ARG : rc;
        }
        const struct core_generation *now = coord_current_generation(t->c, &x->target);
        if (x->action == PLAN_CARRY && (!now || strcmp(now->id, x->generation.id) != 0)) {
            rc = rc ? rc : ERR_STORE_MOVED;
        }
    }
    map_fini(&places);
    return rc;
}

static void item_take(struct turn *t, struct run *r, const struct plan_target *in,
                      struct plan_item *it)
{
    struct coord *c = t->c;
    struct arena *a = &r->mem;
    it->target = target_obtain(t, &in->target);
    it->p = *in;
    it->p.target = target_keep(c, &in->target);
    it->p.target.target_id = it->target->t.target_id;
    it->p.target.place_id = it->target->place->id;
    it->p.source_id = coord_intern(c, in->source_id);
    it->p.source_name = coord_intern(c, in->source_name);
    it->p.model = coord_intern(c, in->model);
    bool alone = in->n_sources == 0;
    it->p.n_sources = alone ? 1 : in->n_sources;
    it->p.source_ids = strings_copy(a, alone ? &in->source_id : in->source_ids, it->p.n_sources);
    it->p.source_names =
        strings_copy(a, alone ? &in->source_name : in->source_names, it->p.n_sources);
    it->p.source_models = strings_copy(a, alone ? &in->model : in->source_models, it->p.n_sources);
    it->p.sql = it->p.tag = it->p.why = NULL;
    it->p.parents = arena_dup(a, in->parents, in->n_parents * sizeof(*in->parents));
    it->p.generation.id = arena_strdup(a, in->generation.id);
    it->p.generation.columns = (struct core_columns){0};
    it->p.fail_text = arena_strdup(a, in->fail_text);
    it->p.upstream_reuse = coord_intern(c, in->upstream_reuse);
    it->p.upstream_recompute_reason = arena_strdup(a, in->upstream_recompute_reason);
    map_put_u64(&r->by_target, it->p.target.target_id, it);
}

/* A build that reads a failed one cannot be: it fails here already, naming what failed first. */
static void item_fail_by_parent(struct run *r, struct plan_item *it)
{
    for (size_t k = 0; it->p.action == PLAN_BUILD && k < it->p.n_parents; k++) {
        const struct plan_item *parent = &r->items[it->p.parents[k]];
        if (parent->p.action != PLAN_FAIL) {
            continue;
        }
        static const char start[] = "not built because its upstream";
        bool passed_on = strncmp(parent->p.fail_text, start, strlen(start)) == 0;
        it->p.action = PLAN_FAIL;
        it->p.fail_code = parent->p.fail_code;
        it->p.fail_text =
            passed_on ? parent->p.fail_text
                      : arena_printf(&r->mem, "%s '%s' failed", start, parent->p.source_name);
    }
}

static void plan_take(struct turn *t, struct run *r, const struct run_plan *p)
{
    struct arena *a = &r->mem;
    r->load = p->load;
    r->compiler_version = coord_intern(t->c, p->compiler_version);
    r->n_items = p->n;
    r->items = arena_zalloc(a, (p->n + 1) * sizeof(*r->items));
    for (size_t i = 0; i < p->n; i++) {
        item_take(t, r, &p->targets[i], &r->items[i]);
        item_fail_by_parent(r, &r->items[i]);
    }
    r->n_refusals = p->n_refusals;
    r->refusals = arena_zalloc(a, (p->n_refusals + 1) * sizeof(*r->refusals));
    for (size_t i = 0; i < p->n_refusals; i++) {
        const struct plan_refusal *f = &p->refusals[i];
        r->refusals[i] = (struct plan_refusal){
            arena_strdup(a, f->source_id),
            arena_strdup(a, f->name),
            arena_strdup(a, f->model),
            arena_strdup(a, f->tier),
            arena_strdup(a, f->reason),
            arena_strdup(a, f->message),
            f->authored,
        };
    }
}

static char *build_spec(const struct plan_target *in, const struct plan_item *it, const char *had)
{
    json_t *v = json_object();
    must(json_object_set_new(v, "target", target_to_json(&it->p.target)) == 0);
    json_set_str(v, "sql", in->sql ? in->sql : "");
    json_set_str(v, "tag", in->tag ? in->tag : "");
    json_set_str(v, "sourceName", it->p.source_name);
    if (had) {
        json_set_str(v, "had", had);
    }
    char *text = json_text(v);
    json_decref(v);
    return text;
}

void run_add_job(struct run *r, struct job *j)
{
    if (r->n_jobs == r->cap_jobs) {
        r->cap_jobs = r->cap_jobs ? r->cap_jobs * 2 : 16;
        r->jobs = xrealloc(r->jobs, r->cap_jobs * sizeof(struct job *));
    }
    r->jobs[r->n_jobs++] = j;
    j->run = r;
    r->n_open += !job_state_ended(j->state);
}

static void job_make(struct turn *t, struct run *r, const struct plan_target *in,
                     struct plan_item *it)
{
    struct job *j = job_new(t->c, KIND_BUILD, t->c->next_job);
    j->unit = r->unit->row.id;
    j->item = it;
    it->job = j;
    j->target = it->target;
    j->place = it->target->place;
    j->t = it->p.target;
    j->source_id = it->p.source_id;
    list_add_tail(&j->place->jobs, &j->place_link);
    const struct generation *had = target_current(it->target);
    if (had) {
        memcpy(j->generation, had->id, sizeof(j->generation));
    }
    j->spec = build_spec(in, it, had ? had->id : NULL);
    struct job **parents = arena_alloc(t->o->rows.arena, (in->n_parents + 1) * sizeof(*parents));
    size_t n = 0;
    for (size_t k = 0; k < in->n_parents; k++) {
        struct job *parent = r->items[in->parents[k]].job;
        if (parent) {
            parents[n++] = parent;
        }
    }
    job_link(j, parents, n);
    j->state = j->n_waiting ? JOB_WAITING : JOB_READY;
    run_add_job(r, j);
    job_queue(t->c, j, t->now.mono);
    insert_job(t, j);
}

/* Decisions 5.1: refused rollups never count; every authored source, or a named one, must be
 * refused. */
static bool refusals_fail(const struct run_plan *p)
{
    size_t refused = 0;
    for (size_t i = 0; i < p->n_refusals; i++) {
        refused += p->refusals[i].authored;
    }
    return p->named_refused || (p->n_authored > 0 && refused >= p->n_authored);
}

static void run_build(struct turn *t, struct run *r, const struct run_plan *p)
{
    struct row_run more = {.plan = run_plan_text(t->o->rows.arena, r)};
    move_run(t, r, RUN_BUILDING, &more);
    for (size_t i = 0; i < p->n; i++) {
        if (r->items[i].p.action == PLAN_BUILD) {
            job_make(t, r, &p->targets[i], &r->items[i]);
        }
    }
    coord_note(t, NOTE_JOBS);
}

int coord_run_planned(struct coord *c, struct coord_now now, const char *run,
                      const struct run_plan *p, struct coord_out *o)
{
    struct turn t = {c, now, o};
    int rc;
    struct run *r = run_in_planning(c, run, &rc);
    if (rc) {
        return rc;
    }
    if (r->stop_requested) {
        run_cancel(&t, r);
        coord_turn_end(&t);
        return 0;
    }
    rc = plan_check(&t, r, p);
    if (rc == ERR_STORE_MOVED && r->taken) {
        r->taken = false;
        list_add_tail(&c->to_plan, &r->todo_link);
    }
    if (rc == ERR_ARG) { /* a run must not hang because of a mistake of ours */
        run_fail(&t, r, "the plan names one table twice, or a parent after its child", NULL);
        coord_turn_end(&t);
        return 0;
    }
    if (rc) {
        return rc;
    }
    plan_take(&t, r, p);
    bool refused = refusals_fail(p);
    if (p->fail || refused) {
        run_fail(&t, r, p->fail ? p->fail : refusals_text(o->rows.arena, p), NULL);
        coord_turn_end(&t);
        return 0;
    }
    size_t n_builds = 0;
    for (size_t i = 0; i < r->n_items; i++) {
        n_builds += r->items[i].p.action == PLAN_BUILD;
    }
    if (n_builds) {
        run_build(&t, r, p);
    }
    for (size_t i = 0; i < r->n_items; i++) {
        if (r->items[i].p.action != PLAN_BUILD) {
            row_entry(&t, r, &r->items[i]);
        }
    }
    if (!n_builds) {
        run_planned_end(&t, r);
    }
    coord_turn_end(&t);
    return 0;
}
