/* Inside of common/toml: the C face of toml++. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct toml_error {
    int line, column;
    char text[512];
};
/* kind: the number of an enum toml_kind. text: len bytes, NUL-terminated. Nothing outlives the
 * call. */
struct toml_node {
    const char *path;
    int kind;
    const char *text;
    size_t len;
    int64_t i;
    double d;
    int line, column;
};
typedef void (*toml_visit_fn)(void *arg, const struct toml_node *node);

/* Walks every value below the root in the order of struct toml_doc. 0, or -1 with error filled. */
int toml_visit(const char *text, size_t len, struct toml_error *error, toml_visit_fn fn, void *arg);

#ifdef __cplusplus
}
#endif
