/* Files of a package on disk, where its models expect them. Blocking. */
#pragma once
#include "common/sandbox/sandbox.h"

/* Hard links, or copies where a link cannot be made, all read-only; into `dir`, which comes into
 * being whole. What is there already stays. A file that the store does not have, or that was
 * changed there, is left out: `missing` says why (code 0: none), so that all else can be read. */
int sandbox_lay_out(const char *package_store, const char *dir, const struct sandbox_file *files,
                    size_t n, struct err *missing, struct err *e) MUST_USE;
/* Removes a directory and all in it; it need not be there. */
int sandbox_remove(const char *dir, struct err *e) MUST_USE;
