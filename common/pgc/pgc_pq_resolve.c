/* Host names of a connection string become hostaddr, because PQconnectStart would block on them
 * (stack.md 5). */
#include "common/pgc/pgc_pq.h"

#include <arpa/inet.h>
#include <netdb.h>

#define MAX_ADDRESSES 16

struct pgc_pq_resolve {
    uv_getaddrinfo_t req;
    struct pgc_pq *pq; /* NULL: abandoned, frees itself when libuv is through with it */
    bool in_flight;
    struct loop_task task; /* nothing to resolve: done on the next turn all the same */
    void (*done)(struct pgc_pq *q, int rc, const struct err *e, char *conninfo_taken);
    char *conninfo, *host, *port;
    struct slice hosts_left, ports_left;
    struct slice host_now, port_now;
    struct buf hosts, addrs, ports; /* comma lists of what was found */
    size_t n;
    int gai; /* last failure */
};

static void resolve_free(struct pgc_pq_resolve *r)
{
    free(r->conninfo);
    free(r->host);
    free(r->port);
    buf_fini(&r->hosts);
    buf_fini(&r->addrs);
    buf_fini(&r->ports);
    free(r);
}

static char *conninfo_with(const char *conninfo, const struct pgc_pq_resolve *r)
{
    auto_buf struct buf out = {0};
    PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
    for (PQconninfoOption *o = opts; o && o->keyword; o++) {
        bool ours =
            r->n > 0 && (strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "port") == 0);
        if (o->val && !ours) {
            pgc_conninfo_add(&out, o->keyword, o->val);
        }
    }
    PQconninfoFree(opts);
    if (r->n > 0) {
        pgc_conninfo_add(&out, "host", buf_str(&r->hosts));
        pgc_conninfo_add(&out, "hostaddr", buf_str(&r->addrs));
        pgc_conninfo_add(&out, "port", buf_str(&r->ports));
    }
    return buf_take(&out);
}

static void resolve_end(struct pgc_pq_resolve *r)
{
    struct pgc_pq *q = r->pq;
    q->resolve = NULL;
    if (r->n == 0 && r->gai != 0) {
        struct err e;
        err_set(&e, ERR_WH_CONNECT, "%s: host name \"%s\" is not known (%s)", q->c->pool->what,
                r->host, uv_strerror(r->gai));
        r->done(q, e.code, &e, NULL);
    } else {
        r->done(q, 0, NULL, conninfo_with(r->conninfo, r));
    }
    resolve_free(r);
}

static void add_address(struct pgc_pq_resolve *r, const char *address)
{
    if (r->n == MAX_ADDRESSES) {
        return;
    }
    const char *comma = r->n++ > 0 ? "," : "";
    buf_addf(&r->hosts, "%s%.*s", comma, SLICE_FMT(r->host_now));
    buf_addf(&r->addrs, "%s%s", comma, address);
    buf_addf(&r->ports, "%s%.*s", comma, SLICE_FMT(r->port_now));
}

static void add_found(struct pgc_pq_resolve *r, const struct addrinfo *found)
{
    for (const struct addrinfo *a = found; a; a = a->ai_next) {
        char text[INET6_ADDRSTRLEN];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) ==
            0) {
            add_address(r, text);
        }
    }
}

static void resolve_next(struct pgc_pq_resolve *r);

static void on_address(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct pgc_pq_resolve *r = container_of(req, struct pgc_pq_resolve, req);
    r->in_flight = false;
    if (!r->pq) {
        uv_freeaddrinfo(found);
        resolve_free(r);
        return;
    }
    if (status < 0) {
        r->gai = status;
    } else {
        add_found(r, found);
    }
    uv_freeaddrinfo(found);
    resolve_next(r);
}

static void resolve_next(struct pgc_pq_resolve *r)
{
    if (!slice_cut(&r->hosts_left, ',', &r->host_now)) {
        resolve_end(r);
        return;
    }
    struct slice port;
    if (slice_cut(&r->ports_left, ',', &port)) {
        r->port_now = port; /* one port serves all hosts */
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    auto_free char *name = xstrndup(r->host_now.p, r->host_now.len);
    r->in_flight = true;
    must(uv_getaddrinfo(loop_uv(r->pq->c->pool->loop), &r->req, on_address, name, NULL, &hints) ==
         0);
}

static void on_nothing_to_do(struct loop_task *t)
{
    resolve_end(t->data);
}

static bool is_path(struct slice host)
{
    return host.len == 0 || host.p[0] == '/' || host.p[0] == '@';
}

/* Sockets and given addresses need nothing; a list that mixes sockets and names is left to libpq.
 */
static bool needs_names(const struct pgc_pq_resolve *r, bool has_hostaddr)
{
    struct slice rest = slice_of(r->host);
    struct slice host;
    bool any = false;
    while (slice_cut(&rest, ',', &host)) {
        if (is_path(host)) {
            return false;
        }
        any = true;
    }
    return any && !has_hostaddr;
}

void pgc_pq_resolve_start(struct pgc_pq *q, const char *conninfo,
                          void (*done)(struct pgc_pq *q, int rc, const struct err *e,
                                       char *conninfo_taken))
{
    struct pgc_pq_resolve *r = xcalloc(1, sizeof *r);
    r->pq = q;
    r->done = done;
    r->conninfo = xstrdup(conninfo);
    q->resolve = r;
    bool has_hostaddr = false;
    PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
    for (PQconninfoOption *o = opts; o && o->keyword; o++) {
        if (!o->val) {
            continue;
        }
        if (strcmp(o->keyword, "host") == 0) {
            r->host = xstrdup(o->val);
        } else if (strcmp(o->keyword, "port") == 0) {
            r->port = xstrdup(o->val);
        } else if (strcmp(o->keyword, "hostaddr") == 0) {
            has_hostaddr = o->val[0] != '\0';
        }
    }
    PQconninfoFree(opts);
    r->hosts_left = slice_of(r->host);
    r->ports_left = slice_of(r->port);
    r->port_now = SLICE("5432");
    if (needs_names(r, has_hostaddr)) {
        resolve_next(r);
        return;
    }
    loop_task_init(&r->task, on_nothing_to_do, r);
    loop_defer(q->c->pool->loop, &r->task);
}

void pgc_pq_resolve_abandon(struct pgc_pq *q)
{
    struct pgc_pq_resolve *r = q->resolve;
    if (!r) {
        return;
    }
    q->resolve = NULL;
    if (!r->in_flight) {
        loop_task_cancel(&r->task);
        resolve_free(r);
        return;
    }
    r->pq = NULL;
    uv_cancel((uv_req_t *)&r->req);
}
