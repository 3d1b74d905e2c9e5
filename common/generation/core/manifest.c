#include "common/generation/core/manifest.h"

#include "common/generation/core/names.h"
#include "common/json/json.h"

#define VERSION 1
#define CHECK ",\"check\":\""
#define CHECK_LEN (sizeof(CHECK) - 1 + 64 + 2) /* the sum in hex, then "} */

/* ---- out ---- */

static void set_sum(json_t *o, const char *key, const struct sha256 *sum)
{
    char hex[65];
    hex_encode(sum->b, sizeof sum->b, hex);
    json_set_str(o, key, hex);
}

static json_t *columns_json(const struct generation_manifest *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_columns; i++) {
        json_t *o = json_object();
        json_set_str(o, "name", m->columns[i].name);
        json_set_str(o, "type", m->columns[i].type);
        json_set_str(o, "stored", m->columns[i].stored);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *files_json(const struct generation_manifest *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_files; i++) {
        json_t *o = json_object();
        json_set_str(o, "name", m->files[i].name);
        json_set_int(o, "bytes", (int64_t)m->files[i].bytes);
        set_sum(o, "sha256", &m->files[i].sum);
        json_array_append_new(list, o);
    }
    return list;
}

void generation_manifest_print(const struct generation_manifest *m, struct buf *out)
{
    char installation[UUID_TEXT];
    uuid_format(&m->installation, installation);
    json_t *o = json_object();
    json_set_int(o, "version", VERSION);
    json_set_str(o, "installation", installation);
    json_set_str(o, "dataset", m->dataset);
    json_set_str(o, "generation", m->id);
    json_set_str(o, "target", m->target);
    json_set_str(o, "build_id", m->build_id);
    json_set_int(o, "token", (int64_t)m->token);
    json_set_int(o, "rows", (int64_t)m->rows);
    json_set_int(o, "bytes", (int64_t)m->bytes);
    json_set_int(o, "data_as_of_us", m->data_as_of_us);
    json_object_set_new(o, "columns", columns_json(m));
    json_object_set_new(o, "files", files_json(m));
    size_t start = out->len;
    json_print(o, out);
    json_decref(o);
    struct sha256 sum = sha256_of(out->p + start, out->len - start);
    char hex[65];
    hex_encode(sum.b, sizeof sum.b, hex);
    out->len--;
    buf_addf(out, CHECK "%s\"}", hex);
}

/* ---- in ---- */

static int bad(struct err *e, const char *why)
{
    return err_set(e, ERR_GENERATION, "manifest.json %s", why);
}

static bool is_unchanged(struct slice text)
{
    if (text.len <= CHECK_LEN) {
        return false;
    }
    size_t len = text.len - CHECK_LEN;
    struct sha256 said;
    if (memcmp(text.p + len, CHECK, sizeof(CHECK) - 1) != 0 ||
        hex_decode(slice_make(text.p + len + sizeof(CHECK) - 1, 64), said.b, sizeof said.b) < 0) {
        return false;
    }
    struct sha256_run *run = sha256_start();
    sha256_add(run, text.p, len);
    sha256_add(run, "}", 1);
    struct sha256 is = sha256_finish(run);
    return memcmp(is.b, said.b, sizeof is.b) == 0;
}

static const char *text_of(struct arena *a, const json_t *o, const char *key)
{
    return arena_strdup(a, json_str(o, key, ""));
}

static int read_columns(struct arena *a, const json_t *o, struct generation_manifest *m)
{
    const json_t *list = json_object_get(o, "columns");
    m->n_columns = json_array_size(list);
    m->columns = arena_zalloc(a, (m->n_columns + 1) * sizeof(*m->columns));
    for (size_t i = 0; i < m->n_columns; i++) {
        const json_t *c = json_array_get(list, i);
        m->columns[i] = (struct generation_column){text_of(a, c, "name"), text_of(a, c, "type"),
                                                   text_of(a, c, "stored")};
        if (!m->columns[i].type[0] || !m->columns[i].stored[0]) {
            return -1;
        }
    }
    return m->n_columns > 0 ? 0 : -1;
}

static int read_files(struct arena *a, const json_t *o, struct generation_manifest *m)
{
    const json_t *list = json_object_get(o, "files");
    m->n_files = json_array_size(list);
    m->files = arena_zalloc(a, (m->n_files + 1) * sizeof(*m->files));
    for (size_t i = 0; i < m->n_files; i++) {
        const json_t *f = json_array_get(list, i);
        struct generation_file *out = &m->files[i];
        out->name = text_of(a, f, "name");
        out->bytes = (uint64_t)json_int(f, "bytes", 0);
        if (!generation_is_data_file(out->name) ||
            hex_decode(slice_of(json_str(f, "sha256", "")), out->sum.b, sizeof out->sum.b) < 0) {
            return -1;
        }
    }
    return m->n_files > 0 ? 0 : -1;
}

static int read_all(struct arena *a, const json_t *o, struct generation_manifest *m)
{
    *m = (struct generation_manifest){
        .dataset = text_of(a, o, "dataset"),
        .id = text_of(a, o, "generation"),
        .target = text_of(a, o, "target"),
        .build_id = text_of(a, o, "build_id"),
        .token = (uint64_t)json_int(o, "token", 0),
        .rows = (uint64_t)json_int(o, "rows", 0),
        .bytes = (uint64_t)json_int(o, "bytes", 0),
        .data_as_of_us = json_int(o, "data_as_of_us", 0),
    };
    if (uuid_parse(slice_of(json_str(o, "installation", "")), &m->installation) < 0 ||
        !generation_is_dataset(m->dataset) || !generation_is_id(m->id)) {
        return -1;
    }
    return read_columns(a, o, m) < 0 ? -1 : read_files(a, o, m);
}

int generation_manifest_parse(struct arena *a, struct slice text, struct generation_manifest *out,
                              struct err *e)
{
    if (!is_unchanged(text)) {
        return bad(e, "is cut off or was changed by hand");
    }
    struct err cause;
    json_t *o = json_parse(text, &cause);
    if (!o) {
        return bad(e, cause.text);
    }
    struct generation_manifest m;
    int rc = 0;
    if (json_int(o, "version", 0) != VERSION) {
        rc = bad(e, "is of a version that this program does not know");
    } else if (read_all(a, o, &m) < 0) {
        rc = bad(e, "lacks what a manifest must say");
    } else {
        *out = m;
    }
    json_decref(o);
    return rc;
}
