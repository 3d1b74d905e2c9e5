/* Jobs between ready and their end: readiness, retry, what a lost lease means, who waits for whom.
 */
#include "services/planner/core/coord_internal.h"

/* ---- life ---- */
struct job *job_new(struct coord *c, enum job_kind kind, uint64_t id)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->id = id;
    j->kind = kind;
    j->state = JOB_READY;
    list_init(&j->todo);
    list_init(&j->place_link);
    list_init(&j->loose_link);
    list_init(&j->attempt_list);
    map_put_u64(&c->jobs, id, j);
    if (id >= c->next_job) {
        c->next_job = id + 1;
    }
    return j;
}

static void child_add(struct job *parent, struct job *child)
{
    if (parent->n_children == parent->cap_children) {
        parent->cap_children = parent->cap_children ? parent->cap_children * 2 : 4;
        parent->children = xrealloc(parent->children, parent->cap_children * sizeof(struct job *));
    }
    parent->children[parent->n_children++] = child;
}

static bool ended_well(enum job_state s)
{
    return s == JOB_DONE || s == JOB_CARRIED;
}

void job_link(struct job *j, struct job *const *parents, size_t n)
{
    if (n == 0) {
        return;
    }
    j->parents = xcalloc(n, sizeof(struct job *));
    for (size_t i = 0; i < n; i++) {
        j->parents[j->n_parents++] = parents[i];
        child_add(parents[i], j);
        j->n_waiting += !ended_well(parents[i]->state);
    }
}

static void attempt_free(struct coord *c, struct attempt *a)
{
    c->recent[c->at_recent % RECENT_TOKENS].token = a->token;
    c->recent[c->at_recent % RECENT_TOKENS].recorded = a->state != ATTEMPT_LOST || a->reported;
    c->at_recent++;
    map_del_u64(&c->attempts, a->token);
    list_del(&a->link);
    if (list_linked(&a->live_link)) {
        list_del(&a->live_link);
        c->n_leased--;
    }
    free(a->facts.columns.items);
    free(a);
}

void job_free(struct coord *c, struct job *j)
{
    list_for_each (it, &j->attempt_list) {
        attempt_free(c, list_entry(it, struct attempt, link));
    }
    map_del_u64(&c->jobs, j->id);
    list_del(&j->todo);
    list_del(&j->place_link);
    list_del(&j->loose_link);
    free(j->parents);
    free(j->children);
    free(j->spec);
    free(j->error);
    free(j);
}

struct attempt *attempt_add(struct coord *c, struct job *j, uint64_t token)
{
    struct attempt *a = xcalloc(1, sizeof(*a));
    a->token = token;
    a->job = j;
    a->facts.took_ms = -1;
    list_init(&a->live_link);
    list_add_tail(&j->attempt_list, &a->link);
    map_put_u64(&c->attempts, token, a);
    coord_raise(c, token);
    return a;
}

struct attempt *job_published(const struct job *j)
{
    list_for_each (it, &j->attempt_list) {
        struct attempt *a = list_entry(it, struct attempt, link);
        if (!a->is_resolve && a->state == ATTEMPT_SUCCEEDED) {
            return a;
        }
    }
    return NULL;
}

/* ---- ends ---- */
static void skip_children(struct turn *t, struct job *failed)
{
    for (size_t i = 0; i < failed->n_children; i++) {
        struct job *child = failed->children[i];
        if (child->state != JOB_WAITING) {
            continue;
        }
        free(child->error);
        child->error_code = failed->error_code;
        child->error = failed->state == JOB_SKIPPED
                           ? xstrdup(failed->error)
                           : xasprintf("not built because its upstream '%s' failed",
                                       failed->item->p.source_name);
        move_job(t, child, JOB_SKIPPED);
        row_entry(t, child->run, child->item);
        job_ended(t, child);
    }
}

void job_ended(struct turn *t, struct job *j)
{
    if (j->place && list_linked(&j->place_link)) {
        list_del(&j->place_link);
        if (!list_empty(&j->place->jobs)) {
            coord_note(t, NOTE_JOBS);
        }
    }
    if (!j->run) {
        struct coord_note *n = coord_note(t, NOTE_JOB_ENDED);
        n->job = j->id;
        n->unit = j->unit;
        n->rc = j->state == JOB_DONE ? 0 : j->error_code;
        return;
    }
    if (ended_well(j->state)) {
        for (size_t i = 0; i < j->n_children; i++) {
            struct job *child = j->children[i];
            must(child->n_waiting > 0);
            if (--child->n_waiting == 0 && child->state == JOB_WAITING) {
                job_ready(t, child, MS(0));
            }
        }
    } else {
        skip_children(t, j);
    }
    must(j->run->n_open > 0);
    if (--j->run->n_open == 0 && !list_linked(&j->run->ending_link)) {
        list_add_tail(&t->c->ending, &j->run->ending_link);
    }
}

/* A drop that did not come about: nobody knows what the name holds, so it is built anew by whoever
 * needs it. */
static void drop_given_up(struct turn *t, struct job *j)
{
    struct generation *g = generation_find(t->c, j->generation);
    if (g && g->state == GENERATION_DROPPING) {
        move_generation(t, g, GENERATION_LOST);
    }
}

static void job_stop(struct turn *t, struct job *j, enum job_state to)
{
    move_job(t, j, to);
    if (j->kind == KIND_DROP) {
        drop_given_up(t, j);
    }
    if (j->kind == KIND_BUILD && to == JOB_FAILED) {
        row_entry(t, j->run, j->item);
    }
    job_ended(t, j);
}

void job_fail(struct turn *t, struct job *j, int code, const char *text)
{
    j->error_code = code;
    char *copy = xstrdup(text && text[0] ? text : err_code_text(code));
    free(j->error);
    j->error = copy;
    job_stop(t, j, JOB_FAILED);
}

/* ---- ready, and ready again ---- */
bool job_try_carry(struct turn *t, struct job *j)
{
    if (j->kind == KIND_DROP) {
        const struct generation *g = generation_find(t->c, j->generation);
        if (g && g->state == GENERATION_DROPPING) {
            return false;
        }
        j->error_code = 0; /* another result took the place: nothing is left to drop */
        move_job(t, j, JOB_CANCELLED);
        job_ended(t, j);
        return true;
    }
    if (j->kind != KIND_BUILD || j->run->force_refresh) {
        return false;
    }
    const struct generation *g = target_current(j->target);
    if (!g || strcmp(g->id, j->generation) == 0) {
        return false;
    }
    move_job(t, j, JOB_CARRIED);
    row_entry(t, j->run, j->item);
    job_ended(t, j);
    return true;
}

void job_ready(struct turn *t, struct job *j, struct ms delay)
{
    j->due = delay.v > 0 ? ms_add(t->now.mono, delay) : MS(0);
    j->retry_at_us = delay.v > 0 ? t->now.unix_us + delay.v * 1000 : 0;
    move_job(t, j, JOB_READY);
    if (!job_try_carry(t, j)) {
        coord_note(t, NOTE_JOBS);
    }
}

/* 1, 5, 25 s, +-20 %. */
static struct ms backoff(const struct turn *t, const struct job *j, int failures)
{
    static const int64_t steps[] = {1000, 5000, 25000};
    int64_t base = steps[failures < 1 ? 0 : failures > 3 ? 2 : failures - 1];
    uint32_t r = (uint32_t)t->now.random[0] << 8 | t->now.random[1];
    r = (r ^ (uint32_t)(j->id * 40503u)) & 0xffff;
    return MS(base * (80 + (int64_t)(r * 40 / 65535)) / 100);
}

static bool worth_retrying(int code)
{
    enum err_class class = err_code_class(code);
    return class == ERR_CLASS_TRANSIENT || class == ERR_CLASS_LOST || class == ERR_CLASS_FENCED ||
           class == ERR_CLASS_CANCELLED;
}

void job_retry(struct turn *t, struct job *j, int code, const char *text)
{
    if (j->stop_requested) {
        j->error_code = ERR_STOPPED;
        job_stop(t, j, JOB_CANCELLED);
        return;
    }
    if (!worth_retrying(code) || j->attempts >= t->c->lim.attempts) {
        job_fail(t, j, code, text);
        return;
    }
    char *copy = xstrdup(text);
    free(j->error);
    j->error = copy;
    j->error_code = code;
    job_ready(t, j, backoff(t, j, j->attempts));
}

/* ---- leases that end ---- */
static int resolves_failed(const struct job *j)
{
    int n = 0;
    list_for_each (it, &j->attempt_list) {
        const struct attempt *a = list_entry(it, struct attempt, link);
        n += a->is_resolve && a->state != ATTEMPT_SUCCEEDED;
    }
    return n;
}

/* The warehouse did not answer: the resolve is repeated, without limit. */
void job_resolve_again(struct turn *t, struct job *j)
{
    struct ms delay = backoff(t, j, resolves_failed(j));
    j->due = ms_add(t->now.mono, delay);
    j->retry_at_us = t->now.unix_us + delay.v * 1000;
    update_job(t, j);
    job_queue(t->c, j, t->now.mono);
}

void job_resolve(struct turn *t, struct job *j)
{
    j->due = MS(0);
    j->retry_at_us = 0;
    move_job(t, j, JOB_RESOLVING);
    coord_note(t, NOTE_JOBS);
}

void attempt_expire(struct turn *t, struct attempt *a, const char *text)
{
    struct job *j = a->job;
    bool was_granted = a->state == ATTEMPT_GRANTED;
    move_attempt(t, a, ATTEMPT_LOST, ERR_LEASE_LOST, text);
    if (a->is_resolve) {
        j->due = MS(0);
        job_queue(t->c, j, t->now.mono);
        coord_note(t, NOTE_JOBS);
    } else if (was_granted) {
        free(j->error);
        j->error = xstrdup(text);
        j->error_code = ERR_LEASE_LOST;
        job_resolve(t, j);
    } else {
        job_retry(t, j, ERR_LEASE_LOST, text);
    }
}
