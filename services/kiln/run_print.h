/* Run records of the REST API as people read them (spec/malloy-persistence.md 3.3, 3.7). */
#pragma once
#include "common/json/json.h"

bool run_has_ended(const json_t *run);
bool run_is_ready(const json_t *run);
bool run_is_cancelled(const json_t *run);
/* The status as a word: waiting, binding, ready, failed, cancelled. */
const char *run_word(const json_t *run);
/* One head line, then a table of what was built, reused, failed and refused. Standard output;
 * warnings go to standard error. */
void run_print_end(const json_t *run);
/* Several records as a table. */
void run_print_list(const json_t *runs);
