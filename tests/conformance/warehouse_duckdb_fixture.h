/* Shorthands of the tests of DuckDB alone: its queries, files and bindings. */
#pragma once
#include "tests/conformance/warehouse_fixture.h"
#include <sys/types.h>

int ask(struct run *r, struct sink_told *s, struct wh_query q); /* on `wh`, to its end */
/* A file of the generation made of a token; "": its folder. */
const char *path_of(uint64_t token, const char *file);
/* Sets duck_bindings: each name to the generation of its token. */
void bind_names(size_t n, const char *const *names, const uint64_t *tokens);
void cut_file(const char *path, off_t bytes);
