"""Shapes, exact values and caps of what the gateway answers (issue part 8; spec/malloy-persistence.md 7); the routes themselves are in
test_rest.py."""
import concurrent.futures
import json
import re
import socket

import pytest

from servers import wait_for
from trio import BY_REGION, ENV, ORDERS, TOTAL
from trio_fixtures import publish, shop

# Every type of PostgreSQL that Malloy knows, with values that double arithmetic or a careless printer would spoil.
TYPES = """SELECT 9007199254740993::bigint AS big, 32767::smallint AS small, -5::int AS plain, 12345678901234567890.123456789::numeric AS exact,
 0.1::float8 AS dbl, 1.5::float4 AS flt, true AS yes, 'grün "x" \\ y'::text AS txt, date '2024-02-29' AS day_,
 timestamp '2024-02-29 12:34:56.789' AS stamp, timestamptz '2024-02-29 12:34:56.789+02' AS zoned, NULL::text AS nothing,
 '{"a": [1, 2.5, null]}'::jsonb AS doc, ARRAY[1, 2, 3] AS numbers, '00000000-0000-0000-0000-00000000000a'::uuid AS id"""


@pytest.fixture(scope="module")
def baked(kiln):
    publish(kiln, "rest", shop("rest"))
    kiln.materialize("rest")
    return kiln


def test_status_tells_environments_packages_connections_and_state(baked):
    status = baked.json("GET", "status")
    assert status["operationalState"] == "serving" and status["initialized"] is True and status["frozenConfig"] is False
    assert isinstance(status["timestamp"], int) and "theme" in status
    assert "rest" not in [e["package"] for e in status["staleCompileErrors"]]
    (env,) = [e for e in status["environments"] if e["name"] == ENV]
    assert "wh" in [c["name"] for c in env["connections"]]
    (package,) = [p for p in env["packages"] if p["name"] == "rest"]
    assert package["manifestBindingStatus"] == "bound" and package["manifestEntryCount"] == 2
    assert "buildPlan" not in package
    assert str(baked.pg.url("wh")) not in json.dumps(status)


def test_environments_are_created_changed_and_deleted(kiln, name):
    made = kiln.json("POST", "environments", json={"name": name, "readme": "one", "connections": [
        {"name": "other", "type": "postgres", "postgresConnection": {"connectionString": kiln.pg.url("wh")}}]})
    assert made["name"] == name
    assert name in [e["name"] for e in kiln.json("GET", "environments")]
    one = kiln.json("GET", f"environments/{name}")
    assert one["readme"] == "one" and [c["name"] for c in one["connections"]] == ["other"]
    kiln.json("PATCH", f"environments/{name}", json={"name": name, "readme": "two"})
    assert kiln.json("GET", f"environments/{name}")["readme"] == "two"
    kiln.json("DELETE", f"environments/{name}")
    assert kiln.call("GET", f"environments/{name}").status_code == 404
    assert name not in [e["name"] for e in kiln.json("GET", "environments")]


def test_packages_are_listed_without_plans_and_got_with_them(baked):
    (listed,) = [p for p in baked.json("GET", f"environments/{ENV}/packages") if p["name"] == "rest"]
    assert "buildPlan" not in listed and listed["manifestBindingStatus"] == "bound"
    package = baked.package("rest")
    assert package["resource"] == f"/api/v0/environments/{ENV}/packages/rest" and package["description"] == "rest of the tests"
    plan = package["buildPlan"]
    assert {s["name"] for s in plan["sources"].values()} == {"daily", "regions"}
    for source_id, s in plan["sources"].items():
        assert s["sourceID"] == source_id and s["sourceEntityId"] and s["sql"].startswith(("SELECT", "WITH")) and s["columns"], s
        assert (s["connectionName"], s["dialect"], s["origin"], s["modelPath"]) == ("wh", "postgres", "persist", "shop.malloy")
    nodes = [n for level in plan["graphs"][0]["nodes"] for n in level]
    (regions,) = [n for n in nodes if n["sourceID"].startswith("regions@")]
    assert [d.split("@")[0] for d in regions["dependsOn"]] == ["daily"]
    assert package["warnings"] == [] and package.get("boundManifestUri") is None


def test_a_package_is_patched_and_keeps_what_is_not_named(kiln, name):
    publish(kiln, name, shop(name))
    kiln.materialize(name)
    patched = kiln.json("PATCH", kiln.package_path(name), json={"name": name, "description": "another"})
    assert patched["description"] == "another"
    again = kiln.package(name)
    assert again["description"] == "another" and again["buildPlan"] is not None
    wrong = kiln.call("PATCH", kiln.package_path(name), json={"name": "somebody"})
    assert wrong.status_code == 400 and "somebody" in wrong.json()["message"]
    assert kiln.call("PATCH", kiln.package_path("nobody"), json={"name": "nobody"}).status_code == 404


def test_models_are_listed_and_shown(baked):
    assert [m["path"] for m in baked.json("GET", baked.package_path("rest", "/models"))] == ["shop.malloy"]
    model = baked.json("GET", baked.package_path("rest", "/models/shop.malloy"))
    assert "daily" in json.dumps(model) and "by_region" in json.dumps(model)
    missing = baked.call("GET", baked.package_path("rest", "/models/none.malloy"))
    assert missing.status_code == 404 and "none.malloy" in missing.json()["message"]


def test_compile_tells_problems_and_sql_and_runs_nothing(baked):
    path = baked.package_path("rest", "/models/shop.malloy/compile")
    good = baked.json("POST", path, json={"source": BY_REGION, "includeSql": True})
    assert good["status"] == "success" and good["problems"] == [] and "rest_daily" in good["sql"], "the SQL is that of the binding"
    bad = baked.json("POST", path, json={"source": "run: daily -> { aggregate: nope }"})
    assert bad["status"] == "error" and "nope" in bad["problems"][0]["message"] and bad["problems"][0]["severity"] == "error"


@pytest.mark.parametrize("ask", [{"query": BY_REGION}, {"sourceName": "daily", "queryName": "by_region"}], ids=["text", "names"])
def test_a_query_is_text_or_names_and_has_both_shapes(baked, ask):
    compact = baked.query(package="rest", **ask)
    assert [r["region"] for r in compact.rows] == ["east", "north", "south", "west"]
    assert sum(r["orders_n"] for r in compact.rows) == ORDERS and sum(r["total"] for r in compact.rows) == TOTAL
    full = baked.query(package="rest", compact=False, **ask).result
    assert full["connection_name"] == "wh" and "rest_daily" in full["sql"]
    assert [f["name"] for f in full["schema"]["fields"]] == ["region", "orders_n", "total"]
    assert full["data"]["kind"] == "array_cell" and len(full["data"]["array_value"]) == 4
    first = full["data"]["array_value"][0]
    assert first["kind"] == "record_cell" and first["record_value"][0] == {"kind": "string_cell", "string_value": "east"}
    assert first["record_value"][1]["kind"] == "number_cell" and first["record_value"][1]["number_value"] == 1500
    assert {"annotations", "model_annotations"} <= set(full)


def test_every_type_is_exact_live_and_baked(kiln, name):
    publish(kiln, name, {"shop.malloy": f'''##! experimental.persistence
#@ persist name="marts.{name}"
source: all_types is wh.sql("""{TYPES}""")
'''})
    query = "run: all_types -> { select: * }"
    live = kiln.query(query, package=name), kiln.query(query, package=name, compact=False)
    kiln.materialize(name)
    baked = kiln.query(query, package=name), kiln.query(query, package=name, compact=False)
    assert (live[0].served, baked[0].served) == ("live", "baked")
    assert live[0].result == baked[0].result
    assert live[1].result["data"] == baked[1].result["data"]
    fields = [[{k: v for k, v in f.items() if k != "annotations"} for f in a.result["schema"]["fields"]] for a in (live[1], baked[1])]
    assert fields[0] == fields[1], "annotations carry an id of each compile; all else is alike"
    (row,) = baked[0].rows
    assert str(row["big"]) == "9007199254740993" and (row["small"], row["plain"]) == (32767, -5)
    assert (row["dbl"], row["flt"], row["yes"], row["nothing"]) == (0.1, 1.5, True, None)
    assert row["txt"] == 'grün "x" \\ y' and row["day_"].startswith("2024-02-29")
    assert row["stamp"].startswith("2024-02-29T12:34:56.789") and row["zoned"].startswith("2024-02-29T10:34:56.789")
    assert row["numbers"] == [1, 2, 3]
    cells = dict(zip([f["name"] for f in baked[1].result["schema"]["fields"]], baked[1].result["data"]["array_value"][0]["record_value"]))
    assert cells["nothing"] == {"kind": "null_cell"} and cells["yes"] == {"kind": "boolean_cell", "boolean_value": True}
    assert cells["big"]["string_value"] == "9007199254740993" or str(cells["big"]["number_value"]) == "9007199254740993"
    assert cells["day_"]["kind"] == "date_cell" and cells["zoned"]["kind"] == "timestamp_cell"
    assert [c["number_value"] for c in cells["numbers"]["array_value"]] == [1, 2, 3]


def test_nested_results_are_exact_live_and_baked(baked):
    query = ("run: daily -> { group_by: region; aggregate: orders_n; nest: first_days is { group_by: sold_on; aggregate: orders_n; "
             "order_by: sold_on; limit: 2 }; order_by: region }")
    both = [baked.query(query, package="rest", headers=h) for h in ({"Kiln-Mode": "live"}, {})]
    assert [a.served for a in both] == ["live", "baked"] and both[0].rows == both[1].rows
    assert [len(r["first_days"]) for r in both[1].rows] == [2] * 4
    assert both[1].rows[0]["first_days"][0]["sold_on"].startswith("2024-01-0") and both[1].rows[0]["first_days"][0]["orders_n"] > 0
    full = baked.query(query, package="rest", compact=False).result
    nested = full["data"]["array_value"][0]["record_value"][2]
    assert nested["kind"] == "array_cell" and nested["array_value"][0]["kind"] == "record_cell"
    assert nested["array_value"][0]["record_value"][0]["kind"] == "date_cell"


def test_limits_are_told_and_a_querys_own_limit_wins(baked):
    own = baked.query("run: daily -> { group_by: sold_on, region; limit: 7 }", package="rest")
    assert len(own.rows) == 7 and own.body["queryRowLimit"] == 7 and own.body["queryRowLimitSource"] == "query"
    default = baked.query(BY_REGION, package="rest")
    assert default.body["queryRowLimit"] == 1000 and default.body["queryRowLimitSource"] == "server_default"


@pytest.mark.parametrize("body, says", [
    ({"query": "run: daily -> { aggregate: nope }"}, "nope"),
    ({"query": "run: nowhere -> { select: * }"}, "nowhere"),
    ({"query": "import 'other.malloy'\nrun: daily -> by_region"}, "import"),
    ({"query": "run: wh.table('public.orders') -> { select: * }"}, "table"),
    ({"query": "run: wh.sql('SELECT 1 AS n') -> { select: * }"}, "sql"),
    ({"query": BY_REGION, "queryName": "by_region"}, "query"),
    ({}, "query"),
    ({"sourceName": "daily", "queryName": "by_region; drop"}, "by_region; drop"),
    ({"query": 5}, "query"),
], ids=["no field", "no source", "import", "table", "sql", "both", "neither", "odd name", "no text"])
def test_a_query_that_cannot_be_asked_is_refused_with_a_sentence(baked, body, says):
    r = baked.call("POST", baked.package_path("rest", "/models/shop.malloy/query"), json=body)
    assert r.status_code in (400, 404) and says in r.json()["message"], r.text
    assert r.json()["code"] == r.status_code


def test_unknown_things_are_404_and_say_what_is_unknown(baked):
    for path, says in ((f"environments/none/packages/rest", "none"), (f"environments/{ENV}/packages/none", "none"),
                       (f"environments/{ENV}/connections/none", "none"), (baked.package_path("rest", "/materializations/none"), "none")):
        r = baked.call("GET", path)
        assert r.status_code == 404 and says in r.json()["message"], r.text
    r = baked.post_query(BY_REGION, package="rest", model="none.malloy")
    assert r.status_code == 404 and "none.malloy" in r.json()["message"]
    assert baked.call("GET", "no/such/route").status_code == 404


def test_version_ids_are_501(baked):
    assert baked.call("GET", baked.package_path("rest", "?versionId=1")).status_code == 501
    assert baked.post_query(BY_REGION, package="rest", versionId="1").status_code == 501


def test_connections_are_created_shown_without_secrets_patched_tested_and_deleted(kiln, name):
    url = f"environments/{ENV}/connections/{name}"
    postgres = {"host": str(kiln.pg.dir), "databaseName": "wh", "userName": "postgres", "password": "s3cr3t-word"}
    body = {"name": name, "type": "postgres", "postgresConnection": postgres}
    assert "message" in kiln.json("POST", url, status=201, json=body)
    assert kiln.call("POST", url, json=body).status_code == 409
    shown = kiln.json("GET", url)
    assert shown["type"] == "postgres" and shown["postgresConnection"]["host"] == str(kiln.pg.dir)
    everything = json.dumps(shown) + kiln.call("GET", f"environments/{ENV}/connections").text + kiln.call("GET", "status").text
    assert "s3cr3t-word" not in everything and "s3cr3t-word" not in str(kiln.store("SELECT public::text FROM kiln.connection"))
    kiln.json("PATCH", url, json={"name": name, "type": "postgres", "postgresConnection": {"databaseName": "kiln"}})
    wait_for(lambda: "kiln" in kiln.call("POST", url + "/sqlQuery", json={"sqlStatement": "SELECT current_database() AS d"}).text, 10, "the change is in force")
    assert "message" in kiln.json("DELETE", url)
    assert kiln.call("GET", url).status_code == 404


def test_a_connection_is_tried_without_being_stored(kiln):
    def tried(**postgres):
        return kiln.json("POST", "connections/test", json={"name": "try", "type": "postgres", "postgresConnection": postgres})

    assert tried(connectionString=kiln.pg.url("wh"))["status"] == "ok"
    failed = tried(connectionString=kiln.pg.url("no_such_database"))
    assert failed["status"] == "failed" and "no_such_database" in failed["errorMessage"]
    assert "try" not in [c["name"] for c in kiln.json("GET", f"environments/{ENV}/connections")]


def test_sql_query_returns_rows_as_a_json_string_and_changes_nothing(kiln):
    path = f"environments/{ENV}/connections/wh/sqlQuery"
    answer = kiln.json("POST", path, json={"sqlStatement": "SELECT 1 AS one, 9007199254740993::bigint AS big, 'x\"y' AS txt, NULL AS nothing, date '2024-01-02' AS d"})
    (row,) = json.loads(answer["data"])["rows"]
    assert row["one"] == 1 and str(row["big"]) == "9007199254740993" and row["txt"] == 'x"y' and row["nothing"] is None and row["d"] == "2024-01-02"
    bad = kiln.call("POST", path, json={"sqlStatement": "SELECT nope"})
    assert bad.status_code == 400 and "nope" in bad.json()["message"]
    before = kiln.wh("SELECT count(*) FROM customers")
    for statement in ("DELETE FROM customers", "DROP TABLE customers CASCADE", "SELECT 1; DELETE FROM customers", "COMMIT; DELETE FROM customers"):
        assert kiln.call("POST", path, json={"sqlStatement": statement}).status_code >= 400
        assert kiln.wh("SELECT count(*) FROM customers") == before, statement


def test_the_six_routes_of_materializations(kiln, name):
    publish(kiln, name, shop(name))
    base = kiln.package_path(name, "/materializations")
    assert kiln.json("GET", base) == []
    made = kiln.json("POST", base, status=201, json={"forceRefresh": False, "runContext": {"trigger": "on_demand", "runId": "ci-7"}})
    assert re.fullmatch(r"\d{13}-[0-9a-z]{9}", made["id"]) and made["status"] == "PENDING" and made["packageName"] == name
    assert made["manifest"] is None and made["completedAt"] is None and made["metadata"]["mode"] == "auto"
    run = kiln.wait_run(made["id"], name)
    assert run["completedAt"] >= run["startedAt"] >= run["createdAt"] and run["error"] is None
    meta = run["metadata"]
    assert (meta["sourcesBuilt"], meta["sourcesReused"], meta["sourcesFailed"], meta["sourcesRefused"]) == (2, 0, 0, 0)
    assert meta["durationMs"] >= 0 and meta["forceRefresh"] is False and meta["sourceNames"] is None and meta["trigger"] == "ON_DEMAND"
    assert "refusedSources" not in meta and run["manifest"]["strict"] is False and "failures" not in run["manifest"]
    for entity, entry in run["manifest"]["entries"].items():
        assert entry["sourceEntityId"] == entity and entry["connectionName"] == "wh" and entry["realization"] == "COPY"
        assert entry["rowCount"] > 0 and entry["buildDurationMs"] >= 0 and entry["dataAsOf"]
    second = kiln.materialize(name)
    assert [r["id"] for r in kiln.json("GET", base)] == [second["id"], made["id"]]
    assert [r["id"] for r in kiln.json("GET", base + "?limit=1&offset=1")] == [made["id"]]
    assert kiln.call("GET", base + "?limit=-1").status_code == 400
    everything = kiln.json("GET", f"environments/{ENV}/packages/materializations?limit=3")
    assert everything[0]["id"] == second["id"] and len(everything) == 3
    assert kiln.call("POST", base + f"/{made['id']}?action=dance").status_code == 400
    assert kiln.call("POST", base + f"/{made['id']}?action=stop").status_code == 409
    kiln.delete_run(made["id"], name)
    assert kiln.call("GET", base + f"/{made['id']}").status_code == 404
    assert kiln.call("POST", base, json={"forceRefresh": "yes"}).status_code == 400
    assert kiln.call("POST", base, json={"buildInstructions": {"sources": []}}).status_code == 501


def test_health_and_metrics_are_outside_the_prefix(baked):
    for path in ("/health", "/health/liveness", "/health/readiness", "/healthz", "/readyz"):
        assert baked.call("GET", path).status_code == 200, path
    text = baked.call("GET", "/metrics").text
    for metric in ("publisher_materialization_manifest_bind_total", "kiln_gateway_mirror_unconfirmed"):
        assert f"# TYPE {metric} " in text, metric
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r'[a-zA-Z_:][\w:]*(\{.*\})? -?[0-9.eE+naif-]+', line), line


# ---- caps (the session's gateways: 5,000 rows, 400 kB, 4 queries at once, 4 s) ----
def slow_model(lock):
    return {"shop.malloy": f'source: slow is wh.sql("""SELECT gate({lock}) AS n""") extend {{ measure: total is n.sum() }}\n'
            'source: many is wh.sql("""SELECT g AS n, repeat(\'x\', 500) AS pad FROM generate_series(1, 6000) g""")\n'}


def test_too_many_rows_and_too_many_bytes_are_413(kiln, name):
    publish(kiln, name, slow_model(7301))
    rows = kiln.post_query("run: many -> { group_by: n; limit: 6000 }", package=name)
    assert rows.status_code == 413 and "5000" in rows.json()["message"].replace(",", ""), rows.text
    size = kiln.post_query("run: many -> { group_by: n, pad; limit: 2000 }", package=name)
    assert size.status_code == 413 and "400000" in size.json()["message"].replace(",", ""), size.text
    fits = kiln.query("run: many -> { group_by: n; limit: 4000 }", package=name)
    assert len(fits.rows) == 4000


def test_a_query_that_takes_too_long_is_504_and_ends_in_the_warehouse(kiln, name):
    publish(kiln, name, slow_model(7302))
    with kiln.gate(7302) as waiting:
        r = kiln.post_query("run: slow -> { aggregate: total }", package=name)
        assert r.status_code == 504 and "4" in r.json()["message"], r.text
        wait_for(lambda: waiting() == 0, 5, "the statement is cancelled")


def test_too_many_queries_at_once_are_503_and_the_slots_come_back(kiln, name):
    publish(kiln, name, slow_model(7303))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        with kiln.gate(7303) as waiting:
            busy = [pool.submit(kiln.post_query, f"run: slow -> {{ aggregate: total; limit: {i + 1} }}", package=name) for i in range(4)]
            wait_for(lambda: waiting() == 4, 10, "four queries wait")
            r = kiln.post_query("run: slow -> { aggregate: total }", package=name)
            assert r.status_code == 503 and int(r.headers["Retry-After"]) >= 1, (r.text, r.headers)
        assert [b.result().status_code for b in busy] == [200] * 4
    assert kiln.query("run: slow -> { aggregate: total }", package=name).rows == [{"total": 7303}]


def test_a_client_that_hangs_up_ends_its_query_and_frees_its_slot(kiln, name):
    publish(kiln, name, slow_model(7304))
    body = json.dumps({"query": "run: slow -> { aggregate: total }", "compactJson": True}).encode()
    head = (f"POST /api/v0/{kiln.package_path(name, '/models/shop.malloy/query')} HTTP/1.1\r\nHost: kiln\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    with kiln.gate(7304) as waiting:
        for _ in range(3):  # more than one round: a leaked slot would be missed below
            clients = [socket.create_connection(("127.0.0.1", kiln.ports["gateway-1"])) for _ in range(4)]
            for c in clients:
                c.sendall(head + body)
            wait_for(lambda: waiting() >= 1, 10, "a query waits in the warehouse")
            for c in clients:
                c.close()
            wait_for(lambda: waiting() == 0, 3, "the warehouse no longer works for clients that are gone")
    wait_for(lambda: kiln.json("GET", "status")["gateway"]["queriesRunning"] == 0, 5, "every slot is free")
    assert kiln.query("run: slow -> { aggregate: total }", package=name).rows == [{"total": 7304}]


# ---- query metadata ----
WHO = '''##! experimental.persistence
## queryMetadata.owner="model"
source: who is wh.sql("""SELECT current_setting('application_name') AS app, current_query() AS said""")
#@ persist name="marts.who_built" queryMetadata.team="source"
source: who_built is wh.sql("""SELECT current_query() AS said""")
'''


def test_statements_carry_the_declared_query_metadata_and_answers_the_id_of_theirs(kiln, name):
    where = kiln.write_package(name, {"shop.malloy": WHO})
    manifest = json.loads((where / "publisher.json").read_text())
    (where / "publisher.json").write_text(json.dumps({**manifest, "queryMetadata": {"team": "package", "cost": "c1"}}))
    kiln.json("POST", f"environments/{ENV}/packages", json={"name": name, "location": f"./packages/{name}"})
    run = kiln.materialize(name)
    seen = set()
    for _ in range(3):  # the second time on it may be a prepared statement
        answer = kiln.query("run: who -> { select: * }", package=name)
        (row,) = answer.rows
        says = (f'/* owner="model",team="package",cost="c1",class="interactive",environment="{ENV}",package="{name}",model="shop.malloy",'
                'source="who" */ ')
        assert row["said"].startswith(says), row
        assert row["app"] == "kiln " + answer.body["queryCorrelationId"]
        seen.add(row["app"])
    assert len(seen) == 3
    full = kiln.query("run: who -> { select: * }", package=name, compact=False)
    assert "class=" not in full.sql and "/*" not in full.sql, "the comment is for the warehouse only"
    (row,) = kiln.query("run: who_built -> { select: * }", package=name).rows
    built = f'/* team="source",owner="model",cost="c1",class="materialize",package="{name}",source="who_built",trigger="ON_DEMAND",run_id="{run["id"]}" */'
    assert row["said"].startswith(built), row
    once = kiln.query("run: who -> { select: * }", package=name, queryMetadata={"team": "request"}, queryClass="ops")
    assert once.rows[0]["said"].startswith('/* team="request",owner="model",cost="c1",class="ops",'), once.rows


def test_without_a_declaration_nothing_is_tagged(kiln, name):
    publish(kiln, name, {"shop.malloy": WHO.replace('## queryMetadata.owner="model"', "")})
    answer = kiln.query("run: who -> { select: * }", package=name)
    assert "/*" not in answer.rows[0]["said"] and answer.rows[0]["app"] == "kiln" and answer.body["queryCorrelationId"] is None
