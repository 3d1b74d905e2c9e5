/* The packages of this world: chains of sources, some of which want one name that others want as
 * well, and what the compiler reports about them. */
#include "common/base/crypto.h"
#include "proto/compiler.pb-c.h"
#include "tests/sim/trio_world.h"

#include <stdio.h>

enum { SHARED_ROWS = 7 };

void package_make(struct world *w, struct trio_unit *u, const struct trio_shape *shape)
{
    snprintf(u->name, sizeof(u->name), "p%zu", (size_t)(u - w->units));
    u->id = memory_store_add_unit(w->rows, TRIO_ENVIRONMENT, u->name);
    u->n = shape ? 2 : 1 + sim_time_below(&w->time, TRIO_SOURCES);
    u->shares_results = w->units[0].shares_results;
    bool chained = shape || sim_time_chance(&w->time, 600);
    bool shares = !shape && w->n_units > 1 && sim_time_chance(&w->time, 500);
    for (size_t i = 0; i < u->n; i++) {
        bool reads = i > 0 && chained;
        size_t parent = !reads ? 0 : shape ? i - 1 : sim_time_below(&w->time, i);
        u->sources[i] =
            (struct trio_source){.parent = reads ? (int)parent : -1, .shared = i == 0 && shares};
    }
}

struct trio_unit *package_unit(struct world *w, uint64_t id)
{
    for (size_t i = 0; i < w->n_units; i++) {
        if (w->units[i].id == id) {
            return &w->units[i];
        }
    }
    return NULL;
}

struct trio_unit *package_named(struct world *w, const char *name, size_t len)
{
    for (size_t i = 0; i < w->n_units; i++) {
        if (slice_eq(slice_of(w->units[i].name), slice_make(name, len))) {
            return &w->units[i];
        }
    }
    return NULL;
}

struct trio_load *package_load(struct world *w, uint64_t id)
{
    for (size_t i = 0; i < w->n_loads; i++) {
        if (w->loads[i].id == id) {
            return &w->loads[i];
        }
    }
    return NULL;
}

struct trio_load *package_load_add(struct world *w, struct trio_unit *u, unsigned version)
{
    must(w->n_loads < TRIO_LOADS);
    struct trio_load *l = &w->loads[w->n_loads++];
    *l = (struct trio_load){.id = w->n_loads, .unit = u->id, .version = version};
    return l;
}

uint64_t package_rows(const struct trio_unit *u, size_t source)
{
    while (u->sources[source].parent >= 0) {
        source = (size_t)u->sources[source].parent;
    }
    return u->sources[source].shared ? SHARED_ROWS : u->id * 10 + source;
}

/* Every second version changes what its sources are. */
char *package_build(struct arena *a, const struct trio_unit *u, size_t source, unsigned version)
{
    bool same = u->sources[source].shared && u->shares_results;
    char *text = same ? arena_strdup(a, "shared")
                      : arena_printf(a, "%s/%zu/%u", u->name, source, version / 2);
    struct sha256 h = sha256_of(text, strlen(text));
    char *hex = arena_alloc(a, 65);
    hex_encode(h.b, 32, hex);
    return hex;
}

char *package_table(struct arena *a, const struct trio_unit *u, size_t source)
{
    return u->sources[source].shared ? arena_strdup(a, "shared")
                                     : arena_printf(a, "t_%s_%zu", u->name, source);
}

/* ---- the compiler's report ---- */
static Kiln__Mc__FreeText *tag(struct arena *a, const char *key, const char *value)
{
    Kiln__Mc__FreeText *t = arena_alloc(a, sizeof(*t));
    kiln__mc__free_text__init(t);
    t->key = arena_strdup(a, key);
    t->value = arena_strdup(a, value);
    return t;
}

static char *source_id(struct arena *a, const struct trio_unit *u, size_t source)
{
    return arena_printf(a, "s%zu@mpkg://%s/" TRIO_MODEL, source, u->name);
}

static Kiln__Mc__Source *source_make(struct arena *a, const struct trio_unit *u, size_t i,
                                     unsigned version)
{
    Kiln__Mc__Source *s = arena_alloc(a, sizeof(*s));
    kiln__mc__source__init(s);
    s->source_id = source_id(a, u, i);
    s->name = arena_printf(a, "s%zu", i);
    s->declared_in = arena_strdup(a, TRIO_MODEL);
    s->connection = arena_strdup(a, TRIO_CONNECTION);
    s->dialect = arena_strdup(a, "postgres");
    s->build_id = package_build(a, u, i, version);
    s->sql = arena_printf(a, "SELECT n FROM generate_series(1, %llu) n",
                          (unsigned long long)package_rows(u, i));
    s->ordinal = (uint32_t)i;
    s->has_name = true;
    s->name_property = arena_printf(a, "public.%s", package_table(a, u, i));
    s->tag = arena_zalloc(a, 2 * sizeof(*s->tag));
    s->tag[s->n_tag++] = tag(a, "persist", "");
    s->tag[s->n_tag++] = tag(a, "name", s->name_property);
    int parent = u->sources[i].parent;
    if (parent >= 0) {
        s->depends_on = arena_zalloc(a, sizeof(char *));
        s->depends_on[s->n_depends_on++] = package_build(a, u, (size_t)parent, version);
        s->depends_on_sources = arena_zalloc(a, sizeof(char *));
        s->depends_on_sources[s->n_depends_on_sources++] = source_id(a, u, (size_t)parent);
    }
    return s;
}

struct slice package_loaded(struct arena *a, const struct trio_unit *u, unsigned version)
{
    Kiln__Mc__Loaded loaded = KILN__MC__LOADED__INIT;
    Kiln__Mc__Model model = KILN__MC__MODEL__INIT;
    Kiln__Mc__Model *models[1] = {&model};
    model.path = arena_strdup(a, TRIO_MODEL);
    model.flagged = model.flagged_own = true;
    model.sources = arena_zalloc(a, TRIO_SOURCES * sizeof(*model.sources));
    for (size_t i = 0; i < u->n; i++) {
        model.sources[model.n_sources++] = source_make(a, u, i, version);
    }
    /* versions that build the same are told apart */
    model.notes = arena_zalloc(a, sizeof(*model.notes));
    model.notes[model.n_notes++] = tag(a, "version", arena_printf(a, "%u", version));
    loaded.models = models;
    loaded.n_models = 1;
    size_t len = kiln__mc__loaded__get_packed_size(&loaded);
    uint8_t *packed = arena_alloc(a, len);
    kiln__mc__loaded__pack(&loaded, packed);
    return slice_make((const char *)packed, len);
}
