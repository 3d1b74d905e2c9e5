/* A private PostgreSQL for a test: its own data directory, unix socket and port, gone at the end.
 * Blocking; tests only. */
#pragma once
#include "common/base/base.h"

struct pg_server {
    char dir[64];  /* short path under /tmp; the socket's directory */
    char data[80]; /* data directory */
    int port;      /* names the socket file, and listens on 127.0.0.1 */
    bool is_up;
    int owner;        /* our pid: forked children of the test never stop it */
    int janitor;      /* pid of a child that cleans up even when the test program is killed */
    int janitor_pipe; /* open while we live */
};
/* initdb and start, as user postgres when we are root. Ends the test program with a sentence when
 * it cannot be had. */
void pg_server_start(struct pg_server *s);
/* Stops the server and removes its directory. */
void pg_server_stop(struct pg_server *s);
void pg_server_crash(struct pg_server *s);   /* immediate shutdown; sessions are cut */
void pg_server_restart(struct pg_server *s); /* after a crash */
/* Conninfo over the unix socket, user postgres. Static memory, valid until the next call. */
const char *pg_server_conninfo(const struct pg_server *s, const char *database);
/* Runs SQL through psql, in one transaction or not as it says itself; fails the program on an
 * error. */
void pg_server_exec(const struct pg_server *s, const char *database, const char *sql);
/* First value of a query's answer; the caller frees. */
char *pg_server_value(const struct pg_server *s, const char *database, const char *sql) MUST_USE;
