/* Message kinds, from proto/kinds.def. */
#pragma once
#include "common/err/err.h"
#include <stddef.h>
#include <stdint.h>

enum bus_kind {
    BUS_KIND_NONE = 0,
#define KIND(name, number, from, to, request, reply, timeout_ms, request_kib, reply_kib,           \
             idempotent_by, says)                                                                  \
    BUS_##name = number,
#include "proto/kinds.def"
#undef KIND
};
struct bus_kind_row {
    const char *name, *from, *to, *request, *reply, *idempotent_by, *says;
    uint32_t number, timeout_ms;
    size_t request_most, reply_most; /* bytes of the packed message */
};
const struct bus_kind_row *bus_kind_find(uint32_t number); /* NULL: unknown */
const struct bus_kind_row *bus_kind_rows(size_t *n);
/* 0, or ERR_LIMIT with a sentence: `what` ("request", "reply") has more bytes than its kind may. */
int bus_kind_fits(const struct bus_kind_row *row, const char *what, size_t len, size_t most,
                  struct err *e) MUST_USE;
