"""Nobody writes through an attached database, reaches another server by it, or sees its password, whatever they write in models and
statements (issue, "Sandbox per package"; the rest of the attack list is test_duckdb_sandbox.py). Ways in: a model's SQL block, described by a
builder when it is published and run by a gateway, and sqlQuery."""
import json

import pytest

from duckfile import DuckFile
from servers import PgServer
from test_duckdb_sandbox import Trap
from trio import ENV, Trio

PASSWORD, WORD = "never-shown-51bb", "a row of the table"


@pytest.fixture(scope="module")
def pg():
    with PgServer(tcp=True, password=PASSWORD) as server:
        server.rows(f"CREATE TABLE notes AS SELECT 1 AS id, '{WORD}' AS word")
        server.rows("CREATE FUNCTION bump() RETURNS int LANGUAGE sql AS 'INSERT INTO notes VALUES (2, ''bumped'') RETURNING id'")
        yield server


@pytest.fixture(scope="module")
def kiln(pg):
    with Trio(gateway_env={"KILN_COMPILER_CHILDREN": "1"}, seed=None) as trio:
        trio.trap = Trap()
        trio.file = DuckFile(trio.dir / "ref.duckdb").run(f"CREATE TABLE notes AS SELECT 1 AS id, '{WORD}' AS word")
        server = {"host": "127.0.0.1", "port": pg.port, "databaseName": "postgres", "userName": pg.superuser, "password": PASSWORD}
        trio.json("POST", f"environments/{ENV}/connections/lake", status=201, json={"name": "lake", "type": "duckdb", "duckdbConnection": {
            "attachedDatabases": [{"name": "pg", "type": "postgres", "postgresConnection": server},
                                  {"name": "ref", "type": "duckdb", "duckdbConnection": {"databasePath": str(trio.file.path)}}]}})
        yield trio


def sql_query(kiln, sql):
    return kiln.call("POST", f"environments/{ENV}/connections/lake/sqlQuery", json={"sqlStatement": sql})


def model(kiln, sql):
    """Published, and if that went well run."""
    kiln.write_package("attack", {"shop.malloy": f'source: x is lake.sql("""{sql}""")\n'})
    r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": "attack", "location": "./packages/attack"})
    return kiln.post_query("run: x -> { select: * }", package="attack") if r.status_code == 200 else r


WAYS = {"sqlQuery": sql_query, "model": model}
# No answer but a refusal.
REFUSED = [
    "SELECT * FROM postgres_query('pg', 'SELECT 1 AS a')", "SELECT * FROM postgres_query('pg', 'SELECT bump()')",
    "SELECT * FROM postgres_execute('pg', 'COMMIT; INSERT INTO notes VALUES (3, ''x'')')", "FROM postgres_execute('pg', 'COMMIT; DELETE FROM notes')",
    "SELECT * FROM postgres_scan('host=127.0.0.1 port={trap} connect_timeout=1', 'public', 'x')",
    "SELECT * FROM postgres_scan_pushdown('host=127.0.0.1 port={trap} connect_timeout=1', 'public', 'x')",
    "SELECT * FROM postgres_scan('{dsn}', 'public', 'notes')", "SELECT * FROM postgres_attach('{dsn}')", "SELECT * FROM postgres_attach('host=127.0.0.1 port={trap}')",
    "CALL postgres_execute('pg', 'COMMIT; DELETE FROM notes')", "CALL postgres_attach('{dsn}')", "SELECT * FROM postgres_configure_pool(catalog_name='pg', max_connections=1)",
    "SELECT * FROM pg_clear_cache()", "CALL pg_clear_cache()", "SELECT * FROM read_postgres_binary('/etc/passwd')",
    'SELECT * FROM "postgres_query"(\'pg\', \'SELECT 1\')', "SELECT * FROM PostGres_Query('pg', 'SELECT 1')", "SELECT * FROM system.main.postgres_query('pg', 'SELECT 1')",
    "SELECT * FROM postgres_query /* x */ ('pg', 'SELECT 1')", "WITH t AS (FROM postgres_query('pg', 'SELECT 1')) SELECT * FROM t",
    "SELECT (SELECT max(a) FROM postgres_query('pg', 'SELECT 1 AS a')) AS a", "SELECT 1 AS a WHERE EXISTS (FROM postgres_query('pg', 'SELECT 1'))",
    "SELECT 1 AS a UNION ALL SELECT * FROM postgres_query('pg', 'SELECT 1')", "SELECT * FROM (VALUES (1)) v(a), LATERAL (SELECT * FROM postgres_query('pg', 'SELECT 1')) x",
    "SELECT * FROM query('FROM postgres_query(''pg'', ''SELECT 1'')')", "SELECT * FROM query('FROM postgres_' || 'scan(''host=127.0.0.1 port={trap}'', ''a'', ''b'')')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM postgres_query(''pg'', ''SELECT 1'')'))",
    "DESCRIBE FROM postgres_query('pg', 'SELECT 1')", "SUMMARIZE FROM postgres_query('pg', 'SELECT 1')", "SELECT * FROM (DESCRIBE FROM postgres_scan('host=127.0.0.1 port={trap}', 'a', 'b'))",
    "SELECT * FROM (SUMMARIZE FROM postgres_scan('host=127.0.0.1 port={trap}', 'a', 'b'))", "EXPLAIN SELECT * FROM postgres_query('pg', 'SELECT 1')",
    "PIVOT (FROM postgres_query('pg', 'SELECT 1 AS a')) ON a USING count(*)", "SELECT * FROM duckdb_secrets()", "SELECT * FROM duckdb_secrets(redact = false)",
    "SELECT * FROM which_secret('x', 'postgres')", "FROM duckdb_secrets() SELECT secret_string",
    "SELECT * FROM '{file}'", "SELECT * FROM read_blob('{file}')", "SELECT * FROM read_text('{file}')", "SELECT * FROM read_duckdb('{file}')", "SELECT * FROM query_table('{file}')",
    "SELECT * FROM query_table(['pg.public.notes', '{file}'])", "SELECT * FROM '/etc/passwd'", "SELECT * FROM 'x/y.csv'", "SELECT * FROM read_csv('/etc/passwd')",
    "INSERT INTO pg.public.notes VALUES (4, 'x')", "INSERT INTO ref.notes VALUES (4, 'x')", "UPDATE pg.public.notes SET word = 'x'", "DELETE FROM pg.public.notes",
    "TRUNCATE pg.public.notes", "CREATE TABLE pg.public.made AS SELECT 1", "CREATE TABLE ref.made AS SELECT 1", "CREATE VIEW pg.public.made AS SELECT 1", "DROP TABLE pg.public.notes",
    "DROP TABLE ref.notes", "ALTER TABLE pg.public.notes ADD COLUMN x int", "CREATE SCHEMA pg.made", "CREATE INDEX i ON ref.notes (id)",
    "MERGE INTO pg.public.notes USING (SELECT 1 AS id) s USING (id) WHEN MATCHED THEN DELETE",
    "WITH x AS (INSERT INTO pg.public.notes VALUES (5, 'x') RETURNING *) SELECT * FROM x", "COPY pg.public.notes FROM 'x.csv'", "COPY pg.public.notes TO 'x.csv'",
    "COPY (SELECT 1) TO '{dir}/x.bin' (FORMAT postgres_binary)", "COPY FROM DATABASE pg TO ref", "EXPORT DATABASE '{dir}/out'", "ATTACH '{dsn}' AS other (TYPE postgres)",
    "ATTACH '{file}' AS other", "ATTACH '{file}' AS other (READ_ONLY)", "DETACH pg", "DETACH ref", "USE pg", "CREATE SECRET s (TYPE postgres, HOST '127.0.0.1', PORT {trap})",
    "CREATE OR REPLACE SECRET kiln_pg (TYPE postgres, HOST '127.0.0.1', PORT {trap})", "DROP SECRET kiln_pg", "SET pg_debug_show_queries = true", "RESET pg_connection_limit",
    "PRAGMA database_list", "CHECKPOINT ref", "VACUUM", "LOAD postgres_scanner", "INSTALL postgres", "SELECT 1; DELETE FROM pg.public.notes",
    "SELECT 1) x; CALL postgres_execute('pg', 'COMMIT; DELETE FROM notes'); SELECT * FROM (SELECT 1",
]
# These may answer; nothing secret stands in it.
TOLD = [
    "SELECT * FROM duckdb_databases()", "SELECT * FROM pragma_database_list()", "SELECT name, value FROM duckdb_settings()", "SELECT * FROM pg_catalog.pg_database",
    "SELECT * FROM information_schema.schemata", "SELECT * FROM duckdb_tables()", "SELECT * FROM duckdb_logs()", "SELECT * FROM duckdb_prepared_statements()",
    "SELECT * FROM duckdb_functions()", "SELECT current_setting('secret_directory') AS a",
    "SELECT * FROM pg.public.missing", "SELECT * FROM pg.missing.notes", "SELECT word / 0 FROM pg.public.notes", "SELECT word::int AS a FROM pg.public.notes",
    "SELECT * FROM nowhere.public.notes", "SELECT * FROM pg.pg_catalog.pg_stat_activity", "SELECT * FROM pg.pg_catalog.pg_file_settings",
    "SELECT 'postgres_query' AS a", "SELECT 1 AS postgres_query", "SELECT * FROM duckdb_views()", "SELECT * FROM duckdb_variables()",
]


@pytest.fixture(autouse=True)
def nothing_happens(kiln, pg):
    """Around every test: both tables as before, nothing made, nobody calls out, no process dies, and both are read."""
    pids = {n: p.pid for n, p in kiln.procs.items()}
    made = "SELECT count(*) FROM pg_class WHERE relname IN ('made', 'x') OR relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname = 'made')"
    yield
    assert all(kiln.procs[n].alive and kiln.procs[n].pid == pid for n, pid in pids.items())
    assert pg.rows("SELECT id, word FROM notes") == [(1, WORD)] and pg.value(made) == 0
    assert not kiln.trap.caught()
    for table in ("pg.public.notes", "ref.notes"):
        r = sql_query(kiln, f"SELECT word FROM {table}")
        assert r.status_code == 200 and WORD in r.text, r.text
    assert not [p for p in kiln.dir.iterdir() if p.name in ("x.bin", "out", "x.csv")]


def fill(kiln, pg, sql):
    dsn = f"host=127.0.0.1 port={pg.port} user={pg.superuser} password={PASSWORD} dbname=postgres"
    return sql.replace("{trap}", str(kiln.trap.port)).replace("{dsn}", dsn).replace("{dir}", str(kiln.dir)).replace("{file}", str(kiln.file.path))


@pytest.mark.parametrize("way", WAYS)
def test_the_way_in_works_for_what_is_allowed(kiln, way):
    for sql in ("SELECT word FROM pg.public.notes", "SELECT * FROM ref.main.notes WHERE id = 1", "FROM pg.public.notes SELECT word", "SELECT 'postgres_query(1)' AS a, word FROM ref.notes"):
        if way == "sqlQuery" and sql.startswith("FROM"):
            continue
        r = WAYS[way](kiln, sql)
        assert r.status_code == 200 and WORD in r.text, f"{sql}: {r.status_code} {r.text[:500]}"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_or_reached_through_it(kiln, pg, way):
    for sql in REFUSED:
        r = WAYS[way](kiln, fill(kiln, pg, sql))
        assert r.status_code in (400, 403, 422, 424), f"{sql}: {r.status_code} {r.text[:500]}"
        if PASSWORD not in fill(kiln, pg, sql):
            assert PASSWORD not in r.text, f"{sql}: {r.text[:500]}"
        assert pg.rows("SELECT id, word FROM notes") == [(1, WORD)], sql
        assert not kiln.trap.caught(), sql


@pytest.mark.parametrize("way", WAYS)
def test_no_password_is_told(kiln, pg, way):
    for sql in TOLD:
        r = WAYS[way](kiln, fill(kiln, pg, sql))
        assert r.status_code in (200, 400, 403, 422, 424), f"{sql}: {r.status_code} {r.text[:500]}"
        assert PASSWORD not in r.text and "password=" not in r.text.replace("password=redacted", ""), f"{sql}: {r.text[:500]}"


def test_a_file_is_no_table_of_a_model(kiln):
    for path in (str(kiln.file.path), f"\\'{kiln.file.path}\\'", "x.csv"):
        kiln.write_package("attack", {"shop.malloy": f"source: x is lake.table('{path}')\n"})
        r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": "attack", "location": "./packages/attack"})
        assert r.status_code in (400, 422, 424), f"{path}: {r.status_code} {r.text[:500]}"


def test_no_log_and_no_file_of_the_services_holds_the_password(kiln):
    for name in kiln.procs:
        assert PASSWORD not in kiln.procs[name].out() + kiln.procs[name].err()
    for p in kiln.dir.rglob("*"):
        if p.is_file() and not p.is_symlink():
            assert PASSWORD.encode() not in p.read_bytes(), p


def test_the_list_of_refused_functions_is_all_that_the_extension_brings(kiln):
    """Of duckdb_functions(), which says nothing of where they come from: by their names."""
    r = sql_query(kiln, "SELECT DISTINCT function_name AS f FROM duckdb_functions() WHERE function_name ILIKE '%postgres%' OR function_name = 'pg_clear_cache' ORDER BY 1")
    found = {row["f"] for row in json.loads(r.json()["data"])["rows"]}
    assert found == {"pg_clear_cache", "postgres_attach", "postgres_configure_pool", "postgres_execute", "postgres_hstore_get", "postgres_hstore_to_json",
                     "postgres_query", "postgres_scan", "postgres_scan_pushdown", "read_postgres_binary"}
