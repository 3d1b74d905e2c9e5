#include "services/planner/package/package_path.h"

enum { PATH_MAX_BYTES = 1024, SEGMENT_MAX_BYTES = 255 };

/* Length of the character at p, 0 when the bytes are no UTF-8 (overlong forms and surrogates
 * included). */
static size_t utf8_char_len(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80) {
        return 1;
    }
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

static const char *text_fault(struct slice path)
{
    for (size_t at = 0; at < path.len;) {
        const unsigned char *p = (const unsigned char *)path.p + at;
        size_t n = utf8_char_len(p, path.len - at);
        if (n == 0) {
            return "has a name that is not UTF-8";
        }
        if (n == 1 && (p[0] < 0x20 || p[0] == 0x7f)) {
            return "has a control character in its name";
        }
        if (n == 1 && p[0] == '\\') {
            return "has a backslash in its name";
        }
        at += n;
    }
    return NULL;
}

static const char *segment_fault(struct slice segment)
{
    if (segment.len == 0 || slice_is(segment, ".")) {
        return "has an empty segment in its path";
    }
    if (slice_is(segment, "..")) {
        return "leads out of the package with '..'";
    }
    return segment.len > SEGMENT_MAX_BYTES ? "has a name longer than 255 bytes" : NULL;
}

const char *package_path_fault(struct slice path)
{
    if (path.len == 0) {
        return "has no name";
    }
    if (path.p[0] == '/') {
        return "is an absolute path";
    }
    if (path.len > PATH_MAX_BYTES) {
        return "has a path longer than 1024 bytes";
    }
    if (path.p[path.len - 1] == '/') {
        return "has an empty segment in its path";
    }
    const char *fault = text_fault(path);
    struct slice rest = path, segment;
    while (!fault && slice_cut(&rest, '/', &segment)) {
        fault = segment_fault(segment);
    }
    return fault;
}

bool package_path_hidden(struct slice path)
{
    struct slice rest = path, segment;
    while (slice_cut(&rest, '/', &segment)) {
        if (slice_starts(segment, SLICE(".")) || slice_is(segment, "__MACOSX")) {
            return true;
        }
    }
    return false;
}

static bool ends_with(struct slice path, const char *suffix)
{
    size_t n = strlen(suffix);
    return path.len > n && slice_ieq(slice_make(path.p + path.len - n, n), slice_of(suffix));
}

enum package_kind package_kind_of(struct slice path)
{
    static const struct {
        const char *suffix;
        enum package_kind kind;
    } kinds[] = {
        {".malloy", PACKAGE_MODEL}, {".malloynb", PACKAGE_MODEL}, {".json", PACKAGE_JSON},
        {".parquet", PACKAGE_DATA}, {".csv", PACKAGE_DATA},       {".ndjson", PACKAGE_DATA},
        {".xlsx", PACKAGE_DATA},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (ends_with(path, kinds[i].suffix)) {
            return kinds[i].kind;
        }
    }
    return PACKAGE_OTHER;
}

bool package_is_data(struct slice path)
{
    enum package_kind kind = package_kind_of(path);
    return kind == PACKAGE_DATA || (kind == PACKAGE_JSON && !slice_is(path, "publisher.json"));
}
