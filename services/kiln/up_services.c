/* Command lines and environments of the children. Secrets go through the environment only: command
 * lines can be read by everybody on the machine. */
#include "services/kiln/up.h"
#include <stdio.h>
#include <unistd.h>

extern char **environ;

/* What kiln up decides itself, and secrets that not every child needs. */
static const char *const withheld[] = {
    "INITIALIZE_STORAGE", "PUBLISHER_WATCH",     "PUBLISHER_CONFIG_PATH",
    "KILN_INSTANCE",      "KILN_LISTEN",         "KILN_BUS_CALL",
    "KILN_BUS_EVENT",     "KILN_STORE_URL",      "KILN_REDIS",
    "KILN_SECRET_KEY",    "KILN_WEBHOOK_SECRET", "KILN_WEBHOOK_LISTEN",
    "KILN_STATE_DIR",     "KILN_PACKAGE_STORE",  "KILN_GENERATION_ROOT",
    "KILN_HEALTH_LISTEN", "KILN_LOG_LEVEL",      "KILN_LOG_FORMAT",
    "KILN_NODE",          "KILN_COMPILER",       "KILN_TRUSTED_NETWORK"};

static bool is_withheld(const char *entry)
{
    const char *eq = strchr(entry, '=');
    struct slice name = eq ? slice_make(entry, (size_t)(eq - entry)) : slice_of(entry);
    for (size_t i = 0; i < ARRAY_LEN(withheld); i++) {
        if (slice_is(name, withheld[i])) {
            return true;
        }
    }
    return false;
}

/* A configuration file named relative to our directory is not found from the children's. */
static char *absolute_config(struct up *u, char *entry)
{
    static const char name[] = "KILN_CONFIG=";
    char real[PATH_MAX];
    bool is_config = strncmp(entry, name, sizeof(name) - 1) == 0;
    return is_config && realpath(entry + sizeof(name) - 1, real)
               ? arena_printf(&u->arena, "%s%s", name, real)
               : entry;
}

char **up_environment(struct up *u, const char *const *more)
{
    size_t n = 0, m = 0, at = 0;
    while (environ[n]) {
        n++;
    }
    while (more[m]) {
        m++;
    }
    char **out = arena_alloc(&u->arena, (n + m + 1) * sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        if (!is_withheld(environ[i])) {
            out[at++] = absolute_config(u, environ[i]);
        }
    }
    for (size_t i = 0; i < m; i++) {
        out[at++] = arena_strdup(&u->arena, more[i]);
    }
    out[at] = NULL;
    return out;
}

/* ---- command lines ---- */
struct line {
    struct up *u;
    char **words;
    size_t n, cap;
};

static void add(struct line *l, const char *word)
{
    must(l->n + 1 < l->cap);
    l->words[l->n++] = arena_strdup(&l->u->arena, word);
    l->words[l->n] = NULL;
}

static void add_pair(struct line *l, const char *flag, const char *value)
{
    add(l, arena_printf(&l->u->arena, "%s=%s", flag, value));
}

static const char *in_run(struct up *u, const char *scheme, const char *name)
{
    return arena_printf(&u->arena, "%s%s/%s", scheme, u->run, name);
}

static struct line begin(struct up *u, const char *program, const char *instance)
{
    struct line l = {.u = u, .words = arena_alloc(&u->arena, 40 * sizeof(char *)), .cap = 40};
    const char *form = u->set->log_format;
    bool on_terminal = isatty(STDERR_FILENO); /* they write to a pipe of ours and cannot tell */
    add(&l, arena_printf(&u->arena, "%s/%s", u->bin_dir, program));
    add_pair(&l, "--instance", instance);
    add_pair(&l, "--log-level", u->set->log_level);
    add_pair(&l, "--log-format", strcmp(form, "auto") != 0 ? form : on_terminal ? "text" : "json");
    add_pair(&l, "--bus-call", in_run(u, "ipc://", "call"));
    add_pair(&l, "--bus-event", in_run(u, "ipc://", "event"));
    return l;
}

static void add_compiler(struct line *l)
{
    add_pair(l, "--node", l->u->node);
    add_pair(l, "--compiler", l->u->compiler);
}

static char *named(struct up *u, const char *name, const char *value)
{
    return arena_printf(&u->arena, "%s=%s", name, value);
}

/* What packages on DuckDB need: their data files, and where results are built. */
static void add_duckdb(struct line *l)
{
    add_pair(l, "--package-store", arena_printf(&l->u->arena, "%s/package_store", l->u->state));
    add_pair(l, "--generation-root", arena_printf(&l->u->arena, "%s/generations", l->u->state));
}

static void init_planner(struct up *u)
{
    struct up_child *c = &u->planner;
    struct line l = begin(u, "kiln-planner", "planner-1");
    up_child_init(c, u, "planner-1");
    add_compiler(&l);
    add_pair(&l, "--webhook-listen",
             u->webhook_port ? arena_printf(&u->arena, "127.0.0.1:%d", u->webhook_port)
                             : in_run(u, "unix:", "planner-1.ctl"));
    add_pair(&l, "--publisher-config", u->config);
    add_pair(&l, "--package-store", arena_printf(&u->arena, "%s/package_store", u->state));
    if (u->set->watch_env[0]) {
        add_pair(&l, "--watch-env", u->set->watch_env);
    }
    if (u->set->init) {
        /* Once: a planner that is started again must not empty what was stored since. */
        c->argv_again = arena_dup(&u->arena, l.words, l.cap * sizeof(*l.words));
        add(&l, "--init");
    }
    const char *secret = getenv("KILN_WEBHOOK_SECRET");
    const char *more[4] = {
        named(u, "KILN_SECRET_KEY", u->secret_key),
        named(u, "KILN_STORE_URL", u->has_postgres ? up_postgres_url(u) : u->set->store)};
    more[2] = secret && secret[0] ? named(u, "KILN_WEBHOOK_SECRET", secret) : NULL;
    c->argv = l.words;
    c->env = up_environment(u, more);
}

static void init_builder(struct up *u, struct up_child *c, size_t number)
{
    const char *name = arena_printf(&u->arena, "builder-%zu", number);
    struct line l = begin(u, "kiln-builder", name);
    up_child_init(c, u, name);
    add_pair(&l, "--health-listen", in_run(u, "unix:", arena_printf(&u->arena, "%s.ctl", name)));
    add_duckdb(&l);
    add_pair(&l, "--state-dir", arena_printf(&u->arena, "%s/builders", u->state));
    const char *more[] = {named(u, "KILN_SECRET_KEY", u->secret_key), NULL};
    c->argv = l.words;
    c->env = up_environment(u, more);
}

static void init_gateway(struct up *u)
{
    struct up_child *c = &u->gateway;
    struct line l = begin(u, "kiln-gateway", "gateway-1");
    bool is_v6 = strchr(u->set->host, ':') != NULL;
    up_child_init(c, u, "gateway-1");
    add_compiler(&l);
    add_pair(&l, "--listen",
             arena_printf(&u->arena, is_v6 ? "[%s]:%d" : "%s:%d", u->set->host, (int)u->set->port));
    add_pair(&l, "--state-dir", arena_printf(&u->arena, "%s/gateway", u->state));
    add_duckdb(&l);
    if (u->set->trusted_network) {
        add(&l, "--trusted-network");
    }
    const char *redis = u->has_redis ? in_run(u, "unix:", "r") : u->set->redis;
    const char *more[] = {named(u, "KILN_SECRET_KEY", u->secret_key), named(u, "KILN_REDIS", redis),
                          NULL};
    c->argv = l.words;
    c->env = up_environment(u, more);
}

static void init_redis(struct up *u)
{
    static const char *const flags[] = {
        "--port",     "0",       "--unixsocketperm", "700", "--save",    "", "--appendonly", "no",
        "--loglevel", "warning", "--daemonize",      "no",  "--logfile", "", "--databases",  "1"};
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C",
                                              NULL};
    struct up_child *c = &u->redis;
    struct line l = {.u = u, .words = arena_alloc(&u->arena, 40 * sizeof(char *)), .cap = 40};
    up_child_init(c, u, "redis");
    add(&l, "/usr/bin/env"); /* finds it on PATH; becomes it */
    add(&l, "redis-server");
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        add(&l, flags[i]);
    }
    add(&l, "--unixsocket");
    add(&l, in_run(u, "", "r"));
    add(&l, "--dir");
    add(&l, u->run);
    c->argv = l.words;
    c->env = arena_dup(&u->arena, environment, sizeof(environment));
    c->log_path = arena_printf(&u->arena, "%s/redis.log", u->state);
}

void up_add(struct up *u, struct up_child *c)
{
    must(u->n_all < ARRAY_LEN(u->all));
    u->all[u->n_all++] = c;
}

void up_services_init(struct up *u)
{
    if (u->has_redis) {
        init_redis(u);
        up_add(u, &u->redis);
    }
    init_gateway(u);
    up_add(u, &u->gateway);
    init_planner(u);
    up_add(u, &u->planner);
    u->n_builders = (size_t)u->set->builders;
    u->builders = arena_zalloc(&u->arena, u->n_builders * sizeof(*u->builders));
    for (size_t i = 0; i < u->n_builders; i++) {
        init_builder(u, &u->builders[i], i + 1);
        up_add(u, &u->builders[i]);
    }
}
