/* A database of its own for each test, planners on it, and calls that wait for their end. */
#pragma once
#include "services/planner/store/store.h"
#include "tests/support/pg_server.h"
#include "tests/support/turn.h"
#include <check.h>

#define PATIENCE 20000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

struct planner_peer { /* one planner, on a loop of its own, so that it can be held still */
    struct loop *loop;
    struct store *s;
    int leaders, losts, lost_code;
    uint64_t term;
    bool is_up, heard;
    char why[ERR_TEXT_MAX];
};
extern struct pg_server server;
extern struct arena arena; /* of the test */
extern struct planner_peer one, two;

void fresh_database(void);
void end_database(void); /* closes peers that are still open */
void peer_open(struct planner_peer *p, const char *instance, int renew_ms, int takeover_ms);
void peer_lead(struct planner_peer *p); /* waits until it leads */
void peer_close(struct planner_peer *p);
void sql(const char *text);
const char *value(const char *text); /* first value, in the arena */

/* Waits for an op of peer `one`: `struct store_op *op = op_new(); store_x(one.s, op, ..);
 * op_wait(op);` gives its rc. */
struct store_op *op_new(void);
int op_wait(struct store_op *op);
int op_wait_on(struct planner_peer *p, struct store_op *op);
int commit(const struct rows *rows);
struct rows rows_new(void);
uint64_t make_unit(const char *environment, const char *name); /* through the store */
uint64_t make_load(uint64_t unit);

TCase *leader_case(void);
TCase *coord_case(void);
TCase *records_case(void);
