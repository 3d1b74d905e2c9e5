#include "services/planner/store/sql_split.h"

/* Where the part that starts at `at` ends: a quoted piece, a comment, or one character. */
static size_t skip_part(struct slice text, size_t at)
{
    const char *end = NULL;
    struct slice left = slice_make(text.p + at, text.len - at);
    if (slice_starts(left, SLICE("--"))) {
        end = "\n";
    } else if (slice_starts(left, SLICE("$$"))) {
        end = "$$";
    } else if (left.p[0] == '\'' || left.p[0] == '"') {
        end = left.p[0] == '\'' ? "'" : "\"";
    }
    if (!end) {
        return at + 1;
    }
    size_t n = strlen(end);
    const char *found = left.len > n ? memmem(left.p + n, left.len - n, end, n) : NULL;
    return found ? (size_t)(found - text.p) + n : text.len;
}

/* Blanks and comments before a statement are not part of it. */
static struct slice without_comments(struct slice text)
{
    for (text = slice_trim(text); slice_starts(text, SLICE("--")); text = slice_trim(text)) {
        size_t end = skip_part(text, 0);
        text = slice_make(text.p + end, text.len - end);
    }
    return text;
}

bool sql_next(struct slice *rest, struct slice *stmt)
{
    while (rest->len > 0) {
        size_t at = 0;
        while (at < rest->len && rest->p[at] != ';') {
            at = skip_part(*rest, at);
        }
        *stmt = without_comments(slice_make(rest->p, at));
        size_t used = at < rest->len ? at + 1 : at;
        *rest = slice_make(rest->p + used, rest->len - used);
        if (stmt->len > 0) {
            return true;
        }
    }
    return false;
}
