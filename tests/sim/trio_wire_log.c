/* What the warehouse did, in order, and whether it may have: the fence is checked without looking
 * at it (protocol.md 3). */
#include "tests/sim/trio_wire.h"

struct made { /* a table that a swap put in place */
    uint64_t token, rows;
    const char *generation, *build_id;
};
struct claimed { /* greatest token that ever claimed or dropped a name */
    uint64_t claim;
};

struct wire_log *wire_log_new(void)
{
    struct wire_log *l = xcalloc(1, sizeof(*l));
    map_init(&l->makers);
    map_init(&l->claims);
    arena_init(&l->mem);
    return l;
}

void wire_log_free(struct wire_log *l)
{
    map_fini(&l->makers);
    map_fini(&l->claims);
    arena_fini(&l->mem);
    free(l);
}

static struct claimed *claimed_of(struct world *w, const struct wh_name *n)
{
    char *key = arena_printf(&w->log->mem, "%s.%s", n->schema, n->table);
    struct claimed *c = map_get(&w->log->claims, slice_of(key));
    if (!c) {
        c = arena_zalloc(&w->log->mem, sizeof(*c));
        map_put(&w->log->claims, slice_of(key), c);
    }
    return c;
}

static const struct made *maker_of(const struct world *w, const char *schema, const char *table)
{
    const struct sim_table *t = sim_table_find(w->wh, schema, table);
    return t ? map_get_u64(&w->log->makers, t->oid) : NULL;
}

uint64_t wire_log_token(const struct world *w, const char *schema, const char *table)
{
    const struct made *m = maker_of(w, schema, table);
    return m ? m->token : 0;
}

/* Who may swap, the rows say: an attempt whose grant was recorded. Stale ones were shut out. */
static void swapped(const struct statement *s)
{
    struct world *w = s->wire->w;
    const struct wh_name *n = &s->table.name;
    struct claimed *c = claimed_of(w, n);
    const struct row_attempt *a = memory_attempt(w->rows, s->token);
    const struct sim_table *t = sim_table_find(w->wh, n->schema, n->table);
    if (!a || a->is_resolve || a->state == ATTEMPT_LEASED || !a->progress) {
        trio_fail("token %llu was published in %s without a recorded grant",
                  (unsigned long long)s->token, n->table);
    }
    if (strcmp(a->generation, s->table.generation) != 0) {
        trio_fail("token %llu was published in %s as another generation",
                  (unsigned long long)s->token, n->table);
    }
    if (s->token < c->claim) {
        trio_fail("token %llu was published in %s after a claim of %llu",
                  (unsigned long long)s->token, n->table, (unsigned long long)c->claim);
    }
    c->claim = s->token;
    w->n_publishes++;
    struct made *m = arena_zalloc(&w->log->mem, sizeof(*m));
    *m = (struct made){s->token, t->rows, arena_strdup(&w->log->mem, s->table.generation),
                       arena_strdup(&w->log->mem, s->table.build_id)};
    map_put_u64(&w->log->makers, t->oid, m);
}

/* What a reader got in one snapshot: the fence row speaks of the very table that was read. */
static void was_read(const struct statement *s)
{
    struct world *w = s->wire->w;
    for (size_t i = 0; i < s->query.n_baked; i++) {
        const struct wh_receipt *r = &s->query.baked[i];
        const struct made *m = maker_of(w, r->name.schema, r->name.table);
        if (!m || m->token != r->published) {
            trio_fail("a reader of %s is told of token %llu and reads what %llu made",
                      r->name.table, (unsigned long long)r->published,
                      (unsigned long long)(m ? m->token : 0));
        }
        if (strcmp(m->generation, r->generation) != 0) {
            trio_fail("a reader of %s is told of generation %s and reads %s", r->name.table,
                      r->generation, m->generation);
        }
        if (strcmp(m->build_id, r->build_id) != 0) {
            trio_fail("a reader of %s gets another build than its query was made for",
                      r->name.table);
        }
        if (s->n_rows != m->rows) {
            trio_fail("a reader of %s gets %llu rows of %llu", r->name.table,
                      (unsigned long long)s->n_rows, (unsigned long long)m->rows);
        }
    }
}

static void check_fence(const struct statement *s)
{
    const struct wh_name *n = &s->table.name;
    const struct sim_fence *f = sim_fence_find(s->wire->w->wh, n->schema, s->table.target_key);
    uint64_t claim = claimed_of(s->wire->w, n)->claim;
    if (!f || f->claim != claim) {
        trio_fail("the fence of %s stands at %llu, its claims went up to %llu", n->table,
                  (unsigned long long)(f ? f->claim : 0), (unsigned long long)claim);
    }
}

void wire_log_done(const struct statement *s)
{
    struct world *w = s->wire->w;
    w->n_fenced += s->inner.rc == ERR_FENCED;
    w->n_resolves += s->kind == ST_RESOLVE && s->inner.rc == 0;
    if (s->inner.rc) {
        return;
    }
    if (s->kind == ST_QUERY) {
        was_read(s);
        return;
    }
    if (s->kind == ST_SWAP) {
        swapped(s);
    } else if (s->kind == ST_RESOLVE || s->kind == ST_DROP) {
        struct claimed *c = claimed_of(w, &s->table.name);
        c->claim = c->claim > s->token ? c->claim : s->token;
    } else {
        return;
    }
    check_fence(s);
}
