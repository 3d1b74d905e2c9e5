/* DuckDB instances and their connections: opened, limited, extended, locked down. The only folder
 * that includes duckdb.h. Everything here blocks: threads of duck_pool only, unless it says so. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/err/err.h"

#define DUCK_TERMS_MAX 2000 /* ANDs and ORs of a statement (decisions 6.22) */

struct duck_instance; /* counted: its owner and every job on it */
struct duck_conn;     /* a connection of an instance, lent to one job at a time */
struct duck_type;     /* a column's type, all the way down */

/* Another database beside the instance's own, attached before it is locked. One that cannot be had
 * is left out, and err says why. */
struct duck_attach {
    const char *const *setup; /* its statements, NULL-terminated */
    struct err err;           /* code 0: it is attached */
};
/* One memory limit over the instances of a process: each has a share, its own limit, and the shares
 * never add up to more. Shares move when a statement begins; idle instances give way first. Any
 * thread. */
struct duck_budget;
struct duck_budget *duck_budget_new(uint64_t bytes) MUST_USE;
void duck_budget_free(struct duck_budget *b);           /* must() that no instance is left */
uint64_t duck_budget_given(struct duck_budget *b);      /* sum of the shares, in bytes */
uint64_t duck_instance_memory(struct duck_instance *i); /* an instance's share; 0: it has none */

struct duck_settings {
    const char *what;     /* begins every error: "connection 'duckdb'" */
    const char *file;     /* a database file; NULL: in memory */
    bool read_only;       /* of the file */
    unsigned connections; /* jobs at once; one more is kept for urgent jobs. 0: 2 */
    unsigned threads;     /* DuckDB's own; 0: the number of cores */
    uint64_t memory_bytes;
    struct duck_budget *budget; /* instead of memory_bytes; outlives the instance. NULL: none */
    const char *temp_dir;       /* where it spills; absolute; NULL: it never spills */
    uint64_t temp_bytes;
    const char *const
        *extensions;           /* names, NULL-terminated: loaded from the pinned files; NULL: none
                                */
    const char *extension_dir; /* NULL: duckdb/ext beside the library */
    /* What SQL can read and, as DuckDB has it, also write: make read-only on disk what must stay.
     * "." stands for relative names in a model. NULL-terminated; NULL: none. */
    const char *const *allowed_dirs;
    const char *const *allowed_files;
    const char
        *search_path; /* where relative file names are looked for; NULL: the working directory
                       */
    const char *const *setup; /* own statements before it is locked: ATTACH, CREATE SECRET; secrets
                                 in them are scrubbed by whoever knows them. NULL: none */
    struct duck_attach *attach;
    size_t n_attach;
    /* Functions that no SELECT of a caller (select_only, duck_check_select) may name, whatever it
     * does with them: what reaches other servers or writes through an attached database. With them
     * files are no tables either. NULL-terminated, must stay; NULL: all is allowed. */
    const char *const *forbidden;
    bool unlocked; /* neither files nor settings are locked: for an own catalog, never for
                      a caller's text */
};
/* Some 15 ms, and 200-600 ms for each extension: instances are kept. ERR_CONF when the settings are
 * refused, ERR_UNSUPPORTED when an extension is missing or is not the pinned one. */
int duck_instance_open(const struct duck_settings *s, struct duck_instance **out,
                       struct err *e) MUST_USE;
struct duck_instance *duck_instance_ref(struct duck_instance *i); /* any thread */
void duck_instance_unref(struct duck_instance *i); /* any thread; the last one closes */
const char *duck_instance_what(const struct duck_instance *i);
/* DuckDB gave the instance up after a fatal error: close it and open another. Any thread. */
bool duck_instance_is_broken(const struct duck_instance *i);
const char *duck_version(void); /* "v1.5.5" */

/* Runs statements whose rows nobody wants. ERR_ codes as for duck_open_query. */
int duck_exec(struct duck_conn *c, const char *sql, struct err *e) MUST_USE;
/* From now on duck_job_progress tells how far a statement of this connection is. Costs half a
 * millisecond, which opening an instance does not spend on each connection. */
int duck_show_progress(struct duck_conn *c, struct err *e) MUST_USE;
/* Rows that a COPY .. TO or the like says it wrote. */
int duck_exec_count(struct duck_conn *c, const char *sql, uint64_t *rows, struct err *e) MUST_USE;
/* First cell of the first row as text, NULL for NULL or no row; in the arena. */
int duck_exec_value(struct duck_conn *c, const char *sql, struct arena *a, const char **out,
                    struct err *e) MUST_USE;
/* One SELECT and nothing else? ERR_WH_SQL: no, or it does not parse; ERR_WH_DENIED: it calls what
 * is forbidden. Nothing is run. */
int duck_check_select(struct duck_conn *c, const char *sql, struct err *e) MUST_USE;

/* A query: opened (names are bound to files and tables then), begun, read in pages, closed. */
struct duck_query;
struct duck_query_ask {
    const char *sql;
    const char *prepare_as; /* kept prepared in the connection under this key; NULL: not kept */
    bool select_only;       /* anything but one SELECT is refused */
    bool columns_only; /* it will not be begun; an open query already works in the background */
};
/* ERR_WH_SQL, ERR_WH_MISSING (a table or file), ERR_WH_DENIED (outside of the allowed folders),
 * ERR_QUERY_MEMORY, ERR_IO, ERR_CANCELLED (interrupted). */
int duck_query_open(struct duck_conn *c, const struct duck_query_ask *ask, struct duck_query **out,
                    struct err *e) MUST_USE;
/* Until the first rows are there. */
int duck_query_begin(struct duck_query *q, struct err *e) MUST_USE;
size_t duck_query_n_columns(const struct duck_query *q);
const char *duck_query_column_name(const struct duck_query *q, size_t i);
const struct duck_type *duck_query_column_type(const struct duck_query *q, size_t i);
void duck_query_close(struct duck_query *q);

/* Rows as text, many at a time. */
enum duck_form {
    DUCK_FORM_TEXT, /* a cell a column, as DuckDB's CAST(.. AS VARCHAR); nested values as JSON */
    DUCK_FORM_JSON  /* one cell: the row as a JSON object (docs/types.md) */
};
struct duck_page;
/* The next rows, at most about 256 KiB of them; NULL at the end. The caller frees. ERR_INVALID for
 * text that is no UTF-8, ERR_UNSUPPORTED for a type that has no text. */
int duck_query_next(struct duck_query *q, enum duck_form form, struct duck_page **out,
                    struct err *e) MUST_USE;
size_t duck_page_rows(const struct duck_page *p);
/* n_columns cells (1 in JSON form); p == NULL: SQL NULL. They live as long as the page. */
void duck_page_cells(const struct duck_page *p, size_t row, struct slice *cells);
void duck_page_free(struct duck_page *p); /* any thread */

/* 'text' and "name", quotes doubled, appended. */
void duck_quote_text(struct buf *out, const char *text);
void duck_quote_name(struct buf *out, const char *name);
