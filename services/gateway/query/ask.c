#include "services/gateway/query/query.h"

json_t *gw_body_object(struct http_req *r, struct err *e)
{
    json_t *body = json_parse(http_body(r), e);
    if (!body) {
        err_wrap(e, "the request body is no JSON");
        e->code = ERR_INVALID;
        return NULL;
    }
    if (!json_is_object(body)) {
        json_decref(body);
        err_set(e, ERR_INVALID, "the request body must be a JSON object");
        return NULL;
    }
    return body;
}

static bool is_given(const json_t *v)
{
    return v && !json_is_null(v);
}

int gw_body_str(const json_t *body, const char *key, const char **out, struct err *e)
{
    const json_t *v = json_object_get(body, key);
    *out = NULL;
    if (is_given(v) && !json_is_string(v)) {
        return err_set(e, ERR_INVALID, "'%s' must be a string", key);
    }
    *out = json_string_value(v);
    if (*out && strlen(*out) != json_string_length(v)) {
        return err_set(e, ERR_INVALID, "'%s' must not hold NUL bytes", key);
    }
    return 0;
}

static int body_bool(const json_t *body, const char *key, bool *out, struct err *e)
{
    const json_t *v = json_object_get(body, key);
    *out = json_is_true(v);
    if (is_given(v) && !json_is_boolean(v)) {
        return err_set(e, ERR_INVALID, "'%s' must be true or false", key);
    }
    return 0;
}

int gw_refuse_version(struct http_req *r, const json_t *body, struct err *e)
{
    char *value = NULL;
    if (http_query_get(r, "versionId", http_arena(r), &value) ||
        is_given(json_object_get(body, "versionId"))) {
        return err_set(e, ERR_UNSUPPORTED, GW_NO_VERSIONS);
    }
    return 0;
}

/* Filters narrow what a caller may see: leaving them out silently would widen the answer. */
static int read_filters(const json_t *body, bool *used, struct err *e)
{
    static const char *const keys[] = {"filterParams", "sourceFilters"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *v = json_object_get(body, keys[i]);
        if (json_object_size(v) > 0 || json_array_size(v) > 0) {
            return err_set(e, ERR_UNSUPPORTED,
                           "'%s' is not supported: declare a given in the model and send it in "
                           "'givens'",
                           keys[i]);
        }
        *used = *used || is_given(v);
    }
    *used = *used || is_given(json_object_get(body, "bypassFilters"));
    return 0;
}

static int read_givens(const json_t *body, struct arena *a, const char **out, struct err *e)
{
    const json_t *v = json_object_get(body, "givens");
    auto_buf struct buf text = {0};
    if (is_given(v) && !json_is_object(v)) {
        return err_set(e, ERR_INVALID, "'givens' must be an object of name and value");
    }
    if (json_object_size(v) > 0) {
        json_print(v, &text);
        *out = arena_slice(a, buf_slice(&text));
    }
    return 0;
}

static int read_what(const json_t *body, struct gw_ask *ask, struct err *e)
{
    int rc = gw_body_str(body, "query", &ask->text, e);
    rc = rc ? rc : gw_body_str(body, "sourceName", &ask->source, e);
    rc = rc ? rc : gw_body_str(body, "queryName", &ask->query, e);
    if (rc) {
        return rc;
    }
    bool is_text = ask->text && ask->text[0] && !ask->source && !ask->query;
    bool is_name = !ask->text && ask->query;
    if (!is_text && !is_name) {
        return err_set(e, ERR_INVALID,
                       "a query is either 'query' (Malloy text) alone, or 'queryName' with or "
                       "without 'sourceName'");
    }
    size_t len = strlen(is_text ? ask->text : ask->query) + (ask->source ? strlen(ask->source) : 0);
    if (len > GW_TEXT_MAX) {
        return err_set(e, ERR_INVALID, "the query is longer than %d bytes: shorten it",
                       GW_TEXT_MAX);
    }
    return 0;
}

static int read_mode(struct http_req *r, struct gw_ask *ask, struct err *e)
{
    struct slice mode = slice_trim(http_header_get(r, "Kiln-Mode"));
    ask->is_live = slice_ieq(mode, SLICE("live"));
    if (mode.len && !ask->is_live && !slice_ieq(mode, SLICE("auto"))) {
        return err_set(e, ERR_INVALID, "Kiln-Mode must be 'live' or 'auto'");
    }
    return 0;
}

/* Texts move from the JSON tree, which goes, to the arena. */
static void keep(struct arena *a, struct gw_ask *ask)
{
    ask->text = arena_strdup(a, ask->text);
    ask->source = arena_strdup(a, ask->source);
    ask->query = arena_strdup(a, ask->query);
}

int gw_ask_read(struct http_req *r, struct arena *a, struct gw_ask *out, struct err *e)
{
    *out = (struct gw_ask){0};
    json_t *body = gw_body_object(r, e);
    if (!body) {
        return e->code;
    }
    int rc = gw_refuse_version(r, body, e);
    rc = rc ? rc : read_what(body, out, e);
    rc = rc ? rc : read_givens(body, a, &out->givens, e);
    rc = rc ? rc : read_filters(body, &out->uses_filters, e);
    rc = rc ? rc : body_bool(body, "compactJson", &out->is_compact, e);
    rc = rc ? rc : read_mode(r, out, e);
    rc = rc ? rc : gw_tag_read(body, a, &out->tag, e);
    keep(a, out);
    json_decref(body);
    return rc;
}
