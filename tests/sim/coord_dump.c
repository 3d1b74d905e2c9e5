/* The dump: one line for each thing that rows keep. */
#include "tests/sim/coord_dump.h"

#include "services/planner/core/coord_internal.h"

#define U(n) ((unsigned long long)(n))

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void dump_facts(struct buf *b, const struct facts *f)
{
    buf_addf(b, " facts %lld/%lld/%lld/%lld/%zu", (long long)f->rows, (long long)f->bytes,
             (long long)f->data_as_of_us, (long long)f->took_ms, f->columns.n);
}

static void dump_set(struct buf *b, const struct core_binding_set *set)
{
    buf_addf(b, "  set %llu load %llu run %s cause %s\n", U(set->epoch), U(set->load),
             or_dash(set->run), set->cause);
    for (size_t i = 0; i < set->n; i++) {
        const struct core_binding *x = &set->bindings[i];
        buf_addf(b, "   %s -> t%llu %s %s w%u f%d n%zu\n", x->source_id, U(x->target.target_id),
                 x->generation.id, or_dash(x->target.connection), x->window_s, x->fallback,
                 x->n_shared_by);
    }
    for (size_t i = 0; i < set->n_unbaked; i++) {
        buf_addf(b, "   %s unbaked %s\n", set->unbaked[i].source_id, set->unbaked[i].code);
    }
}

static void dump_item(struct buf *b, const struct plan_item *it)
{
    buf_addf(b, "   item %d t%llu %s job %llu%s fail %s/%d gen %s sources", it->p.action,
             U(it->p.target.target_id), it->p.source_name, U(it->job ? it->job->id : 0),
             it->left_out ? " left out" : "", or_dash(it->p.fail_text), it->p.fail_code,
             or_dash(it->p.generation.id));
    for (size_t i = 0; i < it->p.n_sources; i++) {
        buf_addf(b, " %s/%s/%s", it->p.source_ids[i], it->p.source_names[i],
                 it->p.source_models[i]);
    }
    buf_addf(b, " reuse %s because %s w%u f%d\n", or_dash(it->p.upstream_reuse),
             or_dash(it->p.upstream_recompute_reason), it->p.window_s, it->p.fallback);
}

static void dump_job(struct buf *b, const struct job *j)
{
    buf_addf(b,
             " job %llu %s %s run %s t%llu %s stop %d granted %d n %d retry %lld code %d %s waits "
             "%zu gen '%s' epoch %llu %s\n",
             U(j->id), job_kind_name(j->kind), job_state_name(j->state), j->run ? j->run->id : "-",
             U(j->target ? j->target->t.target_id : 0), or_dash(j->t.connection), j->stop_requested,
             j->granted_ever, j->attempts, (long long)j->retry_at_us, j->error_code,
             or_dash(j->error), j->n_waiting, j->generation, U(j->wait_epoch),
             j->place && j->place->holder == j ? "holds" : "");
    list_for_each (it, &j->attempt_list) {
        const struct attempt *a = list_entry(it, struct attempt, link);
        bool live = list_linked(&a->live_link);
        bool lost_told = a->state == ATTEMPT_LOST && a->reported;
        buf_addf(b, "  attempt %llu #%d %s %s gen '%s' %s %d%s", U(a->token), a->number,
                 a->is_resolve ? "resolve" : "work", attempt_state_name(a->state), a->generation,
                 or_dash(a->builder), a->pull_index,
                 live        ? " live"
                 : lost_told ? " reported"
                             : "");
        if (a->has_facts) {
            dump_facts(b, &a->facts);
        }
        buf_add_str(b, "\n");
    }
}

static void dump_run(struct buf *b, const struct run *r)
{
    buf_addf(b, " run %s %s load %llu epoch %llu %s %d%d%d%d stop %d names %zu open %zu of %zu\n",
             r->id, run_state_name(r->state), U(r->load), U(r->epoch), r->trigger, r->force_refresh,
             r->reseed, r->take_over, r->has_names, r->stop_requested,
             run_state_active(r->state) && r->state != RUN_BINDING ? r->n_names : 0, r->n_open,
             r->n_jobs);
    for (size_t i = 0; i < r->n_items; i++) {
        dump_item(b, &r->items[i]);
    }
    for (size_t i = 0; i < r->n_refusals; i++) {
        buf_addf(b, "   refused %s %s\n", r->refusals[i].source_id, r->refusals[i].message);
    }
    for (size_t i = 0; i < r->n_held; i++) {
        buf_addf(b, "   held %s t%llu %s n%zu\n", r->held[i].source_id,
                 U(r->held[i].target.target_id), or_dash(r->held[i].generation.id),
                 r->held[i].n_shared_by);
    }
}

static void dump_place(struct buf *b, const struct place *p)
{
    buf_addf(b, "place %llu %s %s\n", U(p->id), p->warehouse, p->physical);
    list_for_each (it, &p->targets) {
        const struct target *t = list_entry(it, struct target, link);
        buf_addf(b, " target %llu %s bound %zu\n", U(t->t.target_id), t->t.entity_id, t->n_bound);
        list_for_each (at, &t->generations) {
            const struct generation *g = list_entry(at, struct generation, link);
            buf_addf(b, "  generation %s %llu %s rows %lld of %s load %llu cols %zu\n", g->id,
                     U(g->g.token), generation_state_name(g->state), (long long)g->g.rows, g->run,
                     U(g->load), g->g.columns.n);
        }
    }
}

static void dump_unit(struct buf *b, const struct unit *u)
{
    buf_addf(b, "unit %llu %s/%s load %llu epoch %llu emptied %d\n", U(u->row.id),
             u->row.environment, u->row.name, U(u->row.load), U(u->row.epoch),
             u->row.reload_emptied);
    if (u->set) {
        dump_set(b, u->set);
    }
    list_for_each (it, &u->runs) {
        const struct run *r = list_entry(it, struct run, unit_link);
        if (run_state_active(r->state) || r->state == RUN_READY) {
            dump_run(b, r);
        }
    }
}

char *coord_dump(const struct coord *c)
{
    struct buf b = {0};
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        dump_unit(&b, it.value);
    }
    for (struct map_iter it = map_begin(&c->places); map_next(&it);) {
        dump_place(&b, it.value);
    }
    for (struct map_iter it = map_begin(&c->jobs); map_next(&it);) {
        dump_job(&b, it.value);
    }
    return buf_take(&b);
}
