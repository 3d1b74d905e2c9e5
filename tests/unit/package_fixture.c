#include "tests/unit/package_fixture.h"

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture fx;
enum { PACK_MAX = 4 << 20 };
struct packed {
    struct archive *a;
    char *p;
    size_t used;
};

void fixture_up(void)
{
    memset(&fx, 0, sizeof fx);
    arena_init(&fx.arena);
    snprintf(fx.dir, sizeof fx.dir, "/tmp/kiln-package-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fx.dir));
    snprintf(fx.store, sizeof fx.store, "%s.store", fx.dir);
    ck_assert_int_eq(mkdir(fx.store, 0700), 0);
    fx.lim = (struct package_limits){.small_bytes = 64 << 10, .package_store = fx.store};
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

void fixture_down(void)
{
    nftw(fx.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    nftw(fx.store, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_fini(&fx.arena);
}

const char *at(const char *path)
{
    return arena_printf(&fx.arena, "%s/%s", fx.dir, path);
}

void write_file(const char *path, const char *text)
{
    char *full = arena_strdup(&fx.arena, at(path));
    for (char *p = strchr(full + strlen(fx.dir) + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

const struct package_file *file_of(const char *path)
{
    for (size_t i = 0; i < fx.out.n; i++) {
        if (strcmp(fx.out.items[i].path, path) == 0) {
            return &fx.out.items[i];
        }
    }
    return NULL;
}

size_t entries_in(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2;
}

static struct packed *pack_open(struct archive *a)
{
    struct packed *p = arena_zalloc(&fx.arena, sizeof *p);
    p->a = a;
    p->p = arena_alloc(&fx.arena, PACK_MAX);
    ck_assert_int_eq(archive_write_open_memory(a, p->p, PACK_MAX, &p->used), ARCHIVE_OK);
    return p;
}

struct packed *pack_zip(void)
{
    struct archive *a = archive_write_new();
    archive_write_set_format_zip(a);
    return pack_open(a);
}

struct packed *pack_tar_gz(void)
{
    struct archive *a = archive_write_new();
    archive_write_set_format_gnutar(a);
    archive_write_add_filter_gzip(a);
    return pack_open(a);
}

static struct archive_entry *entry_new(const char *path, unsigned type, size_t size)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, path);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    return entry;
}

static void put(struct packed *p, struct archive_entry *entry, const void *bytes, size_t n)
{
    ck_assert_int_eq(archive_write_header(p->a, entry), ARCHIVE_OK);
    ck_assert_int_eq((int)archive_write_data(p->a, bytes, n), (int)n);
    archive_entry_free(entry);
}

void pack_text(struct packed *p, const char *path, const char *text)
{
    put(p, entry_new(path, AE_IFREG, strlen(text)), text, strlen(text));
}

void pack_zeros(struct packed *p, const char *path, size_t n)
{
    auto_free void *zeros = xcalloc(1, n);
    put(p, entry_new(path, AE_IFREG, n), zeros, n);
}

void pack_link(struct packed *p, const char *path, const char *to, bool hard)
{
    struct archive_entry *entry = entry_new(path, hard ? AE_IFREG : AE_IFLNK, 0);
    if (hard) {
        archive_entry_set_hardlink(entry, to);
    } else {
        archive_entry_set_symlink(entry, to);
    }
    put(p, entry, "", 0);
}

void pack_fifo(struct packed *p, const char *path)
{
    put(p, entry_new(path, AE_IFIFO, 0), "", 0);
}

void pack_dir(struct packed *p, const char *path)
{
    put(p, entry_new(path, AE_IFDIR, 0), "", 0);
}

struct slice pack_end(struct packed *p)
{
    ck_assert_int_eq(archive_write_close(p->a), ARCHIVE_OK);
    archive_write_free(p->a);
    return slice_make(p->p, p->used);
}
