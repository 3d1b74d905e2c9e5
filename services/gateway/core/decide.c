#include "services/gateway/core/decide.h"

bool decide_is_stale(const struct decide_binding *b, int64_t now_us)
{
    if (b->window_s == 0 || b->data_as_of_us == 0 || b->fallback == DECIDE_STALE_OK) {
        return false;
    }
    return now_us - b->data_as_of_us > (int64_t)b->window_s * 1000000;
}

static const struct decide_planned *planned_of(const struct decide_package *p, const char *build_id,
                                               const char *source_id)
{
    const struct decide_planned *same_build = NULL;
    for (size_t i = 0; i < p->n_planned; i++) {
        const struct decide_planned *s = &p->planned[i];
        if (strcmp(s->source_id, source_id) == 0) {
            return s;
        }
        if (!same_build && build_id[0] && strcmp(s->build_id, build_id) == 0) {
            same_build = s;
        }
    }
    return same_build;
}

static const struct decide_binding *binding_of(const struct decide_package *p, const char *build_id)
{
    for (size_t i = 0; i < p->n_bindings; i++) {
        if (strcmp(p->bindings[i].build_id, build_id) == 0) {
            return &p->bindings[i];
        }
    }
    return NULL;
}

/* Why the table of a build is not offered: what one table cannot answer, no source may read from
 * it, so this goes by build and not by binding. */
static enum reason left_out_as(const struct decide_package *p, const char *build_id,
                               const struct decide_left_out *left, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(p->bindings[left[i].binding].build_id, build_id) == 0) {
            return left[i].why;
        }
    }
    return REASON_NONE;
}

static size_t add_stale(const struct decide_package *p, int64_t now_us, struct decide_left_out *out,
                        size_t n)
{
    for (size_t i = 0; i < p->n_bindings; i++) {
        if (decide_is_stale(&p->bindings[i], now_us)) {
            out[n++] = (struct decide_left_out){i, REASON_stale};
        }
    }
    return n;
}

static size_t add_unread(const struct decide_package *p, struct decide_left_out *out, size_t n)
{
    for (size_t i = 0; i < p->n_bindings; i++) {
        if (p->bindings[i].is_by_binding) {
            out[n++] = (struct decide_left_out){i, REASON_bindings_unread};
        }
    }
    return n;
}

struct decide_left_out *decide_leave_out(const struct decide_package *p, struct decide_now now,
                                         const struct decide_left_out *broken, size_t n_broken,
                                         struct arena *a, size_t *n)
{
    bool is_unread = now.sets_unread && p->has_by_binding;
    *n = 0;
    if (!p->has_windows && !is_unread && n_broken == 0) {
        return NULL;
    }
    struct decide_left_out *out = arena_alloc(a, (2 * p->n_bindings + n_broken + 1) * sizeof(*out));
    for (size_t i = 0; i < n_broken; i++) {
        out[i] = broken[i];
    }
    *n = is_unread ? add_unread(p, out, n_broken) : n_broken;
    *n = add_stale(p, now.us, out, *n);
    return out;
}

bool decide_is_offered(const struct decide_package *p, size_t binding,
                       const struct decide_left_out *left, size_t n)
{
    return left_out_as(p, p->bindings[binding].build_id, left, n) == REASON_NONE;
}

/* ---- the receipt ---- */
static const char *unbaked_code(const struct decide_package *p, const char *source_id,
                                const char **text)
{
    for (size_t i = 0; i < p->n_unbaked; i++) {
        if (strcmp(p->unbaked[i].source_id, source_id) == 0) {
            *text = p->unbaked[i].text && p->unbaked[i].text[0] ? p->unbaked[i].text : NULL;
            return p->unbaked[i].code;
        }
    }
    return NULL;
}

/* Why a source that could have a table was not read from one: the nearest cause first. */
static const char *why_not(const struct decide_package *p, const struct decide_query *q,
                           const struct decide_used *u, const struct decide_planned *s,
                           const char **text)
{
    const struct decide_binding *b = binding_of(p, u->build_id);
    if (q->is_live_mode) {
        return reason_code(REASON_mode_live);
    }
    enum reason left = left_out_as(p, u->build_id, q->left_out, q->n_left_out);
    if (left != REASON_NONE) {
        return reason_code(left);
    }
    if (q->given_refused || b) { /* offered, and the compiler did not take it */
        return reason_code(REASON_given_in_persisted_query);
    }
    if (s && s->is_stored) {
        return reason_code(REASON_storage_not_built);
    }
    const char *code = unbaked_code(p, s ? s->source_id : u->source_id, text);
    if (code) {
        return code;
    }
    if (s && s->refused) {
        *text = s->refused;
        return reason_code(REASON_refused);
    }
    return reason_code(REASON_never_built);
}

static const char *name_of(struct arena *a, const char *source_id)
{
    const char *at = strchr(source_id, '@');
    return at ? arena_strndup(a, source_id, (size_t)(at - source_id)) : source_id;
}

static void say(const struct decide_package *p, const struct decide_query *q,
                const struct decide_used *u, struct arena *a, struct decide_source *out)
{
    const struct decide_binding *b = binding_of(p, u->build_id);
    const struct decide_planned *s = planned_of(p, u->build_id, u->source_id);
    *out = (struct decide_source){.source_id = s ? s->source_id : u->source_id,
                                  .build_id = u->build_id,
                                  .is_baked = u->is_hit};
    if (!out->source_id[0] && b) {
        out->source_id = b->source_id;
    }
    out->name = s ? s->name : name_of(a, out->source_id);
    if (!u->is_hit) {
        out->reason = why_not(p, q, u, s, &out->text);
        return;
    }
    out->generation = u->generation ? u->generation : b ? b->generation : "";
    out->data_as_of_us = u->data_as_of_us || !b ? u->data_as_of_us : b->data_as_of_us;
    out->table = b ? b->table : "";
}

/* A query that asked for no source's table: nothing in it is persisted, or nobody could look. */
static const char *why_nothing(const struct decide_package *p, const struct decide_query *q)
{
    if (q->is_live_mode) {
        return reason_code(REASON_mode_live);
    }
    if (q->given_refused) {
        return reason_code(REASON_given_in_persisted_query);
    }
    return reason_code(!q->is_flagged && p->has_flagless ? REASON_model_not_flagged
                                                         : REASON_not_persisted);
}

void decide_receipt_make(const struct decide_package *p, const struct decide_query *q,
                         uint64_t epoch, struct arena *a, struct decide_receipt *out)
{
    size_t n_baked = 0;
    *out = (struct decide_receipt){.epoch = epoch, .n_sources = q->n_used};
    out->sources = arena_alloc(a, (q->n_used + 1) * sizeof(*out->sources));
    for (size_t i = 0; i < q->n_used; i++) {
        struct decide_source *s = &out->sources[i];
        say(p, q, &q->used[i], a, s);
        n_baked += s->is_baked;
        out->generation = s->is_baked ? s->generation : out->generation;
        if (!s->is_baked && !out->reason) {
            out->reason = s->reason;
        }
    }
    if (n_baked != 1) {
        out->generation = NULL;
    }
    if (q->n_used == 0) {
        out->reason = why_nothing(p, q);
    }
    out->served = n_baked == 0 ? DECIDE_LIVE : n_baked == q->n_used ? DECIDE_BAKED : DECIDE_MIXED;
}
