/* What callers send, checked: bodies, paging, idempotency keys. Pure: knows no gateway. Every
 * refusal is ERR_INVALID with a sentence that names the field; a null counts as absent where the
 * API allows both (spec/malloy-persistence.md 3.2, 7.2, 7.5). */
#pragma once
#include "common/base/arena.h"
#include "common/json/json.h"

/* A body that must be a JSON object; empty text is {} when may_be_empty. NULL with e set; the
 * caller decrefs. */
json_t *rest_body_parse(struct slice text, bool may_be_empty, struct err *e) MUST_USE;
/* Does the top level of the body name a versionId (501 everywhere)? Cheap when the word does not
 * occur. */
bool rest_body_has_version(struct slice text);

struct rest_run { /* POST materializations */
    bool force_refresh, reseed, take_over;
    bool has_names; /* sourceNames was sent */
    const char **names;
    size_t n_names;
    const char *run_context; /* JSON text; NULL: none */
};
/* ERR_UNSUPPORTED when buildInstructions is there. Names are borrowed from the body. */
int rest_body_run(struct arena *a, const json_t *body, struct rest_run *out,
                  struct err *e) MUST_USE;

struct rest_package { /* POST packages, and the packages of an environment */
    const char *name, *location, *description; /* borrowed; NULL: not sent */
};
int rest_body_package(const json_t *body, struct rest_package *out, struct err *e) MUST_USE;
int rest_body_package_patch(const json_t *body, const char *package, struct err *e) MUST_USE;
/* `name`: of the path; NULL for POST /environments, whose body must have it. */
int rest_body_environment(const json_t *body, const char *name, struct err *e) MUST_USE;
int rest_body_connection(const json_t *body, const char *name, bool is_new, struct err *e) MUST_USE;

/* limit or offset of a query string: a non-negative integer; larger than 32 bits is cut to the
 * largest. */
int rest_paging_number(const char *what, const char *text, uint32_t *out, struct err *e) MUST_USE;
/* Idempotency-Key -> request id (decisions 7.7). `part` tells the calls of one request apart; "" of
 * the first. */
void rest_request_id(struct slice key, const char *part, uint8_t out[16]);
