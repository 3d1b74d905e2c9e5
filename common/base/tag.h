/* Query metadata as a statement carries it (spec/malloy-persistence.md 5.8): which properties may
 * be said, and how they look inside of a SQL comment. Pure. */
#pragma once
#include "common/base/buf.h"

enum { TAG_PROPERTIES_MAX = 20 };

/* What is wrong with a declared property; NULL: nothing. value NULL: it is no string. */
const char *tag_problem(const char *key, const char *value);
/* Appends key="value", after a comma unless out is empty. A value of the server's own making may
 * hold anything: what a comment could not is replaced. */
void tag_add(struct buf *out, const char *key, const char *value);
