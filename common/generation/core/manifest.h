/* The manifest of a generation: what its files are and what they hold. Text in, text out; pure. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/err/err.h"

struct generation_file {
    const char *name; /* "data-0.parquet" */
    uint64_t bytes;
    struct sha256 sum;
};
struct generation_column {
    const char *name;
    const char *type;   /* as the query gives it, in SQL */
    const char *stored; /* as the files hold it; the same text when nothing is cast */
};
struct generation_manifest {
    struct uuid installation;
    const char *dataset, *id; /* id: the generation's ULID */
    const char *target;       /* the author's name */
    const char *build_id;     /* "" unknown */
    uint64_t token, rows, bytes;
    int64_t data_as_of_us;
    struct generation_column *columns;
    size_t n_columns;
    struct generation_file *files;
    size_t n_files;
};
/* JSON; it ends in a check sum of itself. */
void generation_manifest_print(const struct generation_manifest *m, struct buf *out);
/* Into the arena. ERR_GENERATION: cut off, changed by hand, or of a later version. */
int generation_manifest_parse(struct arena *a, struct slice text, struct generation_manifest *out,
                              struct err *e) MUST_USE;
