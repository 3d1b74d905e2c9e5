/* A raw client for tests of the HTTP server: one socket, driven by the turns of the server's own
 * loop. */
#pragma once
#include "common/base/buf.h"
#include "common/http/http.h"
#include "tests/support/turn.h"
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE 5000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

struct client {
    int fd;
    struct buf in; /* everything received */
    bool ended;    /* end of stream or reset */
};

static inline void client_connect(struct client *c, int port)
{
    *c = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(c->fd, (const void *)&to, sizeof(to)), 0);
}

static inline int client_connect_unix(struct client *c, const char *path)
{
    *c = (struct client){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    return connect(c->fd, (const void *)&to, sizeof(to));
}

static inline void client_send_bytes(struct client *c, const char *p, size_t len)
{
    ck_assert_int_eq(send(c->fd, p, len, MSG_NOSIGNAL), (ssize_t)len);
}

static inline void client_send(struct client *c, const char *text)
{
    client_send_bytes(c, text, strlen(text));
}

/* Takes what has arrived; never waits. */
static inline void client_read(struct client *c)
{
    char some[65536];
    for (ssize_t n; !c->ended;) {
        n = recv(c->fd, some, sizeof(some), MSG_DONTWAIT);
        if (n > 0) {
            buf_add(&c->in, some, (size_t)n);
            continue;
        }
        c->ended = n == 0 || errno != EAGAIN;
        return;
    }
}

static inline bool client_has(struct client *c, const char *text)
{
    client_read(c);
    return c->in.len >= strlen(text) && memmem(c->in.p, c->in.len, text, strlen(text)) != NULL;
}

static inline bool client_ended(struct client *c)
{
    client_read(c);
    return c->ended;
}

static inline int client_count(struct client *c, const char *text)
{
    client_read(c);
    int n = 0;
    for (const char *at = buf_str(&c->in); (at = strstr(at, text)); at += strlen(text)) {
        n++;
    }
    return n;
}

static inline void client_close(struct client *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->fd = -1;
    buf_fini(&c->in);
}
