#include "services/gateway/core/reasons.h"

static const struct {
    const char *code, *when, *remedy;
} reasons[REASON_COUNT] = {
    {"", "", ""},
#define REASON(code, when, remedy) {#code, when, remedy},
#include "services/gateway/core/reasons.def"
#undef REASON
};

const char *reason_code(enum reason r)
{
    return reasons[r].code;
}

const char *reason_when(enum reason r)
{
    return reasons[r].when;
}

const char *reason_remedy(enum reason r)
{
    return reasons[r].remedy;
}

enum reason reason_find(const char *code)
{
    for (int r = 1; r < REASON_COUNT; r++) {
        if (strcmp(reasons[r].code, code) == 0) {
            return (enum reason)r;
        }
    }
    return REASON_NONE;
}
