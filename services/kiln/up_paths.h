/* Where a `kiln up` keeps things: state directory, run directory, lock, key (protocol.md 12). */
#pragma once
#include "common/err/err.h"
#include <limits.h>
#include <sys/types.h>

#define UP_SOCKET_MAX 108 /* sun_path, its NUL included */

struct up_user {      /* who PostgreSQL runs as when kiln runs as root */
    const char *name; /* NULL: as ourselves */
    uid_t uid;
    gid_t gid;
};
/* Finds a user by name. ERR_CONF when there is none. */
int up_user_find(const char *name, struct up_user *out, struct err *e) MUST_USE;

/* Makes <root>/kiln where it is missing (root itself, too), mode 0700, or 0711 when `shared`:
 * another user works below it. state gets its real path. */
int up_state_open(const char *root, bool shared, char state[PATH_MAX], struct err *e) MUST_USE;
/* Makes dir (mode, owned by `owner` when its name is set) or checks what is there: a directory, no
 * link, ours or the owner's, not writable by others. */
int up_dir_make(const char *dir, mode_t mode, const struct up_user *owner, struct err *e) MUST_USE;
/* Makes the run directory of a state directory: <runtime>/kiln/<h> where `runtime` (the value of
 * XDG_RUNTIME_DIR, may be NULL) is a directory of ours whose sockets fit, else /tmp/kiln-<uid>/<h>.
 */
int up_run_open(const char *runtime, const char *state, const struct up_user *pg,
                char run[UP_SOCKET_MAX], struct err *e) MUST_USE;
/* <run>/<name>, refused when it does not fit into a socket address. */
int up_socket_path(const char *run, const char *name, char out[UP_SOCKET_MAX],
                   struct err *e) MUST_USE;
/* Takes <state>/lock and writes our pid into it; *fd keeps it. ERR_CONFLICT names the other's pid.
 */
int up_lock(const char *state, const char *root, int *fd, struct err *e) MUST_USE;
/* Every directory of the absolute path can be passed by the user. The sentence names the first that
 * cannot. */
int up_check_searchable(const char *path, const struct up_user *user, struct err *e) MUST_USE;
/* The key that seals stored credentials: read from <state>/secret_key, made there (0600) when
 * missing. 64 hex digits. */
int up_secret_key(const char *state, char hex[65], struct err *e) MUST_USE;
/* Removes what is in dir, links as links; dir stays. A missing dir is fine. */
int up_dir_empty(const char *dir, struct err *e) MUST_USE;
/* Nobody listens on host:port (numeric host, or localhost). */
int up_check_port(const char *host, int port, const char *flag, struct err *e) MUST_USE;
