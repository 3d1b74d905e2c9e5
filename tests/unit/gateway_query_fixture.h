/* The query half between a real HTTP server and scripted neighbours: compiler, warehouse, binder,
 * connections. */
#pragma once
#include "http_client.h"
#include "services/gateway/query/query.h"

enum { ASKED_MAX = 8 };
struct asked { /* what the compiler was asked */
    char kind[16];
    size_t n_manifest, n_tables, n_sqls;
    bool offers_a, offers_b;
    char text[64];
};
struct gateway_fixture {
    struct gateway g;
    struct gw_worker w, other; /* on the main loop, both */
    bool closed_other;
    struct gw_settings set;
    struct loop *loop;
    struct http_server *server;
    struct gw_package package;
    struct gw_binding bindings[2];
    struct gw_source sources[2];
    struct client c;
    bool closed, over;
    /* the compiler: asks, and what it answers */
    struct asked asked[ASKED_MAX];
    size_t n_asked;
    struct compiler_call *held_call; /* while holds_compiler */
    bool holds_compiler;
    const char *error_code; /* it fails with this and problems */
    bool asks_needs;        /* the first check is answered with needs */
    unsigned row_limit;
    const char *team; /* query metadata of the source; NULL: none */
    /* the warehouse */
    struct wh wh;
    struct wh_op *held_op; /* while holds_warehouse, until it is cancelled */
    bool holds_warehouse;
    int query_rc; /* how the next queries end, so many times */
    unsigned query_fails;
    const char *query_text;
    bool receipts_agree;                   /* also when they fail */
    size_t n_rows;                         /* rows per query */
    unsigned n_queries, n_cancels, n_held; /* n_held: connections out */
    size_t last_n_baked;
    char last_tag[256], last_correlation[64], last_prepared[64];
    bool last_rolls_back;
    int connect_rc;
    /* the binder */
    char broken[64];
    unsigned n_broken;
};
extern struct gateway_fixture fx;
void fixture_open(void);
void fixture_shut(void);
void on_fixture_closed(struct gw_worker *w); /* of gw_query_close */
/* Sends a POST and waits for the answer; path: "query", "other" (a query of the other worker),
 * "compile", "sql", "test", "model". */
void fixture_send(struct client *c, const char *path, const char *headers, const char *body);
void fixture_ask(const char *path, const char *headers, const char *body);
void expect_answer(const char *text);
/* Nothing is held, running or counted any more. */
void expect_idle(void);
void fixture_release_call(void); /* answers the held compiler call */
