"""A package over files, with no warehouse but its own DuckDB (decisions 2; protocol.md 7, 8)."""
import shutil

import pytest

from servers import wait_for
from trio import Trio
from trio_fixtures import publish

MODEL = """##! experimental.persistence
source: orders is duckdb.table('data/orders.csv') extend {
  measure: orders_n is count()
  measure: total is sum(amount)
}
#@ persist name="daily"
source: daily is orders -> { group_by: region; aggregate: orders_n, total }
#@ persist name="regions"
source: regions is daily -> { aggregate: regions_n is count() }
"""
REGIONS = ("east", "north", "south", "west")
ORDERS = "id,region,amount\n" + "".join(f"{i},{REGIONS[i % 4]},{i}\n" for i in range(2000))
WANT = [{"region": r, "orders_n": 500, "total": sum(range(k, 2000, 4))} for k, r in enumerate(REGIONS)]
QUERY = "run: daily -> { group_by: region; aggregate: orders_n is orders_n.sum(), total is total.sum(); order_by: region }"


@pytest.fixture(scope="module")
def kiln():
    """Two gateways, and a sweep every second."""
    with Trio(gateways=2, sweep_every="1s", sweep_age="1s", gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as trio:
        yield trio


@pytest.fixture
def filed(kiln, name):
    publish(kiln, name, {"shop.malloy": MODEL, "data/orders.csv": ORDERS})
    return kiln, name


def answers(kiln, package, served, reason=None):
    """Both gateways give the right rows, from where they should; the first one's answer."""
    got = [kiln.query(QUERY, package=package, gateway=g) for g in ("gateway-1", "gateway-2")]
    for a in got:
        assert a.rows == WANT, a.rows
        assert a.served == served and (reason is None or a.reason == reason), (a.served, a.reason)
    return got[0]


def test_a_source_is_baked_bound_unbound_by_reload_reused_restarted_lost_rebuilt_and_dropped(filed):
    kiln, package = filed
    answers(kiln, package, "live", "never_built")

    first = kiln.materialize(package)
    assert (first["metadata"]["sourcesBuilt"], first["metadata"]["sourcesReused"]) == (2, 0), first
    names = {e["sourceName"]: e["physicalTableName"] for e in first["manifest"]["entries"].values()}
    assert names == {"daily": '"main"."daily"', "regions": '"main"."regions"'}
    answers(kiln, package, "baked")
    assert '"daily"' in kiln.sql_of(QUERY, package=package) and "orders.csv" not in kiln.sql_of(QUERY, package=package)
    assert kiln.query("run: regions -> { aggregate: n is regions_n.sum() }", package=package).rows == [{"n": 4}]

    kiln.reload(package)
    answers(kiln, package, "live", "unbound_by_reload")
    second = kiln.materialize(package)
    assert (second["metadata"]["sourcesBuilt"], second["metadata"]["sourcesReused"]) == (0, 2), second
    generation = answers(kiln, package, "baked").decision["sources"][0]["generation"]

    assert all(code == 0 for code in kiln.stop_all().values())
    kiln.start_all()
    kiln.wait_bound(package, 2)
    assert answers(kiln, package, "baked").decision["sources"][0]["generation"] == generation

    shutil.rmtree(kiln.generations()[generation])  # someone else
    answers(kiln, package, "live", "table_missing")
    third = kiln.materialize(package)
    assert (third["metadata"]["sourcesBuilt"], third["metadata"]["sourcesReused"]) == (1, 1), third
    kiln.wait_bound(package, 2)
    assert answers(kiln, package, "baked").decision["sources"][0]["generation"] != generation

    for run in [r["id"] for r in kiln.runs(package)][1:]:
        kiln.delete_run(run, package, drop=True)
    answers(kiln, package, "baked")
    kiln.delete_run(third["id"], package, drop=True)
    answers(kiln, package, "live", "run_deleted")
    kept = {e["materializedTableId"] for e in third["manifest"]["entries"].values()}
    wait_for(lambda: not kept & set(kiln.generations()), 10, "the results are gone from the disk")
    assert kiln.materialize(package)["metadata"]["sourcesBuilt"] == 2
    answers(kiln, package, "baked")


def test_without_a_builder_a_publish_says_what_is_missing_and_succeeds_once_there_is_one(kiln, name):
    builder = kiln.procs["builder-1"]
    assert builder.stop() == 0
    kiln.write_package(name, {"shop.malloy": MODEL, "data/orders.csv": ORDERS})
    refused = kiln.call("POST", "environments/test/packages", json={"name": name, "location": f"./packages/{name}"})
    assert refused.status_code in (424, 503, 504) and "no_capable_builder" in refused.text, refused.text
    builder.start()
    kiln.wait_ready("builder-1")
    publish(kiln, name, {"shop.malloy": MODEL, "data/orders.csv": ORDERS})
    kiln.materialize(name)
    answers(kiln, name, "baked")


def test_a_changed_data_file_is_another_version_and_the_old_result_serves_until_a_forced_run(filed):
    kiln, package = filed
    kiln.materialize(package)
    publish(kiln, package, {"shop.malloy": MODEL, "data/orders.csv": ORDERS + "2000,north,5\n"})
    answers(kiln, package, "baked")  # the same logic: reused, as on any warehouse (decisions 1.2)
    live = kiln.query(QUERY, package=package, headers={"Kiln-Mode": "live"})
    assert [r["orders_n"] for r in live.rows] == [500, 501, 500, 500] and live.served == "live"
    assert kiln.materialize(package, forceRefresh=True)["metadata"]["sourcesBuilt"] == 2
    baked = kiln.query(QUERY, package=package)
    assert baked.rows == live.rows and baked.served == "baked"


def test_a_package_that_is_deleted_leaves_nothing_that_serves(filed):
    kiln, package = filed
    kiln.materialize(package)
    kiln.json("DELETE", kiln.package_path(package))
    for gateway in ("gateway-1", "gateway-2"):
        wait_for(lambda g=gateway: kiln.post_query(QUERY, package=package, gateway=g).status_code == 404, 5, "it is forgotten")
