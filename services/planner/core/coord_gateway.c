/* Who is out there: gateways and what they report, builders and their boots (protocol.md 5, 6). */
#include "services/planner/core/coord_internal.h"

/* ---- gateways ---- */
static struct gateway *gateway_get(struct coord *c, const char *instance, const struct uuid *boot,
                                   struct ms mono)
{
    struct gateway *g = NULL;
    list_for_each (it, &c->gateways) {
        struct gateway *x = list_entry(it, struct gateway, link);
        if (strcmp(x->instance, instance) == 0) {
            g = x;
        }
    }
    if (!g) {
        g = xcalloc(1, sizeof(*g));
        g->instance = coord_intern(c, instance);
        g->boot = *boot;
        map_init(&g->units);
        list_add_tail(&c->gateways, &g->link);
    }
    if (!uuid_eq(&g->boot, boot)) { /* a new process knows nothing of what the old one applied */
        for (struct map_iter it = map_begin(&g->units); map_next(&it);) {
            struct gateway_unit *u = it.value;
            map_del_u64(&g->units, u->unit);
            free(u);
        }
        g->boot = *boot;
    }
    g->heard = mono;
    return g;
}

static void gateway_free(struct gateway *g)
{
    for (struct map_iter it = map_begin(&g->units); map_next(&it);) {
        free(it.value);
    }
    map_fini(&g->units);
    list_del(&g->link);
    free(g);
}

static bool gateway_live(const struct coord *c, const struct gateway *g, struct ms mono)
{
    return ms_before(mono, ms_add(g->heard, c->lim.gateway_live));
}

static bool gateway_has(const struct gateway *g, uint64_t unit, uint64_t epoch, bool *failed)
{
    const struct gateway_unit *u = map_get_u64(&g->units, unit);
    bool has = u && u->applied >= epoch;
    /* One that cannot reach the results of a set applies it and serves them live. */
    bool in_part = has && u->failed_epoch == u->applied;
    *failed = in_part || (u && !has && u->failed_epoch >= epoch);
    return has && !in_part;
}

struct ms gateways_unheard_until(const struct coord *c)
{
    return list_empty(&c->gateways) ? c->unheard_until : MS_NONE;
}

bool gateways_reported(const struct coord *c, struct ms mono, uint64_t unit, uint64_t epoch,
                       bool *loading)
{
    bool reported = !list_empty(&c->gateways) || !ms_before(mono, c->unheard_until);
    list_for_each (it, &c->gateways) {
        const struct gateway *g = list_entry(it, struct gateway, link);
        bool failed = false;
        if (!gateway_live(c, g, mono) || gateway_has(g, unit, epoch, &failed) || failed) {
            continue;
        }
        const struct gateway_unit *u = map_get_u64(&g->units, unit);
        *loading = *loading || (u && u->loading);
        reported = false;
    }
    return reported;
}

json_t *gateways_unbound(const struct coord *c, struct ms mono, uint64_t unit, uint64_t epoch)
{
    json_t *list = json_array();
    list_for_each (it, &c->gateways) {
        const struct gateway *g = list_entry(it, struct gateway, link);
        bool failed = false;
        if (gateway_live(c, g, mono) && !gateway_has(g, unit, epoch, &failed)) {
            must(json_array_append_new(list, json_string(g->instance)) == 0);
        }
    }
    return list;
}

void unit_await(struct turn *t, struct unit *u)
{
    if (!list_linked(&u->awaiting)) {
        list_add_tail(&t->c->awaiting, &u->awaiting);
    }
}

/* Drops wait until nobody reads what they drop. */
static void release_drops(struct turn *t, const struct unit *u)
{
    list_for_each (it, &t->c->loose) {
        struct job *j = list_entry(it, struct job, loose_link);
        if (j->unit == u->row.id && j->kind == KIND_DROP && j->state == JOB_READY &&
            j->attempts == 0 && j->wait_epoch <= u->row.epoch) {
            j->due = MS(0);
            job_queue(t->c, j, t->now.mono);
            coord_note(t, NOTE_JOBS);
        }
    }
}

void units_check_reported(struct turn *t)
{
    list_for_each (it, &t->c->awaiting) {
        struct unit *u = list_entry(it, struct unit, awaiting);
        bool loading = false;
        if (!gateways_reported(t->c, t->now.mono, u->row.id, u->row.epoch, &loading)) {
            continue;
        }
        list_del(&u->awaiting);
        struct coord_note *n = coord_note(t, NOTE_UNIT_REPORTED);
        n->unit = u->row.id;
        n->epoch = u->row.epoch;
        release_drops(t, u);
    }
}

/* When silence of a gateway that is behind would settle a wait; at once when nobody is behind. */
struct ms gateways_next_due(const struct coord *c)
{
    struct ms due = MS_NONE;
    list_for_each (it, &c->awaiting) {
        const struct unit *u = list_entry(it, struct unit, awaiting);
        struct ms latest = list_empty(&c->gateways) ? c->unheard_until : MS(0);
        list_for_each (at, &c->gateways) {
            const struct gateway *g = list_entry(at, struct gateway, link);
            bool failed = false;
            if (!gateway_has(g, u->row.id, u->row.epoch, &failed) && !failed) {
                latest = ms_max(latest, ms_add(g->heard, c->lim.gateway_live));
            }
        }
        due = ms_min(due, latest);
    }
    return due;
}

/* A gateway ahead of us has seen epochs that this run store has lost: ours go past them at once. */
static void unit_catch_up(struct turn *t, struct unit *u, uint64_t seen)
{
    struct arena *a = t->o->rows.arena;
    coord_raise(t->c, seen);
    struct core_binding_set copy = {0};
    if (u->set) {
        set_copy(a, u->set, &copy);
    }
    struct draft d = {.a = a, .items = copy.bindings, .n = copy.n, .cap = copy.n};
    d.unbaked = copy.unbaked;
    d.n_unbaked = d.cap_unbaked = copy.n_unbaked;
    unit_set_make(t, u, &d, "restart", copy.run);
}

static void take_report(struct turn *t, struct gateway *g, const struct coord_gateway_unit *in)
{
    struct gateway_unit *mine = map_get_u64(&g->units, in->unit);
    if (!mine) {
        mine = xcalloc(1, sizeof(*mine));
        map_put_u64(&g->units, in->unit, mine);
    }
    *mine = (struct gateway_unit){in->unit, in->applied, in->failed_epoch, in->oldest_in_use,
                                  in->loading};
    struct unit *u = coord_find_unit(t->c, in->unit);
    if (u && in->applied > u->row.epoch) {
        unit_catch_up(t, u, in->applied);
    } else {
        coord_raise(t->c, in->applied);
    }
}

void coord_gateway_report(struct coord *c, struct coord_now now, const char *instance,
                          const struct uuid *boot, const struct coord_gateway_unit *u, size_t n,
                          struct coord_out *o)
{
    struct turn t = {c, now, o};
    struct gateway *g = gateway_get(c, instance, boot, now.mono);
    for (size_t i = 0; i < n; i++) {
        take_report(&t, g, &u[i]);
    }
    units_check_reported(&t);
    list_for_each (it, &c->binding) {
        run_check_bound(&t, list_entry(it, struct run, todo_link));
    }
    list_for_each (it, &c->gateways) {
        struct gateway *x = list_entry(it, struct gateway, link);
        if (!ms_before(now.mono, ms_add(x->heard, c->lim.gateway_gone))) {
            gateway_free(x);
        }
    }
    coord_turn_end(&t);
}

size_t coord_live_gateways(const struct coord *c, struct coord_now now)
{
    size_t n = 0;
    list_for_each (it, &c->gateways) {
        n += gateway_live(c, list_entry(it, struct gateway, link), now.mono);
    }
    return n;
}

/* ---- builders ---- */
static struct builder *builder_get(struct coord *c, const char *instance, const struct uuid *boot)
{
    list_for_each (it, &c->builders) {
        struct builder *b = list_entry(it, struct builder, link);
        if (strcmp(b->instance, instance) == 0) {
            return b;
        }
    }
    struct builder *b = xcalloc(1, sizeof(*b));
    b->instance = coord_intern(c, instance);
    b->boot = *boot;
    list_add_tail(&c->builders, &b->link);
    return b;
}

/* Boots have no order, and a planner that has just started may take a late message for a new boot.
 * So a former one is refused for a while only: whoever still speaks after that is alive. */
static bool is_old_boot(const struct turn *t, const struct builder *b, const struct uuid *boot)
{
    for (size_t i = 0; i < b->n_old && i < OLD_BOOTS; i++) {
        if (uuid_eq(&b->old[i].boot, boot) &&
            ms_before(t->now.mono, ms_add(b->old[i].since, t->c->lim.lease))) {
            return !uuid_eq(&b->boot, boot);
        }
    }
    return false;
}

static void end_other_boots(struct turn *t, const struct builder *b)
{
    bool again = true;
    while (again) {
        again = false;
        list_for_each (it, &t->c->live) {
            struct attempt *a = list_entry(it, struct attempt, live_link);
            if (a->builder == b->instance && !uuid_eq(&a->boot, &b->boot)) {
                attempt_expire(t, a, "the builder was started again");
                again = true;
                break;
            }
        }
    }
}

bool builder_seen(struct turn *t, const char *instance, const struct uuid *boot,
                  const struct coord_reach *reach)
{
    struct builder *b = builder_get(t->c, instance, boot);
    if (is_old_boot(t, b, boot)) {
        return false;
    }
    if (!uuid_eq(&b->boot, boot)) {
        b->old[b->n_old % OLD_BOOTS].boot = b->boot;
        b->old[b->n_old++ % OLD_BOOTS].since = t->now.mono;
        b->boot = *boot;
    }
    b->heard = t->now.mono;
    b->gone = false;
    if (reach) {
        b->left = false;
        builder_reaches(t->c, b, reach);
    }
    end_other_boots(t, b);
    return true;
}

void coord_instance(struct coord *c, struct coord_now now, const char *instance, const char *role,
                    const struct uuid *boot, const char *version, uint64_t highest_token,
                    struct coord_out *o)
{
    struct turn t = {c, now, o};
    struct arena *a = o->rows.arena;
    coord_raise(c, highest_token);
    rows_add(&o->rows, ROW_INSTANCE)->u.instance = (struct row_instance){
        arena_strdup(a, instance),
        arena_strdup(a, role),
        arena_strdup(a, version),
        *boot,
    };
    if (strcmp(role, "builder") == 0) {
        (void)builder_seen(&t, instance, boot, NULL);
    } else if (strcmp(role, "gateway") == 0) {
        gateway_get(c, instance, boot, now.mono);
    }
    coord_turn_end(&t);
}
