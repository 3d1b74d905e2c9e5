/* The receipt of an answer in words: served from what, and why not from a table. */
#pragma once
#include "common/json/json.h"

/* One line, without line end: "baked: daily from "public"."daily" (generation .., data as of ..)".
 * decision: the answer's member; NULL: the gateway sent none. */
void receipt_line(const json_t *decision, struct buf *out);
