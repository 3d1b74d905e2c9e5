/* Before anything is started: programs, directories, the lock, ports. Every refusal is one
 * sentence. */
#include "common/log/log.h"
#include "services/kiln/up.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* On PATH; NULL when it is not there. */
static char *on_path(struct arena *a, const char *name)
{
    const char *path = getenv("PATH");
    struct slice rest = slice_of(path ? path : "/usr/local/bin:/usr/bin:/bin"), dir;
    while (slice_cut(&rest, ':', &dir)) {
        char *full = arena_printf(a, "%.*s/%s", SLICE_FMT(dir), name);
        if (dir.len && dir.p[0] == '/' && is_program(full)) {
            return full;
        }
    }
    return NULL;
}

static const char *own_dir(struct arena *a, const char *given)
{
    char path[PATH_MAX];
    if (given[0]) {
        char *real = realpath(given, path);
        return arena_strdup(a, real ? real : given);
    }
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    must(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    return arena_strdup(a, path);
}

/* Children work in another directory than we do. Links stay: what starts Node.js may be a link to a
 * program that goes by its own name. */
static const char *absolute(struct arena *a, const char *path)
{
    char cwd[PATH_MAX];
    return path[0] != '/' && getcwd(cwd, sizeof(cwd)) ? arena_printf(a, "%s/%s", cwd, path) : path;
}

static const char *find_node(struct up *u)
{
    const char *given = u->set->node;
    const char *beside = arena_printf(&u->arena, "%s/node", u->bin_dir);
    if (given[0]) {
        return strchr(given, '/') ? absolute(&u->arena, given) : on_path(&u->arena, given);
    }
    return is_program(beside) ? beside : on_path(&u->arena, "node");
}

static int find_programs(struct up *u, struct err *e)
{
    static const char *const names[] = {"kiln-planner", "kiln-builder", "kiln-gateway"};
    struct arena *a = &u->arena;
    u->bin_dir = own_dir(a, u->set->bin_dir);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!is_program(arena_printf(a, "%s/%s", u->bin_dir, names[i]))) {
            return err_set(e, ERR_CONF,
                           "the program %s is not in %s; build it, or name its directory with "
                           "--bin-dir",
                           names[i], u->bin_dir);
        }
    }
    u->node = find_node(u);
    if (!u->node || !is_program(u->node)) {
        return err_set(e, ERR_CONF,
                       "Node.js (%s) is neither in %s nor on PATH; install Node.js >= 20, or name "
                       "it with --node",
                       u->set->node[0] ? u->set->node : "node", u->bin_dir);
    }
    u->compiler =
        u->set->compiler[0] ? u->set->compiler : arena_printf(a, "%s/kiln-compiler.js", u->bin_dir);
    char real[PATH_MAX];
    if (!realpath(u->compiler, real)) {
        return err_set(e, ERR_CONF,
                       "the compiler bundle %s is not there; build it, or name it with --compiler",
                       u->compiler);
    }
    u->compiler = arena_strdup(a, real);
    if (u->has_redis && !on_path(a, "redis-server")) {
        return err_set(e, ERR_CONF,
                       "redis-server is not on PATH; install Redis, or name one with --redis");
    }
    return 0;
}

/* ---- configuration file ---- */
static int find_config(struct up *u, struct err *e)
{
    char real[PATH_MAX];
    const char *given = u->set->config;
    char *found = arena_printf(&u->arena, "%s/publisher.config.json", u->root);
    if (!given[0]) {
        u->config = access(found, R_OK) == 0 ? found : "";
        if (!u->config[0]) {
            log_info("up.no_config", "looked_for=%s", log_q(found));
        }
        return 0;
    }
    struct stat st;
    if (!realpath(given, real) || stat(real, &st) || access(real, R_OK)) {
        return err_set(e, ERR_CONF,
                       "cannot read the configuration %s: %s; name another with --config", given,
                       strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(e, ERR_CONF, "the configuration %s is no file; name one with --config",
                       given);
    }
    u->config = arena_strdup(&u->arena, real);
    return 0;
}

/* ---- addresses ---- */
static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
           strcmp(host, "::1") == 0;
}

static int check_addresses(struct up *u, struct err *e)
{
    const struct up_settings *s = u->set;
    u->webhook_port = (int)(s->webhook_port < 0 ? s->port + 10 : s->webhook_port);
    if (u->webhook_port > 65535 || u->webhook_port == s->port) {
        return err_set(e, ERR_CONF,
                       "webhook port %d cannot be used beside port %d; give another "
                       "with --webhook-port",
                       u->webhook_port, (int)s->port);
    }
    if (!is_loopback(s->host) && !s->trusted_network) {
        return err_set(e, ERR_CONF,
                       "--host %s is not on loopback, where anybody may ask without a key; say "
                       "--trusted-network (KILN_TRUSTED_NETWORK=true) on a closed network, or stay "
                       "on 127.0.0.1",
                       s->host);
    }
    int rc = up_check_port(s->host, (int)s->port, "--port", e);
    if (rc == 0 && u->webhook_port) {
        rc = up_check_port("127.0.0.1", u->webhook_port, "--webhook-port", e);
    }
    return rc;
}

/* ---- directories ---- */
static int open_state(struct up *u, struct err *e)
{
    struct up_user pg = u->has_postgres ? u->pg.user : (struct up_user){0};
    int rc = up_state_open(u->set->server_root, pg.name != NULL, u->state, e);
    if (rc) {
        return rc;
    }
    must(realpath(u->set->server_root, u->root));
    rc = up_lock(u->state, u->root, &u->lock_fd, e);
    if (rc == 0 && pg.name) {
        rc = up_check_searchable(u->state, &pg, e);
    }
    if (rc == 0) {
        rc = up_run_open(getenv("XDG_RUNTIME_DIR"), u->state, &pg, u->run, e);
    }
    return rc;
}

static int open_parts(struct up *u, struct err *e)
{
    static const char *const dirs[] = {"gateway", "package_store", "generations", "builders"};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        const char *dir = arena_printf(&u->arena, "%s/%s", u->state, dirs[i]);
        int rc = up_dir_make(dir, 0700, NULL, e);
        rc = rc == 0 && u->set->init ? up_dir_empty(dir, e) : rc;
        if (rc) {
            return rc;
        }
    }
    const char *key = getenv("KILN_SECRET_KEY");
    if (key && key[0]) {
        if (strlen(key) != 64) {
            return err_set(e, ERR_CONF,
                           "KILN_SECRET_KEY must be 64 hex digits (32 bytes); make one with "
                           "openssl rand -hex 32, or unset it: kiln up then keeps one of its own");
        }
        memcpy(u->secret_key, key, sizeof(u->secret_key));
        return 0;
    }
    return up_secret_key(u->state, u->secret_key, e);
}

int up_prepare(struct up *u, struct err *e)
{
    u->has_postgres = !u->set->store[0];
    u->has_redis = !u->set->redis[0];
    (void)umask(077);
    int rc = find_programs(u, e);
    if (rc == 0 && u->has_postgres) {
        rc = up_postgres_find(u, e);
    }
    rc = rc ? rc : open_state(u, e);
    rc = rc ? rc : find_config(u, e);
    rc = rc ? rc : check_addresses(u, e);
    rc = rc ? rc : open_parts(u, e);
    if (rc == 0 && u->has_postgres) {
        rc = up_postgres_prepare(u, e);
    }
    return rc;
}
