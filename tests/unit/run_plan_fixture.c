#include "tests/unit/run_plan_fixture.h"

struct run_plan_world rp;

const char *const *rp_names(const char *name)
{
    const char **list = arena_alloc(&pw.a, sizeof(*list));
    list[0] = name;
    return list;
}

void rp_name_only(const char *name)
{
    rp.in.has_names = true;
    rp.in.names = rp_names(name);
    rp.in.n_names = 1;
}

void rp_ready(void)
{
    pw_plan();
    ck_assert_ptr_null(pw.plan.load_error);
    rp = (struct run_plan_world){0};
    for (size_t i = 0; i < pw.plan.n_targets; i++) {
        const struct planned_target *t = &pw.plan.targets[i];
        rp.states[i] = (struct target_state){.asked = true,
                                             .schema = *t->schema ? t->schema : "public",
                                             .table = t->table,
                                             .schema_exists = true,
                                             .schema_writable = true};
    }
    rp.in = (struct run_plan_input){.package = &pw.plan,
                                    .load = 7,
                                    .compiler_version = "0.0.1",
                                    .states = rp.states,
                                    .generations = rp.generations,
                                    .connections = pw.connections,
                                    .n_connections = ARRAY_LEN(pw.connections)};
}

void rp_stands(size_t i)
{
    struct target_state *s = &rp.states[i];
    s->relkind = 'r';
    s->has_fence = s->still_there = s->ours = true;
    s->fence_generation = "G";
    s->fence_build_id = pw.plan.targets[i].build_id;
    rp.generations[i].g = (struct core_generation){.id = "G", .token = 5, .rows = 42};
}

const struct plan_target *rp_make(void)
{
    run_plan_make(&pw.a, &rp.in, &rp.run);
    return rp.run.targets;
}

Kiln__Mc__Model *rp_one_source(void)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "daily", "mart.daily");
    rp_ready();
    return m;
}
