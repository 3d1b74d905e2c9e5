/* A generation root that comes back: sets that are served without their results, because it was not
 * reachable when they were bound, are bound again at the same epoch, with the next query. */
#include "common/generation/generation.h"
#include "common/log/log.h"
#include "common/sandbox/sandbox.h"
#include "services/gateway/binder/binder.h"

void binder_misses_root(struct gateway *g, const struct gw_package *p, const char *text)
{
    struct gw_unit *u = g->binder ? map_get_u64(&g->binder->units, p->unit) : NULL;
    if (u) {
        binder_lacks_root(u, p->epoch, text);
    }
}

static void root_offload(struct offload_job *job)
{
    struct gw_binder *b = job->data;
    struct err ignored; /* told when the set was bound */
    b->root_rc = generation_root_read(b->g->set->generation_root, &b->root_owner, &ignored);
}

/* All results of a set stand in one root. */
static bool is_root_of(const struct gw_binder *b, const struct gw_package *p)
{
    if (!uuid_eq(&b->root_owner.installation, bus_installation(b->g->bus))) {
        return false;
    }
    for (size_t i = 0; i < p->n_bindings; i++) {
        const struct gw_binding *bind = &p->bindings[i];
        if (bind->is_by_binding && !id16_is_zero(bind->root.b)) {
            return uuid_eq(&bind->root, &b->root_owner.root_id);
        }
    }
    return true;
}

static void has_root(struct gw_unit *u)
{
    log_info("binder.root_is_back", "environment=%s package=%s epoch=%llu", u->environment, u->name,
             (unsigned long long)u->in_force->epoch);
    u->lacks_root = false;
    if (u->failed_epoch == u->in_force->epoch) {
        u->failed_epoch = 0;
        u->failed_code[0] = '\0';
    }
    binder_report_now(u->g->binder);
}

static void on_root(struct offload_job *job)
{
    struct gw_binder *b = job->data;
    bool is_back = false;
    b->looking_at_root = false;
    for (struct map_iter it = map_begin(&b->units); b->root_rc == 0 && map_next(&it);) {
        struct gw_unit *u = it.value;
        if (u->lacks_root && is_root_of(b, u->in_force)) {
            has_root(u);
            is_back = true;
        }
    }
    if (is_back && b->g->sandboxes && !b->closing) {
        sandboxes_root_is_back(b->g->sandboxes);
    }
    binder_settle(b);
}

void binder_look_at_root(struct gw_binder *b)
{
    bool is_asked = false;
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        is_asked = is_asked || ((struct gw_unit *)it.value)->lacks_root;
    }
    if (!is_asked || b->looking_at_root || !b->g->set->generation_root[0]) {
        return;
    }
    b->looking_at_root = true;
    b->root_job = (struct offload_job){.work_offload = root_offload, .done = on_root, .data = b};
    loop_offload(b->g->loop, &b->root_job);
}
