/* DuckDB's error types as our codes, its texts as one sentence. */
#include "common/duck/duck_internal.h"

static bool has(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool is_missing(const char *text)
{
    return has(text, "does not exist") || has(text, "no such file") ||
           has(text, "no files found that match");
}

static int code_of(duckdb_error_type type, const char *text)
{
    switch (type) {
    case DUCKDB_ERROR_INTERRUPT:
        return ERR_CANCELLED;
    case DUCKDB_ERROR_PERMISSION:
        return ERR_WH_DENIED;
    case DUCKDB_ERROR_OUT_OF_MEMORY:
        return ERR_QUERY_MEMORY;
    case DUCKDB_ERROR_TRANSACTION:
        return ERR_WH_TRANSIENT;
    case DUCKDB_ERROR_CONNECTION:
    case DUCKDB_ERROR_NETWORK:
    case DUCKDB_ERROR_HTTP:
        return ERR_WH_CONNECT;
    case DUCKDB_ERROR_MISSING_EXTENSION:
    case DUCKDB_ERROR_AUTOLOAD:
        return ERR_UNSUPPORTED;
    case DUCKDB_ERROR_FATAL:
    case DUCKDB_ERROR_INTERNAL:
        return ERR_INTERNAL;
    case DUCKDB_ERROR_IO:
        return is_missing(text) ? ERR_WH_MISSING : ERR_IO;
    case DUCKDB_ERROR_CATALOG:
    case DUCKDB_ERROR_BINDER:
        return is_missing(text) ? ERR_WH_MISSING : ERR_WH_SQL;
    default:
        return ERR_WH_SQL;
    }
}

/* A pending result and a failed prepare have a text only; it begins with the type's name. */
static duckdb_error_type type_of(const char *text)
{
    static const struct {
        const char *head;
        duckdb_error_type type;
    } heads[] = {
        {"INTERRUPT Error", DUCKDB_ERROR_INTERRUPT},
        {"Permission Error", DUCKDB_ERROR_PERMISSION},
        {"Out of Memory Error", DUCKDB_ERROR_OUT_OF_MEMORY},
        {"TransactionContext Error", DUCKDB_ERROR_TRANSACTION},
        {"Connection Error", DUCKDB_ERROR_CONNECTION},
        {"Network Error", DUCKDB_ERROR_NETWORK},
        {"HTTP Error", DUCKDB_ERROR_HTTP},
        {"Missing Extension Error", DUCKDB_ERROR_MISSING_EXTENSION},
        {"Extension Autoloading Error", DUCKDB_ERROR_AUTOLOAD},
        {"FATAL Error", DUCKDB_ERROR_FATAL},
        {"INTERNAL Error", DUCKDB_ERROR_INTERNAL},
        {"IO Error", DUCKDB_ERROR_IO},
        {"Catalog Error", DUCKDB_ERROR_CATALOG},
        {"Binder Error", DUCKDB_ERROR_BINDER},
        {"Conversion Error", DUCKDB_ERROR_CONVERSION},
    };
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        if (strncasecmp(text, heads[i].head, strlen(heads[i].head)) == 0) {
            return heads[i].type;
        }
    }
    return DUCKDB_ERROR_INVALID;
}

/* ---- what the PostgreSQL reader says ---- */

/* DuckDB gives these no type, or puts a connection string before them. */
struct remote {
    const char *head; /* of the text */
    const char *from; /* behind the last one of these */
    int code;         /* 0: by what the server said */
};
static const struct remote remotes[] = {
    {"Unable to connect to Postgres at", "\": ", ERR_WH_CONNECT},
    {"Failed to ", "ERROR:  ", 0},
    {"Failed to ", "FATAL:  ", ERR_WH_CONNECT},
    {"Failed to ", "server closed the connection", ERR_WH_LOST},
    {"Failed to ", "connection to server", ERR_WH_CONNECT},
    {"Failed to ", "no connection to the server", ERR_WH_LOST},
};

static const char *last_of(const char *text, const char *part)
{
    const char *at = NULL;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part)) {
        at = p;
    }
    return at;
}

static int server_code(const char *text)
{
    static const struct {
        const char *part;
        int code;
    } parts[] = {
        {"does not exist", ERR_WH_MISSING},     {"permission denied", ERR_WH_DENIED},
        {"canceling statement", ERR_CANCELLED}, {"terminating connection", ERR_WH_LOST},
        {"shutting down", ERR_WH_LOST},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (has(text, parts[i].part)) {
            return parts[i].code;
        }
    }
    return ERR_WH_SQL;
}

/* What the server said, without the statement or the address before it; NULL: it is not of one. */
static const char *remote_text(const char *text, int *code)
{
    for (size_t i = 0; i < ARRAY_LEN(remotes); i++) {
        const struct remote *r = &remotes[i];
        const char *head = strstr(text, r->head);
        const char *at = head && head - text < 40 ? last_of(head, r->from) : NULL;
        if (at) {
            at += r->code == ERR_WH_LOST || strncmp(r->from, "connection", 10) == 0
                      ? 0
                      : strlen(r->from);
            *code = r->code ? r->code : server_code(at);
            return at;
        }
    }
    return NULL;
}

/* Without the excerpt of the statement and without advice that nobody can follow here, on one line.
 */
static void one_line(struct buf *out, const char *text)
{
    static const char *const ends[] = {
        "\nLINE ", "\nStack Trace", "\nPossible solutions:", "\nPlease try installing and loading"};
    size_t len = strlen(text);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const char *end = strstr(text, ends[i]);
        len = end && (size_t)(end - text) < len ? (size_t)(end - text) : len;
    }
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        bool is_end = text[i] == '\n' || text[i] == '\r';
        if (!is_end) {
            buf_add_char(out, text[i]);
        } else if (out->len > 0 && out->p[out->len - 1] != ' ') {
            buf_add_char(out, ' ');
        }
    }
}

int duck_error(struct duck_instance *i, duckdb_error_type type, const char *text, struct err *e)
{
    text = text ? text : "DuckDB gave no reason";
    if (type == DUCKDB_ERROR_INVALID) {
        type = type_of(text);
    }
    if (type == DUCKDB_ERROR_FATAL) {
        atomic_store(&i->broken, true);
    }
    auto_buf struct buf line = {0};
    int code = 0;
    const char *remote = remote_text(text, &code);
    if (remote) {
        one_line(&line, remote);
        return err_set(e, code, "%s: PostgreSQL: %s", i->what, buf_str(&line));
    }
    one_line(&line, text);
    if (type == DUCKDB_ERROR_OUT_OF_MEMORY) {
        buf_add_str(&line, "; give DuckDB more memory here (duckdb_memory), or ask for less");
    }
    return err_set(e, code_of(type, text), "%s: %s", i->what, buf_str(&line));
}

void duck_quote_text(struct buf *out, const char *text)
{
    buf_add_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'') {
            buf_add_char(out, '\'');
        }
        buf_add_char(out, *text);
    }
    buf_add_char(out, '\'');
}

void duck_quote_name(struct buf *out, const char *name)
{
    buf_add_char(out, '"');
    for (; *name; name++) {
        if (*name == '"') {
            buf_add_char(out, '"');
        }
        buf_add_char(out, *name);
    }
    buf_add_char(out, '"');
}
