#include "services/kiln/up_output.h"
#include "common/base/buf.h"
#include "common/json/json.h"
#include "services/kiln/up_child.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* A pipe that polls as writable takes PIPE_BUF bytes at once. */
static bool is_writable(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

static bool write_whole(const char *text, size_t len)
{
    while (len > 0) {
        if (!is_writable()) {
            return false;
        }
        ssize_t n = write(STDERR_FILENO, text, len > PIPE_BUF ? PIPE_BUF : len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

void up_output_line(struct slice line)
{
    static size_t lost;
    auto_buf struct buf out = {0};
    if (lost) {
        buf_addf(&out, "kiln up: %zu lines were not read in time and are lost\n", lost);
    }
    buf_add_slice(&out, line);
    buf_add_char(&out, '\n');
    lost = write_whole(out.p, out.len) ? 0 : lost + 1;
}

/* ---- what a line says ---- */
static bool from_json(struct slice line, struct buf *out, bool *is_error)
{
    struct err ignored = {0};
    json_t *v = line.len && line.p[0] == '{' ? json_parse(line, &ignored) : NULL;
    const char *level = json_str(v, "level", NULL);
    if (level) {
        const char *text = json_str(v, "error", json_str(v, "text", json_str(v, "event", "")));
        buf_add_str(out, text);
        *is_error = strcmp(level, "error") == 0;
    }
    json_decref(v);
    return level != NULL;
}

static void add_unquoted(struct slice quoted, struct buf *out)
{
    for (size_t i = 1; i < quoted.len && quoted.p[i] != '"'; i++) {
        if (quoted.p[i] == '\\' && i + 1 < quoted.len) {
            i++;
        }
        buf_add_char(out, quoted.p[i]);
    }
}

/* "2026-01-01T00:00:00.000Z error planner event error="..."" */
static bool from_text(struct slice line, struct buf *out, bool *is_error)
{
    static const char key[] = " error=";
    bool is_log = line.len > 32 && line.p[10] == 'T' && line.p[23] == 'Z' && line.p[24] == ' ';
    if (!is_log) {
        return false;
    }
    *is_error = memcmp(line.p + 25, "error", 5) == 0;
    const char *at = memmem(line.p, line.len, key, sizeof(key) - 1);
    size_t from = at ? (size_t)(at - line.p) + sizeof(key) - 1 : 31;
    struct slice rest = slice_make(line.p + from, line.len - from);
    if (rest.len && rest.p[0] == '"') {
        add_unquoted(rest, out);
    } else {
        buf_add_slice(out, rest);
    }
    return true;
}

void up_child_sentence(struct slice line, struct buf *out, bool *is_error)
{
    *is_error = false;
    if (from_json(line, out, is_error) || from_text(line, out, is_error)) {
        return;
    }
    buf_add_slice(out, slice_trim(line));
    *is_error = out->len > 0;
}
