/* Query metadata of served queries: what was declared or sent, and the comment that the statement
 * carries to the warehouse (spec/malloy-persistence.md 5.8). Pure but for the JSON. */
#pragma once
#include "common/base/arena.h"
#include "common/base/tag.h"
#include "common/json/json.h"

struct gw_property {
    const char *key, *value;
};
struct gw_properties {
    struct gw_property items[TAG_PROPERTIES_MAX];
    size_t n;
};
/* Unless it is there already. What breaks a rule is dropped: the planner warned of it at the load.
 */
void gw_properties_put(struct gw_properties *p, struct arena *a, const char *key,
                       const char *value);
void gw_properties_put_all(struct gw_properties *p, struct arena *a,
                           const struct gw_properties *weaker);
/* `queryMetadata` of a package object. */
void gw_properties_of_package(struct gw_properties *p, struct arena *a, const json_t *package);

/* What a request says: `queryMetadata` and `queryClass`. */
struct gw_tag_ask {
    struct gw_properties said;
    const char *class_name; /* NULL: interactive */
};
/* From a request's body; ERR_INVALID. Lives in the arena. */
int gw_tag_read(const json_t *body, struct arena *a, struct gw_tag_ask *out,
                struct err *e) MUST_USE;

/* What the server says of a query; NULL members are left out. */
struct gw_tag_about {
    const char *class_name; /* NULL: interactive */
    const char *environment, *package, *model, *source;
};
/* Inside of the comment; NULL when nothing was declared. */
const char *gw_tag_text(struct arena *a, const struct gw_properties *p,
                        const struct gw_tag_about *about);
