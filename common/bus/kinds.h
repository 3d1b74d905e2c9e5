/* Message kinds, from proto/kinds.def. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum bus_kind {
    BUS_KIND_NONE = 0,
#define KIND(name, number, from, to, request, reply, timeout_ms, idempotent_by, says)              \
    BUS_##name = number,
#include "proto/kinds.def"
#undef KIND
};
struct bus_kind_row {
    const char *name, *from, *to, *request, *reply, *idempotent_by, *says;
    uint32_t number, timeout_ms;
};
const struct bus_kind_row *bus_kind_find(uint32_t number); /* NULL: unknown */
const struct bus_kind_row *bus_kind_rows(size_t *n);
