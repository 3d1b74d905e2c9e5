#include "common/conf/conf_internal.h"

enum { NEAR_MAX = 96 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) between two words; NEAR_MAX when too long. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n >= NEAR_MAX || m >= NEAR_MAX) {
        return NEAR_MAX;
    }
    size_t rows[3][NEAR_MAX] = {{0}};
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = least(now[j], before[j - 2] + 1, NEAR_MAX);
            }
        }
    }
    return rows[n % 3][m];
}

const char *conf_near(const char *word, const char *const *candidates, size_t n)
{
    size_t limit = strlen(word) / 3;
    size_t best = limit < 2 ? 3 : limit + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, candidates[i]);
        if (d < best) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
