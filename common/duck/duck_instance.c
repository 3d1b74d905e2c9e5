/* Opening an instance: limits, extensions, and the lock that no statement undoes. */
#include "common/duck/duck_internal.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char *duck_version(void)
{
    return duckdb_library_version();
}

/* ---- what must stand before it is open ---- */

struct option {
    const char *name;
    const char *value; /* NULL: DuckDB's own default */
};

/* duckdb/ext beside the library. */
static void find_extensions(char out[PATH_MAX])
{
    Dl_info where;
    char real[PATH_MAX];
    out[0] = '\0';
    if (dladdr((void *)(uintptr_t)duckdb_open_ext, &where) && realpath(where.dli_fname, real)) {
        char *slash = strrchr(real, '/');
        must(slash);
        *slash = '\0';
        (void)snprintf(out, PATH_MAX, "%.4000s/duckdb/ext", real);
    }
}

static duckdb_state set_options(duckdb_config config, const struct option *options, size_t n,
                                const char **bad)
{
    for (size_t i = 0; i < n; i++) {
        if (options[i].value &&
            duckdb_set_config(config, options[i].name, options[i].value) == DuckDBError) {
            *bad = options[i].name;
            return DuckDBError;
        }
    }
    return DuckDBSuccess;
}

/* DuckDB's own list of the files that are open: one a process, as its locks are. Without it a file
 * opened twice is corrupted in silence. */
static duckdb_instance_cache open_files;

static void make_open_files(void)
{
    open_files = duckdb_create_instance_cache();
}

static duckdb_state open_path(struct duck_instance *i, const char *file, duckdb_config config,
                              char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!file) {
        return duckdb_open_ext(NULL, &i->db, config, why);
    }
    must(pthread_once(&once, make_open_files) == 0);
    return duckdb_get_or_create_from_cache(open_files, file, &i->db, config, why);
}

static int open_db(struct duck_instance *i, const struct duck_settings *s, struct err *e)
{
    char memory[32];
    char temp[32];
    char threads[16];
    char extensions[PATH_MAX];
    unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t memory_bytes = s->budget ? i->share.bytes : s->memory_bytes;
    (void)snprintf(memory, sizeof memory, "%" PRIu64 "B", memory_bytes);
    (void)snprintf(temp, sizeof temp, "%" PRIu64 "B", s->temp_dir ? s->temp_bytes : 0);
    (void)snprintf(threads, sizeof threads, "%u", s->threads ? s->threads : cores);
    find_extensions(extensions);
    const struct option options[] = {
        {"threads", threads},
        {"memory_limit", memory_bytes ? memory : NULL},
        {"temp_directory", s->temp_dir ? s->temp_dir : ""},
        {"max_temp_directory_size", s->temp_dir && s->temp_bytes ? temp : NULL},
        {"extension_directory", s->extension_dir ? s->extension_dir : extensions},
        {"autoinstall_known_extensions", "false"},
        {"autoload_known_extensions", "false"},
        {"allow_community_extensions", "false"},
        {"allow_persistent_secrets", "false"},
        {"access_mode", s->file && s->read_only ? "READ_ONLY" : NULL},
    };
    duckdb_config config;
    const char *bad = NULL;
    char *why = NULL;
    must(duckdb_create_config(&config) == DuckDBSuccess);
    duckdb_state state = set_options(config, options, ARRAY_LEN(options), &bad);
    if (state == DuckDBError) {
        duckdb_destroy_config(&config);
        return err_set(e, ERR_CONF, "%s: DuckDB refuses its setting %s", i->what, bad);
    }
    state = open_path(i, s->file, config, &why);
    duckdb_destroy_config(&config);
    int rc = state == DuckDBError ? duck_error(i, DUCKDB_ERROR_INVALID, why, e) : 0;
    duckdb_free(why);
    return rc;
}

/* ---- what is set on the open instance, in this order ---- */

static int exec_buf(struct duck_conn *c, struct buf *sql, struct err *e)
{
    int rc = duck_exec(c, buf_str(sql), e);
    buf_clear(sql);
    return rc;
}

static int load_extensions(struct duck_conn *c, const struct duck_settings *s, struct err *e)
{
    auto_buf struct buf sql = {0};
    for (size_t k = 0; s->extensions && s->extensions[k]; k++) {
        buf_add_str(&sql, "LOAD ");
        duck_quote_name(&sql, s->extensions[k]);
        struct err cause;
        if (exec_buf(c, &sql, &cause) < 0) {
            return err_set(e, ERR_UNSUPPORTED,
                           "%s: DuckDB's extension %s is missing or is not the one that belongs to "
                           "%s (deploy/setup.sh duckdb installs it): %s",
                           c->instance->what, s->extensions[k], duck_version(), cause.text);
        }
    }
    return 0;
}

static int run_setup(struct duck_conn *c, const struct duck_settings *s, struct err *e)
{
    int rc = 0;
    for (size_t k = 0; rc == 0 && s->setup && s->setup[k]; k++) {
        rc = duck_exec(c, s->setup[k], e);
    }
    return rc;
}

static void attach_all(struct duck_conn *c, const struct duck_settings *s)
{
    for (size_t i = 0; i < s->n_attach; i++) {
        struct duck_attach *at = &s->attach[i];
        int rc = 0;
        err_clear(&at->err);
        for (size_t k = 0; rc == 0 && at->setup[k]; k++) {
            rc = duck_exec(c, at->setup[k], &at->err);
        }
    }
}

static int set_list(struct duck_conn *c, const char *setting, const char *const *items,
                    struct err *e)
{
    if (!items) {
        return 0;
    }
    auto_buf struct buf sql = {0};
    buf_addf(&sql, "SET %s = [", setting);
    for (size_t k = 0; items[k]; k++) {
        buf_add_str(&sql, k > 0 ? ", " : "");
        duck_quote_text(&sql, items[k]);
    }
    buf_add_char(&sql, ']');
    return exec_buf(c, &sql, e);
}

#define PROGRESS "'enable_progress_bar', 'enable_progress_bar_print'"

static int lock_down(struct duck_conn *c, const struct duck_settings *s, struct err *e)
{
    auto_buf struct buf sql = {0};
    int rc = set_list(c, "allowed_directories", s->allowed_dirs, e);
    if (rc == 0) {
        rc = set_list(c, "allowed_paths", s->allowed_files, e);
    }
    if (rc == 0 && s->search_path) {
        /* A list with commas: a path that has one cannot be searched. */
        buf_add_str(&sql, "SET GLOBAL file_search_path = ");
        duck_quote_text(&sql, s->search_path);
        rc = exec_buf(c, &sql, e);
    }
    if (rc == 0) {
        /* Set later by us. No caller gets at them: their statements are single SELECTs. */
        rc = duck_exec(c,
                       s->budget ? "SET allowed_configs = [" PROGRESS ", 'memory_limit']"
                                 : "SET allowed_configs = [" PROGRESS "]",
                       e);
    }
    if (rc == 0 && !s->unlocked) {
        rc = duck_exec(c, "SET enable_external_access = false; SET lock_configuration = true", e);
    }
    return rc;
}

/* All the connections that it will ever have. */
static int make_connections(struct duck_instance *i, struct err *e)
{
    for (unsigned k = 0; k < i->connections + 1; k++) {
        struct duck_conn *c;
        int rc = duck_conn_new(i, &c, e);
        list_add_tail(&i->idle, &c->link);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int prepare_instance(struct duck_instance *i, const struct duck_settings *s, struct err *e)
{
    int rc = make_connections(i, e);
    if (rc < 0) {
        return rc;
    }
    struct duck_conn *c = duck_conn_take(i);
    rc = duck_exec(c, "SET GLOBAL TimeZone = 'UTC'", e);
    if (rc == 0) {
        rc = load_extensions(c, s, e);
    }
    if (rc == 0) {
        rc = run_setup(c, s, e);
    }
    if (rc == 0) {
        attach_all(c, s);
        rc = lock_down(c, s, e);
    }
    duck_conn_give(c);
    return rc;
}

static int open_in_budget(struct duck_instance *i, const struct duck_settings *s, struct err *e)
{
    struct duck_conn *c = NULL;
    int rc = s->budget ? duck_budget_join(s->budget, i, e) : 0;
    if (rc == 0) {
        rc = open_db(i, s, e);
    }
    if (rc == 0) {
        rc = prepare_instance(i, s, e);
    }
    if (rc == 0 && s->budget) {
        rc = duck_conn_new(i, &c, e);
        duck_budget_joined(i, c);
    }
    return rc;
}

int duck_instance_open(const struct duck_settings *s, struct duck_instance **out, struct err *e)
{
    if (s->search_path && strchr(s->search_path, ',')) {
        return err_set(e, ERR_CONF,
                       "%s: the folder '%s' has a comma in its name, which DuckDB "
                       "takes for the end of it; rename it",
                       s->what, s->search_path);
    }
    struct duck_instance *i = xcalloc(1, sizeof(*i));
    atomic_init(&i->refs, 1);
    i->what = xstrdup(s->what);
    i->connections = s->connections ? s->connections : 2;
    i->forbidden = s->forbidden;
    list_init(&i->idle);
    list_init(&i->jobs);
    list_init(&i->in_turn);
    must(pthread_mutex_init(&i->lock, NULL) == 0);
    int rc = open_in_budget(i, s, e);
    if (rc < 0) {
        duck_instance_unref(i);
        return rc;
    }
    *out = i;
    return 0;
}

struct duck_instance *duck_instance_ref(struct duck_instance *i)
{
    atomic_fetch_add(&i->refs, 1);
    return i;
}

void duck_instance_unref(struct duck_instance *i)
{
    if (!i || atomic_fetch_sub(&i->refs, 1) > 1) {
        return;
    }
    must(list_empty(&i->jobs) && i->running == 0 && i->running_first == 0);
    struct list *it;
    while ((it = list_take_head(&i->idle))) {
        duck_conn_free(list_entry(it, struct duck_conn, link));
    }
    struct duck_conn *keeper = i->share.budget ? duck_budget_quit(i) : NULL;
    if (keeper) {
        duck_conn_free(keeper);
    }
    if (i->db) {
        duckdb_close(&i->db);
    }
    if (i->share.budget) {
        duck_budget_return(i);
    }
    pthread_mutex_destroy(&i->lock);
    free(i->what);
    free(i);
}

const char *duck_instance_what(const struct duck_instance *i)
{
    return i->what;
}

bool duck_instance_is_broken(const struct duck_instance *i)
{
    return atomic_load(&i->broken);
}
