/* The routing table as data, and the one matcher over it. Pure: knows no gateway. */
#pragma once
#include "common/base/arena.h"
#include "common/err/err.h"

enum rest_method {
    REST_GET = 1, /* HEAD too */
    REST_POST = 2,
    REST_PUT = 4,
    REST_PATCH = 8,
    REST_DELETE = 16,
};
struct rest_route {
    enum rest_method method;
    const char *path;
    bool is_later;   /* answers 501 with `doc` */
    const char *doc; /* what it does, or the sentence of the 501 */
};
extern const struct rest_route rest_routes[]; /* rest_routes.def, in its order */
size_t rest_n_routes(void);

enum rest_param {
    REST_ENVIRONMENT,
    REST_PACKAGE,
    REST_CONNECTION,
    REST_ID,
    REST_PATH,
    REST_OTHER,
    REST_N_PARAMS
};
struct rest_match {
    int status;     /* 200: `route` takes it; 400 (e says why), 404, 405 (`allow`) */
    size_t route;   /* index into rest_routes */
    unsigned allow; /* methods the path has, of enum rest_method; set with 405 and 200 */
    char *param[REST_N_PARAMS]; /* decoded and checked; NULL: not in this path. REST_PATH joined by
                                   '/' */
};
/* Finds the row for a method ("GET", ..) and a raw path (percent-encoded, without query). Texts
 * live in the arena. */
void rest_match(struct arena *a, struct slice method, struct slice path, struct rest_match *out,
                struct err *e);
/* "GET, HEAD, POST, OPTIONS" of a set of methods. */
char *rest_allow_text(struct arena *a, unsigned allow) MUST_USE;
/* Is the text a name that may stand in a path and a message: 1 to 127 bytes of UTF-8, no slash,
 * backslash or control character, not "." or with ".."? 0 or ERR_INVALID; `what` is for the
 * sentence. */
int rest_name_check(const char *what, const char *name, struct err *e) MUST_USE;
