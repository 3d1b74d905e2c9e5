#include "common/base/tag.h"

enum { VALUE_MAX = 256, KEY_MAX = 128 };

static const char *const reserved[] = {"class",   "environment", "package",  "model",  "source",
                                       "trigger", "run_id",      "query_id", "version"};

static bool is_key(const char *key)
{
    size_t len = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return len > 0 && len <= KEY_MAX && key[len] == '\0';
}

static bool is_reserved(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
        if (strcmp(key, reserved[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_value_char(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"';
}

static bool is_value(const char *value)
{
    size_t len = 0;
    while (value[len] && is_value_char(value[len])) {
        len++;
    }
    return value[len] == '\0' && len <= VALUE_MAX;
}

const char *tag_problem(const char *key, const char *value)
{
    if (!is_key(key)) {
        return "its name must be 1 to 128 letters, digits or '_'";
    }
    if (is_reserved(key)) {
        return "its name belongs to the server";
    }
    if (!value) {
        return "its value is no string";
    }
    return is_value(value) ? NULL
                           : "its value must be at most 256 printable ASCII characters "
                             "without a double quote";
}

void tag_add(struct buf *out, const char *key, const char *value)
{
    buf_addf(out, "%s%s=\"", out->len ? "," : "", key);
    char last = '\0';
    for (const char *p = value; *p; p++) {
        if ((last == '*' && *p == '/') || (last == '/' && *p == '*')) {
            buf_add_char(out, ' ');
        }
        buf_add_char(out, is_value_char(*p) ? *p : '_');
        last = *p;
    }
    buf_add_char(out, '"');
}
