/* The reason codes of receipts: reasons.def as an enum and its texts. Pure. */
#pragma once
#include "common/base/slice.h"

enum reason {
    REASON_NONE,
#define REASON(code, when, remedy) REASON_##code,
#include "services/gateway/core/reasons.def"
#undef REASON
    REASON_COUNT
};
const char *reason_code(enum reason r); /* "" for REASON_NONE */
const char *reason_when(enum reason r);
const char *reason_remedy(enum reason r);
/* REASON_NONE when this version does not know the code. */
enum reason reason_find(const char *code);
