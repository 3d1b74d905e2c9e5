/* Packages on their way in: reading a location or an archive into files, with every limit and
 * refusal (issue: "an archive with `..`, a link or a bomb in it"). Pure functions for the offload
 * pool; nothing here touches the loop. */
#pragma once
#include "common/base/arena.h"
#include "common/base/crypto.h"
#include "common/err/err.h"

struct package_file {
    const char *path;     /* relative, '/' separated, checked */
    struct slice content; /* small files (<= small_bytes) and every .malloy, .malloynb and .json; p
                             NULL for stored data files */
    uint64_t bytes;
    struct sha256 sha256;
    bool is_data;
};
struct package_files {
    struct package_file *items;
    size_t n;
    struct sha256 version; /* over the sorted paths, sizes and hashes */
    const char *manifest;  /* text of publisher.json; NULL: none (not a package) */
};
struct package_limits {   /* 0: the default */
    uint64_t small_bytes; /* 1 MiB; .malloy, .malloynb and .json are held up to 16 MiB, then refused
                             or (.json) stored */
    uint64_t archive_bytes;    /* unpacked total; 1 GiB */
    uint64_t archive_ratio;    /* unpacked/packed; 200 */
    uint32_t files;            /* 10,000 */
    const char *package_store; /* directory for data files by content hash (package_store_path);
                                  NULL: large files are refused */
};
/* Where a large file lies: <package_store>/<first two digits>/<64 hex digits>. */
const char *package_store_path(struct arena *a, const char *package_store, const struct sha256 *id);
/* A directory, read recursively; links that leave it, devices and sockets are refused. Hidden files
 * are skipped. */
int package_read_dir(struct arena *a, const char *dir, const struct package_limits *lim,
                     struct package_files *out, struct err *e) MUST_USE;
/* zip or tar.gz bytes. One top-level directory in it is taken off. `..`, absolute paths, links,
 * devices, bombs: ERR_ARCHIVE naming the entry. */
int package_read_archive(struct arena *a, struct slice bytes, const struct package_limits *lim,
                         struct package_files *out, struct err *e) MUST_USE;
/* What package_location gave: a directory, or an archive in one file (at most 1 GiB). */
int package_read_local(struct arena *a, const char *path, const struct package_limits *lim,
                       struct package_files *out, struct err *e) MUST_USE;
/* Location text -> what it is: local path made absolute against base_dir (./ ../ ~/ /), or a
 * sentence why not (remote, bare word). */
int package_location(struct arena *a, const char *location, const char *base_dir, char **path,
                     bool *is_archive, struct err *e) MUST_USE;

/* publisher.config.json: environments with packages, connections and destinations; ${NAME} replaced
 * (an unset variable is an error naming it). */
struct config_package {
    const char *name, *location;
};
struct config_connection {
    const char *name, *type, *json;
};
struct config_environment {
    const char *name, *readme;
    struct config_package *packages;
    size_t n_packages;
    struct config_connection *connections;
    size_t n_connections;
    struct config_connection *destinations;
    size_t n_destinations;
};
struct publisher_config {
    bool frozen;
    struct config_environment *environments;
    size_t n;
    const char *const *warnings;
    size_t n_warnings; /* "projects" spelling, duplicate names, dropped entries */
    const char *base_dir;
};
int publisher_config_parse(struct arena *a, struct slice text, const char *base_dir,
                           const char *(*getenv_fn)(const char *), struct publisher_config *out,
                           struct err *e) MUST_USE;

/* Signatures of publish webhooks (decisions 3.6, 7.5). now_unix in seconds. 0, ERR_TOKEN,
 * ERR_STALE; *id gets the delivery id. */
struct webhook_headers {
    struct slice id, timestamp, signature, github_signature, github_delivery, github_event;
};
int webhook_verify(const char *secret, const struct webhook_headers *h, struct slice body,
                   int64_t now_unix, struct slice *id, struct err *e) MUST_USE;
