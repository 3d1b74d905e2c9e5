/* The private PostgreSQL: its programs, its directories, where it is reached. */
#include "services/kiln/up.h"
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_CAP (8 << 20) /* pg.log starts anew above this */

/* ---- programs ---- */
static bool has_programs(const char *dir)
{
    auto_free char *initdb = xasprintf("%s/initdb", dir);
    auto_free char *postgres = xasprintf("%s/postgres", dir);
    return access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;
}

static int major_of(const char *path)
{
    const char *at = strstr(path, "/postgresql/");
    return at ? atoi(at + sizeof("/postgresql/") - 1) : 0;
}

/* The newest of /usr/lib/postgresql/N/bin, or the one of version `wanted` (0: any). */
static char *debian_dir(struct arena *a, int wanted)
{
    glob_t g = {0};
    char *best = NULL;
    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++) {
            int major = major_of(g.gl_pathv[i]);
            bool fits = wanted ? major == wanted : !best || major > major_of(best);
            if (fits && has_programs(g.gl_pathv[i])) {
                best = arena_strdup(a, g.gl_pathv[i]);
            }
        }
    }
    globfree(&g);
    return best;
}

static char *path_dir(struct arena *a)
{
    const char *path = getenv("PATH");
    struct slice rest = slice_of(path), dir;
    while (slice_cut(&rest, ':', &dir)) {
        char real[PATH_MAX];
        if (realpath(arena_printf(a, "%.*s/postgres", SLICE_FMT(dir)), real)) {
            *strrchr(real, '/') = '\0';
            if (has_programs(real)) {
                return arena_strdup(a, real);
            }
        }
    }
    return NULL;
}

int up_postgres_find(struct up *u, struct err *e)
{
    u->pg.bin = debian_dir(&u->arena, 0);
    u->pg.bin = u->pg.bin ? u->pg.bin : path_dir(&u->arena);
    if (!u->pg.bin) {
        return err_set(e, ERR_CONF,
                       "PostgreSQL's initdb and postgres are neither in /usr/lib/postgresql/*/bin "
                       "nor on PATH; install postgresql, or name a database with --store");
    }
    if (geteuid() == 0) {
        return up_user_find(u->set->pg_user, &u->pg.user, e);
    }
    return 0;
}

/* ---- directories ---- */
int up_postgres_version(const char *data)
{
    auto_free char *path = xasprintf("%s/PG_VERSION", data);
    FILE *f = fopen(path, "re");
    int version = 0;
    if (f) {
        if (fscanf(f, "%d", &version) != 1) {
            version = 0;
        }
        (void)fclose(f);
    }
    return version;
}

/* The data was made by one version and can only be read by that one. */
static int match_version(struct up *u, struct err *e)
{
    int version = up_postgres_version(u->pg.data);
    if (version == 0 || version == major_of(u->pg.bin) || major_of(u->pg.bin) == 0) {
        return 0;
    }
    char *fitting = debian_dir(&u->arena, version);
    if (!fitting) {
        return err_set(e, ERR_CONF,
                       "%s was made by PostgreSQL %d, which is not installed; install it, or give "
                       "another --server_root",
                       u->pg.data, version);
    }
    u->pg.bin = fitting;
    return 0;
}

int up_postgres_prepare(struct up *u, struct err *e)
{
    struct up_postgres *pg = &u->pg;
    struct stat st;
    pg->data = arena_printf(&u->arena, "%s/pg", u->state);
    pg->socket_dir = arena_printf(&u->arena, "%s/pg", u->run);
    pg->log = arena_printf(&u->arena, "%s/pg.log", u->state);
    if (stat(pg->log, &st) == 0 && st.st_size > LOG_CAP) {
        (void)unlink(pg->log);
    }
    int rc = match_version(u, e);
    return rc ? rc : up_dir_make(pg->socket_dir, 0700, &pg->user, e);
}

const char *up_postgres_url(struct up *u)
{
    return arena_printf(&u->arena, "host=%s port=5432 user=kiln dbname=kiln", u->pg.socket_dir);
}
