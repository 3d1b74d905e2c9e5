/* A warehouse in memory for tests and the simulation: tables are row counts, fence rows are kept as
 * PostgreSQL keeps them; faults and delays are scripted on the loop's clock.
 *
 * Of SQL it understands as much as tests need: "generate_series(1, N)" is N rows, a quoted name
 * "s"."t" is that table's rows (or ERR_WH_MISSING), "count(*)" makes one row of them, "pg_sleep("
 * hangs until it is cancelled, "syntax error" is refused. */
#pragma once
#include "common/warehouse/warehouse.h"

struct wh_sim;
struct wh_sim *wh_sim_new(struct loop *l) MUST_USE;
void wh_sim_free(struct wh_sim *s); /* after the connections */
/* A connection to it; any number. wh_free as usual. */
struct wh *wh_sim_open(struct wh_sim *s) MUST_USE;

/* The world outside of Kiln. Schema "public" is there from the start and is the current one. */
void wh_sim_put_schema(struct wh_sim *s, const char *schema);
void wh_sim_put_table(struct wh_sim *s, const char *schema, const char *table, uint64_t rows);
void wh_sim_drop_table(struct wh_sim *s, const char *schema, const char *table);
/* Rows of a table; -1: there is none. */
int64_t wh_sim_rows(const struct wh_sim *s, const char *schema, const char *table);
/* Tables in all; staging ones included. */
size_t wh_sim_n_tables(const struct wh_sim *s);
/* A dependent ("view s.v") of a table; NULL: none any more. */
void wh_sim_depend(struct wh_sim *s, const char *schema, const char *table, const char *what);
/* A reader holds the table: swaps and drops wait, and give up at their timeout with
 * ERR_TARGET_BUSY. */
void wh_sim_lock(struct wh_sim *s, const char *schema, const char *table, bool locked);

/* What goes wrong with operations of a name ("swap", "build", ..). */
struct wh_sim_fault {
    int code;       /* they end with this */
    bool after;     /* but did their work before: the answer was lost */
    unsigned skip;  /* so many go well first */
    unsigned times; /* so many fail; 0: one */
};
void wh_sim_fault(struct wh_sim *s, const char *op, const struct wh_sim_fault *f);
void wh_sim_delay(struct wh_sim *s, const char *op,
                  struct ms delay);                            /* of every operation of the name */
uint64_t wh_sim_count(const struct wh_sim *s, const char *op); /* started so far */
