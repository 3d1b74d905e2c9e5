/* Which builder may take which job: the connections that it reaches, and jobs that no builder can
 * take (protocol.md 9). */
#include "services/planner/core/coord_internal.h"

enum { BUILDER_LIVE_MS = 20000 /* two held pulls */, NOBODY_MS = 30000 };

/* Where a job works: "environment/connection"; false: nowhere in particular. */
static bool job_where(const struct coord *c, const struct job *j, const char **environment,
                      const char **connection)
{
    const struct unit *u = coord_find_unit(c, j->unit);
    *environment = u ? u->row.environment : NULL; /* a deleted unit's tables are still dropped */
    *connection = j->t.connection;
    return *connection && (*connection)[0];
}

/* entry: "connection" in any environment, or "environment/connection". */
static bool entry_covers(const char *entry, const char *environment, const char *connection)
{
    const char *slash = strchr(entry, '/');
    if (!slash) {
        return strcmp(entry, connection) == 0;
    }
    size_t len = (size_t)(slash - entry);
    bool same =
        !environment || (strlen(environment) == len && memcmp(environment, entry, len) == 0);
    return same && strcmp(slash + 1, connection) == 0;
}

bool coord_reaches(const struct coord_reach *r, const char *environment, const char *connection)
{
    for (size_t i = 0; i < r->n; i++) {
        if (entry_covers(r->connections[i], environment, connection)) {
            return true;
        }
    }
    return r->n == 0;
}

bool reach_covers(const struct coord *c, const struct coord_reach *r, const struct job *j)
{
    const char *environment, *connection;
    bool somewhere = job_where(c, j, &environment, &connection);
    bool sweeps_root = j->kind == KIND_SWEEP && somewhere && strcmp(connection, "duckdb") == 0;
    bool by_binding = (j->place && !j->place->in_place) || sweeps_root;
    if (by_binding && !r->has_root) {
        return false;
    }
    return !somewhere || coord_reaches(r, environment, connection);
}

void builder_reaches(struct coord *c, struct builder *b, const struct coord_reach *r)
{
    b->connections = xrealloc(b->connections, (r->n + 1) * sizeof(*b->connections));
    for (size_t i = 0; i < r->n; i++) {
        b->connections[i] = coord_intern(c, r->connections[i]);
    }
    b->n_connections = r->n;
    b->has_root = r->has_root;
}

static bool builder_live(const struct builder *b, struct ms mono)
{
    return !b->left && ms_before(mono, ms_add(b->heard, MS(BUILDER_LIVE_MS)));
}

size_t coord_live_builders(const struct coord *c, struct coord_now now)
{
    size_t n = 0;
    list_for_each (it, &c->builders) {
        n += builder_live(list_entry(it, struct builder, link), now.mono);
    }
    return n;
}

void coord_builder_left(struct coord *c, const char *instance)
{
    list_for_each (it, &c->builders) {
        struct builder *b = list_entry(it, struct builder, link);
        b->left = b->left || strcmp(b->instance, instance) == 0;
    }
}

static bool somebody_covers(const struct turn *t, const struct job *j)
{
    list_for_each (it, &t->c->builders) {
        const struct builder *b = list_entry(it, struct builder, link);
        struct coord_reach r = {b->connections, b->n_connections, b->has_root};
        if (builder_live(b, t->now.mono) && reach_covers(t->c, &r, j)) {
            return true;
        }
    }
    return false;
}

static void tell_nobody(struct turn *t, const struct job *j)
{
    struct coord_note *n = coord_note(t, NOTE_NOBODY);
    n->unit = j->unit;
    n->job = j->id;
    snprintf(n->run, sizeof(n->run), "%s", j->run ? j->run->id : "");
    n->connection = arena_strdup(t->o->rows.arena, j->t.connection);
}

void reach_check(struct turn *t)
{
    struct coord *c = t->c;
    list_for_each (it, &c->builders) {
        struct builder *b = list_entry(it, struct builder, link);
        b->gone = !builder_live(b, t->now.mono);
    }
    struct list *queues[] = {&c->ready, &c->resolving};
    for (size_t k = 0; k < ARRAY_LEN(queues); k++) {
        list_for_each (it, queues[k]) {
            struct job *j = list_entry(it, struct job, todo);
            if (somebody_covers(t, j)) {
                j->nobody = NOBODY_NO;
            } else if (j->nobody == NOBODY_NO) {
                j->nobody = NOBODY_WAITS;
                j->nobody_due = ms_add(t->now.mono, MS(NOBODY_MS));
            } else if (j->nobody == NOBODY_WAITS && !ms_before(t->now.mono, j->nobody_due)) {
                j->nobody = NOBODY_TOLD;
                tell_nobody(t, j);
            }
        }
    }
}

/* When a job's wait becomes a warning, or the last one who could take it counts as gone. */
struct ms reach_next_due(const struct coord *c)
{
    struct ms due = MS_NONE;
    bool some = false;
    const struct list *queues[] = {&c->ready, &c->resolving};
    for (size_t k = 0; k < ARRAY_LEN(queues); k++) {
        list_for_each (it, queues[k]) {
            const struct job *j = list_entry(it, struct job, todo);
            some = some || j->nobody == NOBODY_NO;
            due = j->nobody == NOBODY_WAITS ? ms_min(due, j->nobody_due) : due;
        }
    }
    list_for_each (it, &c->builders) {
        const struct builder *b = list_entry(it, struct builder, link);
        if (some && !b->gone) {
            due = ms_min(due, ms_add(b->heard, MS(BUILDER_LIVE_MS)));
        }
    }
    return due;
}
