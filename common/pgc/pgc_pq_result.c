#include "common/pgc/pgc_pq.h"

static PGresult *res_of(const struct pgc_result *r)
{
    return r->impl;
}

static size_t pq_rows(const struct pgc_result *r)
{
    return (size_t)PQntuples(res_of(r));
}

static size_t pq_cols(const struct pgc_result *r)
{
    return (size_t)PQnfields(res_of(r));
}

static struct slice pq_cell(const struct pgc_result *r, size_t row, size_t col)
{
    PGresult *res = res_of(r);
    if (PQgetisnull(res, (int)row, (int)col)) {
        return SLICE_NONE;
    }
    return slice_make(PQgetvalue(res, (int)row, (int)col),
                      (size_t)PQgetlength(res, (int)row, (int)col));
}

static const char *pq_col_name(const struct pgc_result *r, size_t col)
{
    return PQfname(res_of(r), (int)col);
}

static uint32_t pq_col_type(const struct pgc_result *r, size_t col)
{
    return PQftype(res_of(r), (int)col);
}

static int pq_col_typmod(const struct pgc_result *r, size_t col)
{
    return PQfmod(res_of(r), (int)col);
}

static uint64_t pq_affected(const struct pgc_result *r)
{
    uint64_t n = 0;
    if (slice_to_u64(slice_of(PQcmdTuples(res_of(r))), &n) < 0) {
        return 0;
    }
    return n;
}

static void pq_result_free(struct pgc_result *r)
{
    PQclear(res_of(r));
    free(r);
}

static const struct pgc_result_ops ops = {
    .rows = pq_rows,
    .cols = pq_cols,
    .cell = pq_cell,
    .col_name = pq_col_name,
    .col_type = pq_col_type,
    .col_typmod = pq_col_typmod,
    .affected = pq_affected,
    .free = pq_result_free,
};

struct pgc_result *pgc_pq_result(PGresult *res)
{
    struct pgc_result *r = xmalloc(sizeof *r);
    *r = (struct pgc_result){.ops = &ops, .impl = res};
    return r;
}
