/* Temporary directories and archives for the tests of packages. */
#pragma once
#include "services/planner/package/package.h"

struct fixture {
    struct arena arena;
    char dir[64];   /* fresh directory */
    char store[80]; /* empty package store inside a sibling */
    struct package_limits lim;
    struct package_files out;
    struct err err;
};
extern struct fixture fx;
void fixture_up(void);
void fixture_down(void);
void write_file(const char *path, const char *text);  /* below fx.dir, directories made */
const char *at(const char *path);                     /* fx.dir/path in the arena */
const struct package_file *file_of(const char *path); /* of fx.out; NULL: not there */
size_t entries_in(const char *dir);                   /* everything but . and .. */

struct packed; /* an archive being written */
struct packed *pack_zip(void);
struct packed *pack_tar_gz(void);
void pack_text(struct packed *p, const char *path, const char *text);
void pack_zeros(struct packed *p, const char *path, size_t n);
void pack_link(struct packed *p, const char *path, const char *to, bool hard);
void pack_fifo(struct packed *p, const char *path);
void pack_dir(struct packed *p, const char *path);
struct slice pack_end(struct packed *p); /* in the arena */
