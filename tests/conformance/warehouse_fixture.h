/* Engines behind the warehouse interface for one suite: a private PostgreSQL, the twin in memory,
 * and DuckDB over a private folder. */
#pragma once
#include "common/warehouse/warehouse.h"
#include "common/warehouse/wh_duckdb.h"
#include "common/warehouse/wh_sim.h"
#include "tests/support/pg_server.h"
#include "tests/support/turn.h"
#include <check.h>

#define PATIENCE 120000 /* ms; only ends what hangs: busy machines are given their time */
#define turn_until(claim) turn_until_within(loop, PATIENCE, claim)

enum engine { ENGINE_POSTGRES, ENGINE_SIM, ENGINE_DUCKDB, ENGINE_N };
extern enum engine engine;
extern struct loop *loop;
extern struct wh *wh; /* a builder's connection */
extern struct arena arena;
extern struct pg_server server;
extern struct wh_sim *sim;
extern char database[32];

/* DuckDB's: what the tests look at from outside. */
extern struct duck_pool *duck_threads;
extern struct duck_instance *duck;
extern char duck_root[64];
#define DUCK_DATASET "mart"

void engine_start(enum engine e); /* an empty database with schema "mart" */
void engine_stop(void);
struct wh *connection_open(bool builder, unsigned sessions);
void connection_close(struct wh *w);

/* The world outside of Kiln. */
void put_table(const char *table, unsigned rows); /* mart.<table> */
void drop_table(const char *table);
long rows_of(const char *table);   /* -1: there is none */
void depend_on(const char *table); /* makes "view mart.<table>_v" */
void sql(const char *text);        /* PostgreSQL only */
const char *value(const char *text);

/* One operation, run to its end by `wait_for`. */
struct run {
    struct wh_op op;
    int dones;
};
void run_init(struct run *r, struct wh *w);
int wait_for(struct run *r);

extern const struct uuid us, them;
struct wh_table table_of(const char *table, const char *generation, const char *build_id);
/* A target to build with a token: by binding it has a generation of its own. */
struct wh_table staging_of(const char *table, uint64_t token);
/* The engine's name of a generation: as it is, or by binding the ULID made of its token. */
const char *generation_of(const char *name, uint64_t token);
int64_t time_of(uint64_t token); /* as a sweep understands it */
const char *series_type(void);   /* of generate_series */
const char *endless(void);       /* a statement that never ends by itself */
const char *count_of(const char *table);
/* Shorthands on `wh`; the run's facts stay readable. */
int do_build(struct run *r, const char *table, uint64_t token, const char *query);
int do_swap(struct run *r, const char *table, uint64_t token, const char *generation,
            bool take_over);
int do_resolve(struct run *r, const char *table, uint64_t token);
int do_drop(struct run *r, const char *table, uint64_t token);
int do_probe(struct run *r, const char *table, const char *generation);
/* Build of `rows` rows, build id "b1", and swap, or binding of it and all that was published
 * before; fails the test when they fail. */
void publish(const char *table, uint64_t token, const char *generation, unsigned rows);

struct sink_told {
    struct wh_sink sink;
    int columns, rows, stop_after;
    char first[32];
};
void sink_init(struct sink_told *s);

/* By binding: what publish has bound so far, and the epoch of it. */
extern struct wh_duckdb_binding duck_bindings[16];
extern size_t n_duck_bindings;
extern uint64_t duck_epoch;
extern uint64_t duck_resident; /* small results are read into memory when they are bound */
int duck_bind(struct run *r, uint64_t epoch);  /* duck_bindings, under an epoch */
int duck_run(const char *text, struct err *e); /* from outside, on the instance itself */
