/* What the readers of connection objects share. */
#pragma once
#include "common/base/buf.h"
#include "common/json/json.h"

/* One part of an identity, behind those before it. */
void wh_part_add(struct buf *out, const char *part);
/* A setting of a postgresConnection, as a member or in its connection string; "" when nowhere. The
 * caller frees. */
char *wh_postgres_setting(const json_t *pg, const char *member, const char *key) MUST_USE;
void wh_postgres_identity(struct buf *out, const json_t *pg);
