/* What an entry of publisher.config.json must be to be kept (spec 1.4). */
#pragma once
#include "common/json/json.h"

/* NULL when the connection can be kept; else why its entry is dropped. *fatal: the whole
 * configuration is refused instead. */
const char *config_connection_fault(const json_t *entry, bool allow_proxy, bool *fatal) MUST_USE;
/* NULL when the storage destination can be kept; else every defect of it, in one sentence. Lives in
 * out. */
const char *config_destination_fault(const json_t *entry, struct buf *out) MUST_USE;
