#include "common/bus/kinds.h"
#include "common/base/base.h"

static const struct bus_kind_row rows[] = {
#define KIND(name_, number_, from_, to_, request_, reply_, timeout_ms_, request_kib_, reply_kib_,  \
             idempotent_by_, says_)                                                                \
    {.name = #name_,                                                                               \
     .from = from_,                                                                                \
     .to = to_,                                                                                    \
     .request = request_,                                                                          \
     .reply = reply_,                                                                              \
     .idempotent_by = idempotent_by_,                                                              \
     .says = says_,                                                                                \
     .number = number_,                                                                            \
     .timeout_ms = timeout_ms_,                                                                    \
     .request_most = (size_t)request_kib_ << 10,                                                   \
     .reply_most = (size_t)reply_kib_ << 10},
#include "proto/kinds.def"
#undef KIND
};

const struct bus_kind_row *bus_kind_find(uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].number == number) {
            return &rows[i];
        }
    }
    return NULL;
}

const struct bus_kind_row *bus_kind_rows(size_t *n)
{
    *n = ARRAY_LEN(rows);
    return rows;
}

int bus_kind_fits(const struct bus_kind_row *row, const char *what, size_t len, size_t most,
                  struct err *e)
{
    if (len > most) {
        return err_set(e, ERR_LIMIT, "%s: a %s of %zu bytes is over its limit of %zu bytes",
                       row->name, what, len, most);
    }
    return 0;
}
