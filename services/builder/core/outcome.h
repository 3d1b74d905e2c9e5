/* What an error in a build means for its job. Pure. */
#pragma once
#include "common/err/err.h"

enum build_stage { STAGE_BUILD, STAGE_GRANT, STAGE_SWAP };
enum build_end { END_FAILED, END_CANCELLED, END_FENCED, END_UNKNOWN, END_SILENT };
/* code: of the failed operation. stopped: the planner asked for a stop. lost: the lease is gone, so
 * nobody waits for a report. After a swap was begun only the warehouse knows: a lost connection is
 * END_UNKNOWN, which a resolve settles (protocol.md 5). */
enum build_end build_end_of(enum build_stage stage, int code, bool stopped, bool lost);
