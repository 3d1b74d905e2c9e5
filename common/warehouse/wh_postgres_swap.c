/* SWAP of protocol.md 3: everything the old table has is put on the staging table, then one short
 * fenced transaction. */
#include "common/warehouse/wh_postgres.h"

#include <inttypes.h>

#define OUTCOME_MS 30000
#define OUTCOME_PAUSE_MS 500

enum {
    SWAP_SESSION,
    SWAP_LOOK,
    SWAP_FENCE,
    SWAP_CARRY,
    SWAP_CLAIM,
    SWAP_BACK_OFF,
    SWAP_PAUSE,
    SWAP_COMMIT,
    SWAP_OUTCOME_SESSION,
    SWAP_OUTCOME,
    SWAP_END
};

struct op_swap {
    struct wh_pg_op o;
    struct wh_publish p;
    const char *target, *staging, *fence; /* as SQL */
    struct wh_relation rel;
    bool has_fence, locking;
    struct sha256 carried; /* digest of the statements that were carried out */
    const char **after;    /* phase 2, in the flow's arena */
    size_t n_after;
    size_t look_at; /* place of the look among the claim's statements */
    struct ms locks_until;
};

static struct op_swap *swap_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_swap, o);
}

static enum flow_next step_session(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (!s->p.table.name.schema[0]) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_ARG, "target %s has no schema", s->target);
    }
    if (f->entered) {
        return wh_pg_take_session(&s->o);
    }
    return wh_pg_failed(&s->o, SWAP_END) ? FLOW_AGAIN : flow_goto(f, SWAP_LOOK);
}

static void add_look(struct op_swap *s)
{
    s->look_at = s->o.n_stmts;
    wh_pg_look_add(&s->o, &s->p.table.name, 1);
    wh_pg_carry_add(&s->o, &s->p.table.name, s->p.token);
}

static void read_carry(struct op_swap *s, const struct pgc_result *r, struct sha256 *digest)
{
    struct sha256_run *run = sha256_start();
    s->after = arena_alloc(&s->o.flow.arena, (pgc_rows(r) + 1) * sizeof *s->after);
    s->n_after = 0;
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct slice sql = pgc_cell(r, i, 1);
        sha256_add(run, sql.p, sql.len + 1);
        if (pgc_i64(r, i, 0) == 2) {
            s->after[s->n_after++] = arena_slice(&s->o.flow.arena, sql);
        }
    }
    *digest = sha256_finish(run);
}

static enum flow_next looked(struct op_swap *s)
{
    struct flow *f = &s->o.flow;
    wh_pg_look_read(&s->o, s->look_at, &s->rel, 1, &s->has_fence);
    if (wh_pg_refuse(&s->o, SWAP_END, s->target, &s->rel) < 0) {
        return FLOW_AGAIN;
    }
    const struct pgc_result *carry = wh_pg_result(&s->o, s->look_at + WH_PG_LOOK_STMTS);
    if (pgc_rows(carry) > 0 && pgc_i64(carry, 0, 0) == 0) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_TARGET,
                          "%s has an index that cannot be taken over: %s", s->target,
                          pgc_text(carry, 0, 1));
    }
    if (!pgc_bool(wh_pg_result(&s->o, 0), 0, 0)) {
        /* Gone or renamed: an earlier swap of this token may have done it. */
        return flow_goto(f, s->has_fence ? SWAP_OUTCOME : SWAP_FENCE);
    }
    return flow_goto(f, s->has_fence ? SWAP_CARRY : SWAP_FENCE);
}

static enum flow_next step_look(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        s->o.stage = "looking at the target";
        wh_pg_add(&s->o,
                  "SELECT to_regclass(%s) IS NOT NULL, EXISTS (SELECT FROM pg_index WHERE "
                  "indrelid = to_regclass(%s))",
                  wh_pg_literal(&s->o, s->staging), wh_pg_literal(&s->o, s->staging));
        add_look(s);
        return wh_pg_run(&s->o);
    }
    return wh_pg_failed(&s->o, SWAP_END) ? FLOW_AGAIN : looked(s);
}

static enum flow_next step_fence(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        wh_pg_add_params(&s->o, wh_pg_create_fence(&s->o, s->p.table.name.schema), 0, NULL);
        return wh_pg_run(&s->o);
    }
    bool made_by_other = f->rc != 0 && !f->cancel_asked && wh_pg_is_exists_error(&f->err);
    if (!made_by_other && wh_pg_failed(&s->o, SWAP_END)) {
        return FLOW_AGAIN;
    }
    return flow_goto(f, SWAP_LOOK);
}

/* Indexes on the staging table mean that an earlier call of this swap carried everything already.
 */
static void add_carry(struct op_swap *s, bool was_carried)
{
    const struct pgc_result *carry = wh_pg_result(&s->o, s->look_at + WH_PG_LOOK_STMTS);
    wh_pg_add(&s->o, "BEGIN ISOLATION LEVEL READ COMMITTED");
    for (size_t i = 0; i < pgc_rows(carry) && !was_carried; i++) {
        if (pgc_i64(carry, i, 0) == 1) {
            wh_pg_add(&s->o, "%s", pgc_text(carry, i, 1));
        }
    }
    wh_pg_add(&s->o, "COMMIT");
}

static enum flow_next step_carry(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        s->o.stage = "carrying over indexes and grants";
        read_carry(s, wh_pg_result(&s->o, s->look_at + WH_PG_LOOK_STMTS), &s->carried);
        add_carry(s, pgc_bool(wh_pg_result(&s->o, 0), 0, 1));
        if (s->o.n_stmts == 2) { /* nothing but BEGIN and COMMIT */
            wh_pg_clear(&s->o);
            return flow_goto(f, SWAP_CLAIM);
        }
        return wh_pg_run(&s->o);
    }
    if (f->rc == ERR_WH_SQL || f->rc == ERR_WH_MISSING) {
        const char *sql =
            s->o.batch.failed_at < s->o.batch.n ? s->o.batch.stmts[s->o.batch.failed_at].sql : "";
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_TARGET,
                          "%s has what the new table cannot take over (%s): %s", s->target, sql,
                          wh_pg_cause(&s->o));
    }
    return wh_pg_failed(&s->o, SWAP_END) ? FLOW_AGAIN : flow_goto(f, SWAP_CLAIM);
}

static const char claim_sql[] =
    "INSERT INTO %s AS f (target, owner, claim, published, generation, build_id, row_count, "
    "data_as_of, swapped_at) VALUES (%s, '%s', %" PRIu64 ", %" PRIu64
    ", %s, %s, %lld, to_timestamp(%lld / 1000000.0), clock_timestamp()) ON CONFLICT (target) DO "
    "UPDATE SET owner=excluded.owner, claim=excluded.claim, published=excluded.published, "
    "generation=excluded.generation, build_id=excluded.build_id, row_count=excluded.row_count, "
    "data_as_of=excluded.data_as_of, swapped_at=excluded.swapped_at WHERE f.claim <= "
    "excluded.claim RETURNING 1";

enum { CLAIM_KNOWN = 2, CLAIM_ROW = 3 };

static void add_claim(struct op_swap *s)
{
    struct wh_pg_op *o = &s->o;
    const struct wh_publish *p = &s->p;
    char owner[UUID_TEXT];
    uuid_format(&p->table.owner, owner);
    const char *key = wh_pg_literal(o, p->table.target_key);
    wh_pg_add(o, "BEGIN ISOLATION LEVEL READ COMMITTED");
    wh_pg_add(o, "SET LOCAL lock_timeout = '200ms'");
    wh_pg_add(o, "SELECT EXISTS (SELECT FROM %s WHERE target = %s AND published > 0)", s->fence,
              key);
    wh_pg_add(o, claim_sql, s->fence, key, owner, p->token, p->token,
              wh_pg_literal(o, p->table.generation), wh_pg_literal(o, p->table.build_id),
              (long long)p->rows, (long long)p->data_as_of_us);
    if (s->rel.kind == 'r') {
        wh_pg_add(o, "LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", s->target);
        add_look(s);
        wh_pg_add(o, WH_PG_IS_EMPTY, wh_pg_literal(o, s->target), wh_pg_literal(o, s->target),
                  s->target);
    }
}

static enum flow_next fenced(struct op_swap *s)
{
    return wh_pg_fail(&s->o, SWAP_END, ERR_FENCED,
                      "a newer claim than %" PRIu64 " holds %s: this attempt may not publish it",
                      s->p.token, s->target);
}

/* Under the lock: is all still as it was looked at, and may the table go? */
static enum flow_next claimed(struct op_swap *s)
{
    struct flow *f = &s->o.flow;
    if (pgc_rows(wh_pg_result(&s->o, CLAIM_ROW)) == 0) {
        return fenced(s);
    }
    if (s->rel.kind != 'r') {
        return flow_goto(f, SWAP_COMMIT);
    }
    wh_pg_look_read(&s->o, s->look_at, &s->rel, 1, &s->has_fence);
    if (wh_pg_refuse(&s->o, SWAP_END, s->target, &s->rel) < 0) {
        return FLOW_AGAIN;
    }
    struct sha256 now;
    read_carry(s, wh_pg_result(&s->o, s->look_at + WH_PG_LOOK_STMTS), &now);
    if (memcmp(now.b, s->carried.b, sizeof now.b) != 0) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_TRANSIENT,
                          "%s was altered by someone else while it was being replaced; try again",
                          s->target);
    }
    bool is_known = pgc_bool(wh_pg_result(&s->o, CLAIM_KNOWN), 0, 0);
    bool is_empty = pgc_bool(wh_pg_result(&s->o, s->look_at + WH_PG_LOOK_STMTS + 1), 0, 0);
    if (!is_known && !is_empty && !s->p.take_over) {
        return wh_pg_fail(
            &s->o, SWAP_END, ERR_WH_TARGET,
            "%s is a table with rows that Kiln did not make and is not replaced; drop "
            "it, choose another name=, or run with take_over",
            s->target);
    }
    return flow_goto(f, SWAP_COMMIT);
}

static enum flow_next step_claim(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        s->o.stage = "swapping";
        if (!s->locking) {
            s->locking = true;
            s->locks_until = ms_add(loop_now(s->o.pg->loop), MS(WH_PG_LOCKS_MS));
            s->locks_until = ms_min(s->locks_until, s->o.until);
            s->o.until = ms_add(s->locks_until, MS(WH_PG_LOCKS_GRACE_MS));
        }
        add_claim(s);
        return wh_pg_run(&s->o);
    }
    if (f->rc != 0 && !f->cancel_asked && wh_pg_is_lock_error(&f->err)) {
        return flow_goto(f, SWAP_BACK_OFF);
    }
    return wh_pg_failed(&s->o, SWAP_END) ? FLOW_AGAIN : claimed(s);
}

/* A waiting DROP makes all new readers queue: let them through before the next try. */
static enum flow_next step_back_off(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        wh_pg_add(&s->o, "ROLLBACK");
        return wh_pg_run(&s->o);
    }
    if (wh_pg_failed(&s->o, SWAP_END)) {
        return FLOW_AGAIN;
    }
    if (!ms_before(ms_add(loop_now(s->o.pg->loop), MS(500)), s->locks_until)) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_TARGET_BUSY,
                          "%s stayed locked by other sessions; end the long queries on it and try "
                          "again",
                          s->target);
    }
    return flow_goto(f, SWAP_PAUSE);
}

static enum flow_next step_pause(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        s->o.stage = "waiting for the target's readers";
        return wh_pg_sleep(&s->o, wh_pg_lock_pause());
    }
    return wh_pg_failed(&s->o, SWAP_END) ? FLOW_AGAIN : flow_goto(f, SWAP_CLAIM);
}

static void add_commit(struct op_swap *s)
{
    struct wh_pg_op *o = &s->o;
    auto_buf struct buf table = {0};
    pgc_quote_ident(&table, slice_of(s->p.table.name.table));
    if (s->rel.kind == 'r') {
        wh_pg_add(o, "DROP TABLE %s", s->target);
    }
    wh_pg_add(o, "ALTER TABLE %s RENAME TO %s", s->staging, buf_str(&table));
    for (size_t i = 0; i < s->n_after; i++) {
        wh_pg_add(o, "%s", s->after[i]);
    }
    wh_pg_add(o, "UPDATE %s SET relid = %s::regclass WHERE target = %s", s->fence,
              wh_pg_literal(o, s->target), wh_pg_literal(o, s->p.table.target_key));
    wh_pg_add(o, "COMMIT");
}

static void published(struct op_swap *s)
{
    struct wh_facts *facts = &s->o.op->facts;
    facts->rows = (uint64_t)s->p.rows;
    facts->data_as_of_us = s->p.data_as_of_us;
    facts->fence = (struct wh_fence){.exists = true,
                                     .owner = s->p.table.owner,
                                     .claim = s->p.token,
                                     .published = s->p.token,
                                     .generation = s->p.table.generation,
                                     .build_id = s->p.table.build_id,
                                     .rows = s->p.rows,
                                     .data_as_of_us = s->p.data_as_of_us,
                                     .still_there = true};
}

static enum flow_next commit_failed(struct op_swap *s)
{
    struct flow *f = &s->o.flow;
    if (s->o.batch.unknown_outcome) {
        s->o.stage = "asking what became of the swap";
        s->o.until = ms_add(loop_now(s->o.pg->loop), MS(OUTCOME_MS));
        pgc_give(s->o.conn, true);
        s->o.conn = NULL;
        return flow_goto(f, SWAP_OUTCOME_SESSION);
    }
    if (!f->cancel_asked && wh_pg_is_lock_error(&f->err)) {
        return flow_goto(f, SWAP_BACK_OFF);
    }
    if (strcmp(f->err.sqlstate, "2BP01") == 0) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_DEPENDENTS,
                          "%s is not replaced because other objects depend on it: %s", s->target,
                          wh_pg_cause(&s->o));
    }
    if (strcmp(f->err.sqlstate, "42P07") == 0) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_TARGET,
                          "something was made at the name %s meanwhile: %s", s->target,
                          wh_pg_cause(&s->o));
    }
    f->final_rc = f->rc;
    return flow_goto(f, SWAP_END);
}

static enum flow_next step_commit(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        add_commit(s);
        return wh_pg_run(&s->o);
    }
    if (f->rc != 0) {
        return commit_failed(s);
    }
    published(s);
    return flow_goto(f, SWAP_END);
}

static bool outcome_time_is_up(const struct op_swap *s)
{
    return !ms_before(loop_now(s->o.pg->loop), s->o.until);
}

static enum flow_next step_outcome_session(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        return wh_pg_take_session(&s->o);
    }
    if (s->o.conn) {
        return flow_goto(f, SWAP_OUTCOME);
    }
    if (outcome_time_is_up(s)) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_UNKNOWN_OUTCOME,
                          "the connection broke while %s was being swapped and the warehouse does "
                          "not answer: %s",
                          s->target, wh_pg_cause(&s->o));
    }
    if (f->rc != 0) {
        return wh_pg_sleep(&s->o, MS(OUTCOME_PAUSE_MS)); /* resumed with rc 0, then once more */
    }
    return wh_pg_take_session(&s->o);
}

/* RESOLVE with the own token: waits for a swap still in flight, then `published` tells. */
static enum flow_next step_outcome(struct flow *f)
{
    struct op_swap *s = swap_of(f);
    if (f->entered) {
        wh_pg_resolve_add(&s->o, &s->p.table, s->p.token);
        return wh_pg_run(&s->o);
    }
    if (f->rc != 0) {
        return wh_pg_fail(&s->o, SWAP_END, ERR_WH_UNKNOWN_OUTCOME,
                          "it could not be read what became of the swap of %s: %s", s->target,
                          wh_pg_cause(&s->o));
    }
    struct wh_fence fence;
    wh_pg_resolve_read(&s->o, 0, &fence);
    if (fence.published == s->p.token) {
        published(s);
        return flow_goto(f, SWAP_END);
    }
    if (fence.claim > s->p.token) {
        return fenced(s);
    }
    return wh_pg_fail(
        &s->o, SWAP_END, ERR_WH_LOST,
        "%s was not swapped: its staging table is gone or the connection broke before "
        "the commit",
        s->target);
}

#define OR_END(step) (FLOW_TO(step) | FLOW_TO(SWAP_END))
static const struct flow_step steps[] = {
    {.name = "SESSION",
     .run = step_session,
     .to = OR_END(SWAP_LOOK),
     .cancel = wh_pg_cancel_wait,
     .says = "take a session"},
    {.name = "LOOK",
     .run = step_look,
     .to = OR_END(SWAP_FENCE) | FLOW_TO(SWAP_CARRY) | FLOW_TO(SWAP_OUTCOME),
     .cancel = wh_pg_cancel_wait,
     .says = "what stands there, what depends on it, what must be carried over"},
    {.name = "FENCE",
     .run = step_fence,
     .to = OR_END(SWAP_LOOK),
     .cancel = wh_pg_cancel_wait,
     .says = "first target of its schema: make the fence table"},
    {.name = "CARRY",
     .run = step_carry,
     .to = OR_END(SWAP_CLAIM),
     .cancel = wh_pg_cancel_wait,
     .says = "indexes, constraints, comments, owner, grants onto staging"},
    {.name = "CLAIM",
     .run = step_claim,
     .to = OR_END(SWAP_BACK_OFF) | FLOW_TO(SWAP_COMMIT),
     .cancel = wh_pg_cancel_wait,
     .says = "fence row, exclusive lock, a second look under it"},
    {.name = "BACK_OFF",
     .run = step_back_off,
     .to = OR_END(SWAP_PAUSE),
     .cancel = wh_pg_cancel_wait,
     .says = "lock not had within 200 ms: roll back"},
    {.name = "PAUSE",
     .run = step_pause,
     .to = OR_END(SWAP_CLAIM),
     .cancel = wh_pg_cancel_wait,
     .says = "let readers through"},
    {.name = "COMMIT",
     .run = step_commit,
     .to = OR_END(SWAP_BACK_OFF) | FLOW_TO(SWAP_OUTCOME_SESSION),
     .shielded = true,
     .says = "drop, rename, policies, commit: the point of no return"},
    {.name = "OUTCOME_SESSION",
     .run = step_outcome_session,
     .to = OR_END(SWAP_OUTCOME),
     .shielded = true,
     .says = "commit without an answer: reconnect"},
    {.name = "OUTCOME",
     .run = step_outcome,
     .to = FLOW_TO(SWAP_END),
     .shielded = true,
     .says = "resolve with the own token"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type swap_flow = {"wh_swap", steps, ARRAY_LEN(steps)};

void wh_pg_swap(struct wh_op *op, const struct wh_publish *p)
{
    struct op_swap *s = wh_pg_op_start(op, sizeof *s, &swap_flow, MS_NONE);
    s->p = *p;
    s->p.table = wh_pg_table_copy(op->arena, &p->table);
    s->target = wh_name_quoted(op->arena, &s->p.table.name);
    s->staging = arena_strdup(op->arena, wh_pg_staging(&s->o, s->p.table.name.schema, p->token));
    s->fence = arena_strdup(op->arena, wh_pg_fence(&s->o, s->p.table.name.schema));
}
