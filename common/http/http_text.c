/* Text forms of HTTP: percent encoding, query strings, paths, status lines. */
#include "common/base/crypto.h"
#include "common/http/http_internal.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* `blank`: a character that stands for ' ', or -1. */
static char *decode(struct arena *a, struct slice text, int blank)
{
    char *out = arena_alloc(a, text.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c == blank) {
            c = ' ';
        } else if (c == '%') {
            if (i + 2 >= text.len) {
                return NULL;
            }
            int high = hex_value(text.p[i + 1]);
            int low = hex_value(text.p[i + 2]);
            if (high < 0 || low < 0) {
                return NULL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0') {
            return NULL;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return out;
}

char *http_decode(struct arena *a, struct slice text)
{
    return decode(a, text, -1);
}

int http_split_path(struct arena *a, struct slice path, char **pieces, int max)
{
    int n = 0;
    if (path.len && path.p[0] == '/') {
        path = slice_make(path.p + 1, path.len - 1);
    }
    if (path.len && path.p[path.len - 1] == '/') {
        path.len--;
    }
    for (struct slice piece; path.len && slice_cut(&path, '/', &piece);) {
        if (n == max) {
            return -1;
        }
        pieces[n] = http_decode(a, piece);
        if (!pieces[n]) {
            return -1;
        }
        n++;
    }
    return n;
}

bool http_query_find(struct slice query, const char *key, struct arena *a, char **value)
{
    for (struct slice pair; query.len && slice_cut(&query, '&', &pair);) {
        struct slice name = pair;
        struct slice rest = SLICE_NONE;
        const char *eq = pair.len ? memchr(pair.p, '=', pair.len) : NULL;
        if (eq) {
            name.len = (size_t)(eq - pair.p);
            rest = slice_make(eq + 1, pair.len - name.len - 1);
        }
        char *plain = decode(a, name, '+');
        if (plain && strcmp(plain, key) == 0) {
            *value = decode(a, rest, '+');
            return *value != NULL;
        }
    }
    return false;
}

const char *http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {424, "Failed Dependency"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].status == status) {
            return texts[i].text;
        }
    }
    return "Status";
}

/* 00-<32 hex digits>-<16>-<2>, lower case; a later version may have more behind. */
bool http_traceparent(struct slice header, uint8_t trace_id[16])
{
    struct slice h = slice_trim(header);
    uint8_t version, parent[8], flags, id[16];
    bool is_whole = h.len >= 55 && h.p[2] == '-' && h.p[35] == '-' && h.p[52] == '-' &&
                    (h.len == 55 || h.p[55] == '-');
    for (size_t i = 0; is_whole && i < 55; i++) {
        is_whole = !(h.p[i] >= 'A' && h.p[i] <= 'F');
    }
    if (!is_whole || hex_decode(slice_make(h.p, 2), &version, 1) ||
        hex_decode(slice_make(h.p + 3, 32), id, sizeof(id)) ||
        hex_decode(slice_make(h.p + 36, 16), parent, sizeof(parent)) ||
        hex_decode(slice_make(h.p + 53, 2), &flags, 1)) {
        return false;
    }
    if (version == 0xff || (version == 0 && h.len != 55) || id16_is_zero(id)) {
        return false;
    }
    memcpy(trace_id, id, sizeof(id));
    return true;
}
