/* Takes secrets out of error texts. */
#include "common/err/err.h"

enum { SECRET_MIN = 4 };

static void replace_all(char *text, const char *needle)
{
    size_t len = strlen(needle);
    for (char *at = strstr(text, needle); at; at = strstr(at + 3, needle)) {
        memcpy(at, "***", 3);
        memmove(at + 3, at + len, strlen(at + len) + 1);
    }
}

/* A text that was cut at its limit may end in the first part of the secret. */
static void replace_cut_tail(char *text, const char *needle)
{
    size_t text_len = strlen(text);
    for (size_t n = strlen(needle) - 1; n >= SECRET_MIN; n--) {
        if (text_len >= n && memcmp(text + text_len - n, needle, n) == 0) {
            memcpy(text + text_len - n, "***", 4);
            return;
        }
    }
}

static char *double_quotes(const char *secret)
{
    char *out = xmalloc(2 * strlen(secret) + 1);
    char *at = out;
    for (const char *p = secret; *p; p++) {
        if (*p == '\'') {
            *at++ = '\'';
        }
        *at++ = *p;
    }
    *at = '\0';
    return out;
}

void err_scrub(struct err *e, const char *secret)
{
    if (!e || !secret || strlen(secret) < SECRET_MIN) {
        return;
    }
    bool was_cut = strlen(e->text) >= ERR_TEXT_MAX - 4;
    auto_free char *doubled = double_quotes(secret);
    replace_all(e->text, doubled);
    replace_all(e->text, secret);
    if (was_cut) {
        replace_cut_tail(e->text, doubled);
        replace_cut_tail(e->text, secret);
    }
}
