/* A pool over the fake compiler child, and calls to it, for tests. */
#pragma once
#include "common/base/buf.h"
#include "common/compiler/compiler.h"
#include "tests/support/turn.h"
#include <check.h>

#define PATIENCE 20000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

struct pool_fixture {
    struct loop *loop;
    struct compiler_pool *pool;
    int ready_calls, down_calls; /* of on_ready */
    bool ready;
    char why[1024]; /* what the last on_ready said */
    bool closed;
};
struct question {
    struct compiler_call call;
    struct pool_fixture *pool;
    char text[128];     /* command of the fake */
    bool starting;      /* inside of compiler_call_start */
    int dones;          /* how often done was called */
    int order;          /* place among all that are done, from 1 */
    struct buf reply;   /* copied */
    char problem[1024]; /* err.text, copied */
    int rc;
    void (*then)(struct question *q); /* called at the end of done, or NULL */
};

/* Node, bundle and launcher of the test tree wherever `s` leaves them NULL. */
void pool_open(struct pool_fixture *f, struct compiler_settings s);
void pool_open_ready(struct pool_fixture *f, struct compiler_settings s);
void pool_shut(struct pool_fixture *f);
/* Starts a query whose text is the command; load_id may be NULL. */
void question_start(struct question *q, struct pool_fixture *f, const char *load_id,
                    struct ms timeout, const char *command);
/* The same, and waits for its end. Returns the answer's text, or the error's. */
const char *question_ask(struct question *q, struct pool_fixture *f, const char *load_id,
                         const char *command);
void question_fini(struct question *q);
/* Starts a "load" call. */
void question_load(struct question *q, struct pool_fixture *f, const char *load_id,
                   const char *package, struct ms timeout);
/* Keeps a load; the fake acts on the package's name. */
void pool_keep(struct pool_fixture *f, const char *load_id, const char *package);
int pool_child_pid(struct pool_fixture *f); /* of the child that answers now */
struct compiler_stats pool_stats(const struct pool_fixture *f);
