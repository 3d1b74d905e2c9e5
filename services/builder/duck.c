/* Packages' own DuckDB in a builder: the sandboxes, and the generation root that it holds for its
 * installation (protocol.md 8). */
#include "common/log/log.h"
#include "services/builder/builder.h"

enum { RENEW_MS = 60000 };

static void claim_offload(struct offload_job *job)
{
    struct builder *b = job->data;
    b->root.rc = generation_root_claim(b->set->generation_root, &b->root.installation,
                                       loop_unix_us(), &b->root.owner, &b->root.err);
}

static void finish_close(struct builder *b)
{
    sandboxes_free(b->sandboxes);
    b->sandboxes = NULL;
    b->root.closed(b->root.closed_data);
}

static void on_claimed(struct offload_job *job)
{
    struct builder *b = job->data;
    bool first = b->root.asked, held = b->root.rc == 0;
    b->root.asked = b->root.claiming = false;
    if (b->root.closed) {
        if (b->root.boxes_closed) {
            finish_close(b);
        }
        return;
    }
    if (first || held != b->root.held) {
        health_set(b->service, "generation_root", false, held, held ? "" : err_text(&b->root.err));
        if (held) {
            log_info("builder.root", "path=%s", log_q(b->set->generation_root));
        } else {
            log_warn("builder.root", "path=%s error=%s", log_q(b->set->generation_root),
                     log_q(err_text(&b->root.err)));
        }
    }
    b->root.held = held;
    snprintf(b->root.fault, sizeof(b->root.fault), "%s", held ? "" : err_text(&b->root.err));
    b->root_id = (ProtobufCBinaryData){sizeof(b->root.owner.root_id.b), b->root.owner.root_id.b};
    loop_timer_start(&b->root.timer, MS(RENEW_MS));
    if (first || held) {
        builder_go(b);
    }
}

static void claim(struct builder *b)
{
    b->root.claiming = true;
    b->root.job =
        (struct offload_job){.work_offload = claim_offload, .done = on_claimed, .data = b};
    loop_offload(b->loop, &b->root.job);
}

static void on_renew(struct loop_timer *t)
{
    claim(t->data);
}

int builder_duck_start(struct builder *b, struct err *e)
{
    const struct builder_settings *s = b->set;
    loop_timer_init(&b->root.timer, b->loop, on_renew, b);
    if (!s->package_store[0] || !s->generation_root[0]) {
        return 0;
    }
    auto_free char *dir = xasprintf("%s/%s", s->state_dir, s->instance);
    const struct sandbox_conf c = {.package_store = s->package_store,
                                   .dir = dir,
                                   .generation_root = s->generation_root,
                                   .memory_bytes = (uint64_t)s->duckdb_memory,
                                   .idle = MS(s->duckdb_idle_ms),
                                   .server_timeout = MS(s->statement_timeout_ms)};
    return sandboxes_new(b->loop, &c, &b->sandboxes, e);
}

void builder_duck_hello(struct builder *b)
{
    if (b->sandboxes && !b->root.held && !b->root.asked) {
        b->root.installation = *bus_installation(b->bus);
        sandboxes_installation(b->sandboxes, &b->root.installation);
        b->root.asked = true;
        claim(b);
    }
}

static void on_boxes_closed(void *data)
{
    struct builder *b = data;
    if (!b->root.claiming) {
        finish_close(b);
    } else {
        b->root.boxes_closed = true;
    }
}

void builder_duck_close(struct builder *b, void (*done)(void *data), void *data)
{
    loop_timer_stop(&b->root.timer);
    b->root.closed = done;
    b->root.closed_data = data;
    if (b->sandboxes) {
        sandboxes_close(b->sandboxes, on_boxes_closed, b);
    } else {
        done(data);
    }
}
