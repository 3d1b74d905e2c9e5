/* Physical names: split as an author wrote them, joined with every segment quoted. */
#include "common/pgc/pgc.h"
#include "common/warehouse/warehouse.h"

/* One segment off the front of *rest, quotes undone; NULL when the quoting is broken or it is
 * empty. */
static const char *segment(struct arena *a, const char **rest)
{
    const char *p = *rest;
    if (*p != '"') {
        size_t len = strcspn(p, ".\"");
        *rest = p + len;
        return len > 0 && p[len] != '"' ? arena_strndup(a, p, len) : NULL;
    }
    char *out = arena_alloc(a, strlen(p) + 1);
    size_t len = 0;
    for (p++; *p; p++) {
        if (*p == '"' && p[1] != '"') {
            break;
        }
        p += *p == '"';
        out[len++] = *p;
    }
    out[len] = '\0';
    if (*p != '"' || len == 0) {
        return NULL;
    }
    *rest = p + 1;
    return out;
}

int wh_name_parse(struct arena *a, const char *text, struct wh_name *out, struct err *e)
{
    const char *parts[3] = {NULL};
    size_t n = 0;
    const char *rest = text;
    for (;;) {
        const char *part = n < ARRAY_LEN(parts) ? segment(a, &rest) : NULL;
        if (!part || (*rest && *rest != '.')) {
            err_set(e, ERR_INVALID,
                    "\"%s\" is not a table name; write table, schema.table or "
                    "\"schema\".\"table\"",
                    text);
            return -1;
        }
        parts[n++] = part;
        if (!*rest) {
            break;
        }
        rest++;
    }
    if (n == 3) {
        err_set(e, ERR_INVALID,
                "\"%s\" names a database; a table is built in the connection's own database: write "
                "schema.table",
                text);
        return -1;
    }
    *out = n == 1 ? (struct wh_name){.schema = "", .table = parts[0]}
                  : (struct wh_name){.schema = parts[0], .table = parts[1]};
    return 0;
}

char *wh_name_quoted(struct arena *a, const struct wh_name *n)
{
    auto_buf struct buf out = {0};
    if (n->schema && n->schema[0]) {
        pgc_quote_ident(&out, slice_of(n->schema));
        buf_add_char(&out, '.');
    }
    pgc_quote_ident(&out, slice_of(n->table));
    return arena_strdup(a, buf_str(&out));
}
