/* Errors: a negative code with a class, and a sentence that grows outwards as it returns. */
#pragma once
#include "common/base/base.h"
#include <stdarg.h>

enum err_class {
    ERR_CLASS_TRANSIENT,
    ERR_CLASS_LOST,
    ERR_CLASS_FENCED,
    ERR_CLASS_PERMANENT,
    ERR_CLASS_CANCELLED,
    ERR_CLASS_BUG
};
enum err_code {
#define ERR_CODE(name, number, class_, http, text) name = number,
#include "common/err/err_codes.def"
#undef ERR_CODE
};
#define ERR_TEXT_MAX 1024
struct err {
    int code;                /* 0 or a negative code: ERR_ or -errno */
    char sqlstate[6];        /* the warehouse's own code, or "" */
    char text[ERR_TEXT_MAX]; /* one sentence for people, innermost cause last; "" if none */
};

void err_clear(struct err *e);
/* Sets code and sentence; returns code, so that `return err_set(e, ERR_X, "..")` reads well. e may
 * be NULL. Clears sqlstate (set that afterwards). Arguments may point into e. A text too long is
 * cut. */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_vset(struct err *e, int code, const char *fmt, va_list ap) PRINTF_LIKE(3, 0);
/* Puts context in front: "load plan x: <old text>". Returns the code it has. e may be NULL (returns
 * ERR_INTERNAL). */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The sentence, or the code's own text when there is none. Never NULL. */
const char *err_text(const struct err *e);
const char *err_code_name(int code); /* "ERR_FENCED", "ENOENT", never NULL */
const char *err_code_text(int code);
enum err_class err_code_class(int code); /* -errno counts as transient */
const char *err_class_name(enum err_class c);
int err_code_http(int code); /* HTTP status for people: 500 when unknown */
/* Replaces every occurrence of a secret of 4 or more bytes (and its form with '' for ') by "***".
 */
void err_scrub(struct err *e, const char *secret);
