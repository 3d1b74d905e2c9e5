#include "common/generation/core/names.h"

#include "common/json/json.h"

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

bool generation_is_dataset(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
    return len > 0 && len <= 128 && !name[len] && name[0] != '.';
}

bool generation_is_id(const char *name)
{
    return strlen(name) == 26 && strspn(name, crockford) == 26 && name[0] <= '7';
}

bool generation_is_data_file(const char *name)
{
    if (strncmp(name, "data-", 5) != 0) {
        return false;
    }
    size_t digits = strspn(name + 5, "0123456789");
    return digits > 0 && digits < 10 && strcmp(name + 5 + digits, ".parquet") == 0;
}

int64_t generation_id_time_us(const char *id)
{
    if (!generation_is_id(id)) {
        return 0;
    }
    int64_t ms = 0;
    for (size_t i = 0; i < 10; i++) {
        ms = ms * 32 + (strchr(crockford, id[i]) - crockford);
    }
    return ms * 1000;
}

bool generation_is_orphan(const char *name, const struct generation_record *r)
{
    if (!generation_is_id(name) || generation_id_time_us(name) >= r->older_than_us) {
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->ids[i], name) == 0) {
            return false;
        }
    }
    return true;
}

enum generation_claim generation_claim_of(const struct generation_owner *owner,
                                          const struct uuid *us, int64_t now_us)
{
    if (!owner) {
        return GENERATION_CLAIM_FREE;
    }
    if (uuid_eq(&owner->installation, us)) {
        return GENERATION_CLAIM_OURS;
    }
    bool is_held = owner->renewed_us > now_us - INT64_C(1000000) * GENERATION_ROOT_HELD_S;
    return is_held ? GENERATION_CLAIM_HELD : GENERATION_CLAIM_STALE;
}

void generation_owner_print(const struct generation_owner *o, struct buf *out)
{
    char id[UUID_TEXT];
    json_t *json = json_object();
    uuid_format(&o->root_id, id);
    json_set_str(json, "root_id", id);
    uuid_format(&o->installation, id);
    json_set_str(json, "installation", id);
    json_set_int(json, "renewed_us", o->renewed_us);
    json_print(json, out);
    json_decref(json);
}

int generation_owner_parse(struct slice text, struct generation_owner *out)
{
    struct err e;
    json_t *o = json_parse(text, &e);
    struct generation_owner owner = {.renewed_us = json_int(o, "renewed_us", 0)};
    int rc = -1;
    if (uuid_parse(slice_of(json_str(o, "root_id", "")), &owner.root_id) == 0 &&
        uuid_parse(slice_of(json_str(o, "installation", "")), &owner.installation) == 0) {
        *out = owner;
        rc = 0;
    }
    json_decref(o);
    return rc;
}
