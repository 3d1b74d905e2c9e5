/* JSON: jansson for trees, a small writer for streams into a buf. The only header that includes
 * jansson. */
#pragma once
#include "common/base/buf.h"
#include "common/err/err.h"
#include <jansson.h>

/* Parses a whole document; NULL with e set ("line 3: ...") when it is none. The caller decrefs. */
json_t *json_parse(struct slice text, struct err *e) MUST_USE;
/* Compact text of a tree appended to out; key order as inserted. */
void json_print(const json_t *v, struct buf *out);
char *json_text(const json_t *v) MUST_USE; /* the caller frees; compact */
/* Members of an object, NULL-safe; the default when absent or of another type. Borrowed. */
const char *json_str(const json_t *obj, const char *key, const char *def);
bool json_flag(const json_t *obj, const char *key, bool def);
int64_t json_int(const json_t *obj, const char *key, int64_t def);
/* Sets a member to a string, or to null when value is NULL. */
void json_set_str(json_t *obj, const char *key, const char *value);
void json_set_int(json_t *obj, const char *key, int64_t value);
void json_set_flag(json_t *obj, const char *key, bool value);

/* Takes members out, at any depth, whose name may stand for a credential (password, secret, token,
 * key, private..), and texts that may hold one: URLs with user:password@, name=value lists that set
 * one, PEM blocks. For connection objects: what is shown of one goes through here. */
void json_redact(json_t *v);

/* Streaming: appends one JSON string literal, quotes included. Invalid UTF-8 becomes U+FFFD. */
void jsonw_str(struct buf *out, struct slice text);
/* Appends text as the *inside* of a JSON string (for JSON in JSON). */
void jsonw_escaped(struct buf *out, struct slice text);
