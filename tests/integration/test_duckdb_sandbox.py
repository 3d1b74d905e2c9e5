"""What people may write in models and queries reaches no file, no network and no setting outside their package, and writes nothing
(decisions 2.1; issue, "Sandbox per package"). Ways in: a model's SQL block and its table paths (described by a builder when it is published,
run by a gateway, built by a builder), and the text of a query, where raw SQL is not taken at all."""
import contextlib
import json
import os
import re
import socket

import pytest

from servers import PgServer, wait_for
from trio import ENV, Trio
from trio_fixtures import publish

OWN, OTHER, OUTSIDE = "value of this package", "value of another package", "value outside of everything"
ATTACK_DATA = "word\nof the attacking package\n"  # told by its size
MODEL = """##! experimental.persistence
source: own is duckdb.table('data/own.csv') extend { measure: n is count() }
#@ persist name="kept"
source: kept is own -> { group_by: word; aggregate: n }
"""


class Trap:
    """A listener that nobody may connect to."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(8)
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]

    def caught(self):
        try:
            self.socket.accept()[0].close()
            return True
        except BlockingIOError:
            return False


@pytest.fixture(scope="module")
def kiln():
    with Trio(gateway_env={"KILN_COMPILER_CHILDREN": "1", "KILN_DUCKDB_MEMORY": "1GB"}, builder_env={"KILN_DUCKDB_MEMORY": "1GB"}) as trio:
        (trio.dir / "outside.csv").write_text(f"word\n{OUTSIDE}\n")
        (trio.dir / "packages").mkdir(exist_ok=True)
        for package, word in (("mine", OWN), ("theirs", OTHER)):
            publish(trio, package, {"shop.malloy": MODEL, "data/own.csv": f"word\n{word}\n"})
            trio.materialize(package)
            assert trio.query("run: own -> { select: word }", package=package).rows == [{"word": word}]
            assert trio.query("run: kept -> { select: word }", package=package).served == "baked"
        trio.trap = Trap()
        yield trio


def places(kiln):
    """Files that lie outside of package `mine`, by the way they would be read."""
    (layout,) = [p for p in (kiln.dir / "gateway-1" / "duckdb").glob("*/data/own.csv") if OTHER in p.read_text()]
    (mine,) = [p for p in (kiln.dir / "gateway-1" / "duckdb").glob("*/data/own.csv") if OWN in p.read_text()]
    (stored,) = [p for p in (kiln.dir / "packages.store").glob("*/*") if p.is_file() and OTHER.encode() in p.read_bytes()]
    built = [p for p in kiln.generations().values() if OTHER in json.dumps(kiln.query("run: own -> { select: word }", package="theirs").rows)]
    theirs = kiln.store("SELECT g.id FROM kiln.generation g JOIN kiln.run r ON r.id = g.run JOIN kiln.unit u ON u.id = r.unit WHERE u.name = 'theirs'")
    assert built and theirs
    generation = kiln.generations()[theirs[0][0]] / "data-0.parquet"
    up = "/".join([".."] * 12)
    return {
        "outside": str(kiln.dir / "outside.csv"), "passwd": "/etc/passwd", "up": f"{up}/etc/passwd", "down_up": f"data/{up}/etc/passwd",
        "other": str(layout), "sibling": f"{mine.parent.parent}/../{layout.parent.parent.name}/data/own.csv",
        "prefix": f"{mine.parent.parent}.spill/../{layout.parent.parent.name}/data/own.csv", "store": str(stored), "generation": str(generation),
        "root": f"/proc/self/root{kiln.dir}/outside.csv", "environ": "/proc/self/environ", "cmdline": "/proc/self/cmdline",
        "maps": "/proc/self/maps", "fd": "/proc/self/fd/0", "cwd": f"/proc/self/cwd/{up}/etc/passwd",
        "config": str(kiln.config), "owner": str(kiln.dir / "generations" / ".kiln-root"), "url": f"file://{kiln.dir}/outside.csv",
        "http": f"http://127.0.0.1:{kiln.trap.port}/x.csv", "s3": "s3://bucket/x.csv", "hf": "hf://datasets/x/y/z.csv",
    }


READERS = {
    "text": "SELECT content FROM read_text('{}')", "blob": "SELECT * FROM read_blob('{}')", "csv": "SELECT * FROM read_csv('{}', header = false)",
    "json": "SELECT * FROM read_json('{}')", "parquet": "SELECT * FROM read_parquet('{}')", "from": "SELECT * FROM '{}'", "glob": "SELECT * FROM glob('{}')",
    "sniff": "SELECT * FROM sniff_csv('{}')", "metadata": "SELECT * FROM parquet_metadata('{}')", "query": "SELECT * FROM query('FROM read_text(''{}'')')",
    "serialized": "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{}'')'))",
}
# What is no reading of a place: statements, settings, breaking out of the brackets a block is put into.
STATEMENTS = [
    "ATTACH '{dir}/new.duckdb' AS x", "ATTACH ':memory:' AS x", "COPY (SELECT 1) TO '{dir}/new.csv'", "COPY (SELECT 1) TO 'new.csv'", "EXPORT DATABASE '{dir}/new'",
    "INSTALL httpfs", "LOAD httpfs", "LOAD '{dir}/outside.csv'", "FORCE INSTALL excel", "PRAGMA database_list; SELECT 1", "PRAGMA enable_external_access = true",
    "SET enable_external_access = true", "RESET enable_external_access", "SET lock_configuration = false", "RESET allowed_directories", "SET memory_limit = '1TB'",
    "SET allowed_directories = ['/']", "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')", "CREATE TABLE t AS SELECT 1", "CREATE MACRO m() AS 1",
    "CREATE OR REPLACE VIEW kept AS SELECT 1", "DROP VIEW kept", "INSERT INTO kept VALUES (1)", "CALL enable_logging(storage = 'file', storage_path = '{dir}/log')",
    "CHECKPOINT", "USE memory", "BEGIN", "VACUUM", "EXPLAIN ANALYZE SELECT 1", "DETACH memory", "IMPORT DATABASE '{dir}'", "EXECUTE x", "PREPARE x AS SELECT 1",
    "SELECT 1) x; COPY (SELECT 1) TO 'new.csv'; SELECT * FROM (SELECT 1", "SELECT 1; COPY (SELECT 1) TO '{dir}/new.csv'", "SELECT 1 AS a\n) TO '{dir}/new.csv' --",
    "SELECT 1 AS a) TO '{dir}/new.parquet' (FORMAT parquet); COPY (SELECT * FROM (SELECT 1 AS a", "SELECT * FROM (COPY (SELECT 1) TO 'new.csv')",
    "WITH x AS (INSERT INTO kept VALUES (1) RETURNING *) SELECT * FROM x", "UPDATE EXTENSIONS",
]
# These may answer, if what they answer is nothing of the machine's and nothing is written.
FUNCTIONS = [
    "SELECT content FROM (VALUES ('/etc/passwd')) v(p), read_text(v.p)", "SELECT content FROM read_text(getvariable('x'))",
    "SELECT content FROM read_text((SELECT '/etc/' || 'passwd'))", "SELECT * FROM query_table('/etc/passwd')", "SELECT repeat('x', 1 << 40) AS a",
    "SELECT range(1 << 40) AS a", "SELECT getenv('KILN_SECRET_KEY') AS a", "SELECT * FROM duckdb_secrets()", "SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_databases()",
    "SELECT * FROM glob('*')", "SELECT * FROM glob('**')", "SELECT * FROM glob('../*')", "SELECT * FROM glob('../**/*')", "SELECT * FROM glob('/*')", "SELECT * FROM glob('{dir}/**')",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = '{dir}/log')", "SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_path = 'log')",
    "SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_config = {{'path': '{dir}/log'}})",
    "SELECT write_log('x')", "SELECT * FROM duckdb_logs()", "SELECT * FROM checkpoint()", "SELECT * FROM force_checkpoint('memory')", "SELECT current_setting('secret_directory') AS a",
    "SELECT * FROM duckdb_temporary_files()", "SELECT * FROM duckdb_extensions()", "SELECT * FROM pragma_database_list()", "SELECT * FROM query('COPY (SELECT 1) TO ''{dir}/new.csv''')",
    "SELECT * FROM read_csv('data/own.csv', store_rejects = true)", "SELECT * FROM duckdb_views()", "SELECT * FROM duckdb_memory()", "SELECT * FROM duckdb_prepared_statements()",
    "SELECT * FROM which_secret('s3://x', 's3')", "SELECT getvariable('x') AS a", "SELECT * FROM sql_auto_complete('SEL')", "SELECT * FROM pg_read_file('/etc/passwd')",
    "SELECT * FROM postgres_query('x', 'SELECT 1')", "SELECT * FROM postgres_scan('host=127.0.0.1 port={port}', 'public', 'x')", "SELECT * FROM sqlite_scan('{dir}/x.db', 'x')",
    "SELECT * FROM read_xlsx('{dir}/x.xlsx')", "SELECT * FROM duckdb_approx_database_count()", "SELECT * FROM read_duckdb('{dir}/x.duckdb')", "SELECT write_blob('{dir}/new.bin', 'x'::BLOB)",
]


LAYOUTS = re.compile(r"/(builders/builder-1|gateway-1/duckdb)/[0-9a-f]+-[0-9a-f]+-\d+/")


def tree(kiln):
    """All files a statement might make or change, with size and time; not DuckDB's own spilled ones. Laid out files come and go with
    their instance, in directories of ever new names."""
    found = {}
    for part in ("gateway-1/duckdb", "builders", "generations", "packages.store", "packages"):
        for where, _, names in os.walk(kiln.dir / part):
            for p in (os.path.join(where, name) for name in names):
                with contextlib.suppress(FileNotFoundError):
                    st = os.stat(p)
                    if ".spill" not in p and "attack" not in p and not p.endswith(".kiln-root") and st.st_size != len(ATTACK_DATA):
                        found[LAYOUTS.sub(r"/\1/*/", p)] = (st.st_size, 0 if LAYOUTS.search(p) else st.st_mtime_ns)
    found.update({str(p): 0 for p in kiln.dir.iterdir()})
    return found


@pytest.fixture(autouse=True)
def nothing_happens(kiln):
    """Around every test: no file comes, goes or changes, no process dies, nobody calls out, and both packages are served as before."""
    before, pids = tree(kiln), {n: p.pid for n, p in kiln.procs.items()}
    yield
    assert all(kiln.procs[n].alive and kiln.procs[n].pid == pid for n, pid in pids.items())
    after = {k: v for k, v in tree(kiln).items() if "/generations/package-" not in k or k in before}
    new = {k: (before.get(k), v) for k, v in after.items() if before.get(k) != v and "/*/data/own.csv" not in k}
    gone = {k for k in before.keys() - after.keys() if "/*/" not in k}
    assert not new and not gone, (new, gone)
    assert not kiln.trap.caught()
    for package, word in (("mine", OWN), ("theirs", OTHER)):
        answer = kiln.query("run: kept -> { select: word }", package=package)
        assert (answer.served, answer.rows) == ("baked", [{"word": word}])


def leaks(kiln, text):
    """What of the machine's stands in an answer."""
    signs = [OTHER, OUTSIDE, "root:x:0", "/etc/", "PAR1", kiln.env["KILN_SECRET_KEY"], kiln.env["KILN_BUS_KEY"], "KILN_STORE_URL", "kiln-gateway\\u0000", "root_id"]
    return [s for s in signs if s in text]


def as_query(kiln, sql):
    quoted = '"""' + sql + '"""'
    return kiln.post_query(f"run: duckdb.sql({quoted}) -> {{ select: * }}", package="mine")


def as_model(kiln, sql, package="attack"):
    kiln.write_package(package, {"shop.malloy": f'source: x is duckdb.sql("""{sql}""")\n', "data/own.csv": ATTACK_DATA})
    return kiln.call("POST", f"environments/{ENV}/packages", json={"name": package, "location": f"./packages/{package}"})


def ran(kiln):
    """The published block, run by the gateway."""
    return kiln.post_query("run: x -> { select: * }", package="attack")


def test_the_way_in_works_for_what_is_allowed(kiln):
    assert as_model(kiln, "SELECT * FROM 'data/own.csv'").status_code == 200
    assert "of the attacking package" in ran(kiln).text
    assert "raw SQL is not permitted" in as_query(kiln, "SELECT 1").text


@pytest.mark.parametrize("reader", READERS)
def test_no_place_outside_is_read_by_a_query(kiln, reader):
    for what, place in places(kiln).items():
        r = as_query(kiln, READERS[reader].format(place))
        assert r.status_code in (400, 403, 422), f"{what} {place}: {r.status_code} {r.text[:500]}"
        assert not [s for s in leaks(kiln, r.text) if s not in place], f"{what}: {r.text[:500]}"


@pytest.mark.parametrize("reader", READERS)
def test_no_place_outside_is_read_by_a_model(kiln, reader):
    for what, place in places(kiln).items():
        r = as_model(kiln, READERS[reader].format(place))
        if r.status_code == 200:  # what it would give is known without a look at the file: running it must fail
            r = ran(kiln)
        assert r.status_code in (400, 403, 422, 424, 501), f"{what} {place}: {r.status_code} {r.text[:500]}"
        assert not [s for s in leaks(kiln, r.text) if s not in place], f"{what}: {r.text[:500]}"


def test_no_place_outside_is_a_table(kiln):
    for what, place in places(kiln).items():
        for path in (place, f"\\'{place}\\'", f"read_text(\\'{place}\\')", f"x\\'; COPY (SELECT 1) TO \\'{place}"):
            kiln.write_package("attack", {"shop.malloy": f"source: x is duckdb.table('{path}')\n"})
            r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": "attack", "location": "./packages/attack"})
            assert r.status_code in (400, 422, 424), f"{what} {path}: {r.status_code} {r.text[:500]}"
            r = kiln.post_query(f"run: duckdb.table('{path}') -> {{ select: * }}", package="mine")
            assert r.status_code in (400, 403, 422), f"{what} {path}: {r.status_code} {r.text[:500]}"


@pytest.mark.parametrize("statement", STATEMENTS)
def test_only_one_select_is_run(kiln, statement):
    sql = statement.format(dir=kiln.dir)
    r = as_query(kiln, sql)
    assert r.status_code in (400, 403, 422), f"{r.status_code} {r.text[:500]}"
    r = as_model(kiln, sql)
    assert r.status_code in (400, 422, 424), f"{r.status_code} {r.text[:500]}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_tell_and_do_nothing(kiln, function):
    sql = function.format(dir=kiln.dir, port=kiln.trap.port)
    answers = [as_query(kiln, sql), as_model(kiln, sql)]
    if answers[1].status_code == 200:
        answers.append(ran(kiln))
    for r in answers:
        assert r.status_code in (200, 400, 403, 422, 424, 501), f"{r.status_code} {r.text[:500]}"
        told = r.json().get("result", "") if r.status_code == 200 else ""
        assert not leaks(kiln, r.text.replace(sql, "").replace("/etc/passwd does not exist", "")), r.text[:1500]
        assert str(kiln.dir / "packages") not in told and "outside.csv" not in told, told[:1500]


@pytest.mark.parametrize("sql", ["SELECT filename, word FROM read_csv('data/*.csv', filename = true)", "SELECT * FROM read_csv('data/own.csv', store_rejects = true)",
                                 "SELECT 1 AS a, '); COPY (SELECT 1) TO ''new.csv''; --' AS b", "SELECT 1 AS a -- ) TO 'new.csv'"])
def test_a_build_writes_its_generation_and_nothing_else(kiln, sql):
    """Raw text goes into the COPY of a build: it stays within its brackets."""
    kiln.write_package("attack", {"shop.malloy": f'##! experimental.persistence\n#@ persist name="built"\nsource: x is duckdb.sql("""{sql}""")\n', "data/own.csv": ATTACK_DATA})
    assert kiln.json("POST", f"environments/{ENV}/packages", json={"name": "attack", "location": "./packages/attack"})
    before = tree(kiln)
    run = kiln.materialize("attack", forceRefresh=True)
    (made,) = [e["materializedTableId"] for e in run["manifest"]["entries"].values()]
    assert {p for p in tree(kiln).keys() - before.keys() if made not in p} == set()
    assert kiln.query("run: x -> { select: * }", package="attack").served == "baked"
    kiln.delete_run(run["id"], "attack", drop=True)
    wait_for(lambda: made not in kiln.generations(), 10, "the result is gone again")


@pytest.mark.parametrize("call", ["getenv!string('KILN_SECRET_KEY')", "current_setting!string('temp_directory')", "read_text!string('/etc/passwd')",
                                  "write_log!string('x')", "nextval!number('x')"])
def test_functions_called_from_malloy_tell_nothing(kiln, call):
    r = kiln.post_query(f"run: own -> {{ select: a is {call} }}", package="mine")
    assert r.status_code in (200, 400, 422) and not leaks(kiln, r.text.replace(call, "")), r.text


def test_the_settings_stay_as_they_were_set(kiln):
    wanted = {"enable_external_access": "false", "lock_configuration": "true", "allow_community_extensions": "false", "autoload_known_extensions": "false",
              "autoinstall_known_extensions": "false", "allow_persistent_secrets": "false"}
    sql = "SELECT name, value FROM duckdb_settings() WHERE name IN (" + ", ".join(f"'{n}'" for n in wanted) + ")"
    assert as_model(kiln, sql).status_code == 200
    got = {row["name"]: row["value"].lower() for row in json.loads(ran(kiln).json()["result"])}
    assert got == wanted


def test_sql_over_rest_is_not_run_on_a_package_s_duckdb_or_only_a_select(kiln):
    for path in (f"environments/{ENV}/connections/duckdb/sqlQuery", kiln.package_path("mine", "/connections/duckdb/sqlQuery")):
        for sql in ("SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO 'new.csv'", "SET enable_external_access = true"):
            r = kiln.call("POST", path, json={"sqlStatement": sql})
            assert r.status_code in (400, 403, 404, 422, 501), f"{path} {sql}: {r.status_code} {r.text[:500]}"
            assert not leaks(kiln, r.text.replace(sql, ""))


def test_a_connection_of_that_name_cannot_be_made(kiln):
    with PgServer() as other:
        r = kiln.call("POST", f"environments/{ENV}/connections/duckdb", json={"name": "duckdb", "type": "postgres", "postgresConnection": {"connectionString": other.url()}})
    assert r.status_code in (400, 409, 422), r.text
