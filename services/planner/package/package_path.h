/* Paths inside a package: which are allowed, which are skipped, and what a file is by its name. */
#pragma once
#include "common/base/slice.h"

enum package_kind {
    PACKAGE_MODEL, /* .malloy, .malloynb: always held in memory */
    PACKAGE_JSON,  /* .json */
    PACKAGE_DATA,  /* .parquet .csv .ndjson .xlsx */
    PACKAGE_OTHER,
};

/* NULL when the path may stand in a package, else what is wrong with it ("is an absolute path"):
 * relative, '/' separated, valid UTF-8 without control characters and backslashes, no empty, `.` or
 * `..` segment. */
const char *package_path_fault(struct slice path) MUST_USE;
/* A segment starts with a dot, or is what macOS leaves in archives. Of a path without fault. */
bool package_path_hidden(struct slice path);
enum package_kind package_kind_of(struct slice path);
/* Readable in place by models: data files, and .json other than publisher.json at the root. */
bool package_is_data(struct slice path);
