/* Takes what may be a credential out of a tree: better a setting too few than a secret too many. */
#include "common/json/json.h"

#include <ctype.h>

enum { KEY_CAP = 128 };

/* Lower case, letters and digits only: private_key, privateKey and Private-Key are one. */
static void fold(const char *text, char *out, size_t cap)
{
    size_t n = 0;
    for (const char *p = text; *p && n < cap - 1; p++) {
        if (isalnum((unsigned char)*p)) {
            out[n++] = (char)tolower((unsigned char)*p);
        }
    }
    out[n] = '\0';
}

static bool is_secret_name(const char *name)
{
    static const char *const words[] = {
        "password", "passwd",     "passphrase", "pwd",           "secret",
        "token",    "credential", "key",        "private",       "connectionstring",
        "conninfo", "bearer",     "cookie",     "authorization", "signature"};
    char folded[KEY_CAP];
    fold(name, folded, sizeof(folded));
    size_t len = strlen(folded);
    if (len >= KEY_CAP - 1) {
        return true; /* nothing that is known has such a name */
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strstr(folded, words[i])) {
            return true;
        }
    }
    bool is_short_one =
        strcmp(folded, "dsn") == 0 || strcmp(folded, "sig") == 0 || strcmp(folded, "sas") == 0;
    return is_short_one || (len >= 4 && strcmp(folded + len - 4, "pass") == 0);
}

/* scheme://user:secret@host, and scheme://token@host. */
static bool has_userinfo(const char *text)
{
    for (const char *at = strstr(text, "://"); at; at = strstr(at + 3, "://")) {
        const char *host_end = at + 3 + strcspn(at + 3, "/?# \t\r\n\"'");
        if (memchr(at + 3, '@', (size_t)(host_end - (at + 3)))) {
            return true;
        }
    }
    return false;
}

static bool is_name_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* "password=x", "Pwd : x", {"private_key":"x"}: a secret's name before a sign of assignment. */
static bool has_assignment(const char *text)
{
    for (const char *sign = strpbrk(text, "=:"); sign; sign = strpbrk(sign + 1, "=:")) {
        const char *end = sign;
        while (end > text && strchr(" \t\"'\\", end[-1])) {
            end--;
        }
        const char *start = end;
        while (start > text && is_name_letter(start[-1])) {
            start--;
        }
        char name[KEY_CAP];
        size_t len = (size_t)(end - start);
        if (len >= sizeof(name)) {
            return true;
        }
        memcpy(name, start, len);
        name[len] = '\0';
        if (len && is_secret_name(name)) {
            return true;
        }
    }
    return false;
}

static bool is_secret_value(const char *text)
{
    return has_userinfo(text) || has_assignment(text) || strstr(text, "-----BEGIN ") != NULL;
}

static bool is_secret_member(const char *name, const json_t *value)
{
    bool says_nothing = json_is_null(value) || json_is_boolean(value);
    return (!says_nothing && is_secret_name(name)) ||
           (json_is_string(value) && is_secret_value(json_string_value(value)));
}

void json_redact(json_t *v)
{
    const char *name;
    json_t *child;
    void *next;
    json_object_foreach_safe(v, next, name, child)
    {
        if (is_secret_member(name, child)) {
            json_object_del(v, name);
        } else {
            json_redact(child);
        }
    }
    for (size_t i = json_array_size(v); i-- > 0;) {
        child = json_array_get(v, i);
        if (json_is_string(child) && is_secret_value(json_string_value(child))) {
            json_array_remove(v, i);
        } else {
            json_redact(child);
        }
    }
}
