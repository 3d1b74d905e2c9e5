/* One statement, sometimes two, for each row change of services/planner/core/rows.h. Moves raise
 * KL002 unless they find their row. */
#include "services/planner/store/set_json.h"
#include "services/planner/store/store_internal.h"

static void unit_stmt(struct store_stmts *b, const struct row_unit *u)
{
    stmt_add(b, "k_unit",
             "WITH u AS (UPDATE kiln.unit SET load = $2::bigint, epoch = $3::bigint, "
             "reload_emptied = $4::bool "
             "WHERE id = $1::bigint AND deleted_at IS NULL RETURNING 1) "
             "SELECT kiln.one(count(*), 'unit ' || $1::bigint || ' is gone') FROM u",
             4);
    stmt_num(b, (int64_t)u->id);
    stmt_id(b, u->load);
    stmt_num(b, (int64_t)u->epoch);
    stmt_flag(b, u->reload_emptied);
}

/* Its runs go too, those included that the coordinator does not hold. */
static void unit_delete_stmt(struct store_stmts *b, const struct row_unit *u)
{
    stmt_add(b, "k_unit_runs_delete", "DELETE FROM kiln.run WHERE unit = $1::bigint", 1);
    stmt_num(b, (int64_t)u->id);
    stmt_add(b, "k_unit_delete",
             "WITH u AS (UPDATE kiln.unit SET deleted_at = clock_timestamp() WHERE id = $1::bigint "
             "AND deleted_at IS NULL "
             "RETURNING 1) SELECT kiln.one(count(*), 'unit ' || $1::bigint || ' is gone') FROM u",
             1);
    stmt_num(b, (int64_t)u->id);
}

static void run_insert_stmt(struct store_stmts *b, const struct row_run *r)
{
    stmt_add(
        b, "k_run_insert",
        "INSERT INTO kiln.run (id, unit, state, trigger, force_refresh, reseed, take_over, "
        "source_names, run_context, "
        "request_id, event, load, epoch, metadata, created_at, trace) VALUES ($1, $2::bigint, $3, "
        "$4, $5::bool, $6::bool, "
        "$7::bool, $8::text[], $9::json, $10::uuid, $11::bigint, $12::bigint, $13::bigint, "
        "coalesce($14::json, '{}'::json), coalesce(kiln.ts($15::bigint), clock_timestamp()), "
        "$16::uuid)",
        16);
    stmt_text(b, r->id);
    stmt_num(b, (int64_t)r->unit);
    stmt_text(b, run_state_name(r->state));
    stmt_text(b, r->trigger);
    stmt_flag(b, r->force_refresh);
    stmt_flag(b, r->reseed);
    stmt_flag(b, r->take_over);
    if (r->has_names) {
        stmt_texts(b, r->names, r->n_names);
    } else {
        stmt_text(b, NULL);
    }
    stmt_text(b, r->run_context);
    stmt_uuid_bytes(b, r->request_id);
    stmt_id(b, r->event);
    stmt_id(b, r->load);
    stmt_id(b, r->epoch);
    stmt_text(b, r->metadata);
    stmt_time(b, r->created_us);
    stmt_trace(b, &r->trace);
}

static void run_move_stmt(struct store_stmts *b, const struct row_run *r)
{
    stmt_add(b, "k_run_move",
             "WITH u AS (UPDATE kiln.run SET state = $3, load = coalesce($4::bigint, load), epoch "
             "= coalesce($5::bigint, "
             "epoch), plan = coalesce($6::jsonb, plan), manifest = coalesce($7::json, manifest), "
             "metadata = "
             "coalesce($8::json, metadata), error = coalesce($9, error), started_at = "
             "coalesce(kiln.ts($10::bigint), "
             "started_at), completed_at = coalesce(kiln.ts($11::bigint), completed_at), updated_at "
             "= clock_timestamp() "
             "WHERE id = $1::text AND state = $2::text RETURNING 1) "
             "SELECT kiln.one(count(*), 'run ' || $1::text || ' is not ' || $2::text || ' any "
             "more') FROM u",
             11);
    stmt_text(b, r->id);
    stmt_text(b, run_state_name(r->from));
    stmt_text(b, run_state_name(r->state));
    stmt_id(b, r->load);
    stmt_id(b, r->epoch);
    stmt_text(b, r->plan);
    stmt_text(b, r->manifest);
    stmt_text(b, r->metadata);
    stmt_text(b, r->error);
    stmt_time(b, r->started_us);
    stmt_time(b, r->completed_us);
}

static void run_stop_stmt(struct store_stmts *b, const struct row_run *r)
{
    stmt_add(b, "k_run_stop",
             "WITH u AS (UPDATE kiln.run SET stop_requested = true, updated_at = clock_timestamp() "
             "WHERE id = $1::text "
             "RETURNING 1) SELECT kiln.one(count(*), 'run ' || $1::text || ' is gone') FROM u",
             1);
    stmt_text(b, r->id);
}

static void run_delete_stmt(struct store_stmts *b, const struct row_run *r)
{
    stmt_add(b, "k_run_delete",
             "WITH u AS (DELETE FROM kiln.run WHERE id = $1::text RETURNING 1) "
             "SELECT kiln.one(count(*), 'run ' || $1::text || ' is gone') FROM u",
             1);
    stmt_text(b, r->id);
}

static void place_stmt(struct store_stmts *b, const struct core_target *t)
{
    stmt_add(b, "k_place",
             "INSERT INTO kiln.place (id, warehouse, class, schema_name, table_name, physical) "
             "VALUES ($1::bigint, $2, $3, $4, "
             "$5, $6)",
             6);
    stmt_num(b, (int64_t)t->place_id);
    stmt_text(b, t->warehouse);
    stmt_text(b, t->in_place ? "in_place" : "by_binding");
    stmt_text(b, t->schema ? t->schema : "");
    stmt_text(b, t->table ? t->table : "");
    stmt_text(b, t->physical);
}

static void target_stmt(struct store_stmts *b, const struct core_target *t)
{
    stmt_add(b, "k_target",
             "INSERT INTO kiln.target (id, place, build_id, entity_id, connection, target_key) "
             "VALUES ($1::bigint, "
             "$2::bigint, $3, $4, $5, $6)",
             6);
    stmt_num(b, (int64_t)t->target_id);
    stmt_num(b, (int64_t)t->place_id);
    stmt_text(b, t->build_id);
    stmt_text(b, t->entity_id);
    stmt_text(b, t->connection ? t->connection : "");
    stmt_text(b, t->target_key ? t->target_key : "");
}

static void job_insert_stmts(struct store_stmts *b, const struct row_job *j)
{
    stmt_add(
        b, "k_job_insert",
        "INSERT INTO kiln.job (id, run, kind, place, target, unit, source_id, state, "
        "stop_requested, granted_ever, "
        "attempts, retry_at, spec, error_code, error) VALUES ($1::bigint, $2, $3, $4::bigint, "
        "$5::bigint, $6::bigint, "
        "$7, $8, $9::bool, $10::bool, $11::int, kiln.ts($12::bigint), $13::jsonb, $14::int, $15)",
        15);
    stmt_num(b, (int64_t)j->id);
    stmt_text(b, j->run);
    stmt_text(b, job_kind_name(j->kind));
    stmt_id(b, j->place);
    stmt_id(b, j->target);
    stmt_id(b, j->unit);
    stmt_text(b, j->source_id);
    stmt_text(b, job_state_name(j->state));
    stmt_flag(b, j->stop_requested);
    stmt_flag(b, j->granted_ever);
    stmt_num(b, j->attempts);
    stmt_time(b, j->retry_at_us);
    stmt_text(b, j->spec);
    stmt_time(b, j->error_code);
    stmt_text(b, j->error);
    if (j->n_parents > 0) {
        stmt_add(
            b, "k_job_parents",
            "INSERT INTO kiln.job_parent (job, parent) SELECT $1::bigint, unnest($2::bigint[])", 2);
        stmt_num(b, (int64_t)j->id);
        stmt_ids(b, j->parents, j->n_parents);
    }
}

static void job_move_stmt(struct store_stmts *b, const struct row_job *j)
{
    stmt_add(b, "k_job_move",
             "WITH u AS (UPDATE kiln.job SET state = $3, stop_requested = $4::bool, granted_ever = "
             "$5::bool, attempts = "
             "$6::int, retry_at = kiln.ts($7::bigint), error_code = $8::int, error = $9, "
             "updated_at = clock_timestamp() "
             "WHERE id = $1::bigint AND state = $2::text RETURNING 1) "
             "SELECT kiln.one(count(*), 'job ' || $1::bigint || ' is not ' || $2::text || ' any "
             "more') FROM u",
             9);
    stmt_num(b, (int64_t)j->id);
    stmt_text(b, job_state_name(j->from));
    stmt_text(b, job_state_name(j->state));
    stmt_flag(b, j->stop_requested);
    stmt_flag(b, j->granted_ever);
    stmt_num(b, j->attempts);
    stmt_time(b, j->retry_at_us);
    stmt_time(b, j->error_code);
    stmt_text(b, j->error);
}

static void attempt_insert_stmt(struct store_stmts *b, const struct row_attempt *a)
{
    stmt_add(b, "k_attempt_insert",
             "INSERT INTO kiln.attempt (token, job, number, purpose, state, generation, builder, "
             "boot, pull_request, "
             "pull_index, lease_until, progress) VALUES ($1::bigint, $2::bigint, $3::int, $4, $5, "
             "$6, $7, $8::uuid, "
             "$9::uuid, $10::int, clock_timestamp() + $11::bigint * interval '1 millisecond', "
             "$12::jsonb)",
             12);
    stmt_num(b, (int64_t)a->token);
    stmt_num(b, (int64_t)a->job);
    stmt_num(b, a->number);
    stmt_text(b, a->is_resolve ? "resolve" : "work");
    stmt_text(b, attempt_state_name(a->state));
    stmt_text(b, a->generation);
    stmt_text(b, a->builder);
    stmt_uuid(b, &a->boot);
    stmt_uuid_bytes(b, a->pull_request);
    stmt_num(b, a->pull_index);
    stmt_num(b, a->lease_ms);
    stmt_text(b, a->progress);
}

static void attempt_move_stmt(struct store_stmts *b, const struct row_attempt *a)
{
    stmt_add(b, "k_attempt_move",
             "WITH u AS (UPDATE kiln.attempt SET state = $3::text, progress = coalesce($4::jsonb, "
             "progress), error_code = "
             "$5::int, error = $6, ended_at = CASE WHEN $3::text IN ('leased', 'granted') THEN "
             "NULL ELSE clock_timestamp() "
             "END WHERE token = $1::bigint AND state = $2::text RETURNING 1) "
             "SELECT kiln.one(count(*), 'attempt ' || $1::bigint || ' is not ' || $2::text || ' "
             "any more') FROM u",
             6);
    stmt_num(b, (int64_t)a->token);
    stmt_text(b, attempt_state_name(a->from));
    stmt_text(b, attempt_state_name(a->state));
    stmt_text(b, a->progress);
    stmt_time(b, a->error_code);
    stmt_text(b, a->error);
}

static void attempt_lease_stmt(struct store_stmts *b, const struct row_attempt *a)
{
    stmt_add(b, "k_attempt_lease",
             "WITH u AS (UPDATE kiln.attempt SET lease_until = clock_timestamp() + $2::bigint * "
             "interval '1 millisecond', "
             "progress = coalesce($3::jsonb, progress) WHERE token = $1::bigint AND state IN "
             "('leased', 'granted') "
             "RETURNING 1) SELECT kiln.one(count(*), 'attempt ' || $1::bigint || ' holds no lease "
             "any more') FROM u",
             3);
    stmt_num(b, (int64_t)a->token);
    stmt_num(b, a->lease_ms);
    stmt_text(b, a->progress);
}

static void generation_insert_stmt(struct store_stmts *b, const struct row_generation *g)
{
    stmt_add(b, "k_generation_insert",
             "INSERT INTO kiln.generation (id, target, token, state, run, load, physical, "
             "row_count, bytes, columns, "
             "data_as_of, root) VALUES ($1, $2::bigint, $3::bigint, $4, $5, $6::bigint, $7, "
             "$8::bigint, $9::bigint, $10::jsonb, "
             "kiln.ts($11::bigint), $12::uuid)",
             12);
    stmt_text(b, g->g.id);
    stmt_num(b, (int64_t)g->target);
    stmt_num(b, (int64_t)g->g.token);
    stmt_text(b, generation_state_name(g->state));
    stmt_text(b, g->run);
    stmt_id(b, g->load);
    stmt_text(b, g->physical);
    stmt_num(b, g->g.rows);
    stmt_num(b, g->g.bytes);
    stmt_text(b, columns_json_text(b->arena, &g->g.columns));
    stmt_time(b, g->g.data_as_of_us);
    stmt_trace(b, &g->g.root);
}

static void generation_move_stmt(struct store_stmts *b, const struct row_generation *g)
{
    stmt_add(b, "k_generation_move",
             "WITH u AS (UPDATE kiln.generation SET state = $3::text, retired_at = CASE WHEN "
             "$3::text = 'retired' THEN "
             "clock_timestamp() ELSE retired_at END WHERE id = $1::text AND state = $2::text "
             "RETURNING 1) "
             "SELECT kiln.one(count(*), 'generation ' || $1::text || ' is not ' || $2::text || ' "
             "any more') FROM u",
             3);
    stmt_text(b, g->g.id);
    stmt_text(b, generation_state_name(g->from));
    stmt_text(b, generation_state_name(g->state));
}

static void entry_stmt(struct store_stmts *b, const struct row_entry *e)
{
    stmt_add(b, "k_entry",
             "INSERT INTO kiln.manifest_entry (run, entity_id, generation, place, source_id, "
             "outcome, entry) VALUES ($1, $2, "
             "$3, $4::bigint, $5, $6, $7::json)",
             7);
    stmt_text(b, e->run);
    stmt_text(b, e->entity_id);
    stmt_text(b, e->generation);
    stmt_num(b, (int64_t)e->place);
    stmt_text(b, e->source_id);
    stmt_text(b, e->outcome);
    stmt_text(b, e->entry);
}

static void set_stmts(struct store *s, struct store_stmts *b, const struct core_binding_set *set)
{
    must(s->pack);
    auto_buf struct buf packed = {0};
    buf_reserve(&packed, 1);
    s->pack(set, &packed, s->pack_data);
    stmt_add(b, "k_set",
             "INSERT INTO kiln.binding_set (unit, epoch, load, run, cause, packed, bindings) "
             "VALUES ($1::bigint, $2::bigint, "
             "$3::bigint, $4, $5, $6::bytea, $7::jsonb)",
             7);
    stmt_num(b, (int64_t)set->unit);
    stmt_num(b, (int64_t)set->epoch);
    stmt_id(b, set->load);
    stmt_text(b, set->run);
    stmt_text(b, set->cause);
    stmt_bytes(b, buf_slice(&packed));
    stmt_text(b, set_json_text(b->arena, set));
    const char **ids = arena_alloc(b->arena, (set->n + 1) * sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->bindings[i].generation.id) {
            ids[n++] = set->bindings[i].generation.id;
        }
    }
    if (n > 0) {
        stmt_add(b, "k_set_generations",
                 "INSERT INTO kiln.binding_set_generation (unit, epoch, generation) SELECT "
                 "$1::bigint, $2::bigint, id FROM "
                 "(SELECT DISTINCT unnest($3::text[]) AS id) AS ids",
                 3);
        stmt_num(b, (int64_t)set->unit);
        stmt_num(b, (int64_t)set->epoch);
        stmt_texts(b, ids, n);
    }
}

static void instance_stmt(struct store_stmts *b, const struct row_instance *i)
{
    stmt_add(b, "k_instance",
             "INSERT INTO kiln.instance (instance, role, boot, version) VALUES ($1, $2, $3::uuid, "
             "$4) ON CONFLICT (instance) "
             "DO UPDATE SET role = excluded.role, boot = excluded.boot, version = "
             "excluded.version, heard_at = "
             "clock_timestamp()",
             4);
    stmt_text(b, i->instance);
    stmt_text(b, i->role ? i->role : "");
    stmt_uuid(b, &i->boot);
    stmt_text(b, i->version ? i->version : "");
}

void row_stmts(struct store *s, struct store_stmts *b, const struct row *r)
{
    switch (r->op) {
    case ROW_UNIT:
        unit_stmt(b, &r->u.unit);
        return;
    case ROW_UNIT_DELETE:
        unit_delete_stmt(b, &r->u.unit);
        return;
    case ROW_RUN_INSERT:
        run_insert_stmt(b, &r->u.run);
        return;
    case ROW_RUN_MOVE:
        run_move_stmt(b, &r->u.run);
        return;
    case ROW_RUN_STOP:
        run_stop_stmt(b, &r->u.run);
        return;
    case ROW_RUN_DELETE:
        run_delete_stmt(b, &r->u.run);
        return;
    case ROW_PLACE_INSERT:
        place_stmt(b, &r->u.target);
        return;
    case ROW_TARGET_INSERT:
        target_stmt(b, &r->u.target);
        return;
    case ROW_JOB_INSERT:
        job_insert_stmts(b, &r->u.job);
        return;
    case ROW_JOB_MOVE:
    case ROW_JOB_UPDATE:
        job_move_stmt(b, &r->u.job);
        return;
    case ROW_ATTEMPT_INSERT:
        attempt_insert_stmt(b, &r->u.attempt);
        return;
    case ROW_ATTEMPT_MOVE:
        attempt_move_stmt(b, &r->u.attempt);
        return;
    case ROW_ATTEMPT_LEASE:
        attempt_lease_stmt(b, &r->u.attempt);
        return;
    case ROW_GENERATION_INSERT:
        generation_insert_stmt(b, &r->u.generation);
        return;
    case ROW_GENERATION_MOVE:
        generation_move_stmt(b, &r->u.generation);
        return;
    case ROW_MANIFEST_ENTRY:
        entry_stmt(b, &r->u.entry);
        return;
    case ROW_BINDING_SET:
        set_stmts(s, b, &r->u.set);
        return;
    case ROW_INSTANCE:
        instance_stmt(b, &r->u.instance);
        return;
    }
    must(!"a row op without a statement");
}
