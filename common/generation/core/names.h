/* Names below a root: what may stand in a path, what is ours, what may go. Pure. */
#pragma once
#include "common/base/crypto.h"

#define GENERATION_MANIFEST "manifest.json"
#define GENERATION_ROOT_FILE ".kiln-root"
#define GENERATION_ATTEMPT ".attempt" /* the token of who builds here */

/* Letters, digits, '_', '-' and '.', not first; at most 128. */
bool generation_is_dataset(const char *name);
bool generation_is_id(const char *name);        /* a ULID in capitals */
bool generation_is_data_file(const char *name); /* data-<digits>.parquet */
/* Unix microseconds in a ULID; 0 for anything else. */
int64_t generation_id_time_us(const char *id);

/* What is recorded somewhere: live attempts and generations that are not dropped. */
struct generation_record {
    const char *const *ids;
    size_t n;
    /* Only older ones are orphans. At boot: when the list was made; otherwise an hour before, since
     * an id is given out before it is known everywhere. */
    int64_t older_than_us;
};
/* May a directory of a dataset go? Never by what it holds, only by what is recorded. */
bool generation_is_orphan(const char *name, const struct generation_record *r);

/* Who owns a root (protocol.md 8). */
#define GENERATION_ROOT_RENEW_S 60
#define GENERATION_ROOT_HELD_S 180
struct generation_owner {
    struct uuid root_id, installation;
    int64_t renewed_us;
};
enum generation_claim {
    GENERATION_CLAIM_FREE, /* nobody's */
    GENERATION_CLAIM_OURS,
    GENERATION_CLAIM_STALE, /* another's, who does not renew it any more */
    GENERATION_CLAIM_HELD   /* another's */
};
/* owner NULL: there is no owner file. */
enum generation_claim generation_claim_of(const struct generation_owner *owner,
                                          const struct uuid *us, int64_t now_us);
void generation_owner_print(const struct generation_owner *o, struct buf *out);
int generation_owner_parse(struct slice text, struct generation_owner *out) MUST_USE; /* or -1 */
