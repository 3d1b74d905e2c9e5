/* Inside of result: the schema as the writer walks it. */
#pragma once
#include "services/gateway/core/result.h"

enum result_kind {
    RESULT_STRING,
    RESULT_BOOLEAN,
    RESULT_NUMBER,
    RESULT_BIGINT,
    RESULT_DATE,
    RESULT_TIMESTAMP,
    RESULT_JSON,
    RESULT_NATIVE, /* also every type that this version does not know */
    RESULT_ARRAY,
    RESULT_RECORD,
    RESULT_KINDS
};
struct result_type {
    enum result_kind kind;
    struct slice after_number;   /* numbers, full form: what follows the value: ,"subtype":".." */
    struct result_type *element; /* of arrays */
    struct result_field *fields; /* of records */
    size_t n_fields;
    size_t first_slot; /* records: where their fields begin in the writer's slots */
    size_t number;     /* records: their place in the writer's by_name */
};
struct result_field {
    struct slice key;   /* between the quotes, as PostgreSQL escapes it */
    struct slice label; /* compact form: "name": */
    struct result_type type;
};
struct result_schema {
    struct result_type row; /* a record */
    size_t n_slots, n_records;
};

/* Escapes JSON text `level` times over: 1 inside of a string, 2 inside of a string in a string. */
void result_escape_at(struct buf *out, struct slice json, int level);
