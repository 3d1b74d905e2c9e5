/* Rows of a query's answer, read as text: numbers keep every digit they came with. */
#pragma once
#include "services/kiln/table.h"

/* text: a JSON array of flat or nested objects (compact result). The first row's members are the
 * columns, members of later rows are found by name. Strings are shown bare, nested values as JSON.
 * 0 with t initialised (table_fini it), or -1 when text is no such array. *n: rows. */
int rows_table(struct slice text, struct table *t, size_t *n) MUST_USE;
