/* The people of this world: through a bus end of their own, as a gateway's REST half would, they
 * ask the planner for runs, stops, deletions and reloads; they never die, and ask again what was
 * not answered. */
#include "proto/planner.pb-c.h"
#include "tests/sim/trio_world.h"

enum { ASK_AGAIN = 2 };

struct people {
    struct proc *p;
    struct list asks; /* of struct ask */
};
struct ask {
    struct bus_call call;
    struct list link;
    struct people *people;
    struct arena arena;
    unsigned tries;
};

static int people_bus_start(struct service *s, struct err *e)
{
    struct people *people = service_state(s);
    struct proc *p = proc_now();
    static const char *const urls[] = {TRIO_CALL};
    people->p = p;
    list_init(&people->asks);
    const struct bus_identity me = {.boot = uuid_random(), .instance = p->name};
    return bus_dial(bus_new(p->loop, &me), urls, 1, e);
}

static void on_bus_closed(void *data)
{
    bus_free(proc_now()->bus);
    service_part_closed(data);
}

static void people_bus_close(struct service *s)
{
    bus_close(proc_now()->bus, on_bus_closed, s);
}

static const struct service_part parts[] = {{"bus", people_bus_start, people_bus_close}};

void people_make(struct proc *p)
{
    const struct service_state is = {
        .parts = parts, .n_parts = ARRAY_LEN(parts), .state = xcalloc(1, sizeof(struct people))};
    (void)service_sim_new(p, &is);
}

static struct people *people_of(const struct world *w)
{
    return service_state(w->procs[w->n_procs - 1].service);
}

/* ---- asking ---- */
static void on_answer(struct bus_call *c)
{
    struct ask *a = c->data;
    struct world *w = a->people->p->w;
    if (c->rc && c->rc != ERR_SHUTDOWN && err_code_class(c->rc) == ERR_CLASS_TRANSIENT &&
        ++a->tries < ASK_AGAIN) {
        must(bus_call_start(a->people->p->bus, c) == 0); /* with the same request id */
        return;
    }
    trio_say("answer kind=%d rc=%s %s", (int)c->kind, c->rc ? err_code_name(c->rc) : "0",
             c->rc ? err_text(&c->err) : "");
    w->n_answered += c->rc == 0;
    list_del(&a->link);
    arena_fini(&a->arena);
    free(a);
}

static struct ask *ask_new(struct world *w, enum bus_kind kind)
{
    struct people *people = people_of(w);
    struct ask *a = xcalloc(1, sizeof(*a));
    arena_init(&a->arena);
    a->people = people;
    a->call = (struct bus_call){.kind = kind, .done = on_answer, .data = a};
    list_add_tail(&people->asks, &a->link);
    w->n_asked++;
    return a;
}

static bool ask(struct ask *a, const ProtobufCMessage *m)
{
    a->call.request = m;
    return bus_call_start(a->people->p->bus, &a->call) == 0;
}

bool people_run(struct world *w, const struct trio_unit *u, bool force, const char *source)
{
    struct proc *before = proc_enter(people_of(w)->p);
    struct ask *a = ask_new(w, BUS_CREATE_RUN);
    Kiln__CreateRunReq *m = arena_alloc(&a->arena, sizeof(*m));
    kiln__create_run_req__init(m);
    m->environment = bus_str(TRIO_ENVIRONMENT);
    m->package = arena_strdup(&a->arena, u->name);
    m->force_refresh = force;
    if (source) {
        m->has_source_names = true;
        m->source_names = arena_zalloc(&a->arena, sizeof(char *));
        m->source_names[m->n_source_names++] = arena_strdup(&a->arena, source);
    }
    trio_say("run of %s%s%s%s", u->name, force ? ", forced" : "", source ? ", only " : "",
             source ? source : "");
    bool sent = ask(a, &m->base);
    proc_leave(before);
    return sent;
}

bool people_stop_run(struct world *w, const struct row_run *r)
{
    struct proc *before = proc_enter(people_of(w)->p);
    struct ask *a = ask_new(w, BUS_STOP_RUN);
    Kiln__StopRunReq *m = arena_alloc(&a->arena, sizeof(*m));
    kiln__stop_run_req__init(m);
    m->environment = bus_str(TRIO_ENVIRONMENT);
    m->package = arena_strdup(&a->arena, package_unit(w, r->unit)->name);
    m->id = arena_strdup(&a->arena, r->id);
    trio_say("stop of %s", r->id);
    bool sent = ask(a, &m->base);
    proc_leave(before);
    return sent;
}

bool people_delete(struct world *w, const struct row_run *r, bool drop)
{
    struct proc *before = proc_enter(people_of(w)->p);
    struct ask *a = ask_new(w, BUS_DELETE_RUN);
    Kiln__DeleteRunReq *m = arena_alloc(&a->arena, sizeof(*m));
    kiln__delete_run_req__init(m);
    m->environment = bus_str(TRIO_ENVIRONMENT);
    m->package = arena_strdup(&a->arena, package_unit(w, r->unit)->name);
    m->id = arena_strdup(&a->arena, r->id);
    m->drop_tables = drop;
    trio_say("deletion of %s%s", r->id, drop ? " with its tables" : "");
    bool sent = ask(a, &m->base);
    proc_leave(before);
    return sent;
}

bool people_reload(struct world *w, struct trio_unit *u, bool changed)
{
    struct proc *before = proc_enter(people_of(w)->p);
    struct ask *a = ask_new(w, BUS_RELOAD);
    Kiln__ReloadReq *m = arena_alloc(&a->arena, sizeof(*m));
    kiln__reload_req__init(m);
    m->environment = bus_str(TRIO_ENVIRONMENT);
    m->package = arena_strdup(&a->arena, u->name);
    u->version += changed;
    trio_say("reload of %s at version %u", u->name, u->version);
    bool sent = ask(a, &m->base);
    proc_leave(before);
    return sent;
}

bool people_unbind(struct world *w, const struct trio_unit *u)
{
    struct proc *before = proc_enter(people_of(w)->p);
    struct ask *a = ask_new(w, BUS_PATCH);
    Kiln__PatchReq *m = arena_alloc(&a->arena, sizeof(*m));
    kiln__patch_req__init(m);
    m->environment = bus_str(TRIO_ENVIRONMENT);
    m->package = arena_strdup(&a->arena, u->name);
    m->body_json = bus_str("{\"manifestLocation\":null}");
    trio_say("unbinding of %s", u->name);
    bool sent = ask(a, &m->base);
    proc_leave(before);
    return sent;
}

bool people_remove(struct world *w, const struct trio_unit *u)
{
    struct proc *before = proc_enter(people_of(w)->p);
    struct ask *a = ask_new(w, BUS_DELETE_PACKAGE);
    Kiln__DeleteReq *m = arena_alloc(&a->arena, sizeof(*m));
    kiln__delete_req__init(m);
    m->environment = bus_str(TRIO_ENVIRONMENT);
    m->package = arena_strdup(&a->arena, u->name);
    trio_say("removal of %s", u->name);
    bool sent = ask(a, &m->base);
    proc_leave(before);
    return sent;
}

size_t people_waiting(const struct world *w)
{
    size_t n = 0;
    list_for_each (it, &people_of(w)->asks) {
        n++;
    }
    return n;
}

/* ---- what they come upon ---- */
const struct row_run *people_newest(const struct world *w, uint64_t unit)
{
    const struct row_run *newest = NULL;
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, w->rows, &r);) {
        newest = r->unit == unit ? r : newest;
    }
    return newest;
}

static const struct row_run *any_run(struct world *w, bool active)
{
    const struct row_run *chosen = NULL;
    size_t n = 0;
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, w->rows, &r);) {
        bool fits = run_state_active(r->state) == active && memory_unit(w->rows, r->unit);
        chosen = fits && sim_time_below(&w->time, ++n) == 0 ? r : chosen;
    }
    return chosen;
}

void people_act(struct world *w)
{
    struct sim_time *t = &w->time;
    struct trio_unit *u = &w->units[sim_time_below(t, w->n_units)];
    uint64_t what = sim_time_below(t, 100);
    char last[8];
    snprintf(last, sizeof(last), "s%zu", u->n - 1);
    if (what < 60) {
        (void)people_run(w, u, sim_time_chance(t, 300), sim_time_chance(t, 200) ? last : NULL);
        return;
    }
    if (u != w->units && sim_time_chance(t, 80)) { /* the first package stays */
        (void)people_remove(w, u);
        return;
    }
    bool stops = what < 70;
    const struct row_run *r = what < 85 ? any_run(w, stops) : NULL;
    if (stops && r) {
        (void)people_stop_run(w, r);
    } else if (r) {
        (void)people_delete(w, r, sim_time_chance(t, 600));
    } else if (what >= 85 && what < 95 && w->n_loads < TRIO_LOADS / 2) {
        (void)people_reload(w, u, sim_time_chance(t, 500));
    } else if (what >= 95) {
        (void)people_unbind(w, u);
    }
}
