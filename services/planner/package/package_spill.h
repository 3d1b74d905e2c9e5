/* Large files on their way into the package store: written beside their final place, moved there by
 * content hash only when the whole package was accepted. Offload threads. */
#pragma once
#include "common/base/arena.h"
#include "common/base/crypto.h"
#include "common/err/err.h"

struct spill {
    int fd;           /* -1: not open */
    const char *temp; /* path of the temporary file; NULL: nothing to take away */
};

/* Makes `<store>/.new-<random>`. The path lives in the arena. */
int spill_open(struct spill *s, struct arena *a, const char *store, struct err *e) MUST_USE;
int spill_write(struct spill *s, struct slice bytes, struct err *e) MUST_USE;
/* Bytes are on disk afterwards. */
int spill_sync(struct spill *s, struct err *e) MUST_USE;
/* Moves it to package_store_path; a file of that hash that is there already stays. */
int spill_keep(struct spill *s, struct arena *a, const char *store, const struct sha256 *id,
               struct err *e) MUST_USE;
/* Closes and removes what is left; harmless after spill_keep. */
void spill_drop(struct spill *s);
