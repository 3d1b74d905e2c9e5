/* Opening and closing a PostgreSQL connection; its table of operations. */
#include "common/warehouse/wh_postgres.h"
#include "common/warehouse/wh_config.h"

#include <stdio.h>

static void pg_close(struct wh *wh, void (*done)(void *data), void *data);

static void pg_free(struct wh *wh)
{
    struct wh_pg *pg = wh->impl;
    must(pg->ops == 0);
    pgc_pool_free(pg->pool);
    wh_pg_types_fini(pg);
    free(pg->name);
    free(pg);
}

static const struct wh_ops ops = {
    .name = "postgres",
    .cls = WH_CLASS_IN_PLACE,
    .caps = WH_CAN_RESOLVE | WH_CAN_RECEIPT,
    .test = wh_pg_test,
    .catalog_tables = wh_pg_catalog_tables,
    .catalog_targets = wh_pg_catalog_targets,
    .describe = wh_pg_describe,
    .probe = wh_pg_probe,
    .build = wh_pg_build,
    .resolve = wh_pg_resolve,
    .swap = wh_pg_swap,
    .drop = wh_pg_drop,
    .discard = wh_pg_discard,
    .sweep = wh_pg_sweep,
    .query = wh_pg_query,
    .cancel = wh_pg_cancel,
    .progress = wh_pg_progress,
    .close = pg_close,
    .free = pg_free,
};

static void close_pool(struct wh_pg *pg)
{
    pgc_pool_close(pg->pool, pg->on_closed, pg->closed_data);
}

void wh_pg_op_ended(struct wh_pg *pg)
{
    pg->ops--;
    if (pg->closing && pg->ops == 0) {
        close_pool(pg);
    }
}

static void pg_close(struct wh *wh, void (*done)(void *data), void *data)
{
    struct wh_pg *pg = wh->impl;
    must(!pg->closing);
    pg->closing = true;
    pg->on_closed = done;
    pg->closed_data = data;
    if (pg->ops == 0) {
        close_pool(pg);
    }
}

/* What answers depend on is set alike in every session (decisions 4.6). search_path stays the
 * connection's own. */
static const char *const common_setup[] = {
    "SET application_name = 'kiln'",
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET IntervalStyle = 'postgres'",
    "SET extra_float_digits = 1",
    "SET bytea_output = 'hex'",
    "SET standard_conforming_strings = on",
    "SET client_encoding = 'UTF8'",
    /* Only our own catalog statements have parameters: they are planned once. */
    "SET plan_cache_mode = force_generic_plan",
};
/* A builder that is paused or gone must not hold the fence row (protocol.md 3).
 * client_connection_check_interval is not known before PostgreSQL 14. */
static const char *const builder_setup[] = {
    "SET idle_in_transaction_session_timeout = '10s'",
    "SET tcp_keepalives_idle = 5",
    "SET tcp_keepalives_interval = 2",
    "SET tcp_keepalives_count = 3",
    "SELECT set_config(name, '1s', false) FROM pg_settings WHERE name = "
    "'client_connection_check_interval'",
};
#define SETUP_MAX (ARRAY_LEN(common_setup) + ARRAY_LEN(builder_setup) + 2)

static void fill_setup(const struct wh_settings *s, char *timeout, size_t timeout_cap,
                       const char *setup[SETUP_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(common_setup); i++) {
        setup[n++] = common_setup[i];
    }
    for (size_t i = 0; s->builder && i < ARRAY_LEN(builder_setup); i++) {
        setup[n++] = builder_setup[i];
    }
    if (s->statement_timeout.v > 0) {
        snprintf(timeout, timeout_cap, "SET statement_timeout = %lld",
                 (long long)s->statement_timeout.v);
        setup[n++] = timeout;
    }
    setup[n] = NULL;
}

int wh_postgres_open(struct loop *l, const struct wh_settings *s, struct wh **out, struct err *e)
{
    struct arena a;
    arena_init(&a);
    const char *conninfo = NULL;
    int rc = wh_config_conninfo(&a, s->name, s->config_json, &conninfo, e);
    if (rc < 0) {
        arena_fini(&a);
        return rc;
    }
    char timeout[64];
    const char *setup[SETUP_MAX];
    fill_setup(s, timeout, sizeof timeout, setup);
    struct wh_pg *pg = xcalloc(1, sizeof *pg);
    pg->base = (struct wh){.ops = &ops, .impl = pg};
    pg->loop = l;
    pg->name = xstrdup(s->name);
    wh_pg_types_init(pg);
    const char **secrets = wh_secrets(&a, s->config_json);
    pg->pool = pgc_pool_new(l, &(struct pgc_settings){
                                   .conninfo = conninfo,
                                   .max = s->sessions,
                                   .setup = setup,
                                   .what = arena_printf(&a, "connection '%s'", s->name),
                                   .secret = secrets[0],
                               });
    arena_fini(&a);
    *out = &pg->base;
    return 0;
}

/* ---- test: one round trip ---- */

enum { TEST_HELLO, TEST_END };

static enum flow_next step_hello(struct flow *f)
{
    struct wh_pg_op *o = wh_pg_op_of(f);
    if (f->entered) {
        wh_pg_add(o, "SELECT 1");
        return wh_pg_run(o);
    }
    return wh_pg_failed(o, TEST_END) ? FLOW_AGAIN : flow_goto(f, TEST_END);
}

static const struct flow_step test_steps[] = {
    {.name = "HELLO",
     .run = step_hello,
     .to = FLOW_TO(TEST_END),
     .cancel = wh_pg_cancel_wait,
     .says = "connect and say hello"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type test_flow = {"wh_test", test_steps, ARRAY_LEN(test_steps)};

void wh_pg_test(struct wh_op *op)
{
    (void)!wh_pg_op_start(op, sizeof(struct wh_pg_op), &test_flow, MS(10000));
}
