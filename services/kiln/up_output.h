/* Lines of children on our standard error: whole, and never at the price of the loop. */
#pragma once
#include "common/base/slice.h"

/* Writes line and a line end. A reader who does not read loses lines (their number is told later)
 * and does not stop kiln up. */
void up_output_line(struct slice line);
