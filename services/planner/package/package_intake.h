/* Collects the files of one package, wherever they come from: hashes them, holds the small ones,
 * sends large ones towards the package store, and ends with the sorted, checked set. Offload
 * threads. */
#pragma once
#include "services/planner/package/package.h"

struct intake_file;
struct intake {
    struct arena *arena;
    struct package_limits lim;
    int refusal; /* code of a refusal: ERR_PATH or ERR_ARCHIVE */
    struct intake_file *files;
    size_t n, cap;
    uint64_t held; /* bytes held in memory */
    bool open;     /* between begin and end: the last file */
};

/* Limits that are 0 get their defaults. */
void intake_init(struct intake *in, struct arena *a, const struct package_limits *lim, int refusal);
/* Frees, and takes away what is not in the package store yet. Always called, after success too. */
void intake_fini(struct intake *in);
/* path: without fault and not hidden (package_path.h). */
int intake_begin(struct intake *in, const char *path, struct err *e) MUST_USE;
int intake_bytes(struct intake *in, struct slice bytes, struct err *e) MUST_USE;
int intake_end(struct intake *in, struct err *e) MUST_USE;
/* One top-level directory that holds everything is taken off. For archives. */
void intake_strip_top(struct intake *in);
/* Refuses paths that stand twice or are file and directory at once, moves large files into place,
 * sorts, makes the version. */
int intake_finish(struct intake *in, struct package_files *out, struct err *e) MUST_USE;
