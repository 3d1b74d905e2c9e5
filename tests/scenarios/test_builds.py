"""What runs do with what goes wrong or is asked for in part (protocol.md 4; spec/malloy-persistence.md 3.2-3.7; decisions 4, 5)."""
import time

import pytest

from servers import wait_for
from trio import BY_REGION, ORDERS, Trio, gated
from trio_fixtures import publish, shop

DAILY_COUNT = "run: daily -> { aggregate: orders_n }"


def entries(run):
    return {e["sourceName"]: e for e in run["manifest"]["entries"].values()}


def generation_of(kiln, package, source="daily"):
    return kiln.fence(f"{package}_{source}")["generation"]


def test_a_model_that_no_longer_compiles_keeps_the_old_one_serving(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    kiln.write_package(package, {"shop.malloy": shop(package)["shop.malloy"] + "\nsource: broken is nowhere\n"})
    failed = kiln.call("GET", kiln.package_path(package, "?reload=true"))
    assert failed.status_code == 424 and "shop.malloy" in failed.json()["message"], failed.text

    stale = [e for e in kiln.json("GET", "status")["staleCompileErrors"] if e["package"] == package]
    assert len(stale) == 1 and stale[0]["environment"] == "test" and "shop.malloy" in stale[0]["message"] and stale[0]["failedAt"]
    assert [e["stale"] for e in kiln.json("GET", "status")["loadErrors"] if e.get("package") == package] == [True]
    assert kiln.binding(package) == ("bound", 2)
    answer = kiln.query(DAILY_COUNT, package=package)
    assert (answer.served, answer.rows) == ("baked", [{"orders_n": ORDERS}])

    kiln.write_package(package, shop(package))
    kiln.reload(package)
    assert [e for e in kiln.json("GET", "status")["staleCompileErrors"] if e["package"] == package] == []


def test_a_failed_source_keeps_its_old_table_and_its_dependants_are_skipped_but_the_others_are_built(kiln, name):
    model = shop(name)["shop.malloy"] + f'''
#@ persist name="marts.{name}_lonely"
source: lonely is customers -> {{ group_by: region; aggregate: n is count() }}
'''
    kiln.wh(f"CREATE VIEW {name}_v AS SELECT *, 1 AS divisor FROM orders")
    publish(kiln, name, {"shop.malloy": model.replace("public.orders", f"public.{name}_v").replace(
        "measure: order_count is count()", "measure: order_count is sum(1 / divisor)")})
    first = kiln.materialize(name)
    assert first["metadata"]["sourcesBuilt"] == 3
    before = {t: generation_of(kiln, name, t) for t in ("daily", "regions", "lonely")}

    kiln.wh(f"CREATE OR REPLACE VIEW {name}_v AS SELECT *, CASE WHEN id = 77 THEN 0 ELSE 1 END AS divisor FROM orders")
    run = kiln.materialize(name, forceRefresh=True)
    assert run["metadata"]["sourcesBuilt"] == 1 and run["metadata"]["sourcesFailed"] >= 1, run["metadata"]
    failures = {f["sourceName"]: f for f in run["manifest"]["failures"].values()}
    assert "division by zero" in failures["daily"]["reason"]
    assert "daily" in failures["regions"]["reason"], "a dependant names the parent that failed"
    after = {t: generation_of(kiln, name, t) for t in ("daily", "regions", "lonely")}
    assert (after["daily"], after["regions"]) == (before["daily"], before["regions"]) and after["lonely"] != before["lonely"]
    answer = kiln.query(DAILY_COUNT, package=name)
    assert (answer.served, answer.rows) == ("baked", [{"orders_n": ORDERS}]), "the last good table goes on serving"
    assert kiln.staging_tables() == []


def test_a_run_in_which_everything_fails_is_failed_and_changes_nothing(kiln, name):
    kiln.wh(f"CREATE VIEW {name}_v AS SELECT 1 AS divisor")
    publish(kiln, name, {"shop.malloy": f'''##! experimental.persistence
#@ persist name="marts.{name}_one"
source: one is wh.sql("""SELECT 1 / divisor AS n FROM {name}_v""")
'''})
    kiln.materialize(name)
    kiln.wh(f"CREATE OR REPLACE VIEW {name}_v AS SELECT 0 AS divisor")
    run = kiln.materialize(name, status="FAILED", forceRefresh=True)
    assert "one" in run["error"] and "division by zero" in run["error"]
    assert kiln.binding(name) == ("bound", 1)
    assert kiln.query("run: one -> { select: n }", package=name).rows == [{"n": 1}]


def test_a_partial_run_builds_what_it_names_and_leaves_the_others_as_they_were(shopped):
    kiln, package = shopped
    run = kiln.materialize(package, sourceNames=["daily"])
    assert set(entries(run)) == {"daily"} and kiln.binding(package) == ("bound", 1)
    half = kiln.query("run: regions -> { aggregate: all_orders }", package=package)
    assert (half.served, half.reason, half.rows) == ("mixed", "never_built", [{"all_orders": ORDERS}]), "regions live over daily's table"
    daily = generation_of(kiln, package)

    kiln.materialize(package, sourceNames=["regions"])
    assert kiln.binding(package) == ("bound", 2)
    assert generation_of(kiln, package) == daily
    for source, measure in (("daily", "orders_n"), ("regions", "all_orders")):
        answer = kiln.query(f"run: {source} -> {{ aggregate: {measure} }}", package=package)
        assert (answer.served, answer.rows) == ("baked", [{measure: ORDERS}])

    unknown = kiln.call("POST", kiln.package_path(package, "/materializations"), json={"sourceNames": ["daily", "nobody"]})
    assert unknown.status_code == 400 and "nobody" in unknown.json()["message"]


def test_force_refresh_builds_again_what_an_ordinary_run_reuses(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    first = generation_of(kiln, package)
    assert kiln.materialize(package)["metadata"]["sourcesReused"] == 2 and generation_of(kiln, package) == first

    kiln.wh("INSERT INTO orders SELECT n, 1, date '2024-01-01', 1, 1 FROM generate_series(6001, 6010) n")
    try:
        assert kiln.query(DAILY_COUNT, package=package).rows == [{"orders_n": ORDERS}], "a baked answer is as old as its table"
        assert kiln.query(DAILY_COUNT, package=package, headers={"Kiln-Mode": "live"}).rows == [{"orders_n": ORDERS + 10}]
        run = kiln.materialize(package, forceRefresh=True)
        assert run["metadata"]["sourcesBuilt"] == 2 and generation_of(kiln, package) != first
        answer = kiln.query(DAILY_COUNT, package=package)
        assert (answer.served, answer.rows) == ("baked", [{"orders_n": ORDERS + 10}])
    finally:
        kiln.wh("DELETE FROM orders WHERE id > 6000")


def test_a_child_is_built_from_its_parents_table(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    kiln.wh(f'UPDATE marts."{package}_daily" SET order_count = order_count + 1 WHERE ctid = (SELECT min(ctid) FROM marts."{package}_daily")')
    kiln.wh(f'DROP TABLE marts."{package}_regions"')
    run = kiln.materialize(package)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesReused"]) == (1, 1)
    assert entries(run)["regions"]["upstreamReuse"] == "reused"
    assert kiln.wh(f'SELECT sum(orders_n)::int FROM marts."{package}_regions"') == [(ORDERS + 1,)]


def test_a_second_run_is_refused_while_one_is_active_and_stop_reaches_the_running_statement(kiln, name):
    files = shop(name)
    files["shop.malloy"] += gated(f"{name}_slow", 7101)
    publish(kiln, name, files)
    with kiln.gate(7101) as waiting:
        run = kiln.create_run(name)
        wait_for(waiting, 20, "the build waits at its gate")
        conflict = kiln.call("POST", kiln.package_path(name, "/materializations"), json={})
        assert conflict.status_code == 409 and "already has an active materialization" in conflict.json()["message"]
        assert run["id"] in conflict.json()["message"]
        assert kiln.call("DELETE", kiln.package_path(name, f"/materializations/{run['id']}")).status_code == 409

        began = time.monotonic()
        kiln.stop_run(run["id"], name)
        wait_for(lambda: waiting() == 0, 5, "the statement has ended")
        took = time.monotonic() - began
        ended = kiln.wait_run(run["id"], name, status="CANCELLED")
        assert took < 2, f"the statement went on for {took:.1f} s"
    assert ended["error"] and kiln.staging_tables() == []
    again = kiln.call("POST", kiln.package_path(name, f"/materializations/{run['id']}?action=stop"))
    assert again.status_code == 409
    assert kiln.materialize(name)["metadata"]["sourcesBuilt"] >= 1


def test_refused_sources_are_named_counted_and_served_live_while_the_others_are_built(kiln, name):
    model = shop(name)["shop.malloy"] + f'''
#@ persist name="marts.{name}_free"
source: free_one(cut::number) is orders -> {{ group_by: qty; aggregate: n is count() }} extend {{ where: qty > cut }}
'''
    publish(kiln, name, {"shop.malloy": "##! experimental { persistence, parameters }\n" + model.split("\n", 1)[1]})
    package = kiln.package(name)
    refused = package["buildPlan"]["refusedSources"]
    assert [r["reason"] for r in refused.values()] == ["free_parameter"]
    run = kiln.materialize(name)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesRefused"]) == (2, 1)
    (one,) = run["metadata"]["refusedSources"].values()
    assert one["name"] == "free_one" and one["reason"] == "free_parameter" and "cut" in one["message"]
    assert any("free_one" in w["message"] for w in package["warnings"])
    only = kiln.materialize(name, status="FAILED", sourceNames=["free_one"])
    assert "free_one" in only["error"]


def test_a_package_without_persisted_sources_ends_ready_with_nothing(kiln, name):
    publish(kiln, name, {"shop.malloy": "source: orders is wh.table('public.orders')\n"})
    run = kiln.materialize(name)
    assert run["manifest"]["entries"] == {} and run["metadata"]["sourcesBuilt"] == 0
    assert kiln.package(name)["buildPlan"] is None


def test_indexes_grants_comments_and_owner_survive_a_rebuild(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    table = f'marts."{package}_daily"'
    kiln.wh("DO $$ BEGIN CREATE ROLE reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    kiln.wh(f'CREATE INDEX "{package}_ix" ON {table} (region)')
    kiln.wh(f"GRANT SELECT ON {table} TO reader")
    kiln.wh(f"COMMENT ON TABLE {table} IS 'seen by people'")
    kiln.materialize(package, forceRefresh=True)
    assert kiln.wh("SELECT indexname FROM pg_indexes WHERE tablename = %s", (f"{package}_daily",)) == [(f"{package}_ix",)]
    assert kiln.wh(f"SELECT has_table_privilege('reader', '{table}', 'SELECT'), obj_description('{table}'::regclass)") == [(True, "seen by people")]


@pytest.mark.parametrize("what", ["view", "function"])
def test_a_target_with_dependents_is_refused_by_name_and_stays(shopped, what):
    kiln, package = shopped
    kiln.materialize(package)
    before = generation_of(kiln, package)
    if what == "view":
        kiln.wh(f'CREATE VIEW marts.{package}_dep AS SELECT * FROM marts."{package}_daily"')
    else:
        kiln.wh(f'CREATE FUNCTION marts.{package}_dep(r marts."{package}_daily") RETURNS int LANGUAGE sql AS \'SELECT 1\'')
    run = kiln.materialize(package, status="FAILED", forceRefresh=True)
    assert "target_has_dependents" in run["error"] and f"{what} marts.{package}_dep" in run["error"] and "choose another name" in run["error"], run["error"]
    assert generation_of(kiln, package) == before and kiln.binding(package) == ("bound", 2)
    assert kiln.query(BY_REGION, package=package).served == "baked"


def test_a_builder_gets_only_jobs_of_connections_that_it_reaches():
    """Two networks, a builder in each: builder-1 does not reach the warehouse of the package (protocol.md 9)."""
    with Trio(builders=2) as kiln:
        publish(kiln, "reached", shop("reached"))
        elsewhere = kiln.procs["builder-1"]
        elsewhere.env["KILN_BUILDER_CONNECTIONS"] = "test/elsewhere, lake"
        elsewhere.restart()
        kiln.wait_ready("builder-1")
        for _ in range(3):
            assert kiln.materialize("reached", forceRefresh=True)["metadata"]["sourcesBuilt"] == 2
        assert kiln.store("SELECT DISTINCT builder FROM kiln.attempt") == [("builder-2",)]
