/* Files for generations: written through, read whole, removed. Blocking. */
#pragma once
#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/err/err.h"

/* ERR_IO with the path and the reason of errno. */
int gen_io_error(struct err *e, const char *what, const char *path);
/* Writes a new file, its bytes on the disk; then it gets its name, and the directory is written,
 * too. */
int gen_io_put(const char *dir, const char *name, struct slice text, struct err *e) MUST_USE;
/* ERR_NOT_FOUND; ERR_GENERATION when it is no ordinary file or larger than `most`. */
int gen_io_get(const char *path, size_t most, struct buf *out, struct err *e) MUST_USE;
int gen_io_sync_dir(const char *path, struct err *e) MUST_USE;
/* Makes a directory that may be there; its parent is written through when it is new. */
int gen_io_mkdir(const char *parent, const char *path, struct err *e) MUST_USE;
/* What is left to read of an open file: its hash and size. -1 with errno. */
int gen_io_hash(int fd, struct sha256 *sum, uint64_t *bytes);
/* Names in a directory but . and ..; `each` ends the walk with a negative return. 0 when there is
 * no such directory. */
int gen_io_walk(const char *path, int (*each)(void *data, const char *name), void *data,
                struct err *e) MUST_USE;
