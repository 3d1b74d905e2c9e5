/* Addresses and listening sockets. */
#include "common/http/http_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 511

static void on_listener_closed(uv_handle_t *h)
{
    struct http_listener *l = h->data;
    struct http_server *s = l->server;
    list_del(&l->link);
    free(l);
    s->listening--;
    http_server_maybe_over(s);
}

/* With the socket all that waits in its queue would be reset: it is handed on first. */
static void divert_queue(struct http_listener *l)
{
    uv_os_fd_t listening = -1;
    if (uv_fileno(&l->s.handle, &listening)) {
        return;
    }
    for (int n = 0; n < BACKLOG; n++) {
        int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        l->server->divert(l->server->divert_data, fd);
    }
}

void http_listener_close(struct http_listener *l)
{
    if (uv_is_closing(&l->s.handle)) {
        return;
    }
    if (l->server->divert) {
        divert_queue(l);
    }
    uv_close(&l->s.handle, on_listener_closed);
}

/* A handle that only exists to get at an accepted descriptor. */
struct passage {
    struct http_server *server;
    union http_stream s;
};

static void on_passage_closed(uv_handle_t *h)
{
    struct passage *p = h->data;
    p->server->open--;
    http_server_maybe_over(p->server);
    free(p);
}

static void divert(struct http_listener *l)
{
    struct http_server *s = l->server;
    struct passage *p = xcalloc(1, sizeof(*p));
    p->server = s;
    s->open++;
    if (l->is_unix) {
        must(uv_pipe_init(loop_uv(s->loop), &p->s.pipe, 0) == 0);
    } else {
        must(uv_tcp_init(loop_uv(s->loop), &p->s.tcp) == 0);
    }
    p->s.handle.data = p;
    uv_os_fd_t fd = -1;
    if (uv_accept(&l->s.stream, &p->s.stream) == 0 && uv_fileno(&p->s.handle, &fd) == 0) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    uv_close(&p->s.handle, on_passage_closed);
    if (fd >= 0) {
        s->divert(s->divert_data, fd);
    }
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct http_listener *l = stream->data;
    if (status < 0) {
        return;
    }
    if (l->server->divert) {
        divert(l);
    } else {
        http_conn_accept(l->server, l);
    }
}

static int refuse(struct err *e, const char *address, int uv_rc)
{
    if (uv_rc == UV_EADDRINUSE) {
        return err_set(e, ERR_CONF,
                       "cannot listen on %s: the address is taken; stop the program that holds it "
                       "or choose another address",
                       address);
    }
    if (uv_rc == UV_EACCES) {
        return err_set(e, ERR_CONF,
                       "cannot listen on %s: permission denied; choose a port above 1023 or a "
                       "directory this user may write",
                       address);
    }
    return err_set(e, ERR_CONF, "cannot listen on %s: %s; choose an address of this machine",
                   address, uv_strerror(uv_rc));
}

/* Somebody answers behind the socket file. Asked without blocking: a full backlog counts as an
 * answer. */
static bool is_served(const struct sockaddr_un *addr)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true;
    }
    int rc = connect(fd, (const struct sockaddr *)(const void *)addr, sizeof(*addr));
    bool is_dead = rc < 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return !is_dead;
}

/* Makes the path free for bind; only a socket nobody serves is removed. */
static int clear_path(const char *path, const char *address, struct err *e)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(addr.sun_path)) {
        return err_set(e, ERR_CONF,
                       "cannot listen on %s: a socket path has at most %zu bytes; choose a shorter "
                       "directory",
                       address, sizeof(addr.sun_path) - 1);
    }
    struct stat st;
    if (lstat(path, &st) < 0) {
        return 0;
    }
    if (!S_ISSOCK(st.st_mode)) {
        return err_set(e, ERR_CONF,
                       "cannot listen on %s: a file of that name exists and is no socket; move it "
                       "away or choose another path",
                       address);
    }
    memcpy(addr.sun_path, path, strlen(path) + 1);
    if (is_served(&addr)) {
        return refuse(e, address, UV_EADDRINUSE);
    }
    (void)unlink(path);
    return 0;
}

static int listen_unix(struct http_listener *l, const char *address, struct err *e)
{
    const char *path = address + strlen("unix:");
    int rc = clear_path(path, address, e);
    if (rc) {
        return rc;
    }
    rc = uv_pipe_bind(&l->s.pipe, path);
    if (rc == 0 && chmod(path, 0600) < 0) { /* before listen: nobody can have come in */
        rc = -errno;
    }
    if (rc == 0) {
        rc = uv_listen(&l->s.stream, BACKLOG, on_connection);
    }
    return rc ? refuse(e, address, rc) : 0;
}

/* "host:port", "[v6]:port" or ":port" (every interface). */
static int parse_address(const char *address, struct sockaddr_storage *out)
{
    char host[64] = "";
    const char *colon = strrchr(address, ':');
    uint64_t port;
    if (!colon || slice_to_u64(slice_of(colon + 1), &port) || port > 65535) {
        return -1;
    }
    size_t len = (size_t)(colon - address);
    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    if (len >= sizeof(host)) {
        return -1;
    }
    memcpy(host, address, len);
    if (len == 0) {
        memcpy(host, "0.0.0.0", sizeof("0.0.0.0"));
    } else if (strcmp(host, "localhost") == 0) {
        memcpy(host, "127.0.0.1", sizeof("127.0.0.1"));
    }
    if (uv_ip4_addr(host, (int)port, (void *)out) == 0) {
        return 0;
    }
    return uv_ip6_addr(host, (int)port, (void *)out) == 0 ? 0 : -1;
}

static void note_port(struct http_server *s, struct http_listener *l)
{
    struct sockaddr_storage addr;
    int len = sizeof(addr);
    if (s->port || uv_tcp_getsockname(&l->s.tcp, (void *)&addr, &len)) {
        return;
    }
    const struct sockaddr_in *in = (const void *)&addr; /* the port is at the same place in v6 */
    s->port = ntohs(in->sin_port);
}

static int listen_tcp(struct http_listener *l, const char *address, struct err *e)
{
    struct sockaddr_storage addr = {0};
    if (parse_address(address, &addr)) {
        return err_set(e, ERR_CONF,
                       "cannot listen on %s: write host:port with a numeric host or localhost, or "
                       "unix:/path",
                       address);
    }
    int rc = uv_tcp_bind(&l->s.tcp, (const void *)&addr, 0);
    if (rc == 0) {
        rc = uv_listen(&l->s.stream, BACKLOG, on_connection);
    }
    if (rc) {
        return refuse(e, address, rc);
    }
    note_port(l->server, l);
    return 0;
}

int http_server_listen(struct http_server *s, const char *address, struct err *e)
{
    loop_assert_here(s->loop);
    must(!s->draining);
    struct http_listener *l = xcalloc(1, sizeof(*l));
    l->server = s;
    l->is_unix = strncmp(address, "unix:", 5) == 0;
    if (l->is_unix) {
        must(uv_pipe_init(loop_uv(s->loop), &l->s.pipe, 0) == 0);
    } else {
        must(uv_tcp_init(loop_uv(s->loop), &l->s.tcp) == 0);
    }
    l->s.handle.data = l;
    list_add_tail(&s->listeners, &l->link);
    s->listening++;
    int rc = l->is_unix ? listen_unix(l, address, e) : listen_tcp(l, address, e);
    if (rc) {
        http_listener_close(l);
    }
    return rc;
}
