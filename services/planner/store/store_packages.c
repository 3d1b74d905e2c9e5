/* Package versions, files by content hash, and loads. */
#include "common/json/json.h"
#include "services/planner/store/set_json.h"
#include "services/planner/store/store_internal.h"

/* ---- putting ---- */

static void put_file_stmt(struct store_stmts *b, const struct store_file *f)
{
    stmt_add(b, "k_put_file",
             "INSERT INTO kiln.file AS f (sha256, bytes, content) VALUES ($1::bytea, $2::bigint, "
             "$3::bytea) ON CONFLICT "
             "(sha256) DO UPDATE SET content = excluded.content WHERE f.content IS NULL AND "
             "excluded.content IS NOT NULL",
             3);
    stmt_bytes(b, slice_make(f->sha256.b, sizeof f->sha256.b));
    stmt_num(b, (int64_t)f->bytes);
    stmt_bytes(b, f->content);
}

static void put_version_file_stmt(struct store_stmts *b, const struct sha256 *version,
                                  const struct store_file *f)
{
    stmt_add(b, "k_put_version_file",
             "INSERT INTO kiln.version_file (version, path, file, is_data) VALUES ($1::bytea, $2, "
             "$3::bytea, $4::bool) ON "
             "CONFLICT DO NOTHING",
             4);
    stmt_bytes(b, slice_make(version->b, sizeof version->b));
    stmt_text(b, arena_strdup(b->arena, f->path));
    stmt_bytes(b, slice_make(f->sha256.b, sizeof f->sha256.b));
    stmt_flag(b, f->is_data);
}

static void put_version_stmts(struct store_stmts *b, const struct store_load *l)
{
    for (size_t i = 0; i < l->n_files; i++) {
        put_file_stmt(b, &l->files[i]);
    }
    stmt_add(b, "k_put_version",
             "INSERT INTO kiln.package_version (id, manifest) VALUES ($1::bytea, $2::json) ON "
             "CONFLICT DO NOTHING",
             2);
    stmt_bytes(b, slice_make(l->version.b, sizeof l->version.b));
    stmt_text(b, l->manifest_json ? arena_strdup(b->arena, l->manifest_json) : "{}");
    for (size_t i = 0; i < l->n_files; i++) {
        put_version_file_stmt(b, &l->version, &l->files[i]);
    }
}

static void add_part(struct sha256_run *run, const char *text)
{
    sha256_add(run, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* What the warehouse said, as one number: two loads of one version differ when a schema did. */
static struct sha256 schema_hash(struct arena *a, const struct store_load *l)
{
    struct sha256_run *run = sha256_start();
    for (size_t i = 0; i < l->n_schemas; i++) {
        const struct store_schema *s = &l->schemas[i];
        add_part(run, s->connection);
        add_part(run, s->is_sql ? "sql" : "table");
        add_part(run, s->key);
        add_part(run, s->error ? s->error : columns_json_text(a, &s->columns));
    }
    return sha256_finish(run);
}

static void put_load_stmt(struct store_stmts *b, const struct store_load *l)
{
    struct arena *a = b->arena;
    struct sha256 hash = schema_hash(a, l);
    stmt_add(b, "k_put_load",
             "INSERT INTO kiln.load (unit, version, compiler_version, schema_hash, package, plan, "
             "warnings, advisories, "
             "default_connection, loaded) VALUES ($1::bigint, $2::bytea, $3, $4::bytea, $5::json, "
             "$6::json, $7::json, "
             "$8::json, $9, $10::bytea) RETURNING id",
             10);
    stmt_num(b, (int64_t)l->unit);
    stmt_bytes(b, slice_make(l->version.b, sizeof l->version.b));
    stmt_text(b, l->compiler_version ? arena_strdup(a, l->compiler_version) : "");
    stmt_bytes(b, slice_make(hash.b, sizeof hash.b));
    stmt_text(b, arena_strdup(a, l->package_json));
    stmt_text(b, arena_strdup(a, l->plan_json));
    stmt_text(b, l->warnings_json ? arena_strdup(a, l->warnings_json) : "[]");
    stmt_text(b, l->advisories_json ? arena_strdup(a, l->advisories_json) : "[]");
    stmt_text(b, arena_strdup(a, l->default_connection));
    stmt_bytes(b, slice_make(l->loaded_packed, l->loaded_len));
}

/* The load is the newest of its unit in this transaction: currval is this session's own. */
static void put_schema_stmt(struct store_stmts *b, const struct store_schema *s, size_t ordinal)
{
    struct arena *a = b->arena;
    stmt_add(
        b, "k_put_schema",
        "INSERT INTO kiln.load_schema (load, ordinal, connection, kind, key, columns, error) "
        "VALUES "
        "(currval(pg_get_serial_sequence('kiln.load', 'id')), $1::int, $2, $3, $4, $5::jsonb, $6)",
        6);
    stmt_num(b, (int64_t)ordinal);
    stmt_text(b, arena_strdup(a, s->connection));
    stmt_text(b, s->is_sql ? "sql" : "table");
    stmt_text(b, arena_strdup(a, s->key));
    stmt_text(b, s->error ? NULL : columns_json_text(a, &s->columns));
    stmt_text(b, arena_strdup(a, s->error));
}

static int finish_put_load(struct store_req *q)
{
    *(uint64_t *)q->out = cell_id(req_result(q, q->flag), 0, 0);
    return 0;
}

void store_put_load(struct store *s, struct store_op *op, const struct store_load *l,
                    uint64_t *out_id)
{
    struct store_req *r = req_write(s, op, finish_put_load);
    r->out = out_id;
    put_version_stmts(&r->stmts, l);
    r->flag = r->stmts.n;
    put_load_stmt(&r->stmts, l);
    for (size_t i = 0; i < l->n_schemas; i++) {
        put_schema_stmt(&r->stmts, &l->schemas[i], i);
    }
    req_start(r);
}

/* ---- getting ---- */

static void read_load(struct arena *a, const struct pgc_result *r, struct store_load *out)
{
    struct slice loaded = cell_bytes(a, r, 0, 10);
    *out = (struct store_load){.id = cell_id(r, 0, 0),
                               .unit = cell_id(r, 0, 1),
                               .version = cell_sha256(r, 0, 2),
                               .compiler_version = cell_text(a, r, 0, 3),
                               .manifest_json = cell_text(a, r, 0, 4),
                               .package_json = cell_text(a, r, 0, 5),
                               .plan_json = cell_text(a, r, 0, 6),
                               .warnings_json = cell_text(a, r, 0, 7),
                               .advisories_json = cell_text(a, r, 0, 8),
                               .default_connection = cell_text(a, r, 0, 9),
                               .loaded_packed = loaded.p,
                               .loaded_len = loaded.len};
}

static void read_files(struct arena *a, const struct pgc_result *r, struct store_load *out)
{
    out->n_files = pgc_rows(r);
    out->files = arena_zalloc(a, (out->n_files + 1) * sizeof *out->files);
    for (size_t i = 0; i < out->n_files; i++) {
        out->files[i] = (struct store_file){.path = cell_text(a, r, i, 0),
                                            .content = cell_bytes(a, r, i, 1),
                                            .bytes = cell_id(r, i, 2),
                                            .sha256 = cell_sha256(r, i, 3),
                                            .is_data = pgc_bool(r, i, 4)};
    }
}

static int read_schemas(struct arena *a, const struct pgc_result *r, struct store_load *out,
                        struct err *e)
{
    out->n_schemas = pgc_rows(r);
    out->schemas = arena_zalloc(a, (out->n_schemas + 1) * sizeof *out->schemas);
    for (size_t i = 0; i < out->n_schemas; i++) {
        struct store_schema *s = &out->schemas[i];
        *s = (struct store_schema){.connection = cell_text(a, r, i, 0),
                                   .key = cell_text(a, r, i, 1),
                                   .is_sql = pgc_bool(r, i, 2),
                                   .error = cell_text(a, r, i, 4)};
        int rc = s->error ? 0 : columns_json_parse(a, pgc_cell(r, i, 3), &s->columns, e);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int finish_get_load(struct store_req *q)
{
    struct arena *a = q->op->arena;
    struct store_load *out = q->out;
    if (pgc_rows(req_result(q, 0)) == 0) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "there is no such load");
    }
    read_load(a, req_result(q, 0), out);
    read_files(a, req_result(q, 1), out);
    return read_schemas(a, req_result(q, 2), out, &q->op->err);
}

void store_get_load(struct store *s, struct store_op *op, uint64_t id, bool with_content,
                    struct store_load *out)
{
    struct store_req *r = req_read(s, op, finish_get_load);
    struct store_stmts *b = &r->stmts;
    r->out = out;
    stmt_add(b, "k_get_load",
             "SELECT l.id, l.unit, l.version, l.compiler_version, v.manifest, l.package, l.plan, "
             "l.warnings, l.advisories, "
             "l.default_connection, l.loaded FROM kiln.load l JOIN kiln.package_version v ON v.id "
             "= l.version WHERE l.id = "
             "$1::bigint",
             1);
    stmt_num(b, (int64_t)id);
    stmt_add(b, "k_get_load_files",
             "SELECT v.path, CASE WHEN $2::bool THEN f.content END, f.bytes, f.sha256, v.is_data "
             "FROM kiln.load l JOIN "
             "kiln.version_file v ON v.version = l.version JOIN kiln.file f ON f.sha256 = v.file "
             "WHERE l.id = $1::bigint "
             "ORDER BY v.path COLLATE \"C\"",
             2);
    stmt_num(b, (int64_t)id);
    stmt_flag(b, with_content);
    stmt_add(b, "k_get_load_schemas",
             "SELECT connection, key, kind = 'sql', columns, error FROM kiln.load_schema WHERE "
             "load = $1::bigint ORDER BY "
             "ordinal",
             1);
    stmt_num(b, (int64_t)id);
    req_start(r);
}

static int finish_get_file(struct store_req *q)
{
    const struct pgc_result *r = req_result(q, 0);
    if (pgc_rows(r) == 0 || !pgc_cell(r, 0, 0).p) {
        return err_set(&q->op->err, ERR_NOT_FOUND, "there is no such file in the run store");
    }
    *(struct slice *)q->out = cell_bytes(q->op->arena, r, 0, 0);
    return 0;
}

void store_get_file(struct store *s, struct store_op *op, const struct sha256 *id,
                    struct slice *out)
{
    struct store_req *r = req_read(s, op, finish_get_file);
    r->out = out;
    stmt_add(&r->stmts, "k_get_file", "SELECT content FROM kiln.file WHERE sha256 = $1::bytea", 1);
    stmt_bytes(&r->stmts, slice_make(id->b, sizeof id->b));
    req_start(r);
}
