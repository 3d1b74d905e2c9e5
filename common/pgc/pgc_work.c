/* Answers on their way from a driver to the caller of a batch, and what the caller may say to them.
 */
#include "common/pgc/pgc_internal.h"

void pgc_work_error(struct pgc_conn *c, struct pgc_work *w, size_t stmt, int code,
                    const char *sqlstate, const char *text)
{
    w->answered = true;
    if (w->rc != 0) {
        return; /* the first error is the cause */
    }
    w->rc = err_set(&w->err, code, "%s: %s", c->pool->what, text);
    w->failed_at = stmt;
    size_t len = strlen(sqlstate);
    if (len < sizeof w->err.sqlstate) {
        memcpy(w->err.sqlstate, sqlstate, len + 1);
    }
}

void pgc_work_columns(struct pgc_conn *c, struct pgc_work *w, size_t stmt,
                      const struct pgc_result *r)
{
    (void)c;
    w->answered = true;
    if (w->batch && w->batch->on_columns && !w->mute) {
        w->batch->on_columns(w->batch, stmt, r);
    }
}

void pgc_work_row(struct pgc_conn *c, struct pgc_work *w, size_t stmt, const struct slice *cells)
{
    w->answered = true;
    if (!w->batch || !w->batch->on_row || w->mute) {
        w->dropped = true;
        return;
    }
    w->delivered = true;
    if (w->batch->on_row(w->batch, stmt, cells) == PGC_ROW_MORE) {
        return;
    }
    w->mute = true;
    pgc_work_error(c, w, stmt, ERR_CANCELLED, "", "the reader of the rows wanted no more of them");
    pgc_conn_cancel(c);
}

static void veto(struct pgc_conn *c, struct pgc_work *w, size_t stmt, int code)
{
    w->mute = true;
    w->failed_at = stmt;
    w->rc =
        err_set(&w->err, code, "%s: ended by the reader of statement %zu", c->pool->what, stmt + 1);
    if (stmt + 1 < w->n) {
        pgc_conn_cancel(c);
    }
}

void pgc_work_result(struct pgc_conn *c, struct pgc_work *w, size_t stmt, struct pgc_result *r)
{
    w->answered = true;
    int say = 0;
    if (w->batch && w->batch->on_result && !w->mute) {
        say = w->batch->on_result(w->batch, stmt, r);
    }
    if (w->results) {
        pgc_result_free(w->results[stmt]);
        w->results[stmt] = r;
    } else {
        pgc_result_free(r);
    }
    if (say < 0 && w->rc == 0) {
        veto(c, w, stmt, say);
    }
}
