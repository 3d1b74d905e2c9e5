/* The query half of a worker: its cache, its numbers, its slots and its end. */
#include "services/gateway/query/query.h"

void gw_query_open(struct gw_worker *w)
{
    struct gw_part *p = xcalloc(1, sizeof(*p));
    static const char *const served[] = {[DECIDE_LIVE] = "served=\"live\"",
                                         [DECIDE_BAKED] = "served=\"baked\"",
                                         [DECIDE_MIXED] = "served=\"mixed\"",
                                         [3] = "served=\"error\""};
    for (size_t i = 0; i < ARRAY_LEN(served); i++) {
        p->served[i] = metric_counter("kiln_gateway_queries_total", served[i], "queries answered");
    }
    p->took_ms = metric_histogram("malloy_model_query_duration", "served_from=\"\"",
                                  "duration of model queries in ms");
    p->cache_hits = metric_counter("kiln_gateway_compile_cache_total", "found=\"yes\"",
                                   "queries whose compiled form was there or in the making");
    p->cache_misses = metric_counter("kiln_gateway_compile_cache_total", "found=\"no\"",
                                     "queries whose compiled form was there or in the making");
    p->running = metric_gauge("kiln_gateway_queries_running", "", "queries in work");
    list_init(&p->compiles);
    list_init(&p->works);
    w->query_half = p;
    unsigned n = w->g->workers ? w->g->workers->n : 1;
    w->cache = gw_cache_new((size_t)w->g->set->query_cache_entries, GW_CACHE_BYTES / n);
}

void gw_part_settle(struct gw_worker *w)
{
    struct gw_part *p = w->query_half;
    if (!p->closed || !list_empty(&p->works) || !list_empty(&p->compiles)) {
        return;
    }
    void (*closed)(struct gw_worker * w) = p->closed;
    gw_cache_free(w->cache);
    free(p);
    w->cache = NULL;
    w->query_half = NULL;
    closed(w);
}

void gw_query_close(struct gw_worker *w, void (*closed)(struct gw_worker *w))
{
    struct gw_part *p = w->query_half;
    p->closed = closed;
    list_for_each (it, &p->works) {
        struct gw_work *work = list_entry(it, struct gw_work, link);
        if (work->flow) {
            flow_cancel(work->flow);
        }
    }
    gw_compiles_cancel(w);
    gw_part_settle(w);
}

void gw_work_begin(struct gw_worker *w, struct gw_work *work, struct flow *f)
{
    work->flow = f;
    list_add_tail(&w->query_half->works, &work->link);
}

void gw_work_end(struct gw_worker *w, struct gw_work *work)
{
    list_del(&work->link);
    gw_part_settle(w);
}

int gw_slot_take(struct gw_worker *w, struct err *e)
{
    int64_t most = w->g->set->max_concurrent_queries;
    unsigned running = atomic_load(&w->g->queries_running);
    do {
        if (most > 0 && running >= (uint64_t)most) {
            return err_set(e, ERR_QUERY_BUSY,
                           "%lld queries run at once already (PUBLISHER_MAX_CONCURRENT_QUERIES): "
                           "try again in a moment",
                           (long long)most);
        }
    } while (!atomic_compare_exchange_weak(&w->g->queries_running, &running, running + 1));
    metric_add(w->query_half->running, 1);
    return 0;
}

void gw_slot_give(struct gw_worker *w)
{
    must(atomic_fetch_sub(&w->g->queries_running, 1) > 0);
    metric_add(w->query_half->running, -1);
}

struct decide_now gw_decide_now(const struct gw_worker *w)
{
    int64_t good_until = atomic_load(&w->g->sets_good_until);
    return (struct decide_now){.us = loop_unix_us(),
                               .sets_unread = loop_now(w->loop).v >= good_until};
}

struct ms gw_time_left(const struct gw_worker *w, struct ms since)
{
    if (w->g->set->query_timeout_ms == 0) {
        return MS_NONE;
    }
    struct ms until = ms_add(since, MS(w->g->set->query_timeout_ms));
    return ms_max(ms_sub(until, loop_now(w->loop)), MS(1));
}

int gw_check_caps(const struct gw_worker *w, uint64_t rows, size_t bytes, struct err *e)
{
    int64_t max_rows = w->g->set->max_query_rows;
    int64_t max_bytes = w->g->set->max_response_bytes;
    if (max_rows > 0 && rows > (uint64_t)max_rows) {
        return err_set(e, ERR_QUERY_ROWS,
                       "the result has more than %lld rows (PUBLISHER_MAX_QUERY_ROWS): add a "
                       "limit or aggregate further",
                       (long long)max_rows);
    }
    if (max_bytes > 0 && bytes > (size_t)max_bytes) {
        return err_set(e, ERR_QUERY_BYTES,
                       "the answer is larger than %lld bytes (PUBLISHER_MAX_RESPONSE_BYTES): add "
                       "a limit, drop columns, or ask with compactJson",
                       (long long)max_bytes);
    }
    return 0;
}

void gw_query_error(const struct gw_worker *w, struct err *e)
{
    bool is_cancel = e->code == ERR_CANCELLED && strstr(e->text, "statement timeout");
    if (e->code == ERR_TIMEOUT || is_cancel) {
        err_set(e, ERR_QUERY_TIMEOUT,
                "the query took longer than %lld ms (PUBLISHER_QUERY_TIMEOUT_MS) and was cancelled",
                (long long)w->g->set->query_timeout_ms);
    }
}

void gw_reply_error(struct http_req *r, int code, const char *text)
{
    if (err_code_http(code) == 503) {
        http_answer_header(r, SLICE("Retry-After"), SLICE("1"));
    }
    http_reply_error(r, code, text);
}
