#include "common/err/err.h"

#include <stdio.h>

struct code_row {
    int code;
    enum err_class class;
    int http;
    const char *name;
    const char *text;
};

static const struct code_row code_rows[] = {
#define ERR_CODE(name, number, class_, http, text) {name, ERR_CLASS_##class_, http, #name, text},
#include "common/err/err_codes.def"
#undef ERR_CODE
};

enum { ERRNO_LAST = 999 };

static const struct code_row *row_of(int code)
{
    for (size_t i = 0; i < ARRAY_LEN(code_rows); i++) {
        if (code_rows[i].code == code) {
            return &code_rows[i];
        }
    }
    return NULL;
}

static bool is_errno(int code)
{
    return code < 0 && code >= -ERRNO_LAST;
}

void err_clear(struct err *e)
{
    if (e) {
        e->code = 0;
        e->sqlstate[0] = '\0';
        e->text[0] = '\0';
    }
}

/* A cut in the middle of a character would make the text unfit for JSON and protobuf. */
static void drop_cut_character(char *text, size_t len)
{
    size_t at = len;
    while (at > 0 && len - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80) {
        at--;
    }
    if (at == 0) {
        return;
    }
    unsigned char lead = (unsigned char)text[at - 1];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (want > 1 && len - (at - 1) < want) {
        text[at - 1] = '\0';
    }
}

static void put_text(struct err *e, const char *text)
{
    size_t len = strlen(text);
    bool cut = len >= sizeof e->text;
    if (cut) {
        len = sizeof e->text - 1;
    }
    memmove(e->text, text, len);
    e->text[len] = '\0';
    if (cut) {
        drop_cut_character(e->text, len);
    }
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = err_vset(e, code, fmt, ap);
    va_end(ap);
    return rc;
}

int err_vset(struct err *e, int code, const char *fmt, va_list ap)
{
    must(code < 0);
    if (!e) {
        return code;
    }
    /* Through a copy: the arguments may point into e. */
    char text[ERR_TEXT_MAX + 8];
    vsnprintf(text, sizeof text, fmt, ap);
    e->code = code;
    e->sqlstate[0] = '\0';
    put_text(e, text);
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e) {
        return ERR_INTERNAL;
    }
    if (e->code == 0) {
        e->code = ERR_INTERNAL; /* whoever wraps has failed: never turn that into success */
    }
    char text[2 * ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, ERR_TEXT_MAX, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : (size_t)n < ERR_TEXT_MAX ? (size_t)n : ERR_TEXT_MAX - 1;
    snprintf(text + at, sizeof text - at, "%s%s", at ? ": " : "", err_text(e));
    put_text(e, text);
    return e->code;
}

const char *err_text(const struct err *e)
{
    if (!e) {
        return err_code_text(ERR_INTERNAL);
    }
    return e->text[0] ? e->text : err_code_text(e->code);
}

const char *err_code_name(int code)
{
    if (code == 0) {
        return "OK";
    }
    const struct code_row *row = row_of(code);
    if (row) {
        return row->name;
    }
    const char *name = is_errno(code) ? strerrorname_np(-code) : NULL;
    return name ? name : "ERR_UNKNOWN";
}

const char *err_code_text(int code)
{
    if (code == 0) {
        return "no error";
    }
    const struct code_row *row = row_of(code);
    if (row) {
        return row->text;
    }
    const char *text = is_errno(code) ? strerrordesc_np(-code) : NULL;
    return text ? text : "unknown error";
}

enum err_class err_code_class(int code)
{
    const struct code_row *row = row_of(code);
    if (row) {
        return row->class;
    }
    return is_errno(code) ? ERR_CLASS_TRANSIENT : ERR_CLASS_BUG;
}

const char *err_class_name(enum err_class c)
{
    switch (c) {
    case ERR_CLASS_TRANSIENT:
        return "transient";
    case ERR_CLASS_LOST:
        return "lost";
    case ERR_CLASS_FENCED:
        return "fenced";
    case ERR_CLASS_PERMANENT:
        return "permanent";
    case ERR_CLASS_CANCELLED:
        return "cancelled";
    case ERR_CLASS_BUG:
        return "bug";
    }
    return "bug";
}

int err_code_http(int code)
{
    const struct code_row *row = row_of(code);
    return row ? row->http : 500;
}
