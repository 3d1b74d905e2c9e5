/* The TOML file: known keys are applied, other programs' sections passed over, the rest refused. */
#include "common/conf/conf_internal.h"

#include <errno.h>

enum { FILE_MAX = 4 * 1024 * 1024 };

/* One kiln.toml serves all programs (design.md 9): these sections may stand in it. */
static const char *const sections[] = {"planner", "gateway", "builder", "kiln",
                                       "log",     "store",   "redis",   "bus"};

static int read_all(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        return -errno;
    }
    int rc = 0;
    for (;;) {
        buf_reserve(out, 65536);
        size_t n = fread(out->p + out->len, 1, 65536, f);
        out->len += n;
        out->p[out->len] = '\0';
        if (n == 0) {
            break;
        }
        if (out->len > FILE_MAX) {
            rc = -EFBIG;
            break;
        }
    }
    if (ferror(f)) {
        rc = errno > 0 ? -errno : -EIO;
    }
    fclose(f);
    return rc;
}

static bool is_below(const char *path, const char *parent)
{
    size_t n = strlen(parent);
    return strncmp(path, parent, n) == 0 && path[n] == '.';
}

static bool is_prefix_of_ours(const struct conf_spec *spec, const char *path)
{
    for (size_t i = 0; i < spec->n; i++) {
        if (is_below(spec->items[i].key, path)) {
            return true;
        }
    }
    return false;
}

static struct slice first_element(const char *path)
{
    struct slice rest = slice_of(path);
    struct slice head;
    slice_cut(&rest, '.', &head);
    return head;
}

static bool is_foreign(const struct conf_run *r, const char *path)
{
    struct slice others = slice_of(r->spec->others);
    struct slice key;
    while (slice_cut(&others, '|', &key)) {
        if (slice_is(key, path)) {
            return true;
        }
    }
    struct slice section = first_element(path);
    const char *name = arena_slice(r->arena, section);
    if (is_prefix_of_ours(r->spec, name)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (slice_is(section, sections[i])) {
            return true;
        }
    }
    return false;
}

static const char *nearest(struct conf_run *r, const char *path)
{
    const struct conf_spec *spec = r->spec;
    const char **all = arena_alloc(r->arena, (spec->n * 2 + ARRAY_LEN(sections)) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < spec->n; i++) {
        all[n++] = spec->items[i].key;
    }
    for (size_t i = 0; i < spec->n; i++) {
        all[n++] = arena_slice(r->arena, first_element(spec->items[i].key));
    }
    memcpy(all + n, sections, sizeof sections);
    return conf_near(path, all, n + ARRAY_LEN(sections));
}

static size_t item_of_key(const struct conf_spec *spec, const char *key)
{
    for (size_t i = 0; i < spec->n; i++) {
        if (strcmp(spec->items[i].key, key) == 0) {
            return i;
        }
    }
    return spec->n;
}

static void refuse(struct conf_run *r, const char *place, const struct toml_item *item)
{
    const char *what = item->kind == TOML_TABLE ? "section" : "key";
    const char *near = nearest(r, item->path);
    if (near) {
        conf_complain(r, place, "unknown %s %s: did you mean %s?", what, item->path, near);
    } else {
        conf_complain(r, place, "unknown %s %s: remove it, or run %s --help for the keys there are",
                      what, item->path, r->spec->program);
    }
}

static void apply_document(struct conf_run *r, const struct toml_doc *doc)
{
    const char *done = NULL; /* its members are settled with it */
    for (size_t i = 0; i < doc->n; i++) {
        const struct toml_item *item = &doc->items[i];
        if (done && is_below(item->path, done)) {
            continue;
        }
        size_t known = item_of_key(r->spec, item->path);
        const char *where = arena_printf(r->arena, "%s:%d", r->file, item->line);
        if (known < r->spec->n) {
            done = item->path;
            conf_value_apply(r, known,
                             &(struct conf_found){.place = arena_printf(r->arena, "%s: ", where),
                                                  .source = where,
                                                  .text = item->text,
                                                  .toml = item});
        } else if (item->kind == TOML_TABLE && is_prefix_of_ours(r->spec, item->path)) {
            continue;
        } else {
            done = item->path;
            if (!is_foreign(r, item->path)) {
                refuse(r, arena_printf(r->arena, "%s: ", where), item);
            }
        }
    }
}

void conf_file_read(struct conf_run *r)
{
    auto_buf struct buf text = {0};
    int rc = read_all(r->file, &text);
    if (rc < 0) {
        conf_complain(
            r, "", "cannot read the configuration file %s: %s; check the path and its permissions",
            r->file, err_code_text(rc));
        return;
    }
    struct toml_doc doc;
    struct err e;
    err_clear(&e);
    if (toml_parse(r->arena, buf_slice(&text), &doc, &e) < 0) {
        conf_complain(r, "", "%s is not TOML: %s; correct that line", r->file, err_text(&e));
        return;
    }
    apply_document(r, &doc);
}
