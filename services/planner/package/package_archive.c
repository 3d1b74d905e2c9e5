/* The only file over libarchive. */
#include "services/planner/package/package_intake.h"
#include "services/planner/package/package_path.h"
#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

enum { PIECE = 64 * 1024 };

struct unpack {
    struct intake in;
    struct archive *archive;
    uint64_t total; /* bytes unpacked so far, skipped entries included */
    uint64_t most;  /* the limit that archive_bytes and archive_ratio give for this archive */
    uint32_t entries;
    char piece[PIECE];
};

static int not_readable(struct unpack *u, struct err *e)
{
    const char *why = archive_error_string(u->archive);
    if (u->entries == 0) {
        return err_set(e, ERR_ARCHIVE, "not a zip or tar.gz archive: %s",
                       why ? why : "nothing in it");
    }
    return err_set(e, ERR_ARCHIVE, "the archive is damaged: %s", why ? why : "cannot be read");
}

static int too_large(struct unpack *u, const char *name, struct err *e)
{
    return err_set(e, ERR_ARCHIVE, "the archive unpacks to more than %llu bytes at '%s'",
                   (unsigned long long)u->most, name);
}

/* Names are raw bytes in old formats and UTF-8 in newer ones; what is neither is refused by the
 * path check. */
static const char *entry_name(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname_utf8(entry);
    name = name ? name : archive_entry_pathname(entry);
    return name ? name : "";
}

/* "./a//" is how tar writes it: leading "./" and trailing slashes say nothing. */
static struct slice tidy_name(const char *name)
{
    struct slice path = slice_of(name);
    while (slice_starts(path, SLICE("./"))) {
        path = slice_make(path.p + 2, path.len - 2);
    }
    while (path.len > 1 && path.p[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

static const char *entry_fault(struct archive_entry *entry)
{
    if (archive_entry_symlink(entry) || archive_entry_filetype(entry) == AE_IFLNK) {
        return "is a symbolic link";
    }
    if (archive_entry_hardlink(entry)) {
        return "is a hard link";
    }
    if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != AE_IFDIR) {
        return "is a device, pipe or socket";
    }
    return archive_entry_is_encrypted(entry) ? "is encrypted" : NULL;
}

/* Reads the entry to its end, kept or not: skipping in a compressed stream unpacks too, and a bomb
 * must be counted. */
static int read_content(struct unpack *u, const char *name, bool keep, struct err *e)
{
    for (;;) {
        la_ssize_t n = archive_read_data(u->archive, u->piece, sizeof u->piece);
        if (n < 0) {
            return not_readable(u, e);
        }
        if (n == 0) {
            return 0;
        }
        u->total += (uint64_t)n;
        if (u->total > u->most) {
            return too_large(u, name, e);
        }
        int rc = keep ? intake_bytes(&u->in, slice_make(u->piece, (size_t)n), e) : 0;
        if (rc < 0) {
            return rc;
        }
    }
}

static int read_entry(struct unpack *u, struct archive_entry *entry, struct err *e)
{
    const char *name = entry_name(entry);
    struct slice path = tidy_name(name);
    bool is_dir = archive_entry_filetype(entry) == AE_IFDIR;
    if (is_dir && (slice_is(path, ".") || path.len == 0)) {
        return 0;
    }
    const char *fault = package_path_fault(path);
    fault = fault ? fault : entry_fault(entry);
    if (fault) {
        return err_set(e, ERR_ARCHIVE, "archive refused: '%s' %s", name, fault);
    }
    if (archive_entry_size_is_set(entry) && (uint64_t)archive_entry_size(entry) > u->most) {
        return too_large(u, name, e);
    }
    if (is_dir || package_path_hidden(path)) {
        return read_content(u, name, false, e);
    }
    int rc = intake_begin(&u->in, arena_slice(u->in.arena, path), e);
    rc = rc < 0 ? rc : read_content(u, name, true, e);
    return rc < 0 ? rc : intake_end(&u->in, e);
}

static int read_entries(struct unpack *u, struct err *e)
{
    for (;;) {
        struct archive_entry *entry;
        int got = archive_read_next_header(u->archive, &entry);
        if (got == ARCHIVE_EOF && u->entries > 0) {
            return 0;
        }
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN) {
            return not_readable(u, e);
        }
        if (++u->entries > 2 * u->in.lim.files) {
            return err_set(e, ERR_ARCHIVE, "the archive has more than %u entries",
                           2 * u->in.lim.files);
        }
        int rc = read_entry(u, entry, e);
        if (rc < 0) {
            return rc;
        }
    }
}

static int open_archive(struct unpack *u, struct slice bytes, struct err *e)
{
    u->archive = archive_read_new();
    must(u->archive);
    archive_read_support_filter_gzip(u->archive);
    archive_read_support_format_tar(u->archive);
    /* By its directory, not streamed: only there a zip says which of its entries are links. */
    archive_read_support_format_zip_seekable(u->archive);
    /* libarchive does not write to it; its interface lacks the const. */
    const void *p = bytes.len ? (const void *)bytes.p : (const void *)"";
    return archive_read_open_memory(u->archive, p, bytes.len) == ARCHIVE_OK ? 0
                                                                            : not_readable(u, e);
}

/* A small archive may unpack to a small package whatever its ratio is. */
static uint64_t most_bytes(const struct package_limits *lim, size_t packed)
{
    uint64_t by_ratio =
        packed > UINT64_MAX / lim->archive_ratio ? UINT64_MAX : packed * lim->archive_ratio;
    by_ratio = by_ratio < lim->small_bytes ? lim->small_bytes : by_ratio;
    return by_ratio < lim->archive_bytes ? by_ratio : lim->archive_bytes;
}

static int read_archive(struct unpack *u, struct slice bytes, struct package_files *out,
                        struct err *e)
{
    int rc = open_archive(u, bytes, e);
    rc = rc < 0 ? rc : read_entries(u, e);
    if (rc < 0) {
        return rc;
    }
    intake_strip_top(&u->in);
    return intake_finish(&u->in, out, e);
}

int package_read_archive(struct arena *a, struct slice bytes, const struct package_limits *lim,
                         struct package_files *out, struct err *e)
{
    auto_free struct unpack *u = xcalloc(1, sizeof *u);
    intake_init(&u->in, a, lim, ERR_ARCHIVE);
    u->most = most_bytes(&u->in.lim, bytes.len);
    /* libarchive turns names into the locale's characters; in the C locale it loses those of a zip
     * that says UTF-8. */
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    int rc = read_archive(u, bytes, out, e);
    intake_fini(&u->in);
    archive_read_free(u->archive);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    return rc;
}
