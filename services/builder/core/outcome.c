#include "services/builder/core/outcome.h"

enum build_end build_end_of(enum build_stage stage, int code, bool stopped, bool lost)
{
    if (code == ERR_FENCED) {
        return END_FENCED;
    }
    if (stage == STAGE_SWAP) {
        bool decided = code == ERR_TARGET_BUSY || code == ERR_WH_DEPENDENTS ||
                       code == ERR_WH_TARGET || code == ERR_WH_MISSING || code == ERR_WH_DENIED ||
                       code == ERR_WH_SQL;
        return decided ? END_FAILED : END_UNKNOWN;
    }
    if (lost || (stage == STAGE_GRANT && code == ERR_LEASE_LOST)) {
        return END_SILENT;
    }
    if (stopped || code == ERR_STOPPED) {
        return END_CANCELLED;
    }
    return END_FAILED;
}
