#include "services/planner/store/store_migrate.h"

#include "services/planner/store/migrations.h"
#include "services/planner/store/sql_split.h"

/* In a DO block: CREATE SCHEMA IF NOT EXISTS asks for the right to make schemas even when there is
 * nothing to make. */
static const char make_schema[] =
    "DO $$ BEGIN IF to_regnamespace('kiln') IS NULL THEN CREATE SCHEMA kiln; END IF; END $$";
static const char make_table[] = "DO $$ BEGIN IF to_regclass('kiln.migration') IS NULL THEN CREATE "
                                 "TABLE kiln.migration (number int PRIMARY KEY, "
                                 "name text NOT NULL, sha256 bytea NOT NULL, applied_at "
                                 "timestamptz NOT NULL DEFAULT now()); END IF; END $$";
static const char read_applied[] =
    "SELECT number, name, sha256 FROM kiln.migration ORDER BY number";

void migrate_look_stmts(struct store_stmts *b)
{
    stmt_add(b, NULL, make_schema, 0);
    stmt_add(b, NULL, make_table, 0);
    stmt_add(b, NULL, read_applied, 0);
}

size_t migrate_count(void)
{
    return store_migrations_count;
}

static struct sha256 sum_of(size_t at)
{
    return sha256_of(store_migrations[at].text.p, store_migrations[at].text.len);
}

int migrate_check(const struct pgc_result *applied, size_t *n, struct err *e)
{
    for (size_t i = 0; i < pgc_rows(applied); i++) {
        const char *name = pgc_text(applied, i, 1);
        if (pgc_i64(applied, i, 0) != (int64_t)i + 1) {
            return err_set(
                e, ERR_STORE_SCHEMA,
                "run store: migration %zu is missing in kiln.migration; restore it from a backup",
                i + 1);
        }
        if (i >= store_migrations_count) {
            return err_set(e, ERR_STORE_SCHEMA,
                           "run store: it was migrated by a newer Kiln ('%s'); start that version, "
                           "or use another database",
                           name);
        }
        struct sha256 have = cell_sha256(applied, i, 2), want = sum_of(i);
        if (memcmp(have.b, want.b, sizeof want.b) != 0) {
            return err_set(e, ERR_STORE_SCHEMA,
                           "run store: migration '%s' is not the one this Kiln has; start the "
                           "version that made this run "
                           "store, or use another database",
                           name);
        }
    }
    *n = pgc_rows(applied);
    return 0;
}

void migrate_stmts(struct store_stmts *b, size_t at)
{
    must(at < store_migrations_count);
    struct slice rest = store_migrations[at].text, stmt;
    while (sql_next(&rest, &stmt)) {
        stmt_add(b, NULL, arena_slice(b->arena, stmt), 0);
    }
    struct sha256 sum = sum_of(at);
    stmt_add(b, NULL, "INSERT INTO kiln.migration (number, name, sha256) VALUES ($1, $2, $3)", 3);
    stmt_num(b, (int64_t)at + 1);
    stmt_text(b, store_migrations[at].name);
    stmt_bytes(b, slice_make(sum.b, sizeof sum.b));
}
