/* Scripted twin of a PostgreSQL server: a pool whose statements are answered by a function of the
 * test. */
#pragma once
#include "common/pgc/pgc.h"

/* What one statement is answered with. Everything is copied when the function has returned. */
struct pgc_sim_answer {
    const char *const *col_names; /* n_cols of them; NULL: "c1", "c2", .. */
    const uint32_t *col_types;    /* n_cols of them; NULL: text */
    size_t n_cols;
    const char *const *cells; /* n_rows * n_cols, row by row; NULL = SQL NULL */
    size_t n_rows;
    uint64_t affected;    /* 0: n_rows */
    struct ms delay;      /* before the answer, on the loop's clock */
    const char *sqlstate; /* an error when not NULL */
    const char *text;     /* of the error */
    bool hangs;           /* answers only a cancel request (57014) */
    bool ignores_cancel;  /* not even that */
    bool breaks;          /* the connection is lost instead of an answer */
};
struct pgc_sim {
    /* Called for each statement when it runs, set-up and tidying included; `a` comes zeroed. */
    void (*answer)(struct pgc_sim *sim, const struct pgc_stmt *stmt, struct pgc_sim_answer *a);
    void *data;
    const char *refuse_sqlstate; /* not NULL: sessions are refused with it ("" : not reachable) */
    unsigned opened;             /* sessions so far */
    unsigned cancels;            /* cancel requests so far */
};
/* A pool over `sim`, which outlives it. Settings as for pgc_pool_new; conninfo is not looked at. */
struct pgc_pool *pgc_sim_pool_new(struct loop *l, const struct pgc_settings *s,
                                  struct pgc_sim *sim) MUST_USE;
/* The server closes every session that runs nothing. */
void pgc_sim_drop_idle(struct pgc_pool *p);
