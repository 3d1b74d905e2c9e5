#include "services/planner/package/package.h"

static bool ends_with(struct slice text, const char *suffix)
{
    size_t n = strlen(suffix);
    return text.len > n && slice_ieq(slice_make(text.p + text.len - n, n), slice_of(suffix));
}

static bool is_remote(struct slice text)
{
    static const char *const prefixes[] = {"https://", "http://", "git@", "ssh://",
                                           "gs://",    "s3://",   "az://"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (text.len >= n && slice_ieq(slice_make(text.p, n), slice_of(prefixes[i]))) {
            return true;
        }
    }
    return false;
}

/* What follows "./", "../", "~/"; the words alone count too. */
static bool is_led_by(struct slice text, const char *lead)
{
    size_t n = strlen(lead);
    return slice_starts(text, slice_of(lead)) && (text.len == n || text.p[n] == '/');
}

static struct slice without_slashes(struct slice text)
{
    while (text.len > 1 && text.p[text.len - 1] == '/') {
        text.len--;
    }
    return text;
}

static struct slice after(struct slice text, size_t n)
{
    while (n < text.len && text.p[n] == '/') {
        n++;
    }
    return slice_make(text.p + n, text.len - n);
}

static char *join(struct arena *a, const char *base, struct slice rest)
{
    struct slice dir = without_slashes(slice_of(base));
    const char *gap = slice_is(dir, "/") || rest.len == 0 ? "" : "/";
    return arena_printf(a, "%.*s%s%.*s", SLICE_FMT(dir), gap, SLICE_FMT(rest));
}

static int home_path(struct arena *a, struct slice text, char **path, struct err *e)
{
    const char *home = getenv("HOME");
    if (!home || home[0] != '/') {
        return err_set(e, ERR_INVALID,
                       "package location '%.*s' needs the environment variable HOME",
                       SLICE_FMT(text));
    }
    *path = join(a, home, after(text, 1));
    return 0;
}

int package_location(struct arena *a, const char *location, const char *base_dir, char **path,
                     bool *is_archive, struct err *e)
{
    struct slice text = without_slashes(slice_trim(slice_of(location)));
    if (text.len == 0) {
        return err_set(
            e, ERR_INVALID,
            "Invalid package path: the location is empty; give a directory or an archive");
    }
    if (memchr(text.p, '\0', text.len)) {
        return err_set(e, ERR_INVALID, "Invalid package path: there is a NUL in it");
    }
    if (is_remote(text)) {
        return err_set(e, ERR_UNSUPPORTED,
                       "package location '%.*s' is remote, and only directories and archives on "
                       "this host can be read: "
                       "fetch it first, or publish the archive as the body",
                       SLICE_FMT(text));
    }
    int rc = 0;
    if (text.p[0] == '/') {
        *path = arena_slice(a, text);
    } else if (is_led_by(text, "~")) {
        rc = home_path(a, text, path, e);
    } else if (is_led_by(text, "..")) {
        *path = join(a, base_dir, text);
    } else if (is_led_by(text, ".")) {
        *path = join(a, base_dir, after(text, 1));
    } else {
        rc = err_set(e, ERR_INVALID,
                     "Invalid package path: '%.*s' is neither a local path (./ ../ ~/ /) nor a "
                     "remote location; write "
                     "'./%.*s' for a directory beside the configuration",
                     SLICE_FMT(text), SLICE_FMT(text));
    }
    if (rc == 0) {
        *is_archive =
            ends_with(text, ".zip") || ends_with(text, ".tar.gz") || ends_with(text, ".tgz");
    }
    return rc;
}
