/* A list of statements with their parameters, built in an arena, and the way back from result
 * cells. */
#pragma once
#include "common/base/crypto.h"
#include "common/pgc/pgc.h"

struct store_stmts {
    struct arena *arena;
    struct pgc_stmt *items;
    size_t n, cap;
    const char **args; /* of the last statement */
    int n_args;        /* filled so far */
};
void stmts_init(struct store_stmts *b, struct arena *a);
/* Starts a statement; then exactly n_params of the calls below. name: prepared under it; NULL: run
 * once. Both static. */
void stmt_add(struct store_stmts *b, const char *name, const char *sql, int n_params);
void stmt_text(struct store_stmts *b, const char *text);   /* NULL: SQL NULL. Borrowed */
void stmt_slice(struct store_stmts *b, struct slice text); /* copied; p NULL: SQL NULL */
void stmt_num(struct store_stmts *b, int64_t v);
void stmt_id(struct store_stmts *b, uint64_t id);  /* 0: SQL NULL */
void stmt_time(struct store_stmts *b, int64_t us); /* 0: SQL NULL; for kiln.ts() */
void stmt_flag(struct store_stmts *b, bool v);
void stmt_uuid(struct store_stmts *b, const struct uuid *u);
void stmt_trace(struct store_stmts *b, const struct uuid *u);         /* all zero: SQL NULL */
void stmt_uuid_bytes(struct store_stmts *b, const uint8_t bytes[16]); /* NULL: SQL NULL */
void stmt_bytes(struct store_stmts *b, struct slice bytes);           /* bytea; p NULL: SQL NULL */
void stmt_texts(struct store_stmts *b, const char *const *list, size_t n); /* text[] */
void stmt_ids(struct store_stmts *b, const uint64_t *list, size_t n);      /* bigint[] */
void stmts_end(const struct store_stmts *b); /* must() that the last one is whole */

/* Cells of a result, by column. Copies live in the arena. */
const char *cell_text(struct arena *a, const struct pgc_result *r, size_t row,
                      size_t col); /* NULL when SQL NULL */
const char *cell_or_empty(struct arena *a, const struct pgc_result *r, size_t row, size_t col);
uint64_t cell_id(const struct pgc_result *r, size_t row, size_t col); /* 0 when SQL NULL */
struct uuid cell_trace(const struct pgc_result *r, size_t row,
                       size_t col); /* all zero when SQL NULL */
struct slice cell_bytes(struct arena *a, const struct pgc_result *r, size_t row,
                        size_t col); /* p NULL when SQL NULL */
struct sha256 cell_sha256(const struct pgc_result *r, size_t row, size_t col);
