/* What a gateway needs to serve while planner and Redis are away: the last sets, and loads by their
 * id, in its state directory. <state>/<installation>/sets/<unit> = 20 digits of the epoch, then the
 * packed set; loads/<id> = length, packed reply, then each model file as length and bytes;
 * conns/<hash> = length, "<environment>/<name>", packed reply (sealed). Written through a temporary
 * name; a damaged file is as good as none. */
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"
#include "services/gateway/conns.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_dirs(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
    }
}

static char *root(struct arena *a, struct gateway *g)
{
    char id[UUID_TEXT];
    uuid_format(bus_installation(g->bus), id);
    return arena_printf(a, "%s/%s", g->set->state_dir, id);
}

char *binder_load_path(struct arena *a, struct gateway *g, const char *load_id)
{
    return arena_printf(a, "%s/loads/%s", root(a, g), load_id);
}

/* ---- writing, off the loop ---- */
struct disk_write {
    struct offload_job job;
    char *path, *temporary;
    struct buf content; /* empty: the file is removed */
    int error;
    void (*done)(void *data); /* written or not; NULL: nobody waits */
    void *data;
};

static int write_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static void write_offload(struct offload_job *job)
{
    struct disk_write *w = container_of(job, struct disk_write, job);
    if (w->content.len == 0) {
        unlink(w->path);
        return;
    }
    make_dirs(w->path);
    int fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        w->error = errno;
        return;
    }
    w->error = write_all(fd, w->content.p, w->content.len);
    if (close(fd) && !w->error) {
        w->error = errno;
    }
    if (!w->error && rename(w->temporary, w->path)) {
        w->error = errno;
    }
}

static void on_written(struct offload_job *job)
{
    struct disk_write *w = container_of(job, struct disk_write, job);
    if (w->error) {
        log_warn("binder.disk",
                 "path=%s error=%s effect=\"this gateway cannot start without the planner\"",
                 log_q(w->path), log_q(strerror(w->error)));
    }
    void (*done)(void *data) = w->done;
    void *data = w->data;
    free(w->path);
    free(w->temporary);
    buf_fini(&w->content);
    free(w);
    if (done) {
        done(data);
    }
}

/* Takes content. Two writes of one file may be under way: each has its own temporary name. */
static struct disk_write *disk_write_start(struct gateway *g, const char *path, struct buf *content)
{
    struct disk_write *w = xcalloc(1, sizeof(*w));
    w->path = xstrdup(path);
    w->temporary = xasprintf("%s.%llu.tmp", path, (unsigned long long)g->binder->n_writes++);
    if (content) {
        w->content = *content;
    }
    w->job = (struct offload_job){.work_offload = write_offload, .done = on_written};
    loop_offload(g->loop, &w->job);
    return w;
}

void binder_disk_set(struct gw_binder *b, uint64_t unit, uint64_t epoch, struct slice packed,
                     void (*done)(void *data), void *data)
{
    struct arena a;
    arena_init(&a);
    struct buf content = {0};
    buf_addf(&content, "%020llu", (unsigned long long)epoch);
    buf_add_slice(&content, packed);
    char *path = arena_printf(&a, "%s/sets/%llu", root(&a, b->g), (unsigned long long)unit);
    struct disk_write *w = disk_write_start(b->g, path, &content);
    w->done = done;
    w->data = data;
    arena_fini(&a);
}

void binder_disk_forget(struct gw_binder *b, uint64_t unit)
{
    struct arena a;
    arena_init(&a);
    disk_write_start(
        b->g, arena_printf(&a, "%s/sets/%llu", root(&a, b->g), (unsigned long long)unit), NULL);
    arena_fini(&a);
}

static void add_block(struct buf *out, const void *p, size_t len)
{
    uint64_t n = len;
    buf_add(out, &n, sizeof(n));
    buf_add(out, p, len);
}

void binder_disk_conn(struct gw_binder *b, const char *key, struct slice packed)
{
    struct arena a;
    arena_init(&a);
    char hex[65];
    struct sha256 h = sha256_of(key, strlen(key));
    hex_encode(h.b, sizeof(h.b), hex);
    const char *path = arena_printf(&a, "%s/conns/%s", root(&a, b->g), hex);
    struct buf content = {0};
    if (packed.len) {
        add_block(&content, key, strlen(key));
        buf_add_slice(&content, packed);
    }
    disk_write_start(b->g, path, packed.len ? &content : NULL);
    arena_fini(&a);
}

void binder_disk_load(struct gw_load *l, void (*done)(void *data), void *data)
{
    struct arena a;
    arena_init(&a);
    struct buf content = {0};
    size_t len = kiln__get_package_rep__get_packed_size(l->rep);
    uint8_t *packed = arena_alloc(&a, len);
    kiln__get_package_rep__pack(l->rep, packed);
    add_block(&content, packed, len);
    for (size_t i = 0; i < l->rep->n_files; i++) {
        add_block(&content, l->contents[i].p, l->contents[i].p ? l->contents[i].len : 0);
    }
    struct disk_write *w = disk_write_start(l->g, binder_load_path(&a, l->g, l->load_id), &content);
    w->done = done;
    w->data = data;
    arena_fini(&a);
}

/* ---- reading ---- */
static int read_whole(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    char piece[65536];
    ssize_t n;
    while ((n = read(fd, piece, sizeof(piece))) > 0) {
        buf_add(out, piece, (size_t)n);
    }
    close(fd);
    return n < 0 ? -1 : 0;
}

static bool take_block(struct slice *rest, struct slice *out)
{
    uint64_t n = 0;
    if (rest->len < sizeof(n)) {
        return false;
    }
    memcpy(&n, rest->p, sizeof(n));
    if (n > rest->len - sizeof(n)) {
        return false;
    }
    *out = slice_make(rest->p + sizeof(n), n);
    *rest = slice_make(rest->p + sizeof(n) + n, rest->len - sizeof(n) - n);
    return true;
}

struct gw_load *binder_load_read_offload(struct gateway *g, const char *path, const char *load_id)
{
    auto_buf struct buf content = {0};
    if (read_whole(path, &content)) {
        return NULL;
    }
    struct slice rest = buf_slice(&content), block;
    struct gw_load *l = take_block(&rest, &block) ? gw_load_make(g, block, load_id) : NULL;
    for (size_t i = 0; l && i < l->rep->n_files; i++) {
        if (!take_block(&rest, &block)) {
            arena_fini(&l->arena);
            free(l);
            return NULL;
        }
        struct sha256 h = sha256_of(block.p, block.len);
        const Kiln__PackageFile *f = l->rep->files[i];
        if (gw_is_model(f->path)) {
            if (f->sha256.len != 32 || memcmp(h.b, f->sha256.data, 32) != 0) {
                arena_fini(&l->arena);
                free(l);
                return NULL;
            }
            l->contents[i] = slice_make(arena_slice(&l->arena, block), block.len);
        }
    }
    return l;
}

static void read_set(struct gw_binder *b, const char *path, const char *name)
{
    auto_buf struct buf content = {0};
    uint64_t unit = 0, epoch = 0;
    if (slice_to_u64(slice_of(name), &unit) || read_whole(path, &content) || content.len < 20) {
        return;
    }
    if (slice_to_u64(slice_make(content.p, 20), &epoch)) {
        return;
    }
    binder_offer(b, unit, epoch, slice_make(content.p + 20, content.len - 20));
}

static void read_conn(struct gw_binder *b, const char *path, const char *name)
{
    (void)name;
    auto_buf struct buf content = {0};
    struct slice rest, key;
    if (read_whole(path, &content)) {
        return;
    }
    rest = buf_slice(&content);
    if (take_block(&rest, &key)) {
        auto_free char *text = xstrndup(key.p, key.len);
        for (unsigned i = 0; i < b->g->workers->n; i++) {
            gw_conns_seed(&b->g->workers->list[i], text, rest);
        }
    }
}

/* One installation's directory: the newest one is ours until the planner says otherwise. */
static bool newest_installation(const char *dir, struct uuid *out)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    time_t newest = 0;
    bool found = false;
    while (d && (entry = readdir(d)) != NULL) {
        struct uuid id;
        struct stat st;
        if (uuid_parse(slice_of(entry->d_name), &id) || fstatat(dirfd(d), entry->d_name, &st, 0)) {
            continue;
        }
        if (!found || st.st_mtime > newest) {
            *out = id;
            newest = st.st_mtime;
            found = true;
        }
    }
    if (d) {
        closedir(d);
    }
    return found;
}

static void read_each(struct gw_binder *b, const char *dir,
                      void (*read)(struct gw_binder *b, const char *path, const char *name))
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    while (d && (entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.')) { /* "x.tmp": half written */
            auto_free char *path = xasprintf("%s/%s", dir, entry->d_name);
            read(b, path, entry->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
}

void binder_disk_read(struct gw_binder *b)
{
    struct uuid installation;
    if (!newest_installation(b->g->set->state_dir, &installation)) {
        return;
    }
    bus_set_installation(b->g->bus, &installation);
    struct arena a;
    arena_init(&a);
    read_each(b, arena_printf(&a, "%s/sets", root(&a, b->g)), read_set);
    if (map_len(&b->units) > 0) {
        health_set(b->g->service, "packages", true, true, "");
    }
    arena_fini(&a);
}

void binder_disk_conns(struct gw_binder *b)
{
    struct arena a;
    arena_init(&a);
    read_each(b, arena_printf(&a, "%s/conns", root(&a, b->g)), read_conn);
    arena_fini(&a);
}
