#include "services/gateway/rest_publisher/rest_routes.h"
#include "common/http/http.h"
#include "common/json/json.h"

enum { SEGMENTS_MAX = 64, NAME_MAX_BYTES = 127 };

const struct rest_route rest_routes[] = {
#define ROUTE(method, path, handler, doc) {REST_##method, path, false, doc},
#define LATER(method, path, doc) {REST_##method, path, true, doc},
#include "services/gateway/rest_publisher/rest_routes.def"
#undef ROUTE
#undef LATER
};

size_t rest_n_routes(void)
{
    return ARRAY_LEN(rest_routes);
}

static const struct {
    const char *name;
    unsigned bit;
} methods[] = {{"GET", REST_GET}, {"HEAD", REST_GET},    {"POST", REST_POST},
               {"PUT", REST_PUT}, {"PATCH", REST_PATCH}, {"DELETE", REST_DELETE}};

static unsigned method_bit(struct slice method)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (slice_is(method, methods[i].name)) {
            return methods[i].bit;
        }
    }
    return 0;
}

char *rest_allow_text(struct arena *a, unsigned allow)
{
    auto_buf struct buf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (allow & methods[i].bit) {
            buf_addf(&text, "%s, ", methods[i].name);
        }
    }
    buf_add_str(&text, "OPTIONS");
    return arena_strdup(a, buf_str(&text));
}

/* ---- names ---- */
static bool is_utf8(const char *text)
{
    json_t *v = json_string(text);
    json_decref(v);
    return v != NULL;
}

/* A piece of text that is safe in paths, file names and messages. */
static bool is_plain(const char *text, bool with_slash)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f || c == '\\' || (c == '/' && !with_slash)) {
            return false;
        }
    }
    return is_utf8(text);
}

int rest_name_check(const char *what, const char *name, struct err *e)
{
    size_t len = strlen(name);
    if (len == 0) {
        return err_set(e, ERR_INVALID, "the %s is empty", what);
    }
    if (len > NAME_MAX_BYTES) {
        return err_set(e, ERR_INVALID, "the %s is longer than %d bytes", what, NAME_MAX_BYTES);
    }
    if (!is_plain(name, false) || strstr(name, "..") || strcmp(name, ".") == 0) {
        return err_set(e, ERR_INVALID,
                       "the %s must not have slashes, control characters or '..' in it", what);
    }
    return 0;
}

/* Model paths are relative and stay inside of their package. */
static int path_check(const char *path, struct err *e)
{
    struct slice rest = slice_of(path), piece;
    bool is_bad = !is_plain(path, true) || path[0] == '/' || path[0] == '\0';
    while (!is_bad && slice_cut(&rest, '/', &piece)) {
        is_bad = piece.len == 0 || slice_is(piece, ".") || slice_is(piece, "..");
    }
    return is_bad ? err_set(e, ERR_INVALID,
                            "the model path must be relative to the package, without '..', empty "
                            "pieces or control characters")
                  : 0;
}

/* ---- matching ---- */
struct request {
    char *piece[SEGMENTS_MAX];
    size_t n;
};

static const struct {
    const char *name;
    enum rest_param param;
    const char *what;
} params[] = {{"{E}", REST_ENVIRONMENT, "environment name"},
              {"{P}", REST_PACKAGE, "package name"},
              {"{C}", REST_CONNECTION, "connection name"},
              {"{ID}", REST_ID, "materialization id"},
              {"{PATH...}", REST_PATH, NULL},
              {"{X}", REST_OTHER, "name"}};

static enum rest_param param_of(struct slice piece)
{
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        if (slice_is(piece, params[i].name)) {
            return params[i].param;
        }
    }
    return REST_N_PARAMS;
}

static size_t count_pieces(struct slice path)
{
    size_t n = 0;
    for (struct slice piece; slice_cut(&path, '/', &piece);) {
        n++;
    }
    return n;
}

static char *join(struct arena *a, char *const *pieces, size_t n)
{
    auto_buf struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_addf(&text, "%s%s", i ? "/" : "", pieces[i]);
    }
    return arena_strdup(a, buf_str(&text));
}

/* With a {PATH...} the pieces are shared out so that what stands behind it fits at the end. */
static bool path_fits(struct arena *a, const char *pattern, const struct request *q,
                      struct rest_match *out)
{
    struct slice rest = slice_of(pattern + 1), piece;
    size_t at = 0;
    memset(out->param, 0, sizeof(out->param));
    while (slice_cut(&rest, '/', &piece)) {
        if (at >= q->n) {
            return false;
        }
        enum rest_param p = piece.p[0] == '{' ? param_of(piece) : REST_N_PARAMS;
        if (p == REST_PATH) {
            size_t behind = count_pieces(rest);
            if (q->n - at <= behind) {
                return false;
            }
            size_t n = q->n - at - behind;
            out->param[p] = join(a, &q->piece[at], n);
            at += n;
        } else if (p != REST_N_PARAMS) {
            out->param[p] = q->piece[at++];
        } else if (!slice_is(piece, q->piece[at++])) {
            return false;
        }
    }
    return at == q->n;
}

static int split(struct arena *a, struct slice path, struct request *q, struct err *e)
{
    int n = http_split_path(a, path, q->piece, SEGMENTS_MAX);
    if (n < 0) {
        return err_set(e, ERR_INVALID, "the path has a bad percent encoding or more than %d pieces",
                       SEGMENTS_MAX);
    }
    q->n = (size_t)n;
    static char environments[] = "environments";
    if (q->n > 2 && strcmp(q->piece[2], "projects") == 0) {
        q->piece[2] = environments;
    }
    return 0;
}

static int params_check(const struct rest_match *m, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        const char *text = m->param[params[i].param];
        int rc = 0;
        if (text) {
            rc = params[i].what ? rest_name_check(params[i].what, text, e) : path_check(text, e);
        }
        if (rc) {
            return rc;
        }
    }
    return 0;
}

void rest_match(struct arena *a, struct slice method, struct slice path, struct rest_match *out,
                struct err *e)
{
    *out = (struct rest_match){.status = 404};
    struct request q = {.n = 0};
    unsigned bit = method_bit(method);
    if (split(a, path, &q, e)) {
        out->status = 400;
        return;
    }
    size_t at = 0;
    while (at < rest_n_routes() && !path_fits(a, rest_routes[at].path, &q, out)) {
        at++;
    }
    if (at == rest_n_routes()) {
        memset(out->param, 0, sizeof(out->param));
        return;
    }
    out->status = 405;
    for (size_t i = at; i < rest_n_routes(); i++) {
        if (strcmp(rest_routes[i].path, rest_routes[at].path) == 0) {
            out->allow |= rest_routes[i].method;
            if (rest_routes[i].method == bit) {
                out->status = 200;
                out->route = i;
            }
        }
    }
    if (out->status == 200 && params_check(out, e)) {
        out->status = 400;
    }
}
