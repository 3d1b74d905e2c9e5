/* One child and its channel: a frame out, a frame in, a deadline between them. */
#include "common/compiler/compiler_internal.h"
#include "common/log/log.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define READ_MIN 65536      /* bytes offered to each read */
#define KEEP_CAP (1U << 20) /* a larger buffer is given back after its frame */
#define LEAVE_MS 1000       /* a child that closed its channel may take so long to end */

static char kind_hello[] = "hello";

struct write {
    uv_write_t req;
    uint8_t *bytes; /* owned */
};

static void on_written(uv_write_t *req, int status)
{
    (void)status; /* a child that reads no more is noticed by its end or by the deadline */
    struct write *w = container_of(req, struct write, req);
    free(w->bytes);
    free(w);
}

static void send_frame(struct compiler_child *c, char *kind, ProtobufCBinaryData payload)
{
    Kiln__Mc__Frame f = KILN__MC__FRAME__INIT;
    f.id = c->frame_id;
    f.kind = kind;
    f.payload = payload;
    size_t len = kiln__mc__frame__get_packed_size(&f);
    struct write *w = xcalloc(1, sizeof *w);
    w->bytes = xmalloc(4 + len);
    for (int i = 0; i < 4; i++) {
        w->bytes[i] = (uint8_t)(len >> (8 * i));
    }
    kiln__mc__frame__pack(&f, w->bytes + 4);
    uv_buf_t b = uv_buf_init((char *)w->bytes, (unsigned)(4 + len));
    int rv = uv_write(&w->req, (uv_stream_t *)&c->channel, &b, 1, on_written);
    if (rv) {
        on_written(&w->req, rv);
    }
}

void compiler_child_ask(struct compiler_child *c, enum compiler_child_state state, char *kind,
                        ProtobufCBinaryData payload, const char *load_id, struct ms span)
{
    c->state = state;
    c->frame_id++;
    c->asked_load = xstrdup(load_id);
    c->asked_stale = false;
    c->asked_at = loop_now(c->pool->loop);
    c->span = span;
    loop_timer_start(&c->deadline, span);
    send_frame(c, kind, payload);
}

void compiler_child_kill(struct compiler_child *c)
{
    must(!c->job);
    c->state = CHILD_ENDING;
    loop_timer_stop(&c->deadline);
    if (!c->exited) {
        (void)uv_process_kill(&c->process, SIGKILL);
    } else {
        compiler_process_close(c);
    }
}

static void refuse_snapshot(struct compiler_child *c, const char *why)
{
    c->pool->no_snapshot = true;
    log_warn("compiler.no_snapshot", "pid=%d why=%s", c->process.pid, log_q(why));
    compiler_child_kill(c);
    compiler_child_start(c->pool);
}

void compiler_child_lost(struct compiler_child *c, const char *why)
{
    bool starting = c->state == CHILD_STARTING;
    if (starting && c->from_snapshot) {
        refuse_snapshot(c, why);
        return;
    }
    struct compiler_job *job = compiler_job_detach(c);
    c->pool->stats.died++;
    log_warn("compiler.lost", "pid=%d why=%s", c->process.pid, log_q(why));
    compiler_pool_note_failure(c->pool, starting, "%s", why);
    compiler_child_kill(c);
    if (job) {
        compiler_job_retry(job, why);
    }
    compiler_dispatch(c->pool);
}

static void take_frame(struct compiler_child *c, struct slice packed)
{
    Kiln__Mc__Frame *f =
        kiln__mc__frame__unpack(NULL, packed.len, (const uint8_t *)(const void *)packed.p);
    if (!f || f->id != c->frame_id || c->state == CHILD_IDLE) {
        compiler_child_lost(c, "the Malloy compiler answered with something that is no answer");
    } else {
        loop_timer_stop(&c->deadline);
        log_debug("compiler.answer", "pid=%d kind=%s took_ms=%lld bytes=%zu", c->process.pid,
                  log_q(f->kind), (long long)ms_sub(loop_now(c->pool->loop), c->asked_at).v,
                  packed.len);
        compiler_answer(c, f, packed);
    }
    if (f) {
        kiln__mc__frame__free_unpacked(f, NULL);
    }
}

static void take_frames(struct compiler_child *c)
{
    while (c->state != CHILD_ENDING && c->in.len >= 4) {
        const uint8_t *p = (const uint8_t *)(const void *)c->in.p;
        size_t len = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
        if (len > COMPILER_FRAME_MAX) {
            compiler_child_lost(c, "the Malloy compiler answered with rubbish");
            return;
        }
        if (c->in.len < 4 + len) {
            return;
        }
        /* Taken out first: what the answer starts may send and receive again. */
        struct buf frame = c->in;
        buf_init(&c->in);
        if (frame.len > 4 + len) {
            buf_add(&c->in, frame.p + 4 + len, frame.len - 4 - len);
        }
        take_frame(c, slice_make(frame.p + 4, len));
        if (c->in.p || frame.cap > KEEP_CAP) {
            buf_fini(&frame);
        } else {
            buf_clear(&frame);
            c->in = frame;
        }
    }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct compiler_child *c = h->data;
    buf_reserve(&c->in, c->in.len > READ_MIN ? c->in.len : READ_MIN);
    *out = uv_buf_init(c->in.p + c->in.len, (unsigned)(c->in.cap - c->in.len - 1));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct compiler_child *c = s->data;
    if (n > 0 && c->state != CHILD_ENDING) {
        c->in.len += (size_t)n;
        take_frames(c);
    } else if (n < 0) {
        (void)uv_read_stop(s);
        c->hung_up = true;
        if (c->state != CHILD_ENDING) { /* its exit tells more; it comes now or never */
            loop_timer_start(&c->deadline, MS(LEAVE_MS));
        }
    }
}

static void on_deadline(struct loop_timer *t)
{
    struct compiler_child *c = t->data;
    if (c->hung_up) {
        compiler_child_lost(c, "the Malloy compiler closed its channel");
        return;
    }
    if (c->state == CHILD_STARTING && c->from_snapshot) {
        compiler_child_lost(c, "it did not answer in time");
        return;
    }
    compiler_answer_late(c);
}

void compiler_child_start(struct compiler_pool *p)
{
    struct compiler_child *c = xcalloc(1, sizeof *c);
    c->pool = p;
    c->state = CHILD_STARTING;
    map_init(&c->copies);
    loop_timer_init(&c->deadline, p->loop, on_deadline, c);
    list_add_tail(&p->children, &c->link);
    p->stats.started++;
    struct err e = {0};
    int rc = compiler_process_spawn(c, &e);
    if (rc == 0) {
        rc = uv_read_start((uv_stream_t *)&c->channel, on_alloc, on_read);
        must(rc == 0);
        compiler_child_ask(c, CHILD_STARTING, kind_hello, (ProtobufCBinaryData){0}, NULL,
                           c->from_snapshot ? p->thaw_span : MS(COMPILER_HELLO_MS));
        return;
    }
    c->exited = true;
    c->from_snapshot = false; /* it is not to blame */
    compiler_child_lost(c, err_text(&e));
}

int64_t compiler_child_rss_mb(const struct compiler_child *c)
{
    char path[64], text[128];
    (void)snprintf(path, sizeof path, "/proc/%d/statm", c->process.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *rest = NULL;
    (void)strtoll(text, &rest, 10); /* whole size */
    return strtoll(rest, NULL, 10) * sysconf(_SC_PAGESIZE) >> 20;
}
