/* Reads the coordinator back from rows: on the session of the commits, behind them, guarded like
 * them. */
#include "services/planner/store/set_json.h"
#include "services/planner/store/store_read.h"

enum { GUARD, NUMBERS, UNITS, TARGETS, GENERATIONS, SETS, RUNS, JOBS, ATTEMPTS };
#define ACTIVE_RUN "('requested', 'planning', 'building', 'binding')"
/* Jobs of active runs, and open ones without a run. */
#define LIVE_JOBS                                                                                  \
    "kiln.job j LEFT JOIN kiln.run r ON r.id = j.run WHERE r.state IN " ACTIVE_RUN                 \
    " OR (j.run IS NULL AND j.state NOT IN ('done', 'carried', 'skipped', 'failed', 'cancelled'))"

static const char *const queries[] = {
    [NUMBERS] = "SELECT greatest((SELECT max(token) FROM kiln.attempt), (SELECT max(token) FROM "
                "kiln.generation), (SELECT "
                "max(epoch) FROM kiln.unit), (SELECT max(epoch) FROM kiln.binding_set)), (SELECT "
                "coalesce(max(id), 0) + 1 "
                "FROM kiln.job), (SELECT coalesce(max(id), 0) + 1 FROM kiln.place), (SELECT "
                "coalesce(max(id), 0) + 1 FROM "
                "kiln.target)",
    [UNITS] = "SELECT u.id, u.load, u.epoch, e.name, u.name, u.reload_emptied FROM kiln.unit u "
              "JOIN kiln.environment e ON "
              "e.id = u.environment WHERE u.deleted_at IS NULL ORDER BY u.id",
    [TARGETS] = "SELECT t.id, p.id, p.warehouse, t.connection, p.class = 'in_place', "
                "p.schema_name, p.table_name, "
                "p.physical, t.target_key, t.build_id, t.entity_id FROM kiln.target t JOIN "
                "kiln.place p ON p.id = t.place "
                "ORDER BY t.id",
    [GENERATIONS] =
        "SELECT id, target, token, state, run, load, physical, row_count, bytes, columns, "
        "kiln.us(data_as_of), root "
        "FROM kiln.generation WHERE state NOT IN ('dropped', 'overwritten', 'lost') ORDER BY token",
    [SETS] =
        "SELECT DISTINCT ON (b.unit) b.unit, b.epoch, b.load, b.run, b.cause, b.bindings FROM "
        "kiln.binding_set b JOIN "
        "kiln.unit u ON u.id = b.unit WHERE u.deleted_at IS NULL ORDER BY b.unit, b.epoch DESC",
    [RUNS] = "SELECT " RUN_COLUMNS
             " FROM kiln.run r JOIN kiln.unit u ON u.id = r.unit WHERE u.deleted_at IS NULL AND "
             "(r.state IN ('requested', 'planning', 'building', 'binding', 'ready') OR r.id IN "
             "(SELECT id FROM kiln.run WHERE state IN ('failed', 'cancelled') ORDER BY id DESC "
             "LIMIT 256)) ORDER BY r.id",
    [JOBS] = "SELECT j.id, j.run, j.kind, j.place, j.target, j.unit, j.source_id, j.state, "
             "j.stop_requested, "
             "j.granted_ever, j.attempts, kiln.us(j.retry_at), j.spec, j.error_code, j.error, "
             "(SELECT string_agg(parent::"
             "text, ',' ORDER BY parent) FROM kiln.job_parent p WHERE p.job = j.id) FROM " LIVE_JOBS
             " ORDER BY j.id",
    [ATTEMPTS] = "SELECT a.token, a.job, a.number, a.purpose = 'resolve', a.state, a.generation, "
                 "a.builder, a.boot, "
                 "a.pull_request, a.pull_index, (extract(epoch FROM a.lease_until - "
                 "clock_timestamp()) * 1000)::bigint, "
                 "a.progress, a.error_code, a.error FROM kiln.attempt a WHERE a.job IN (SELECT "
                 "j.id FROM " LIVE_JOBS ") OR a.token IN (SELECT token FROM kiln.attempt ORDER BY "
                 "token DESC LIMIT 1000) ORDER BY a.token",
};
static const char *const names[] = {
    [NUMBERS] = "k_load_numbers", [UNITS] = "k_load_units",
    [TARGETS] = "k_load_targets", [GENERATIONS] = "k_load_generations",
    [SETS] = "k_load_sets",       [RUNS] = "k_load_runs",
    [JOBS] = "k_load_jobs",       [ATTEMPTS] = "k_load_attempts",
};

/* One load: what every reader needs. */
struct reading {
    struct coord *c;
    struct coord_now now;
    struct arena *a;
    struct err *e;
};

static int read_numbers(struct reading *in, const struct pgc_result *r)
{
    coord_load_numbers(in->c, cell_id(r, 0, 0), cell_id(r, 0, 1), cell_id(r, 0, 2),
                       cell_id(r, 0, 3));
    return 0;
}

static int read_units(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct coord_unit_row u = {.id = cell_id(r, i, 0),
                                   .load = cell_id(r, i, 1),
                                   .epoch = cell_id(r, i, 2),
                                   .environment = cell_text(in->a, r, i, 3),
                                   .name = cell_text(in->a, r, i, 4),
                                   .reload_emptied = pgc_bool(r, i, 5)};
        coord_load_unit(in->c, &u);
    }
    return 0;
}

static int read_targets(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct core_target t = {.target_id = cell_id(r, i, 0),
                                .place_id = cell_id(r, i, 1),
                                .warehouse = cell_text(in->a, r, i, 2),
                                .connection = cell_text(in->a, r, i, 3),
                                .in_place = pgc_bool(r, i, 4),
                                .schema = cell_text(in->a, r, i, 5),
                                .table = cell_text(in->a, r, i, 6),
                                .physical = cell_text(in->a, r, i, 7),
                                .target_key = cell_text(in->a, r, i, 8),
                                .build_id = cell_text(in->a, r, i, 9),
                                .entity_id = cell_text(in->a, r, i, 10)};
        coord_load_target(in->c, &t);
    }
    return 0;
}

static int read_generations(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct row_generation g = {.g = {.id = cell_text(in->a, r, i, 0),
                                         .token = cell_id(r, i, 2),
                                         .rows = pgc_i64(r, i, 7),
                                         .bytes = pgc_i64(r, i, 8),
                                         .data_as_of_us = pgc_i64(r, i, 10)},
                                   .target = cell_id(r, i, 1),
                                   .load = cell_id(r, i, 5),
                                   .run = cell_text(in->a, r, i, 4),
                                   .physical = cell_text(in->a, r, i, 6)};
        (void)!uuid_parse(pgc_cell(r, i, 11), &g.g.root); /* NULL: unknown */
        if (generation_state_parse(pgc_text(r, i, 3), &g.state) < 0) {
            return state_fault("generation", pgc_text(r, i, 3), in->e);
        }
        g.from = g.state;
        int rc = columns_json_parse(in->a, pgc_cell(r, i, 9), &g.g.columns, in->e);
        if (rc < 0) {
            return rc;
        }
        coord_load_generation(in->c, &g);
    }
    return 0;
}

static int read_sets(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct core_binding_set s = {.unit = cell_id(r, i, 0),
                                     .epoch = cell_id(r, i, 1),
                                     .load = cell_id(r, i, 2),
                                     .run = cell_text(in->a, r, i, 3),
                                     .cause = cell_text(in->a, r, i, 4)};
        int rc = set_json_parse(in->a, pgc_cell(r, i, 5), &s, in->e);
        if (rc < 0) {
            return rc;
        }
        coord_load_set(in->c, &s);
    }
    return 0;
}

static int read_runs(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct row_run run;
        int rc = run_read(in->a, r, i, &run, in->e);
        if (rc < 0) {
            return rc;
        }
        coord_load_run(in->c, &run);
    }
    return 0;
}

/* "3,4,9" */
static const uint64_t *parents_read(struct arena *a, struct slice text, size_t *n)
{
    uint64_t *list = arena_alloc(a, (text.len + 1) * sizeof *list);
    *n = 0;
    for (struct slice one; slice_cut(&text, ',', &one);) {
        must(slice_to_u64(one, &list[(*n)++]) == 0);
    }
    return list;
}

static int read_jobs(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct row_job j = {.id = cell_id(r, i, 0),
                            .run = cell_text(in->a, r, i, 1),
                            .place = cell_id(r, i, 3),
                            .target = cell_id(r, i, 4),
                            .unit = cell_id(r, i, 5),
                            .source_id = cell_text(in->a, r, i, 6),
                            .stop_requested = pgc_bool(r, i, 8),
                            .granted_ever = pgc_bool(r, i, 9),
                            .attempts = (int)pgc_i64(r, i, 10),
                            .retry_at_us = pgc_i64(r, i, 11),
                            .spec = cell_text(in->a, r, i, 12),
                            .error_code = (int)pgc_i64(r, i, 13),
                            .error = cell_text(in->a, r, i, 14)};
        if (job_kind_parse(pgc_text(r, i, 2), &j.kind) < 0 ||
            job_state_parse(pgc_text(r, i, 7), &j.state) < 0) {
            return state_fault("job", pgc_text(r, i, 7), in->e);
        }
        j.from = j.state;
        j.parents = parents_read(in->a, pgc_cell(r, i, 15), &j.n_parents);
        coord_load_job(in->c, &j);
    }
    return 0;
}

static int read_attempts(struct reading *in, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        struct row_attempt t = {.token = cell_id(r, i, 0),
                                .job = cell_id(r, i, 1),
                                .number = (int)pgc_i64(r, i, 2),
                                .is_resolve = pgc_bool(r, i, 3),
                                .generation = cell_text(in->a, r, i, 5),
                                .builder = cell_text(in->a, r, i, 6),
                                .pull_index = (int)pgc_i64(r, i, 9),
                                .lease_ms = pgc_i64(r, i, 10),
                                .progress = cell_text(in->a, r, i, 11),
                                .error_code = (int)pgc_i64(r, i, 12),
                                .error = cell_text(in->a, r, i, 13)};
        struct uuid pull;
        if (attempt_state_parse(pgc_text(r, i, 4), &t.state) < 0) {
            return state_fault("attempt", pgc_text(r, i, 4), in->e);
        }
        must(uuid_parse(pgc_cell(r, i, 7), &t.boot) == 0 &&
             uuid_parse(pgc_cell(r, i, 8), &pull) == 0);
        memcpy(t.pull_request, pull.b, sizeof t.pull_request);
        t.from = t.state;
        coord_load_attempt(in->c, &t, in->now);
    }
    return 0;
}

static void build_load(struct commit_item *it, struct store_stmts *b)
{
    (void)it;
    for (size_t i = NUMBERS; i < ARRAY_LEN(queries); i++) {
        stmt_add(b, names[i], queries[i], 0);
    }
}

static int finish_load(struct commit_item *it, const struct pgc_batch *b)
{
    static int (*const readers[])(struct reading *, const struct pgc_result *) = {
        [NUMBERS] = read_numbers, [UNITS] = read_units,
        [TARGETS] = read_targets, [GENERATIONS] = read_generations,
        [SETS] = read_sets,       [RUNS] = read_runs,
        [JOBS] = read_jobs,       [ATTEMPTS] = read_attempts,
    };
    struct reading in = {.c = it->coord, .now = it->now, .a = it->op->arena, .e = &it->op->err};
    for (size_t i = NUMBERS; i < ARRAY_LEN(readers); i++) {
        int rc = readers[i](&in, b->results[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

void store_load_coord(struct store *s, struct store_op *op, struct coord *c, struct coord_now now)
{
    struct commit_item *it = queue_add(s, op);
    it->build = build_load;
    it->finish = finish_load;
    it->coord = c;
    it->now = now;
}
