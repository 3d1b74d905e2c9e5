/* A process's sandboxes in a directory of their own, driven to the end of each question. */
#pragma once
#include "common/sandbox/sandbox.h"

enum { PATIENCE_MS = 20000 };
struct fx {
    struct loop *loop;
    struct sandboxes *set;
    char base[64], store[80], root[80], dir[80];
    struct arena arena;
    struct sandbox_file files[4];
    size_t n;
    bool closed;
};
extern struct fx f;

void sandbox_setup(void);
void sandbox_teardown(void);
void turn_until(const bool *what);
char *in(const char *dir, const char *name);
void write_text(const char *path, const char *text);
void add_file(const char *path, const char *text); /* into the package store, as the planner does */

struct asked {
    struct sandbox_get get;
    bool is_done;
};
void ask(struct asked *a, const char *version);
void asked_start(struct asked *a); /* of a->get, but for its end */
struct sandbox *get(const char *version);
struct sandbox *asked_box(struct asked *a); /* waits */
/* Number of columns of a table path; 0 and why when it has none. */
int columns_of(struct sandbox *b, const char *path, const char **why);
/* The operation's own end, for what says nothing of the table. */
int refusal_of(struct sandbox *b, const char *path, struct err *e);
