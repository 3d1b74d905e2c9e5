/* Places as people write them: relative to the working directory they started the program in. */
#include "common/conf/conf.h"

#include <unistd.h>

static const char *below_here(struct arena *a, struct slice scheme, struct slice path)
{
    auto_free char *here = getcwd(NULL, 0);
    return here ? arena_printf(a, "%.*s%s/%.*s", SLICE_FMT(scheme), here, SLICE_FMT(path)) : NULL;
}

const char *conf_absolute_path(struct arena *a, const char *path)
{
    const char *out = path[0] && path[0] != '/' ? below_here(a, SLICE(""), slice_of(path)) : NULL;
    return out ? out : path;
}

static const char *absolute_one(struct arena *a, struct slice one)
{
    static const char *const schemes[] = {"ipc://", "unix:"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        struct slice scheme = slice_of(schemes[i]);
        if (one.len > scheme.len && memcmp(one.p, scheme.p, scheme.len) == 0 &&
            one.p[scheme.len] != '/') {
            const struct slice path = {one.p + scheme.len, one.len - scheme.len};
            return below_here(a, scheme, path);
        }
    }
    return NULL;
}

const char *conf_absolute_addresses(struct arena *a, const char *list)
{
    struct slice rest = slice_of(list), one;
    const char *out = NULL;
    while (slice_cut(&rest, ',', &one)) {
        one = slice_trim(one);
        const char *made = absolute_one(a, one);
        made = made ? made : arena_slice(a, one);
        out = out ? arena_printf(a, "%s,%s", out, made) : made;
    }
    return out ? out : list;
}
