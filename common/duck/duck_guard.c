/* Functions that a caller may not name. DuckDB's own parser finds them: its tree as JSON has each
 * function as "function_name", and a quote inside of any text in it is escaped, so the words below
 * stand for nothing else (decisions 6.4). */
#include "common/duck/duck_internal.h"

/* They run a text that nobody has looked at. */
static const char *const runs_text[] = {"query", "json_execute_serialized_sql", NULL};

static const char *named(const char *tree, const char *const *functions)
{
    for (size_t i = 0; functions[i]; i++) {
        auto_free char *mark = xasprintf("\"function_name\":\"%s\"", functions[i]);
        if (strcasestr(tree, mark)) {
            return functions[i];
        }
    }
    return NULL;
}

/* FROM '/a/file': a name without a schema, and a file's. */
static bool reads_file(const char *tree)
{
    static const char mark[] = "\"schema_name\":\"\",\"table_name\":\"";
    for (const char *at = tree; (at = strstr(at, mark));) {
        at += sizeof(mark) - 1;
        if (memchr(at, '/', strcspn(at, "\""))) {
            return true;
        }
    }
    return false;
}

static int parse(struct duck_conn *c, const char *sql, struct arena *a, const char **tree,
                 struct err *e)
{
    auto_buf struct buf ask = {0};
    buf_add_str(&ask, "SELECT json_serialize_sql(");
    duck_quote_text(&ask, sql);
    buf_add_char(&ask, ')');
    return duck_exec_value(c, buf_str(&ask), a, tree, e);
}

int duck_guard(struct duck_conn *c, const char *sql, struct err *e)
{
    const char *const what = c->instance->what;
    const char *tree;
    struct arena a;
    arena_init(&a);
    int rc = parse(c, sql, &a, &tree, e);
    if (rc == 0 && (!tree || strncmp(tree, "{\"error\":false", 14) != 0)) {
        rc = err_set(e, ERR_WH_SQL,
                     "%s: only one SELECT statement is taken here, and none that pivots", what);
    }
    const char *bad = rc < 0 ? NULL : named(tree, c->instance->forbidden);
    bad = bad || rc < 0 ? bad : named(tree, runs_text);
    if (bad) {
        rc = err_set(e, ERR_WH_DENIED,
                     "%s: the function %s is not for statements over attached "
                     "databases; read their tables by name",
                     what, bad);
    }
    if (rc == 0 && reads_file(tree)) {
        rc = err_set(e, ERR_WH_DENIED,
                     "%s: only tables of the attached databases are read here, no files", what);
    }
    arena_fini(&a);
    return rc;
}
