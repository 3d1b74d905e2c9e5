/* The query half as a part of the service: its cache, its numbers, its slots and its end. */
#include "services/gateway/query/query.h"

int gw_query_start(struct service *s, struct err *e)
{
    struct gateway *g = service_state(s);
    (void)e;
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
    g->query_half = p;
    g->cache = gw_cache_new((size_t)g->set->query_cache_entries, GW_CACHE_BYTES);
    return 0;
}

void gw_part_settle(struct gateway *g)
{
    struct gw_part *p = g->query_half;
    if (!p->closing || !list_empty(&p->works) || !list_empty(&p->compiles)) {
        return;
    }
    struct service *s = p->closing;
    gw_cache_free(g->cache);
    free(p);
    g->cache = NULL;
    g->query_half = NULL;
    service_part_closed(s);
}

void gw_query_close(struct service *s)
{
    struct gateway *g = service_state(s);
    struct gw_part *p = g->query_half;
    p->closing = s;
    list_for_each (it, &p->works) {
        struct gw_work *w = list_entry(it, struct gw_work, link);
        if (w->flow) {
            flow_cancel(w->flow);
        }
    }
    gw_compiles_cancel(g);
    gw_part_settle(g);
}

void gw_work_begin(struct gateway *g, struct gw_work *w, struct flow *f)
{
    w->flow = f;
    list_add_tail(&g->query_half->works, &w->link);
}

void gw_work_end(struct gateway *g, struct gw_work *w)
{
    list_del(&w->link);
    gw_part_settle(g);
}

int gw_slot_take(struct gateway *g, struct err *e)
{
    int64_t most = g->set->max_concurrent_queries;
    if (most > 0 && g->queries_running >= (unsigned)most) {
        return err_set(e, ERR_QUERY_BUSY,
                       "%lld queries run at once already (PUBLISHER_MAX_CONCURRENT_QUERIES): try "
                       "again in a moment",
                       (long long)most);
    }
    g->queries_running++;
    metric_set(g->query_half->running, g->queries_running);
    return 0;
}

void gw_slot_give(struct gateway *g)
{
    must(g->queries_running > 0);
    g->queries_running--;
    metric_set(g->query_half->running, g->queries_running);
}

struct ms gw_time_left(const struct gateway *g, struct ms since)
{
    if (g->set->query_timeout_ms == 0) {
        return MS_NONE;
    }
    struct ms until = ms_add(since, MS(g->set->query_timeout_ms));
    return ms_max(ms_sub(until, loop_now(g->loop)), MS(1));
}

int gw_check_caps(const struct gateway *g, uint64_t rows, size_t bytes, struct err *e)
{
    int64_t max_rows = g->set->max_query_rows;
    int64_t max_bytes = g->set->max_response_bytes;
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

void gw_query_error(const struct gateway *g, struct err *e)
{
    bool is_cancel = e->code == ERR_CANCELLED && strstr(e->text, "statement timeout");
    if (e->code == ERR_TIMEOUT || is_cancel) {
        err_set(e, ERR_QUERY_TIMEOUT,
                "the query took longer than %lld ms (PUBLISHER_QUERY_TIMEOUT_MS) and was cancelled",
                (long long)g->set->query_timeout_ms);
    }
}

void gw_reply_error(struct http_req *r, int code, const char *text)
{
    if (err_code_http(code) == 503) {
        http_answer_header(r, SLICE("Retry-After"), SLICE("1"));
    }
    http_reply_error(r, code, text);
}
