/* The binder's talk with the planner: hello, GetBindings (every 2 s and on each hint),
 * ReportGateway (every second and at once after a change). */
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"

#define REPORT_EVERY_MS 1000
#define POLL_EVERY_MS 2000
void binder_open_cache(struct gw_binder *b);

/* Workers look at it when they need a connection. */
static void note_config(struct gw_binder *b, uint64_t epoch)
{
    if (epoch > atomic_load(&b->g->config_epoch)) {
        atomic_store(&b->g->config_epoch, epoch);
    }
}

/* ---- are the sets the newest ones? ---- */
void binder_sets_read(struct gw_binder *b, struct ms at)
{
    sets_read(&b->watch, at);
    atomic_store(&b->g->sets_good_until, b->watch.good_until);
}

static void look(struct gw_binder *b)
{
    if (sets_look(&b->watch, loop_now(b->g->loop))) {
        log_warn("binder.goes_on", "with=%s",
                 log_q("the sets it has: neither planner nor Redis answers"));
    }
    atomic_store(&b->g->sets_good_until, b->watch.good_until);
}

/* ---- hello ---- */
static void on_hello(struct bus_call *c)
{
    struct gw_binder *b = c->data;
    b->hello_out = false;
    if (c->rc == 0) {
        struct arena a;
        arena_init(&a);
        Kiln__HelloRep *rep = bus_unpack(&kiln__hello_rep__descriptor, &a, c->reply, NULL);
        if (rep && rep->installation.len == 16) {
            struct uuid id;
            memcpy(id.b, rep->installation.data, 16);
            bus_set_installation(b->g->bus, &id);
            b->said_hello = true;
            binder_open_cache(b);
            binder_get_now(b);
        }
        arena_fini(&a);
    }
    health_set(b->g->service, "planner", false, c->rc == 0, c->rc ? err_text(&c->err) : "");
    binder_settle(b);
}

static void hello(struct gw_binder *b)
{
    kiln__hello_req__init(&b->hello_req);
    b->hello_req.program = bus_str("kiln-gateway");
    b->hello_req.version = bus_str(KILN_VERSION);
    b->hello_req.role = bus_str("gateway");
    b->hello_req.compiler_version = bus_str(compiler_version(b->g->compiler));
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        uint64_t known = ((struct gw_unit *)it.value)->known;
        b->hello_req.highest_token =
            known > b->hello_req.highest_token ? known : b->hello_req.highest_token;
    }
    b->hello_call = (struct bus_call){.kind = BUS_HELLO,
                                      .request = &b->hello_req.base,
                                      .timeout = MS(2000),
                                      .done = on_hello,
                                      .data = b};
    b->hello_out = bus_call_start(b->g->bus, &b->hello_call) == 0;
}

/* ---- GetBindings ---- */
static void take_sets(struct gw_binder *b, struct slice reply)
{
    struct arena a;
    arena_init(&a);
    struct err e = {0};
    Kiln__GetBindingsRep *rep = bus_unpack(&kiln__get_bindings_rep__descriptor, &a, reply, &e);
    for (size_t i = 0; rep && i < rep->n_sets; i++) {
        Kiln__BindingSet *set = rep->sets[i];
        size_t len = kiln__binding_set__get_packed_size(set);
        uint8_t *packed = arena_alloc(&a, len);
        kiln__binding_set__pack(set, packed);
        binder_offer(b, set->package_id, set->epoch, slice_make(packed, len));
    }
    for (size_t i = 0; rep && i < rep->n_gone; i++) {
        binder_gone(b, rep->gone[i]);
    }
    if (rep) {
        note_config(b, rep->config_epoch);
        b->answered = true;
        health_set(b->g->service, "packages", true, true, "");
    }
    arena_fini(&a);
}

static void on_bindings(struct bus_call *c)
{
    struct gw_binder *b = c->data;
    b->getting = false;
    if (c->rc == 0) {
        take_sets(b, c->reply);
        binder_sets_read(b, b->asked_at);
    } else if (c->rc != ERR_SHUTDOWN && c->rc != ERR_CANCELLED) {
        health_set(b->g->service, "planner", false, false, err_text(&c->err));
        b->said_hello = c->rc == ERR_BUS_TIMEOUT ? b->said_hello : false;
    }
    arena_fini(&b->get_arena);
    if (b->get_again) {
        b->get_again = false;
        binder_get_now(b);
    }
    binder_settle(b);
}

void binder_get_now(struct gw_binder *b)
{
    if (b->getting) {
        b->get_again = true;
        return;
    }
    if (!b->said_hello || b->g->draining || b->closing) {
        return;
    }
    arena_init(&b->get_arena);
    kiln__get_bindings_req__init(&b->get_req);
    b->get_req.have =
        arena_zalloc(&b->get_arena, (map_len(&b->units) + 1) * sizeof(*b->get_req.have));
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        const struct gw_unit *u = it.value;
        Kiln__PackageEpoch *m = arena_alloc(&b->get_arena, sizeof(*m));
        kiln__package_epoch__init(m);
        m->package = u->id;
        m->epoch = u->known;
        b->get_req.have[b->get_req.n_have++] = m;
    }
    b->get_call = (struct bus_call){
        .kind = BUS_GET_BINDINGS, .request = &b->get_req.base, .done = on_bindings, .data = b};
    b->asked_at = loop_now(b->g->loop);
    b->getting = bus_call_start(b->g->bus, &b->get_call) == 0;
    if (!b->getting) {
        arena_fini(&b->get_arena);
    }
}

static void on_poll(struct loop_timer *t)
{
    struct gw_binder *b = t->data;
    if (!b->said_hello && !b->hello_out) {
        hello(b);
    }
    binder_get_now(b);
    look(b);
    binder_look_at_root(b);
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        binder_advance(it.value); /* a load that failed for now is tried again */
    }
    loop_timer_start(t, MS(b->said_hello ? POLL_EVERY_MS : 250));
}

static void on_hint(void *data, const char topic[4], struct slice packed)
{
    (void)packed;
    if (memcmp(topic, "bind", 4) == 0) {
        binder_get_now(data);
    }
}

/* ---- ReportGateway ---- */
static void on_reported(struct bus_call *c)
{
    struct gw_binder *b = c->data;
    b->reporting = false;
    if (c->rc == 0) {
        struct arena a;
        arena_init(&a);
        Kiln__ReportGatewayRep *rep =
            bus_unpack(&kiln__report_gateway_rep__descriptor, &a, c->reply, NULL);
        bool behind = false;
        for (size_t i = 0; rep && i < rep->n_newest; i++) {
            const struct gw_unit *u = map_get_u64(&b->units, rep->newest[i]->package);
            behind = behind || !u || u->known < rep->newest[i]->epoch;
        }
        if (rep) {
            note_config(b, rep->config_epoch);
            health_set(b->g->service, "planner", false, true, "");
        }
        arena_fini(&a);
        if (behind) {
            binder_get_now(b);
        }
    }
    arena_fini(&b->report_arena);
    if (b->report_again) {
        b->report_again = false;
        binder_report_now(b);
    }
    binder_settle(b);
}

/* In force is what every worker has applied. */
static Kiln__GatewayPackage *unit_message(struct arena *a, const struct gw_unit *u)
{
    Kiln__GatewayPackage *m = arena_alloc(a, sizeof(*m));
    kiln__gateway_package__init(m);
    m->package = u->id;
    m->applied = u->applied;
    m->loading = u->loading != NULL;
    m->failed_epoch = u->failed_epoch;
    m->failed_code = bus_str(u->failed_code);
    m->failed_text = bus_str(u->failed_epoch ? u->failed_text : NULL);
    m->oldest_in_use = binder_oldest(u->g->binder, u);
    m->load_id = arena_strdup(a, u->applied_load);
    return m;
}

static void fill_broken(struct gw_binder *b)
{
    b->report_req.broken =
        arena_zalloc(&b->report_arena, (b->n_broken + 1) * sizeof(*b->report_req.broken));
    for (size_t i = 0; i < b->n_broken; i++) {
        Kiln__BrokenBinding *m = arena_alloc(&b->report_arena, sizeof(*m));
        kiln__broken_binding__init(m);
        m->package = b->broken[i].unit;
        m->source_id = arena_strdup(&b->report_arena, b->broken[i].source_id);
        m->generation = arena_strdup(&b->report_arena, b->broken[i].generation);
        m->code = arena_strdup(&b->report_arena, b->broken[i].code);
        b->report_req.broken[b->report_req.n_broken++] = m;
        free(b->broken[i].source_id);
        free(b->broken[i].generation);
        free(b->broken[i].code);
    }
    b->n_broken = 0;
}

void binder_report_now(struct gw_binder *b)
{
    if (b->reporting) {
        b->report_again = true;
        return;
    }
    if (!b->said_hello || b->g->draining || b->closing) {
        return;
    }
    arena_init(&b->report_arena);
    kiln__report_gateway_req__init(&b->report_req);
    b->report_req.sequence = ++b->sequence;
    b->report_req.mirror_confirmed = b->g->redis && cache_confirmed(b->g->redis);
    b->report_req.packages =
        arena_zalloc(&b->report_arena, (map_len(&b->units) + 1) * sizeof(*b->report_req.packages));
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        b->report_req.packages[b->report_req.n_packages++] =
            unit_message(&b->report_arena, it.value);
    }
    fill_broken(b);
    b->report_call = (struct bus_call){
        .kind = BUS_REPORT_GATEWAY, .request = &b->report_req.base, .done = on_reported, .data = b};
    b->reporting = bus_call_start(b->g->bus, &b->report_call) == 0;
    if (!b->reporting) {
        arena_fini(&b->report_arena);
    }
}

static void on_report_due(struct loop_timer *t)
{
    struct gw_binder *b = t->data;
    binder_report_now(b);
    loop_timer_start(t, MS(REPORT_EVERY_MS));
}

void binder_sync_start(struct gw_binder *b)
{
    struct err e = {0};
    if (b->g->set->planner_event[0] &&
        bus_subscribe(b->g->bus, b->g->set->planner_event, on_hint, b, &e)) {
        log_warn("binder.hints_off", "error=%s", log_q(err_text(&e)));
    }
    loop_timer_init(&b->poll_timer, b->g->loop, on_poll, b);
    loop_timer_init(&b->report_timer, b->g->loop, on_report_due, b);
    loop_timer_start(&b->poll_timer, MS(0));
    loop_timer_start(&b->report_timer, MS(REPORT_EVERY_MS));
}

void binder_sync_stop(struct gw_binder *b)
{
    loop_timer_stop(&b->poll_timer);
    loop_timer_stop(&b->report_timer);
    if (b->hello_out) {
        bus_call_cancel(&b->hello_call);
    }
    if (b->getting) {
        bus_call_cancel(&b->get_call);
    }
    if (b->reporting) {
        bus_call_cancel(&b->report_call);
    }
}
