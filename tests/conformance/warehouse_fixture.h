/* Engines behind the warehouse interface for one suite: a private PostgreSQL, and the twin in
 * memory. */
#pragma once
#include "common/warehouse/warehouse.h"
#include "common/warehouse/wh_sim.h"
#include "tests/support/pg_server.h"
#include "tests/support/turn.h"
#include <check.h>

#define PATIENCE 30000 /* ms a test waits for a condition before it fails */
#define turn_until(claim) turn_until_within(loop, PATIENCE, claim)

enum engine { ENGINE_POSTGRES, ENGINE_SIM, ENGINE_N };
extern enum engine engine;
extern struct loop *loop;
extern struct wh *wh; /* a builder's connection */
extern struct arena arena;
extern struct pg_server server;
extern struct wh_sim *sim;
extern char database[32];

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
/* Shorthands on `wh`; the run's facts stay readable. */
int do_build(struct run *r, const char *table, uint64_t token, const char *query);
int do_swap(struct run *r, const char *table, uint64_t token, const char *generation,
            bool take_over);
int do_resolve(struct run *r, const char *table, uint64_t token);
int do_drop(struct run *r, const char *table, uint64_t token);
int do_probe(struct run *r, const char *table, const char *generation);
/* Build and swap of `rows` rows, build id "b1"; fails the test when they fail. */
void publish(const char *table, uint64_t token, const char *generation, unsigned rows);

struct sink_told {
    struct wh_sink sink;
    int columns, rows, stop_after;
    char first[32];
};
void sink_init(struct sink_told *s);

void add_postgres_tests(Suite *s); /* warehouse_postgres_test.c */
void add_carry_tests(Suite *s);    /* warehouse_carry_test.c */
