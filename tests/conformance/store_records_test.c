/* Environments, connections, packages, events and upkeep. */
#include "tests/conformance/store_fixture.h"

static void open_one(void)
{
    fresh_database();
    peer_open(&one, "planner-1", 200, 5000);
    peer_lead(&one);
}

#define run_op(op, call) (op = op_new(), (call), op_wait(op))

START_TEST(environments_and_connections_come_back_as_they_were_put)
{
    struct store_op *op;
    uint64_t env = 0, again = 0, epoch = store_config_epoch(one.s);
    struct store_environment e = {.name = "pr\"o'd gr\xc3\xbcn", .readme = "r"};
    ck_assert_int_eq(run_op(op, store_put_environment(one.s, op, &e, &env)), 0);
    e.readme = NULL;
    ck_assert_int_eq(run_op(op, store_put_environment(one.s, op, &e, &again)), 0);
    ck_assert_uint_eq(env, again);
    struct store_connection c = {.environment = env,
                                 .name = "p'g",
                                 .type = "postgres",
                                 .public_json = "{\"b\":1,\"a\":2}",
                                 .digest = "d1",
                                 .sealed = slice_make("\0\1\xff", 3),
                                 .nonce = "abcdefghijk"};

    ck_assert_int_eq(run_op(op, store_put_connection(one.s, op, &c, true)), 0);
    ck_assert_int_eq(run_op(op, store_put_connection(one.s, op, &c, true)), ERR_CONFLICT);
    c.digest = "d2";
    ck_assert_int_eq(run_op(op, store_put_connection(one.s, op, &c, false)), 0);
    ck_assert_uint_gt(store_config_epoch(one.s), epoch);

    struct store_environment *envs;
    struct store_connection *list;
    size_t n = 0;
    ck_assert_int_eq(run_op(op, store_environments(one.s, op, &envs, &n)), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(envs[0].name, e.name);
    ck_assert_str_eq(envs[0].readme, "r");
    ck_assert_int_eq(run_op(op, store_connections(one.s, op, 0, &list, &n)), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(list[0].name, "p'g");
    ck_assert_str_eq(list[0].public_json, "{\"b\":1,\"a\":2}");
    ck_assert_str_eq(list[0].digest, "d2");
    ck_assert(slice_eq(list[0].sealed, c.sealed));
    ck_assert_mem_eq(list[0].nonce, c.nonce, sizeof c.nonce);
    ck_assert_uint_eq(list[0].epoch, store_config_epoch(one.s));
    ck_assert_int_eq(run_op(op, store_delete_connection(one.s, op, env, "p'g")), 0);
    ck_assert_int_eq(run_op(op, store_delete_connection(one.s, op, env, "p'g")), ERR_NOT_FOUND);
}
END_TEST

START_TEST(environment_with_packages_cannot_be_deleted_and_its_name_is_free_afterwards)
{
    struct store_op *op;
    uint64_t unit = make_unit("prod", "sales"), env = 0, other = 0;
    struct store_unit *units;
    size_t n = 0;
    ck_assert_int_eq(run_op(op, store_units(one.s, op, &units, &n)), 0);
    ck_assert_uint_eq(n, 1);
    env = units[0].environment;
    ck_assert_int_eq(run_op(op, store_delete_environment(one.s, op, env)), ERR_CONFLICT);
    struct rows rows = rows_new();
    rows_add(&rows, ROW_UNIT_DELETE)->u.unit.id = unit;
    ck_assert_int_eq(commit(&rows), 0);

    ck_assert_int_eq(run_op(op, store_delete_environment(one.s, op, env)), 0);
    ck_assert_int_eq(run_op(op, store_delete_environment(one.s, op, env)), ERR_NOT_FOUND);
    ck_assert_int_eq(
        run_op(op, store_put_environment(one.s, op, &(struct store_environment){.name = "prod"},
                                         &other)),
        0);
    ck_assert_uint_ne(env, other);
    ck_assert_int_eq(
        run_op(op, store_put_unit(one.s, op, &(struct store_unit){.environment = env, .name = "x"},
                                  &unit)),
        ERR_NOT_FOUND);
}
END_TEST

START_TEST(unit_keeps_what_is_not_said_and_carries_its_errors)
{
    struct store_op *op;
    uint64_t unit = make_unit("prod", "sales"), same = 0;
    struct store_unit *units;
    size_t n = 0;
    struct store_unit put = {
        .environment = 1, .name = "sales", .location = "./sales", .description = "d"};
    ck_assert_int_eq(run_op(op, store_put_unit(one.s, op, &put, &same)), 0);
    ck_assert_uint_eq(unit, same);
    put.location = NULL;
    put.description = "e";
    ck_assert_int_eq(run_op(op, store_put_unit(one.s, op, &put, &same)), 0);
    ck_assert_int_eq(run_op(op, store_unit_error(one.s, op, unit, "does not load", "stale")), 0);

    ck_assert_int_eq(run_op(op, store_units(one.s, op, &units, &n)), 0);

    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(units[0].location, "./sales");
    ck_assert_str_eq(units[0].description, "e");
    ck_assert_str_eq(units[0].environment_name, "prod");
    ck_assert_str_eq(units[0].load_error, "does not load");
    ck_assert_str_eq(units[0].stale_error, "stale");
    ck_assert_int_gt(units[0].stale_us, INT64_C(1600000000000000));
    ck_assert_int_eq(run_op(op, store_unit_error(one.s, op, unit, NULL, NULL)), 0);
    ck_assert_int_eq(run_op(op, store_units(one.s, op, &units, &n)), 0);
    ck_assert_ptr_null(units[0].stale_error);
    ck_assert_int_eq(units[0].stale_us, 0);
    ck_assert_int_eq(run_op(op, store_unit_error(one.s, op, 999, NULL, NULL)), ERR_NOT_FOUND);
}
END_TEST

static struct store_file file_of(const char *path, struct slice content, bool stored)
{
    return (struct store_file){.path = path,
                               .content = stored ? SLICE_NONE : content,
                               .bytes = content.len,
                               .sha256 = sha256_of(content.p, content.len),
                               .is_data = stored};
}

START_TEST(load_comes_back_whole_with_files_schemas_and_the_compilers_bytes)
{
    struct store_op *op;
    uint64_t unit = make_unit("prod", "sales"), id = 0, second = 0;
    struct store_file files[] = {file_of("publisher.json", SLICE("{}"), false),
                                 file_of("a b/gr\xc3\xbcn.malloy", slice_make("x\0y", 3), false),
                                 file_of("empty.malloy", SLICE(""), false),
                                 file_of("x.parquet", SLICE("large"), true)};
    struct core_column columns[] = {{.name = "d", .data_type = "date", .nullable = true},
                                    {.name = "l", .data_type = "ARRAY", .element_type = "text"}};
    struct store_schema schemas[] = {
        {.connection = "pg", .key = "public.t", .columns = {columns, 2}},
        {.connection = "pg", .key = "select 1/0", .is_sql = true, .error = "division by zero"}};
    struct store_load put = {.unit = unit,
                             .version = sha256_of("v1", 2),
                             .compiler_version = "0.0.431",
                             .manifest_json = "{\"z\":1,\"a\":2}",
                             .package_json = "{\"p\":1}",
                             .plan_json = "null",
                             .warnings_json = "[1]",
                             .default_connection = "pg",
                             .loaded_packed = "\0\1\2",
                             .loaded_len = 3,
                             .files = files,
                             .n_files = 4,
                             .schemas = schemas,
                             .n_schemas = 2};

    ck_assert_int_eq(run_op(op, store_put_load(one.s, op, &put, &id)), 0);
    ck_assert_int_eq(run_op(op, store_put_load(one.s, op, &put, &second)),
                     0); /* same version, another load */
    ck_assert_uint_ne(id, second);
    struct store_load got;
    ck_assert_int_eq(run_op(op, store_get_load(one.s, op, second, true, &got)), 0);

    ck_assert_uint_eq(got.id, second);
    ck_assert_uint_eq(got.unit, unit);
    ck_assert_mem_eq(got.version.b, put.version.b, 32);
    ck_assert_str_eq(got.manifest_json, "{\"z\":1,\"a\":2}");
    ck_assert_str_eq(got.advisories_json, "[]");
    ck_assert(slice_eq(slice_make(got.loaded_packed, got.loaded_len), slice_make("\0\1\2", 3)));
    ck_assert_uint_eq(got.n_files, 4);
    ck_assert_str_eq(got.files[0].path, "a b/gr\xc3\xbcn.malloy");
    ck_assert(slice_eq(got.files[0].content, slice_make("x\0y", 3)));
    ck_assert_str_eq(got.files[1].path, "empty.malloy");
    ck_assert_ptr_nonnull(got.files[1].content.p);
    ck_assert_ptr_null(got.files[3].content.p);
    ck_assert_uint_eq(got.files[3].bytes, 5);
    ck_assert(got.files[3].is_data);
    ck_assert_uint_eq(got.n_schemas, 2);
    ck_assert_str_eq(got.schemas[0].columns.items[1].element_type, "text");
    ck_assert(got.schemas[0].columns.items[0].nullable);
    ck_assert(got.schemas[1].is_sql);
    ck_assert_str_eq(got.schemas[1].error, "division by zero");
    ck_assert_int_eq(run_op(op, store_get_load(one.s, op, id, false, &got)), 0);
    ck_assert_ptr_null(got.files[0].content.p);
    ck_assert_int_eq(run_op(op, store_get_load(one.s, op, 999, false, &got)), ERR_NOT_FOUND);
    struct slice bytes;
    ck_assert_int_eq(run_op(op, store_get_file(one.s, op, &files[1].sha256, &bytes)), 0);
    ck_assert(slice_eq(bytes, slice_make("x\0y", 3)));
    ck_assert_int_eq(run_op(op, store_get_file(one.s, op, &files[3].sha256, &bytes)),
                     ERR_NOT_FOUND);
}
END_TEST

START_TEST(delivery_that_comes_twice_gives_the_first_event)
{
    struct store_op *op;
    struct store_event e = {.public_id = "evt_1",
                            .kind = "publish",
                            .delivery_id = "msg_1",
                            .environment = "prod",
                            .name = "sales",
                            .body_json = "{\"build\":true}",
                            .archive = slice_make("PK\0", 3),
                            .trace = {{5, 6}}};
    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &e)), 0);
    ck_assert_uint_gt(e.id, 0);
    struct store_event twice = e, unnamed = e, got;
    twice.public_id = "evt_2";
    ck_assert_int_eq(
        run_op(op, store_event_move(one.s, op, e.id, "received", "loading", NULL, NULL)), 0);

    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &twice)), ERR_CONFLICT);

    ck_assert_str_eq(twice.public_id, "evt_1");
    ck_assert_uint_eq(twice.trace.b[1], 6);
    ck_assert_str_eq(twice.state, "loading");
    ck_assert(slice_eq(twice.archive, slice_make("PK\0", 3)));
    unnamed.public_id = "evt_3";
    unnamed.delivery_id = NULL;
    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &unnamed)), 0);
    ck_assert_int_eq(run_op(op, store_event_get(one.s, op, "evt_3", &got)), 0);
    ck_assert_ptr_null(got.delivery_id);
    ck_assert_int_eq(run_op(op, store_event_get(one.s, op, "evt_2", &got)), ERR_NOT_FOUND);
}
END_TEST

START_TEST(events_move_only_from_where_they_are_and_open_ones_come_oldest_first)
{
    struct store_op *op;
    struct store_event a = {.public_id = "a",
                            .kind = "publish",
                            .environment = "e",
                            .name = "n",
                            .archive = SLICE("zip")};
    struct store_event b = {.public_id = "b", .kind = "publish", .environment = "e", .name = "n"};
    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &a)), 0);
    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &b)), 0);
    struct store_event *list;
    size_t n = 0;
    ck_assert_int_eq(run_op(op, store_events_open(one.s, op, &list, &n)), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(list[0].public_id, "a");

    ck_assert_int_eq(run_op(op, store_event_move(one.s, op, a.id, "loading", "loaded", NULL, NULL)),
                     ERR_STORE_MOVED);
    ck_assert_int_eq(run_op(op, store_event_move(one.s, op, a.id, "received", "done",
                                                 "1766012345678-000000001", NULL)),
                     0);
    ck_assert_int_eq(run_op(op, store_events_open(one.s, op, &list, &n)), 0);

    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(list[0].public_id, "b");
    ck_assert_int_eq(run_op(op, store_event_get(one.s, op, "a", &a)), 0);
    ck_assert_str_eq(a.run, "1766012345678-000000001");
    ck_assert_ptr_null(a.archive.p); /* it has done its work */
    ck_assert_int_eq(one.losts, 0);
}
END_TEST

START_TEST(newest_answer_of_a_call_is_kept)
{
    struct store_op *op;
    uint8_t id[16] = {1, 2, 3};
    struct store_answer in = {.request_id = {1, 2, 3}, .kind = 7, .reply = SLICE("noted")}, out;
    ck_assert_int_eq(run_op(op, store_answered_get(one.s, op, id, &out)), ERR_NOT_FOUND);
    ck_assert_int_eq(run_op(op, store_answered_put(one.s, op, &in)), 0);
    in.reply = slice_make("a\0b", 3);
    ck_assert_int_eq(run_op(op, store_answered_put(one.s, op, &in)), 0);

    ck_assert_int_eq(run_op(op, store_answered_get(one.s, op, id, &out)), 0);

    ck_assert_int_eq(out.kind, 7);
    ck_assert(slice_eq(out.reply, slice_make("a\0b", 3)));
}
END_TEST

START_TEST(answer_is_stored_with_the_change_or_not_at_all)
{
    struct store_op *op;
    struct store_environment e = {.name = "answers"};
    uint64_t env = 0;
    ck_assert_int_eq(run_op(op, store_put_environment(one.s, op, &e, &env)), 0);
    struct store_connection c = {
        .environment = env, .name = "pg", .type = "postgres", .sealed = SLICE("s")};
    static const struct store_answer first = {.request_id = {7}, .kind = 27, .reply = {"a", 1}},
                                     second = {.request_id = {8}, .kind = 27, .reply = {"b", 1}};
    struct store_answer out;

    ck_assert_int_eq(run_op(op, (op->answer = &first, store_put_connection(one.s, op, &c, true))),
                     0);
    ck_assert_int_eq(run_op(op, (op->answer = &second, store_put_connection(one.s, op, &c, true))),
                     ERR_CONFLICT);

    ck_assert_int_eq(run_op(op, store_answered_get(one.s, op, first.request_id, &out)), 0);
    ck_assert(slice_eq(out.reply, SLICE("a")));
    ck_assert_int_eq(run_op(op, store_answered_get(one.s, op, second.request_id, &out)),
                     ERR_NOT_FOUND);
}
END_TEST

START_TEST(wipe_empties_everything_but_the_installation)
{
    struct store_op *op;
    uint64_t unit = make_unit("prod", "sales");
    make_load(unit);
    const char *installation = value("SELECT installation FROM kiln.meta");

    ck_assert_int_eq(run_op(op, store_wipe(one.s, op)), 0);

    ck_assert_str_eq(value("SELECT (SELECT count(*) FROM kiln.unit) + (SELECT count(*) FROM "
                           "kiln.load) + (SELECT count(*) FROM "
                           "kiln.environment)"),
                     "0");
    ck_assert_str_eq(value("SELECT installation FROM kiln.meta"), installation);
    ck_assert_uint_gt(make_unit("prod", "sales"), unit);
}
END_TEST

START_TEST(wipe_covers_every_table_but_those_that_stay)
{
    struct store_op *op;
    make_unit("prod", "sales");
    ck_assert_int_eq(run_op(op, store_wipe(one.s, op)), 0);
    /* TRUNCATE gives a table a new file: what was left out kept its first one. */
    const char *left = value("SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE "
                             "relnamespace = 'kiln'::regnamespace AND "
                             "relkind = 'r' AND pg_relation_filenode(oid) = oid");
    ck_assert_str_eq(left, "leader leader_beat meta migration");
}
END_TEST

START_TEST(prune_takes_what_is_old_and_nothing_else)
{
    struct store_op *op;
    uint64_t unit = make_unit("prod", "sales");
    uint64_t old = make_load(unit), kept = make_load(unit);
    struct store_event done = {
        .public_id = "a", .kind = "publish", .environment = "e", .name = "n", .state = "done"};
    struct store_event open = {
        .public_id = "b", .kind = "publish", .environment = "e", .name = "n"};
    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &done)), 0);
    ck_assert_int_eq(run_op(op, store_event_insert(one.s, op, &open)), 0);
    struct rows rows = rows_new();
    rows_add(&rows, ROW_UNIT)->u.unit = (struct row_unit){unit, kept, 10, false};
    for (uint64_t epoch = 8; epoch <= 10; epoch++) {
        rows_add(&rows, ROW_BINDING_SET)->u.set = (struct core_binding_set){
            .unit = unit, .epoch = epoch, .load = kept, .cause = "publish"};
    }
    ck_assert_int_eq(commit(&rows), 0);

    ck_assert_int_eq(run_op(op, store_prune(one.s, op)), 0);
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.event"), "2");
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.load"), "2");
    sql("UPDATE kiln.event SET updated_at = now() - interval '8 days'; UPDATE kiln.load SET "
        "created_at = now() - interval '8 days'; "
        "UPDATE kiln.binding_set SET created_at = now() - interval '2 days'");
    ck_assert_int_eq(run_op(op, store_prune(one.s, op)), 0);

    ck_assert_str_eq(value("SELECT string_agg(public_id, ' ') FROM kiln.event"), "b");
    ck_assert_str_eq(value("SELECT string_agg(id::text, ' ') FROM kiln.load"),
                     arena_printf(&arena, "%llu", (unsigned long long)kept));
    ck_assert_str_eq(
        value("SELECT string_agg(epoch::text, ' ' ORDER BY epoch) FROM kiln.binding_set"), "9 10");
    ck_assert_uint_ne(old, kept);
}
END_TEST

TCase *records_case(void)
{
    TCase *tc = tcase_create("records");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, open_one, end_database);
    tcase_add_test(tc, environments_and_connections_come_back_as_they_were_put);
    tcase_add_test(tc, environment_with_packages_cannot_be_deleted_and_its_name_is_free_afterwards);
    tcase_add_test(tc, unit_keeps_what_is_not_said_and_carries_its_errors);
    tcase_add_test(tc, load_comes_back_whole_with_files_schemas_and_the_compilers_bytes);
    tcase_add_test(tc, delivery_that_comes_twice_gives_the_first_event);
    tcase_add_test(tc, events_move_only_from_where_they_are_and_open_ones_come_oldest_first);
    tcase_add_test(tc, newest_answer_of_a_call_is_kept);
    tcase_add_test(tc, answer_is_stored_with_the_change_or_not_at_all);
    tcase_add_test(tc, wipe_empties_everything_but_the_installation);
    tcase_add_test(tc, wipe_covers_every_table_but_those_that_stay);
    tcase_add_test(tc, prune_takes_what_is_old_and_nothing_else);
    return tc;
}
