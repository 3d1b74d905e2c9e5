/* One try to become the leader: a session, the migrations, a look at the leader, the take-over
 * (protocol.md 1). */
#include "services/planner/store/store_internal.h"

#include "common/log/log.h"
#include "services/planner/store/store_migrate.h"

enum { HOLD, LOCK, LOOK, APPLY, UNLOCK, READ, TAKE, END };
enum { STEP_TIMEOUT_MS = 15000, LOCK_TIMEOUT_MS = 60000 };

static struct store *store_of(struct flow *f)
{
    return container_of(f, struct store, compete.flow);
}

static void on_held(struct pgc_hold *h)
{
    struct store *s = h->data;
    flow_resume(&s->compete.flow, h->rc, &h->err);
}

static void on_batch(struct pgc_batch *b)
{
    struct store *s = b->data;
    flow_resume(&s->compete.flow, b->rc, &b->err);
}

static void cancel_hold(struct flow *f)
{
    pgc_hold_cancel(&store_of(f)->compete.hold);
}

static void cancel_batch(struct flow *f)
{
    pgc_batch_cancel(&store_of(f)->compete.batch);
}

static struct store_stmts *begin(struct store *s)
{
    pgc_batch_fini(&s->compete.batch);
    stmts_init(&s->compete.stmts, &s->compete.flow.arena);
    return &s->compete.stmts;
}

static enum flow_next run_batch(struct store *s, int timeout_ms)
{
    struct store_compete *c = &s->compete;
    stmts_end(&c->stmts);
    c->batch = (struct pgc_batch){.stmts = c->stmts.items,
                                  .n = c->stmts.n,
                                  .on = c->conn,
                                  .timeout = MS(timeout_ms),
                                  .done = on_batch,
                                  .data = s};
    pgc_batch_start(s->pool, &c->batch);
    return FLOW_WAIT;
}

static enum flow_next fail(struct flow *f)
{
    struct err e;
    int rc = store_fault(&store_of(f)->compete.batch, &e);
    if (rc == 0) {
        rc = err_set(&e, ERR_STORE, "run store: %s", err_text(&f->err));
    }
    return flow_fail(f, END, rc, "%s", e.text);
}

static enum flow_next step_hold(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        s->compete.hold =
            (struct pgc_hold){.timeout = MS(STEP_TIMEOUT_MS), .done = on_held, .data = s};
        pgc_hold_start(s->pool, &s->compete.hold);
        return FLOW_WAIT;
    }
    if (f->rc < 0) {
        return flow_fail(f, END, ERR_STORE, "run store: %s", err_text(&f->err));
    }
    s->compete.conn = s->compete.hold.conn;
    return flow_goto(f, s->migrated ? READ : LOCK);
}

static enum flow_next step_lock(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        stmt_add(begin(s), NULL, "SELECT pg_advisory_lock(hashtext('kiln.migrate'))", 0);
        return run_batch(s, LOCK_TIMEOUT_MS);
    }
    s->compete.locked = true;
    return f->rc < 0 ? fail(f) : flow_goto(f, LOOK);
}

static enum flow_next step_look(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        migrate_look_stmts(begin(s));
        return run_batch(s, STEP_TIMEOUT_MS);
    }
    if (f->rc < 0) {
        return fail(f);
    }
    struct err e;
    int rc =
        migrate_check(s->compete.batch.results[MIGRATE_LOOK_AT], &s->compete.next_migration, &e);
    if (rc < 0) {
        return flow_fail(f, END, rc, "%s", e.text);
    }
    return flow_goto(f, s->compete.next_migration < migrate_count() ? APPLY : UNLOCK);
}

static enum flow_next step_apply(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        migrate_stmts(begin(s), s->compete.next_migration);
        return run_batch(s, LOCK_TIMEOUT_MS);
    }
    if (f->rc < 0) {
        return fail(f);
    }
    log_info("store.migrated", "number=%zu", s->compete.next_migration + 1);
    s->compete.next_migration++;
    return flow_goto(f, s->compete.next_migration < migrate_count() ? APPLY : UNLOCK);
}

static enum flow_next step_unlock(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        stmt_add(begin(s), NULL, "SELECT pg_advisory_unlock(hashtext('kiln.migrate'))", 0);
        return run_batch(s, STEP_TIMEOUT_MS);
    }
    if (f->rc < 0) {
        return fail(f);
    }
    s->compete.locked = false;
    s->migrated = true;
    return flow_goto(f, READ);
}

/* May the leader be replaced: nobody, ourselves (a lost session), or one that has not renewed for
 * the whole term. */
static void judge_leader(struct store *s, const struct pgc_result *r)
{
    struct store_compete *c = &s->compete;
    struct uuid boot;
    c->term = cell_id(r, 0, 1);
    c->beat = cell_id(r, 0, 2);
    bool is_free = uuid_parse(pgc_cell(r, 0, 0), &boot) < 0;
    bool is_ours = !is_free && uuid_eq(&boot, &s->boot);
    if (s->seen_term != c->term || s->seen_beat != c->beat || s->seen_at.v == 0) {
        s->seen_term = c->term;
        s->seen_beat = c->beat;
        s->seen_at = loop_now(s->loop);
    }
    struct ms silent = ms_sub(loop_now(s->loop), s->seen_at);
    c->takes = is_free || is_ours || !ms_before(silent, s->takeover);
}

static const char read_leader[] = "SELECT l.boot, b.term, b.beat, m.installation, m.config_epoch "
                                  "FROM kiln.leader l, kiln.leader_beat b, kiln.meta m "
                                  "WHERE l.one AND b.one AND m.one";

static enum flow_next step_read(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        stmt_add(begin(s), "k_read_leader", read_leader, 0);
        return run_batch(s, STEP_TIMEOUT_MS);
    }
    if (f->rc < 0) {
        return fail(f);
    }
    const struct pgc_result *r = s->compete.batch.results[0];
    if (pgc_rows(r) != 1 || uuid_parse(pgc_cell(r, 0, 3), &s->installation) < 0) {
        return flow_fail(
            f, END, ERR_STORE_SCHEMA,
            "run store: kiln.meta, kiln.leader and kiln.leader_beat need one row each");
    }
    s->config_epoch = cell_id(r, 0, 4);
    judge_leader(s, r);
    return flow_goto(f, s->compete.takes ? TAKE : END);
}

static enum flow_next step_take(struct flow *f)
{
    struct store *s = store_of(f);
    if (f->entered) {
        struct store_stmts *b = begin(s);
        stmt_add(b, NULL, "SELECT kiln.take_over($1::uuid, $2, $3::bigint, $4::bigint)", 4);
        stmt_uuid(b, &s->boot);
        stmt_text(b, s->instance);
        stmt_num(b, (int64_t)s->compete.term);
        stmt_num(b, (int64_t)s->compete.beat);
        return run_batch(s, STEP_TIMEOUT_MS);
    }
    if (f->rc < 0) {
        return fail(f);
    }
    uint64_t term = cell_id(s->compete.batch.results[0], 0, 0);
    if (term > 0) {
        s->term = term;
        s->compete.won = true;
    }
    return flow_goto(f, END);
}

static enum flow_next step_end(struct flow *f)
{
    struct store *s = store_of(f);
    struct store_compete *c = &s->compete;
    pgc_batch_fini(&c->batch);
    if (c->won) {
        s->conn = c->conn;
    } else if (c->conn) {
        /* With the lock still held the session must go: that is what gives the lock up. */
        pgc_give(c->conn, c->locked || f->final_rc < 0);
    }
    c->conn = NULL;
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [HOLD] = {"HOLD", step_hold, FLOW_TO(LOCK) | FLOW_TO(READ) | FLOW_TO(END), 0, cancel_hold,
              "takes a session of its own", false},
    [LOCK] = {"LOCK", step_lock, FLOW_TO(LOOK) | FLOW_TO(END), 0, cancel_batch,
              "waits for others that migrate", false},
    [LOOK] = {"LOOK", step_look, FLOW_TO(APPLY) | FLOW_TO(UNLOCK) | FLOW_TO(END), 0, cancel_batch,
              "reads and checks what is applied", false},
    [APPLY] = {"APPLY", step_apply, FLOW_TO(APPLY) | FLOW_TO(UNLOCK) | FLOW_TO(END), 0,
               cancel_batch, "one migration, one transaction", false},
    [UNLOCK] = {"UNLOCK", step_unlock, FLOW_TO(READ) | FLOW_TO(END), 0, cancel_batch,
                "lets others migrate", false},
    [READ] = {"READ", step_read, FLOW_TO(TAKE) | FLOW_TO(END), 0, cancel_batch,
              "reads who leads, and whether they renew", false},
    [TAKE] = {"TAKE", step_take, FLOW_TO(END), 0, cancel_batch,
              "the next term, unless the leader renewed", false},
    [END] = {"END", step_end, 0, 0, NULL, "keeps the session if it leads", false},
};
const struct flow_type store_compete_type = {"store_compete", steps, ARRAY_LEN(steps)};

static void on_end(struct flow *f)
{
    struct store *s = store_of(f);
    struct store_compete *c = &s->compete;
    c->is_running = false;
    if (s->closing) {
        s->leading = c->won;
        store_close_step(s);
        return;
    }
    if (f->final_rc < 0) {
        log_warn("store.unreachable", "why=%s", log_q(err_text(&f->err)));
        store_tell_state(s, false, err_text(&f->err));
        store_retry(s, true);
        return;
    }
    store_tell_state(s, true, c->won ? "leading" : "standing by");
    if (c->won) {
        store_won(s);
        return;
    }
    store_retry(s, false);
}

void compete_start(struct store *s)
{
    struct store_compete *c = &s->compete;
    must(!c->is_running && !s->leading);
    *c = (struct store_compete){.is_running = true};
    c->flow.on_end = on_end;
    flow_start(&c->flow, &store_compete_type, loop_flows(s->loop), NULL);
}
