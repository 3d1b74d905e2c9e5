/* What runs between kiln's fork and a child's program: it must die with kiln, and may have to be
 * another user. */
#pragma once
#include "common/base/base.h"

/* "kiln --child PARENT SIGNAL USER PROGRAM ARGS..": gets SIGNAL when PARENT dies, becomes USER
 * ("-": stays who it is), leads a session of its own (Ctrl-C is kiln's to pass on, in order), and
 * runs PROGRAM. *was_child tells whether argv is such a line; then the result is the exit code. */
int up_launch_main(int argc, char **argv, bool *was_child);
enum { UP_LAUNCH_FAILED = 126, UP_LAUNCH_NO_PROGRAM = 127 };
