/* Connections: statements without rows, and statements kept prepared. */
#include "common/duck/duck_internal.h"

#define PREPARED_MAX 128

int duck_conn_new(struct duck_instance *i, struct duck_conn **out, struct err *e)
{
    struct duck_conn *c = xcalloc(1, sizeof(*c));
    c->instance = i;
    list_init(&c->link);
    list_init(&c->by_use);
    map_init(&c->prepared);
    *out = c;
    if (duckdb_connect(i->db, &c->con) == DuckDBError) {
        return err_set(e, ERR_INTERNAL, "%s: DuckDB gives no connection", i->what);
    }
    return 0;
}

static void prepared_free(struct duck_prepared *p)
{
    duckdb_destroy_prepare(&p->stmt);
    free(p->key);
    free(p->sql);
    free(p);
}

static size_t forget_all(struct duck_conn *c)
{
    struct list *it;
    size_t n = 0;
    for (; (it = list_take_head(&c->by_use)); n++) {
        struct duck_prepared *p = list_entry(it, struct duck_prepared, link);
        map_del(&c->prepared, slice_of(p->key));
        prepared_free(p);
    }
    return n;
}

size_t duck_conns_forget(struct duck_instance *i, struct duck_conn *own)
{
    size_t n = own ? forget_all(own) : 0;
    pthread_mutex_lock(&i->lock);
    list_for_each (it, &i->idle) {
        n += forget_all(list_entry(it, struct duck_conn, link));
    }
    pthread_mutex_unlock(&i->lock);
    return n;
}

void duck_conn_free(struct duck_conn *c)
{
    (void)forget_all(c);
    map_fini(&c->prepared);
    if (c->con) {
        duckdb_disconnect(&c->con);
    }
    free(c);
}

struct duck_conn *duck_conn_take(struct duck_instance *i)
{
    pthread_mutex_lock(&i->lock);
    struct list *it = list_take_head(&i->idle);
    pthread_mutex_unlock(&i->lock);
    must(it);
    return list_entry(it, struct duck_conn, link);
}

void duck_conn_give(struct duck_conn *c)
{
    pthread_mutex_lock(&c->instance->lock);
    list_add_head(&c->instance->idle, &c->link); /* its statements are warm: next time again */
    pthread_mutex_unlock(&c->instance->lock);
}

/* ---- statements without rows ---- */

static int run(struct duck_conn *c, const char *sql, duckdb_result *result, struct err *e)
{
    if (duckdb_query(c->con, sql, result) == DuckDBSuccess) {
        return 0;
    }
    int rc =
        duck_error(c->instance, duckdb_result_error_type(result), duckdb_result_error(result), e);
    duckdb_destroy_result(result);
    return rc;
}

int duck_exec(struct duck_conn *c, const char *sql, struct err *e)
{
    duckdb_result result;
    int rc = run(c, sql, &result, e);
    if (rc == 0) {
        duckdb_destroy_result(&result);
    }
    return rc;
}

int duck_show_progress(struct duck_conn *c, struct err *e)
{
    int rc = 0;
    if (!c->has_progress) {
        rc = duck_exec(c, "SET enable_progress_bar = true; SET enable_progress_bar_print = false",
                       e);
        c->has_progress = rc == 0;
    }
    return rc;
}

int duck_exec_count(struct duck_conn *c, const char *sql, uint64_t *rows, struct err *e)
{
    duckdb_result result;
    int rc = run(c, sql, &result, e);
    if (rc == 0) {
        *rows = duckdb_rows_changed(&result);
        duckdb_destroy_result(&result);
    }
    return rc;
}

int duck_exec_value(struct duck_conn *c, const char *sql, struct arena *a, const char **out,
                    struct err *e)
{
    struct duck_query *q;
    struct duck_page *p = NULL;
    *out = NULL;
    int rc = duck_query_open(c, &(struct duck_query_ask){.sql = sql}, &q, e);
    if (rc < 0) {
        return rc;
    }
    rc = duck_query_begin(q, e);
    if (rc == 0) {
        rc = duck_query_next(q, DUCK_FORM_TEXT, &p, e);
    }
    if (p && duck_query_n_columns(q) > 0) {
        auto_free struct slice *cells = xcalloc(duck_query_n_columns(q), sizeof(*cells));
        duck_page_cells(p, 0, cells);
        *out = cells[0].p ? arena_slice(a, cells[0]) : NULL;
    }
    duck_page_free(p);
    duck_query_close(q);
    return rc;
}

/* ---- prepared ---- */

static int refuse_statement(struct duck_conn *c, struct err *e)
{
    return err_set(e, ERR_WH_SQL, "%s: only one SELECT statement is taken here", c->instance->what);
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Behind a quoted text or name that begins at p. */
static const char *skip_quoted(const char *p)
{
    const char *end = strchr(p + 1, *p);
    return end ? end + 1 : p + strlen(p);
}

/* ANDs and ORs of a text; words in comments count, too. */
static size_t count_terms(const char *p)
{
    size_t n = 0;
    while (*p) {
        if (*p == '\'' || *p == '"') {
            p = skip_quoted(p);
            continue;
        }
        size_t len = 0;
        while (is_word_char(p[len])) {
            len++;
        }
        n += (len == 2 && strncasecmp(p, "or", 2) == 0) ||
             (len == 3 && strncasecmp(p, "and", 3) == 0);
        p += len > 0 ? len : 1;
    }
    return n;
}

/* Planning takes time by the square of them, and no interrupt ends it: 20,000 take 19 s. */
static int check_terms(struct duck_conn *c, const char *sql, struct err *e)
{
    size_t n = count_terms(sql);
    if (n <= DUCK_TERMS_MAX) {
        return 0;
    }
    return err_set(
        e, ERR_WH_SQL,
        "%s: the statement joins %zu terms by AND and OR, and at most %d are taken; write "
        "lists as IN (..)",
        c->instance->what, n, DUCK_TERMS_MAX);
}

/* Parses; one statement is prepared. With select_only it must be a SELECT. */
static int prepare_one(struct duck_conn *c, const char *sql, bool select_only,
                       duckdb_prepared_statement *out, struct err *e)
{
    int rc = check_terms(c, sql, e);
    if (rc < 0) {
        return rc;
    }
    duckdb_extracted_statements list;
    idx_t n = duckdb_extract_statements(c->con, sql, &list);
    if (n == 0) {
        const char *why = duckdb_extract_statements_error(list);
        rc = why ? duck_error(c->instance, DUCKDB_ERROR_PARSER, why, e) : refuse_statement(c, e);
    } else if (n > 1) {
        rc = refuse_statement(c, e);
    } else if (select_only && c->instance->forbidden && (rc = duck_guard(c, sql, e)) < 0) {
        /* e says why */
    } else if (duckdb_prepare_extracted_statement(c->con, list, 0, out) == DuckDBError) {
        rc = duck_error(c->instance, DUCKDB_ERROR_INVALID, duckdb_prepare_error(*out), e);
        duckdb_destroy_prepare(out);
    } else if (select_only &&
               duckdb_prepared_statement_type(*out) != DUCKDB_STATEMENT_TYPE_SELECT) {
        rc = refuse_statement(c, e);
        duckdb_destroy_prepare(out);
    }
    duckdb_destroy_extracted(&list);
    return rc;
}

int duck_check_select(struct duck_conn *c, const char *sql, struct err *e)
{
    duckdb_prepared_statement stmt;
    int rc = prepare_one(c, sql, true, &stmt, e);
    if (rc == 0) {
        duckdb_destroy_prepare(&stmt);
    }
    return rc;
}

static void forget(struct duck_conn *c, struct duck_prepared *p)
{
    map_del(&c->prepared, slice_of(p->key));
    list_del(&p->link);
    prepared_free(p);
}

static struct duck_prepared *kept(struct duck_conn *c, const struct duck_query_ask *ask)
{
    struct duck_prepared *p =
        ask->prepare_as ? map_get(&c->prepared, slice_of(ask->prepare_as)) : NULL;
    if (p && strcmp(p->sql, ask->sql) != 0) {
        forget(c, p); /* one name, another text: the new one counts */
        return NULL;
    }
    if (p) {
        list_del(&p->link);
        list_add_tail(&c->by_use, &p->link);
    }
    return p;
}

static void keep(struct duck_conn *c, struct duck_prepared *p)
{
    (void)map_put(&c->prepared, slice_of(p->key), p);
    list_add_tail(&c->by_use, &p->link);
    if (map_len(&c->prepared) > PREPARED_MAX) {
        forget(c, list_entry(c->by_use.next, struct duck_prepared, link));
    }
}

int duck_prepare(struct duck_conn *c, const struct duck_query_ask *ask, struct duck_prepared **out,
                 struct err *e)
{
    struct duck_prepared *p = kept(c, ask);
    if (!p) {
        duckdb_prepared_statement stmt;
        int rc = prepare_one(c, ask->sql, ask->select_only, &stmt, e);
        if (rc < 0) {
            return rc;
        }
        p = xcalloc(1, sizeof(*p));
        p->stmt = stmt;
        p->key = xstrdup(ask->prepare_as);
        p->sql = xstrdup(ask->sql);
        list_init(&p->link);
        if (p->key) {
            keep(c, p);
        }
    }
    *out = p;
    return 0;
}

void duck_unprepare(struct duck_prepared *p)
{
    if (!p->key) {
        prepared_free(p);
    }
}
