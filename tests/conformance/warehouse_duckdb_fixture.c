#include "tests/conformance/warehouse_duckdb_fixture.h"

#include <unistd.h>

int ask(struct run *r, struct sink_told *s, struct wh_query q)
{
    sink_init(s);
    run_init(r, wh);
    wh->ops->query(&r->op, &q, &s->sink);
    return wait_for(r);
}

const char *path_of(uint64_t token, const char *file)
{
    return arena_printf(&arena, "%s/%s/%s%s%s", duck_root, DUCK_DATASET, generation_of(NULL, token),
                        file[0] ? "/" : "", file);
}

void bind_names(size_t n, const char *const *names, const uint64_t *tokens)
{
    for (size_t i = 0; i < n; i++) {
        duck_bindings[i] =
            (struct wh_duckdb_binding){names[i], generation_of(NULL, tokens[i]), "b1"};
    }
    n_duck_bindings = n;
}

void cut_file(const char *path, off_t bytes)
{
    ck_assert_int_eq(truncate(path, bytes), 0);
}
