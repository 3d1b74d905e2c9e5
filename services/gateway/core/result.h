/* Publisher's two result shapes, written row by row from the warehouse's JSON rows. Pure.
 *
 * Everything is written as the inside of a JSON string: the `result` member of an answer is JSON
 * text in a JSON string, and each byte is escaped once, on its way from row to answer. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/err/err.h"

enum result_form {
    RESULT_FULL,    /* typed cells by position, as Malloy's stable result */
    RESULT_COMPACT, /* an array of plain row objects */
};
struct result_schema; /* immutable; shared by every query of one compiled text */

/* From the JSON of a stable result's schema.fields; lives in the arena. NULL with e set when it is
 * none. */
struct result_schema *result_schema_make(struct arena *a, struct slice fields_json,
                                         struct err *e) MUST_USE;

struct result_writer {
    const struct result_schema *schema;
    enum result_form form;
    struct buf *out;     /* borrowed; only grows */
    uint64_t rows;       /* written so far */
    struct slice *slots; /* own scratch: members of records that come in another order */
    bool *by_name;       /* own scratch: records found in another order already */
};
/* Between init and fini: begin, rows, end. The head is the full result's text up to its data, the
 * tail what follows it, both escaped already (result_escape); the compact form has neither. */
void result_writer_init(struct result_writer *w, const struct result_schema *schema,
                        enum result_form form, struct buf *out);
void result_writer_fini(struct result_writer *w);
void result_begin(struct result_writer *w, struct slice head);
/* One row: a JSON object as row_to_json prints it, in UTF-8. ERR_INTERNAL when it is none; what was
 * written of it then is of no use. Members are found by name; absent ones are null. */
int result_row(struct result_writer *w, struct slice row_json, struct err *e) MUST_USE;
void result_end(struct result_writer *w, struct slice tail);

/* Appends JSON text that is known to be well-formed as the inside of a JSON string. */
void result_escape(struct buf *out, struct slice json);
/* The same without white space between its tokens. */
void result_escape_compact(struct buf *out, struct slice json);
