#include "services/kiln/run_print.h"
#include "services/kiln/progress.h"
#include "services/kiln/table.h"
#include <stdio.h>
#include <unistd.h>

static bool status_is(const json_t *run, const char *status)
{
    return strcmp(json_str(run, "status", ""), status) == 0;
}

bool run_is_ready(const json_t *run)
{
    return status_is(run, "MANIFEST_FILE_READY");
}

bool run_is_cancelled(const json_t *run)
{
    return status_is(run, "CANCELLED");
}

bool run_has_ended(const json_t *run)
{
    return run_is_ready(run) || run_is_cancelled(run) || status_is(run, "FAILED");
}

const char *run_word(const json_t *run)
{
    const char *stage = json_str(json_object_get(run, "progress"), "stage", NULL);
    return run_is_ready(run)                       ? "ready"
           : run_is_cancelled(run)                 ? "cancelled"
           : status_is(run, "FAILED")              ? "failed"
           : stage                                 ? stage
           : status_is(run, "MANIFEST_ROWS_READY") ? "binding"
                                                   : "waiting";
}

static void add_entry(struct table *t, const json_t *entry)
{
    const json_t *took = json_object_get(entry, "buildDurationMs");
    const json_t *rows = json_object_get(entry, "rowCount");
    table_add(t, json_str(entry, "sourceName", "?"));
    table_add(t, json_str(entry, "physicalTableName", ""));
    if (json_is_integer(rows)) {
        table_addf(t, "%lld", (long long)json_integer_value(rows));
    } else {
        table_add(t, "");
    }
    auto_buf struct buf span = {0};
    if (json_is_integer(took)) {
        progress_span(&span, json_integer_value(took));
    }
    table_add(t, buf_str(&span));
    table_add(t, json_str(entry, "dataAsOf", ""));
}

static void add_unbuilt(struct table *t, const char *name, const char *table, const char *word,
                        const char *why)
{
    table_add(t, name);
    table_add(t, table);
    table_add(t, "");
    table_add(t, word);
    table_add(t, why);
}

static void print_table(const struct table *t)
{
    auto_buf struct buf out = {0};
    table_print(t, terminal_width(STDOUT_FILENO), &out);
    (void)fputs(buf_str(&out), stdout);
    (void)fflush(stdout);
}

static void print_sources(const json_t *run)
{
    static const char *const heads[] = {"SOURCE", "TABLE", "ROWS", "TOOK", "DATA AS OF / WHY"};
    const json_t *manifest = json_object_get(run, "manifest");
    json_t *maps[] = {json_object_get(manifest, "entries"), json_object_get(manifest, "failures"),
                      json_object_get(json_object_get(run, "metadata"), "refusedSources")};
    struct table t;
    const char *key;
    json_t *item;
    table_init(&t, heads, ARRAY_LEN(heads));
    t.wraps = true;
    json_object_foreach(maps[0], key, item)
    {
        add_entry(&t, item);
    }
    json_object_foreach(maps[1], key, item)
    {
        add_unbuilt(&t, json_str(item, "sourceName", "?"), json_str(item, "physicalTableName", ""),
                    "failed", json_str(item, "reason", ""));
    }
    json_object_foreach(maps[2], key, item)
    {
        add_unbuilt(&t, json_str(item, "name", "?"), "", "refused", json_str(item, "message", ""));
    }
    if (t.n > t.columns) {
        print_table(&t);
    }
    table_fini(&t);
}

void run_print_end(const json_t *run)
{
    const json_t *m = json_object_get(run, "metadata");
    auto_buf struct buf took = {0};
    if (json_is_integer(json_object_get(m, "durationMs"))) {
        buf_add_str(&took, " after ");
        progress_span(&took, json_int(m, "durationMs", 0));
    }
    (void)printf(
        "run %s of %s is %s%s: %lld built, %lld reused, %lld failed, %lld refused\n",
        json_str(run, "id", "?"), json_str(run, "packageName", "?"), run_word(run), buf_str(&took),
        (long long)json_int(m, "sourcesBuilt", 0), (long long)json_int(m, "sourcesReused", 0),
        (long long)json_int(m, "sourcesFailed", 0), (long long)json_int(m, "sourcesRefused", 0));
    print_sources(run);
    const json_t *unbound = json_object_get(m, "unbound");
    for (size_t i = 0; i < json_array_size(unbound); i++) {
        const char *name = json_string_value(json_array_get(unbound, i));
        (void)fprintf(stderr, "warning: gateway %s has not bound the result yet\n",
                      name ? name : "?");
    }
}

void run_print_list(const json_t *runs)
{
    static const char *const heads[] = {"ID",     "PACKAGE", "STATUS", "BUILT",
                                        "REUSED", "CREATED", "ERROR"};
    struct table t;
    table_init(&t, heads, ARRAY_LEN(heads));
    t.wraps = true;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const json_t *m = json_object_get(run, "metadata");
        table_add(&t, json_str(run, "id", "?"));
        table_add(&t, json_str(run, "packageName", "?"));
        table_add(&t, run_word(run));
        table_addf(&t, "%lld", (long long)json_int(m, "sourcesBuilt", 0));
        table_addf(&t, "%lld", (long long)json_int(m, "sourcesReused", 0));
        table_add(&t, json_str(run, "createdAt", ""));
        table_add(&t, json_str(run, "error", ""));
    }
    print_table(&t);
    table_fini(&t);
}
