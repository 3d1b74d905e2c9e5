/* Inside of common/log: reading the key=value text of a line. */
#pragma once
#include "common/base/buf.h"

/* Takes the next field off *rest: key and unquoted value; a bare word has an empty key.
 * value is cleared first. False at the end. */
bool log_next_field(struct slice *rest, struct slice *key, struct buf *value);
