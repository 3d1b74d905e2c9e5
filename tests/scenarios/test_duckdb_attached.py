"""Databases attached to a duckdb connection of an environment, read-only: a DuckDB file and a PostgreSQL server (issue, "Sandbox per
package"; decisions 2; docs/malloy-persistence.md)."""
import json
import os
import socket
import time

import pytest

from duckfile import DuckFile
from servers import PgServer, wait_for
from trio import ENV, Trio
from trio_fixtures import publish

PASSWORD = "never-shown-7f3a"
REGIONS = ("east", "north", "south", "west")
FILL = "SELECT i AS id, (['east', 'north', 'south', 'west'])[(i % 4) + 1] AS region, i AS amount FROM range(2000) r(i)"
MODEL = """##! experimental.persistence
source: orders is lake.table('{table}') extend {{
  measure: orders_n is count()
  measure: total is sum(amount)
}}
source: few is lake.sql("select id, region from {table} where id < 8") extend {{ measure: n is count() }}
#@ persist name="daily"
source: daily is orders -> {{ group_by: region; aggregate: orders_n, total }}
#@ persist name="regions"
source: regions is daily -> {{ aggregate: regions_n is count() }}
"""
WANT = [{"region": r, "orders_n": 500, "total": sum(range(k, 2000, 4))} for k, r in enumerate(REGIONS)]
QUERY = "run: daily -> { group_by: region; aggregate: orders_n is orders_n.sum(), total is total.sum(); order_by: region }"
FEW = "run: few -> { group_by: region; aggregate: n; order_by: region }"


class Lake:
    """A connection of its own per test, what it attaches, and a package on it."""

    def __init__(self, kiln, name, entry, table):
        self.kiln, self.package, self.connection, self.entry, self.table = kiln, name, f"c_{name}", entry, table
        self.path = f"environments/{ENV}/connections/{self.connection}"

    def config(self, **more):
        return {"name": self.connection, "type": "duckdb", "duckdbConnection": {"attachedDatabases": [self.entry]}, **more}

    def put(self, method="POST", **more):
        self.kiln.json(method, self.path, status=201 if method == "POST" else 200, json=self.config(**more))
        return self

    def files(self, **more):
        model = MODEL.format(table=self.table).replace("lake.", f"{self.connection}.")
        return {"shop.malloy": model, **more}

    def publish(self):
        publish(self.kiln, self.package, self.files())
        return self

    def answers(self, served, reason=None, gateways=("gateway-1", "gateway-2")):
        for g in gateways:
            a = self.kiln.query(QUERY, package=self.package, gateway=g)
            assert a.rows == WANT, a.rows
            assert a.served == served and (reason is None or a.reason == reason), (a.served, a.reason)
        return a

    def post(self, query=FEW, **kw):
        return self.kiln.post_query(query, package=self.package, **kw)

    def refused(self, what, **kw):
        """The first answer that is none of rows."""
        def ask():
            r = self.post(**kw)
            return None if r.status_code == 200 else [r]  # a Response of 502 counts as false

        return wait_for(ask, 10, what)[0]

    def sql(self, statement, gateway="gateway-1", **body):
        return self.kiln.call("POST", f"{self.path}/sqlQuery", gateway=gateway, json={"sqlStatement": statement, **body})


@pytest.fixture(scope="module")
def kiln():
    with Trio(gateways=2, sweep_every="1s", sweep_age="1s", gateway_env={"KILN_COMPILER_CHILDREN": "1", "PUBLISHER_QUERY_TIMEOUT_MS": "8s"}) as trio:
        yield trio


@pytest.fixture(scope="module")
def pg():
    with PgServer(tcp=True, password=PASSWORD) as server:
        server.rows("CREATE TABLE orders AS SELECT i AS id, (ARRAY['east', 'north', 'south', 'west'])[(i % 4) + 1] AS region, i AS amount "
                    "FROM generate_series(0, 1999) i")
        yield server


def pg_entry(server, password=PASSWORD, **more):
    return {"name": "pg", "type": "postgres", "postgresConnection": {"host": "127.0.0.1", "port": server.port, "databaseName": "postgres",
                                                                      "userName": server.superuser, "password": password, **more}}


@pytest.fixture
def file(kiln, name):
    return DuckFile(kiln.dir / f"{name}.duckdb").run(f"CREATE TABLE orders AS {FILL}")


@pytest.fixture
def filed(kiln, name, file):
    return Lake(kiln, name, {"name": "ref", "type": "duckdb", "duckdbConnection": {"databasePath": str(file.path)}}, "ref.main.orders").put().publish()


@pytest.fixture
def served(kiln, name, pg):
    return Lake(kiln, name, pg_entry(pg), "pg.public.orders").put().publish()


@pytest.fixture(params=["filed", "served"])
def lake(request):
    return request.getfixturevalue(request.param)


def test_an_attached_database_is_read_live_baked_bound_restarted_rebuilt_and_dropped(lake):
    kiln, package = lake.kiln, lake.package
    lake.answers("live", "never_built")
    assert kiln.query(FEW, package=package).rows == [{"region": r, "n": 2} for r in REGIONS]

    first = kiln.materialize(package)
    assert (first["metadata"]["sourcesBuilt"], first["metadata"]["sourcesReused"]) == (2, 0), first
    names = {e["sourceName"]: e["physicalTableName"] for e in first["manifest"]["entries"].values()}
    assert names == {"daily": '"main"."daily"', "regions": '"main"."regions"'}
    kiln.wait_bound(package, 2)
    source = lake.answers("baked").decision["sources"][0]
    assert lake.table not in kiln.sql_of(QUERY, package=package)
    assert kiln.query("run: regions -> { aggregate: n is regions_n.sum() }", package=package).rows == [{"n": 4}]

    kiln.reload(package)
    lake.answers("live", "unbound_by_reload")
    second = kiln.materialize(package)
    assert (second["metadata"]["sourcesBuilt"], second["metadata"]["sourcesReused"]) == (0, 2), second
    assert all(code == 0 for code in kiln.stop_all().values())
    kiln.start_all()
    kiln.wait_bound(package, 2)
    assert lake.answers("baked").decision["sources"][0]["generation"] == source["generation"]

    for _ in range(2):  # the one before stays
        third = kiln.materialize(package, forceRefresh=True)
        assert third["metadata"]["sourcesBuilt"] == 2
        kiln.wait_bound(package, 2)
    assert lake.answers("baked").decision["sources"][0]["generation"] != source["generation"]
    wait_for(lambda: source["generation"] not in kiln.generations(), 60, "what nobody reads is dropped")

    for run in [r["id"] for r in kiln.runs(package)][1:]:
        kiln.delete_run(run, package, drop=True)
    kiln.delete_run(third["id"], package, drop=True)
    lake.answers("live", "run_deleted")
    kept = {e["materializedTableId"] for e in third["manifest"]["entries"].values()}
    wait_for(lambda: not kept & set(kiln.generations()), 30, "the results are gone from the disk")


def test_compile_describes_a_table_that_the_model_does_not_name(lake):
    text = f"run: {lake.connection}.table('{lake.table}') -> {{ aggregate: n is count() }}"
    r = lake.kiln.call("POST", lake.kiln.package_path(lake.package, "/models/shop.malloy/compile"), json={"source": text})
    assert r.status_code == 200 and r.json()["status"] == "success", r.text


def test_sql_query_reads_it(lake):
    r = lake.sql(f"select region, count(*) as n from {lake.table} group by all order by 1")
    assert r.status_code == 200, r.text
    assert json.loads(r.json()["data"])["rows"] == [{"region": r, "n": 500} for r in REGIONS]
    r = lake.sql(f"select id from {lake.table} order by id", options={"rowLimit": 3})
    assert json.loads(r.json()["data"])["rows"] == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_the_connection_is_listed_without_its_password_and_tested(lake):
    shown = lake.kiln.json("GET", lake.path)
    assert shown["type"] == "duckdb" and shown["duckdbConnection"]["attachedDatabases"][0]["name"] == lake.entry["name"]
    assert PASSWORD not in json.dumps(shown)
    r = lake.kiln.call("POST", "connections/test", json=lake.config())
    assert r.status_code == 200 and r.json() == {"status": "ok", "errorMessage": ""}, r.text


def test_two_packages_on_one_connection_have_results_of_their_own(lake):
    kiln, other = lake.kiln, f"{lake.package}_b"
    publish(kiln, other, {"shop.malloy": lake.files()["shop.malloy"].replace("sum(amount)", "sum(amount + 1)")})
    kiln.materialize(lake.package)
    lake.answers("baked")
    kiln.materialize(other)
    lake.answers("baked")
    got = kiln.query(QUERY, package=other)
    assert got.served == "baked" and got.rows == [{**r, "total": r["total"] + 500} for r in WANT]


def test_results_are_dropped_after_their_connection_was_deleted(lake):
    kiln = lake.kiln
    # SQL of its own: a result of the same SQL at the same address is another package's as well.
    publish(kiln, lake.package, {"shop.malloy": lake.files()["shop.malloy"].replace("sum(amount)", "sum(amount + 77 - 77)")})
    run = kiln.materialize(lake.package)
    assert run["metadata"]["sourcesBuilt"] == 2
    kept = {e["materializedTableId"] for e in run["manifest"]["entries"].values()}
    assert kept <= set(kiln.generations())
    kiln.json("DELETE", lake.path)
    kiln.delete_run(run["id"], lake.package, drop=True)
    wait_for(lambda: not kept & set(kiln.generations()), 30, "its results are gone from the disk")


# ---- identity ----

def built(lake):
    meta = lake.kiln.materialize(lake.package)["metadata"]
    return meta["sourcesBuilt"]


def test_another_address_is_another_build(filed, file):
    assert built(filed) == 2 and built(filed) == 0
    other = DuckFile(file.path.with_name(file.path.stem + "_b.duckdb")).run(f"CREATE TABLE orders AS {FILL}")
    filed.entry["duckdbConnection"]["databasePath"] = str(other.path)
    filed.put("PATCH")
    file.path.unlink()
    wait_for(lambda: filed.post().status_code == 200, 10, "the other file is read")
    filed.answers("baked")  # what was built is served until the package is loaded again
    filed.publish()
    assert built(filed) == 2
    filed.answers("baked")


def test_another_password_is_the_same_build(served, pg):
    pg.rows("CREATE ROLE reader LOGIN PASSWORD 'first-secret'; GRANT SELECT ON orders TO reader")
    served.entry["postgresConnection"].update(userName="reader", password="first-secret")
    served.put("PATCH").publish()
    assert built(served) == 2
    pg.rows("ALTER ROLE reader PASSWORD 'second-secret'")
    served.entry["postgresConnection"]["password"] = "second-secret"
    served.put("PATCH").publish()
    assert built(served) == 0
    served.answers("baked")
    wait_for(lambda: served.post().status_code == 200, 10, "the new password is in use")


def test_a_fingerprint_stands_for_the_address(filed, file):
    filed.put("PATCH", fingerprint="../the lake's own name").publish()
    assert built(filed) == 2
    other = DuckFile(file.path.with_name(file.path.stem + "_b.duckdb")).run(f"CREATE TABLE orders AS {FILL}")
    filed.entry["duckdbConnection"]["databasePath"] = str(other.path)
    filed.put("PATCH", fingerprint="../the lake's own name").publish()
    assert built(filed) == 0
    filed.answers("baked")


# ---- a server that goes, and comes back ----

def test_while_the_server_is_down_what_is_baked_is_served_and_the_rest_comes_back(kiln, name):
    with PgServer(tcp=True, password=PASSWORD) as server:
        server.rows("CREATE TABLE orders AS SELECT i AS id, (ARRAY['east', 'north', 'south', 'west'])[(i % 4) + 1] AS region, i AS amount "
                    "FROM generate_series(0, 1999) i")
        lake = Lake(kiln, name, pg_entry(server), "pg.public.orders").put().publish()
        kiln.materialize(name)
        kiln.wait_bound(name, 2)
        assert lake.post().status_code == 200
        server.stop()
        lake.answers("baked")
        for _ in range(3):
            r = lake.post()
            assert r.status_code == 502 and lake.connection in r.text and PASSWORD not in r.text, r.text
        refused = kiln.call("POST", f"environments/{ENV}/packages", json={"name": name, "location": f"./packages/{name}"})
        assert refused.status_code == 502 and lake.connection in refused.text, refused.text

        kiln.procs["gateway-1"].restart()  # it opens now, with the server away
        kiln.wait_ready()
        kiln.wait_bound(name, 2)
        lake.answers("baked")
        r = lake.post()
        assert r.status_code == 502 and lake.connection in r.text and "'pg'" in r.text and PASSWORD not in r.text, r.text
        failed = kiln.materialize(name, status="FAILED", forceRefresh=True)
        assert lake.connection in json.dumps(failed) and PASSWORD not in json.dumps(failed)
        lake.answers("baked")

        server.start()
        for g in ("gateway-1", "gateway-2"):
            wait_for(lambda gateway=g: lake.post(gateway=gateway).status_code == 200, 10, "the server is read again")
        assert kiln.materialize(name, forceRefresh=True)["metadata"]["sourcesBuilt"] == 2
        lake.answers("baked")


def test_what_is_baked_does_not_wait_for_a_server_that_says_nothing(kiln, name, pg):
    entry = pg_entry(pg)
    lake = Lake(kiln, name, entry, "pg.public.orders").put(fingerprint=name).publish()
    kiln.materialize(name)
    kiln.wait_bound(name, 2)
    with socket.socket() as silent:  # it takes connections, and nothing more
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        entry["postgresConnection"]["port"] = silent.getsockname()[1]
        lake.put("PATCH", fingerprint=name)
        r = lake.refused("the silent server is asked")
        assert r.status_code == 502 and lake.connection in r.text and "timeout expired" in r.text, r.text
        lake.answers("baked")  # the second gateway's first one waits until the connect has failed
        end, slowest = time.monotonic() + 8, 0
        while time.monotonic() < end:
            began = time.monotonic()
            lake.answers("baked")
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2, slowest


def test_a_statement_that_the_server_works_on_for_too_long_ends_there_and_here(served, pg):
    pg.rows("CREATE VIEW slow AS SELECT 1 AS a, pg_sleep(60)::text AS b")
    began = time.monotonic()
    r = served.sql("select * from pg.public.slow")
    assert r.status_code == 504 and time.monotonic() - began < 12, (r.status_code, r.text)
    busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%slow%' AND pid <> pg_backend_pid()"
    wait_for(lambda: pg.value(busy) == 0, 5, "the server has stopped, too")
    assert served.post().status_code == 200


def test_a_wrong_password_is_told_without_it(served):
    served.entry["postgresConnection"]["password"] = "a-wrong-one-91c"
    served.put("PATCH")
    r = served.refused("the wrong password is in use")
    assert r.status_code == 502 and "password authentication failed" in r.text and served.connection in r.text and "a-wrong-one-91c" not in r.text, r.text
    r = served.kiln.call("POST", "connections/test", json=served.config())
    assert r.json()["status"] == "failed" and "password authentication failed" in r.text and "a-wrong-one-91c" not in r.text, r.text
    served.entry["postgresConnection"]["password"] = PASSWORD
    served.put("PATCH")
    wait_for(lambda: served.post().status_code == 200, 10, "the right one is in use")


def test_a_table_that_is_not_there_is_named_when_the_package_is_published(served):
    files = {"shop.malloy": served.files()["shop.malloy"].replace("pg.public.orders", "pg.public.nothing")}
    served.kiln.write_package(served.package, files)
    r = served.kiln.call("POST", f"environments/{ENV}/packages", json={"name": served.package, "location": f"./packages/{served.package}"})
    assert r.status_code == 424 and "nothing" in r.text and served.connection in r.text, r.text


def test_a_table_that_goes_and_comes_back_with_other_columns(served, pg):
    pg.rows("CREATE TABLE moving AS SELECT 1 AS id, 'east' AS region, 5 AS amount")
    served.table = "pg.public.moving"
    served.publish()
    assert served.post().status_code == 200
    pg.rows("DROP TABLE moving")
    r = served.post()
    assert r.status_code == 400 and "moving" in r.text and served.connection in r.text, r.text
    pg.rows("CREATE TABLE moving AS SELECT 7 AS amount, 'x' AS more, 2 AS id, 'west' AS region")
    wait_for(lambda: served.post().status_code == 200, 10, "the new table is read")
    assert served.kiln.query(FEW, package=served.package).rows == [{"region": "west", "n": 1}]


def test_a_table_that_was_altered_is_read_anew_at_once(served, pg):
    def reads(statement, row):
        r = served.sql(statement)
        assert r.status_code == 200 and json.loads(r.json()["data"])["rows"] == [row], (statement, r.text)

    pg.rows("CREATE TABLE altered AS SELECT 1 AS id")
    reads("select * from pg.public.altered", {"id": 1})
    pg.rows("ALTER TABLE altered ADD COLUMN more int DEFAULT 7")
    reads("select more from pg.public.altered", {"more": 7})
    pg.rows("ALTER TABLE altered ALTER COLUMN more TYPE text USING 'x'")
    reads("select more from pg.public.altered", {"more": "x"})
    pg.rows("ALTER TABLE altered DROP COLUMN more")
    reads("select * from pg.public.altered", {"id": 1})
    pg.rows("ALTER TABLE altered ALTER COLUMN id TYPE real")  # of the same size: its bytes would pass for an integer
    reads("select * from pg.public.altered", {"id": 1})
    pg.rows("UPDATE altered SET id = 3.5")
    reads("select * from pg.public.altered", {"id": 3.5})
    pg.rows("DROP TABLE altered; CREATE TABLE altered AS SELECT 2.5 AS other")
    reads("select * from pg.public.altered", {"other": 2.5})


# ---- a file that others use ----

def test_a_file_cannot_be_written_while_it_is_attached_and_is_replaced_by_a_rename(filed, file):
    assert filed.post().status_code == 200
    assert "lock" in file.refused("DELETE FROM orders")
    new = DuckFile(file.path.with_name(file.path.stem + "_new.duckdb")).run("CREATE TABLE orders AS SELECT 1 AS id, 'up' AS region, 2 AS amount")
    os.replace(new.path, file.path)
    for g in ("gateway-1", "gateway-2"):
        assert filed.kiln.query(FEW, package=filed.package, gateway=g).rows == [{"region": "up", "n": 1}]
    assert built(filed) == 2
    assert filed.kiln.query(QUERY, package=filed.package).rows == [{"region": "up", "orders_n": 1, "total": 2}]


def test_a_file_that_another_process_writes_is_told_with_its_id(kiln, name, file):
    lake = Lake(kiln, name, {"name": "ref", "type": "duckdb", "duckdbConnection": {"databasePath": str(file.path)}}, "ref.main.orders").put()
    with file.open_to_write() as pid:
        r = lake.sql("select count(*) as n from ref.main.orders")
        assert r.status_code == 502 and f"process {pid} has '{file.path}' open to write" in r.text and lake.connection in r.text, r.text
    wait_for(lambda: lake.sql("select count(*) as n from ref.main.orders").status_code == 200, 10, "it is read once it is free")


def test_a_file_that_is_missing_or_goes_is_told_by_its_name(filed, file):
    kiln = filed.kiln
    kiln.materialize(filed.package)
    aside = file.path.with_suffix(".aside")
    os.replace(file.path, aside)
    r = filed.refused("the file is missed")
    assert r.status_code == 502 and str(file.path) in r.text and filed.connection in r.text, r.text
    filed.answers("baked")
    os.replace(aside, file.path)
    wait_for(lambda: filed.post().status_code == 200, 10, "the file is read again")


def test_a_file_that_is_no_database_is_told(kiln, name):
    (kiln.dir / f"{name}.duckdb").write_text("nothing of DuckDB's" * 1000)
    lake = Lake(kiln, name, {"name": "ref", "type": "duckdb", "duckdbConnection": {"databasePath": str(kiln.dir / f"{name}.duckdb")}}, "ref.main.t").put()
    r = lake.sql("select * from ref.main.t")
    assert r.status_code == 502 and "not a valid DuckDB database file" in r.text and lake.connection in r.text, r.text


# ---- what is refused ----

REFUSED = {
    "another type": ([{"name": "bq", "type": "bigquery", "bigqueryConnection": {}}], "'bq' is of type 'bigquery', and only postgres and duckdb"),
    "no entry": ([], "at least one entry"),
    "a name that SQL cannot say": ([{"name": "my db", "type": "duckdb", "duckdbConnection": {"databasePath": "/x"}}], "'my db' needs a name of letters"),
    "DuckDB's own name": ([{"name": "Memory", "type": "duckdb", "duckdbConnection": {"databasePath": "/x"}}], "DuckDB keeps the name 'Memory'"),
    "one name twice": ([{"name": n, "type": "duckdb", "duckdbConnection": {"databasePath": "/x"}} for n in ("a", "A")], "two attached databases are named 'A'"),
    "a relative path": ([{"name": "a", "type": "duckdb", "duckdbConnection": {"databasePath": "x.duckdb"}}], "needs the absolute path of a DuckDB file"),
    "no path": ([{"name": "a", "type": "duckdb"}], "needs the absolute path of a DuckDB file"),
    "no server": ([{"name": "a", "type": "postgres"}], "needs an object \\\"postgresConnection\\\""),
    "a string that does not parse": ([{"name": "a", "type": "postgres", "postgresConnection": {"connectionString": "host="}}], "does not parse"),
    "a key's password": ([{"name": "a", "type": "postgres", "postgresConnection": {"connectionString": "host=x sslpassword=secret-k"}}], "has an sslpassword"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_connection_that_attaches_is_refused_for(kiln, name, what):
    entries, why = REFUSED[what]
    body = {"name": name, "type": "duckdb", "duckdbConnection": {"attachedDatabases": entries}}
    r = kiln.call("POST", f"environments/{ENV}/connections/{name}", json=body)
    assert r.status_code == 400 and why in r.text and name in r.text and "secret-k" not in r.text, r.text


def test_a_name_inside_an_attached_database_is_refused_and_the_source_is_served_live(lake):
    kiln, at = lake.kiln, lake.entry["name"]
    files = {"shop.malloy": lake.files()["shop.malloy"].replace('name="daily"', f'name="{at}.public.daily"')}
    publish(kiln, lake.package, files)
    run = kiln.materialize(lake.package, sourceNames=["daily"], status="FAILED")
    assert "on DuckDB nothing is built in an attached database" in json.dumps(run) and f"{at}.public.daily" in json.dumps(run), run
    lake.answers("live")


def test_a_relative_path_of_the_configuration_file_is_beside_it(name):
    config = {"environments": [{"name": ENV, "packages": [], "connections": [
        {"name": "lake", "type": "duckdb", "duckdbConnection": {"attachedDatabases": [
            {"name": "ref", "type": "duckdb", "duckdbConnection": {"databasePath": "./data/ref.duckdb"}}]}}]}]}
    with Trio(config_text=json.dumps(config), seed=None) as trio:
        (trio.dir / "data").mkdir()
        DuckFile(trio.dir / "data/ref.duckdb").run("CREATE TABLE t AS SELECT 42 AS a")
        r = trio.call("POST", f"environments/{ENV}/connections/lake/sqlQuery", json={"sqlStatement": "select a from ref.t"})
        assert r.status_code == 200 and json.loads(r.json()["data"])["rows"] == [{"a": 42}], r.text
