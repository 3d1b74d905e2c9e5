/* Cuts a file of SQL into its statements: the extended protocol takes one at a time. Knows '..',
 * "..", $$..$$ and -- comments. */
#pragma once
#include "common/base/slice.h"

/* The next statement, without its semicolon and the blanks around it. False when none is left. */
bool sql_next(struct slice *rest, struct slice *stmt);
