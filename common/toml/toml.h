/* TOML documents as a flat list of values with places; toml++ stays behind toml_shim.cpp. */
#pragma once
#include "common/base/arena.h"
#include "common/err/err.h"

enum toml_kind { TOML_TABLE, TOML_ARRAY, TOML_STRING, TOML_INT, TOML_FLOAT, TOML_BOOL, TOML_OTHER };
struct toml_item {
    const char *
        path; /* "server.listen", array members by index: "dataset.0.name"; keys with dots quoted */
    enum toml_kind kind;
    const char *text; /* strings */
    int64_t i;        /* ints; bools 0/1; arrays: length */
    double d;
    int line, column; /* 1-based */
};
struct toml_doc {
    struct toml_item
        *items; /* values of a table by key, then its tables in file order; no item for the root */
    size_t n;
};
/* Parses text; everything in doc lives in the arena. ERR_CONF_SYNTAX with line and column in e.
 * A string that holds a NUL is refused. */
int toml_parse(struct arena *a, struct slice text, struct toml_doc *doc, struct err *e) MUST_USE;
const struct toml_item *toml_find(const struct toml_doc *doc, const char *path);
