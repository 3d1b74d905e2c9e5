/* Connecting without blocking: PQconnectPoll driven by the loop. */
#include "common/pgc/pgc_pq.h"

static void open_end(struct pgc_pq *q, int rc)
{
    q->connecting = false;
    q->open_rc = rc;
    loop_defer(q->c->pool->loop, &q->report);
}

/* With verbose errors libpq writes "FATAL:  28P01: password ..": the only place a refusal's
 * SQLSTATE is found. */
static bool find_sqlstate(const char *message, char out[6], const char **rest)
{
    for (const char *p = strstr(message, ":  "); p; p = strstr(p + 1, ":  ")) {
        const char *s = p + 3;
        size_t n = strspn(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (n == 5 && s[5] == ':' && s[6] == ' ') {
            memcpy(out, s, 5);
            out[5] = '\0';
            *rest = s + 7;
            return true;
        }
    }
    return false;
}

static void connect_failed(struct pgc_pq *q)
{
    const char *message = PQerrorMessage(q->pg);
    const char *what = q->c->pool->what;
    char sqlstate[6] = "";
    const char *rest = message;
    auto_buf struct buf line = {0};
    if (!find_sqlstate(message, sqlstate, &rest)) {
        pgc_pq_flatten(message, &line);
        open_end(q, err_set(&q->open_err, ERR_WH_CONNECT, "%s: %s", what, buf_str(&line)));
        return;
    }
    auto_free char *text = xstrndup(rest, strcspn(rest, "\n"));
    pgc_pq_flatten(text, &line);
    int code = pgc_code_of(sqlstate);
    bool plain = code == ERR_WH_SQL || code == ERR_WH_LOST;
    err_set(&q->open_err, plain ? ERR_WH_CONNECT : code, "%s: the server refused the session: %s",
            what, buf_str(&line));
    memcpy(q->open_err.sqlstate, sqlstate, sizeof sqlstate);
    open_end(q, q->open_err.code);
}

/* The server's farewell to an idle session comes as a notice. */
static void on_notice(void *arg, const PGresult *res)
{
    struct pgc_pq *q = arg;
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0)) {
        q->is_dead = true;
    }
}

static void connected(struct pgc_pq *q)
{
    PQsetErrorVerbosity(q->pg, PQERRORS_DEFAULT);
    if (PQsetnonblocking(q->pg, 1) != 0 || PQenterPipelineMode(q->pg) != 1) {
        connect_failed(q);
        return;
    }
    pgc_pq_watch_set(q, UV_READABLE);
    open_end(q, 0);
}

static void on_poll_step(struct pgc_pq *q, PostgresPollingStatusType step)
{
    switch (step) {
    case PGRES_POLLING_READING:
        pgc_pq_watch_set(q, UV_READABLE);
        return;
    case PGRES_POLLING_WRITING:
        pgc_pq_watch_set(q, UV_WRITABLE);
        return;
    case PGRES_POLLING_OK:
        connected(q);
        return;
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
        break;
    }
    connect_failed(q);
}

void pgc_pq_connect_on_socket(struct pgc_pq *q, int status)
{
    (void)status; /* PQconnectPoll finds the cause itself */
    /* Dropped, not kept: libpq may go to another address on the same descriptor number. */
    pgc_pq_watch_drop(q);
    on_poll_step(q, PQconnectPoll(q->pg));
}

static void on_resolved(struct pgc_pq *q, int rc, const struct err *e, char *conninfo_taken)
{
    auto_free char *conninfo = conninfo_taken;
    if (rc < 0) {
        q->open_err = *e;
        open_end(q, rc);
        return;
    }
    q->pg = PQconnectStart(conninfo);
    must(q->pg); /* NULL: out of memory */
    PQsetErrorVerbosity(q->pg, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(q->pg, on_notice, q);
    if (PQstatus(q->pg) == CONNECTION_BAD) {
        connect_failed(q);
        return;
    }
    on_poll_step(q, PGRES_POLLING_WRITING);
}

void pgc_pq_connect(struct pgc_pq *q)
{
    const char *conninfo = q->c->pool->conninfo;
    PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
    if (!opts) {
        /* libpq's own sentence repeats pieces of the string, passwords included. */
        open_end(q, err_set(&q->open_err, ERR_INVALID,
                            "%s: the connection string does not parse; expected "
                            "\"host=.. dbname=..\" or a postgresql:// URI",
                            q->c->pool->what));
        return;
    }
    PQconninfoFree(opts);
    pgc_pq_resolve_start(q, conninfo, on_resolved);
}
