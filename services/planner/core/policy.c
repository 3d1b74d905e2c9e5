#include "services/planner/core/plan_internal.h"

static void add(struct arena *a, const char ***list, size_t *n, const char *text)
{
    *list = plan_grown(a, (void *)*list, *n, sizeof(**list));
    (*list)[(*n)++] = text;
}

size_t policy_list(struct arena *a, const json_t *manifest, const struct package_plan *plan,
                   const char ***out)
{
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < plan->n_retired_options; i++) {
        add(a, out, &n, plan->retired_options[i]);
    }
    const char *schedule = manifest_schedule(manifest);
    if (!schedule) {
        return n;
    }
    if (strcmp(manifest_scope(manifest), "version") != 0) {
        add(a, out, &n,
            "materialization.schedule in publisher.json requires materialization.scope "
            "\"version\"");
    }
    if (manifest_window(manifest) || manifest_fallback(manifest)) {
        add(a, out, &n,
            "materialization.schedule in publisher.json excludes materialization.freshness: keep "
            "one of them");
    }
    if (plan->freshness_declarers) {
        add(a, out, &n,
            arena_printf(a,
                         "materialization.schedule in publisher.json excludes freshness on a "
                         "source: remove it from %s",
                         plan->freshness_declarers));
    }
    const char *problem = cron_check(a, schedule);
    if (problem) {
        add(a, out, &n,
            arena_printf(a, "materialization.schedule '%s' in publisher.json is no cron: %s",
                         schedule, problem));
    }
    return n;
}

char *package_policy_violations(struct arena *a, const json_t *manifest,
                                const struct package_plan *plan)
{
    const char **list;
    size_t n = policy_list(a, manifest, plan, &list);
    auto_buf struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_addf(&text, "%s%s", i ? "; " : "", list[i]);
    }
    return n ? arena_strdup(a, buf_str(&text)) : NULL;
}

static bool names_model(const char *path, const char *const *paths, size_t n)
{
    size_t len = strlen(path);
    bool is_model = len > 7 && strcmp(path + len - 7, ".malloy") == 0;
    for (size_t i = 0; is_model && i < n; i++) {
        if (strcmp(paths[i], path) == 0) {
            return true;
        }
    }
    return false;
}

json_t *explores_list(const json_t *manifest, const char *const *paths, size_t n)
{
    json_t *list = json_array();
    const json_t *explores = json_object_get(manifest, "explores");
    for (size_t i = 0; i < json_array_size(explores); i++) {
        const char *path = json_string_value(json_array_get(explores, i));
        if (path && names_model(path, paths, n)) {
            continue;
        }
        char *text = xasprintf("explores in publisher.json names '%s', which is no model file "
                               "(.malloy) of the package",
                               path ? path : "something that is no text");
        must(json_array_append_new(list, json_string(text)) == 0);
        free(text);
    }
    return list;
}

char *package_explores_violations(struct arena *a, const json_t *manifest, const char *const *paths,
                                  size_t n)
{
    json_t *list = explores_list(manifest, paths, n);
    auto_buf struct buf text = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        buf_addf(&text, "%s%s", i ? "; " : "", json_string_value(json_array_get(list, i)));
    }
    json_decref(list);
    return text.len ? arena_strdup(a, buf_str(&text)) : NULL;
}
