/* Generations on disk (protocol.md 8): <root>/<dataset>/<ULID>/data-*.parquet, and manifest.json,
 * which comes last. Everything blocks: threads of offload or duck_pool only. */
#pragma once
#include "common/generation/core/manifest.h"
#include "common/generation/core/names.h"

struct generation_ref {
    const char *root; /* absolute */
    const char *dataset, *id;
};
/* <root>/<dataset>/<id>, in the arena. ERR_PATH: a part that no path may hold. */
int generation_path(struct arena *a, const struct generation_ref *r, char **out,
                    struct err *e) MUST_USE;

/* An empty directory for a build, with the token of who builds there; what an earlier try of the
 * same id left is removed. ERR_IO, ERR_PATH. */
int generation_begin(const struct generation_ref *r, uint64_t token, struct err *e) MUST_USE;
/* What stands in the directory becomes a generation: files are listed, measured and hashed into m
 * (in the arena), all is written through to the disk, the manifest last. From its return on no
 * crash takes anything away. ERR_IO (disk full, too); nothing is published then. */
int generation_publish(struct arena *a, const struct generation_ref *r,
                       struct generation_manifest *m, struct err *e) MUST_USE;

/* TOUCHED: sizes, and the hash of what was changed, moved or restored since the manifest was
 * written, which the file system knows (ctime). Of a generation with more than a GiB of such files,
 * those stand that have kept their time of writing: reading them would take too long. */
enum generation_depth { GENERATION_TOUCHED, GENERATION_HASHES };
/* The manifest, into the arena. ERR_NOT_FOUND: none; ERR_GENERATION: damaged, or another's. */
int generation_read(struct arena *a, const struct generation_ref *r,
                    struct generation_manifest *out, struct err *e) MUST_USE;
/* Are its files those of the manifest, and no others? ERR_NOT_FOUND: one is gone; ERR_GENERATION:
 * one is another, or there are more. */
int generation_verify(const struct generation_ref *r, const struct generation_manifest *m,
                      enum generation_depth depth, struct err *e) MUST_USE;
/* A data file's path, in the arena. */
char *generation_file_path(struct arena *a, const struct generation_ref *r,
                           const char *file) MUST_USE;

/* Removes a generation, whole or in pieces. 1: it was there, 0: it was not. */
int generation_drop(const struct generation_ref *r, struct err *e) MUST_USE;
/* Removes what attempts with these tokens left in a dataset, finished or not. How many. */
int generation_discard(const char *root, const char *dataset, const uint64_t *tokens, size_t n,
                       struct err *e) MUST_USE;
/* Removes what is not recorded from one dataset, and its folder when nothing is left. How many. */
int generation_sweep(const char *root, const char *dataset, const struct generation_record *record,
                     struct err *e) MUST_USE;

/* Names in the arena, sorted. A root or dataset that is not there has none. */
struct generation_names {
    const char **items;
    size_t n;
};
int generation_list(struct arena *a, const char *root, const char *dataset,
                    struct generation_names *out, struct err *e) MUST_USE;
int generation_datasets(struct arena *a, const char *root, struct generation_names *out,
                        struct err *e) MUST_USE;

/* Takes or renews the root for an installation: at start, then every GENERATION_ROOT_RENEW_S.
 * ERR_CONFLICT: another one renewed it within GENERATION_ROOT_HELD_S. */
int generation_root_claim(const char *root, const struct uuid *installation, int64_t now_us,
                          struct generation_owner *out, struct err *e) MUST_USE;
/* Whose it is, for those who only read. ERR_NOT_FOUND: nobody's, or not reachable. */
int generation_root_read(const char *root, struct generation_owner *out, struct err *e) MUST_USE;
/* Is it the installation's, and the one with this id (all zero: any)? ERR_GENERATION: no;
 * ERR_NOT_FOUND, ERR_IO: it is not reachable. */
int generation_root_is(const char *root, const struct uuid *installation, const struct uuid *id,
                       struct err *e) MUST_USE;
