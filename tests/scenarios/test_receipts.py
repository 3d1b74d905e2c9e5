"""Every answer says what it was served from, and why not from a table (issue part 9; protocol.md 7)."""
import time

import pytest

from servers import wait_for
from trio import BY_REGION, ORDERS
from trio_fixtures import publish, shop

DAILY_COUNT = "run: daily -> { aggregate: orders_n }"


def source(answer, name):
    (found,) = [s for s in answer.decision["sources"] if s["name"] == name]
    return found


def test_a_baked_answer_names_generation_build_and_age(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    answer = kiln.query(DAILY_COUNT, package=package)
    fence = kiln.fence(f"{package}_daily")
    assert answer.served == answer.decision["served"] == "baked" and answer.reason is None
    assert int(answer.headers["Kiln-Epoch"]) == int(answer.decision["epoch"]) and int(answer.headers["Kiln-Epoch"]) > 0
    assert answer.headers["Kiln-Generation"] == fence["generation"]
    told = source(answer, "daily")
    assert (told["served"], told["generation"], told["buildId"]) == ("baked", fence["generation"], fence["build_id"])
    assert f"{package}_daily" in told["table"] and told["dataAsOf"][:16] == fence["data_as_of"][:16]
    assert {"servedFrom", "executionTimeMs", "queryRowLimit", "resource"} <= set(answer.body) and answer.body["servedFrom"] is None


def test_live_mode_forces_the_live_answer_and_says_so(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    answer = kiln.query(DAILY_COUNT, package=package, headers={"Kiln-Mode": "live"}, compact=False)
    assert (answer.served, answer.reason) == ("live", "mode_live") and f"{package}_daily" not in answer.sql
    assert source(answer, "daily")["reason"] == "mode_live" and source(answer, "daily")["remedy"]
    assert kiln.query(DAILY_COUNT, package=package).served == "baked"
    assert kiln.post_query(DAILY_COUNT, package=package, headers={"Kiln-Mode": "sometimes"}).status_code == 400


def test_a_query_over_a_baked_and_an_unbaked_source_is_mixed(kiln, name):
    model = shop(name)["shop.malloy"] + f'''
#@ persist name="marts.{name}_people"
source: people is customers -> {{ group_by: region; aggregate: heads is count() }}
source: joined is daily extend {{ join_one: people on region = people.region }}
'''
    publish(kiln, name, {"shop.malloy": model})
    kiln.materialize(name, sourceNames=["daily"])
    answer = kiln.query("run: joined -> { group_by: region, people.heads; aggregate: orders_n; order_by: region }", package=name)
    assert answer.served == "mixed" and answer.reason == "never_built", answer.decision
    assert source(answer, "daily")["served"] == "baked"
    assert (source(answer, "people")["served"], source(answer, "people")["reason"]) == ("live", "never_built")
    assert [r["heads"] for r in answer.rows] == [50] * 4 and sum(r["orders_n"] for r in answer.rows) == ORDERS


def test_a_query_that_reads_no_persisted_source_says_so(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    answer = kiln.query("run: customers -> { aggregate: n is count() }", package=package)
    assert (answer.served, answer.reason, answer.rows) == ("live", "not_persisted", [{"n": 200}])
    assert answer.decision["sources"] == []


def test_an_extension_shares_the_table_and_an_opt_out_does_not(kiln, name):
    model = shop(name)["shop.malloy"] + '''
source: daily_named is daily extend { dimension: label is concat(region, '!') }
#@ -persist
source: daily_live is daily extend { measure: n is count() }
'''
    publish(kiln, name, {"shop.malloy": model})
    run = kiln.materialize(name)
    assert run["metadata"]["sourcesBuilt"] == 2
    assert kiln.query("run: daily_named -> { group_by: label; aggregate: orders_n }", package=name).served == "baked"
    assert kiln.query("run: daily_live -> { aggregate: orders_n }", package=name).served == "live"


def test_a_table_replaced_by_hand_is_not_trusted(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    table = f'marts."{package}_daily"'
    kiln.wh(f"CREATE TABLE marts.by_hand AS SELECT * FROM {table} LIMIT 3; DROP TABLE {table}; ALTER TABLE marts.by_hand RENAME TO \"{package}_daily\"")
    answer = kiln.query(DAILY_COUNT, package=package)
    assert (answer.served, answer.reason, answer.rows) == ("live", "binding_superseded", [{"orders_n": ORDERS}])
    again = kiln.query(BY_REGION, package=package)
    assert (again.served, again.reason) == ("live", "binding_superseded")
    run = kiln.materialize(package)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesReused"]) == (1, 1), "the probe proves one table and not the other"
    answer = kiln.query(DAILY_COUNT, package=package)
    assert (answer.served, answer.rows) == ("baked", [{"orders_n": ORDERS}])


def test_a_rebuild_between_two_queries_is_served_with_its_own_generation(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    one = kiln.query(DAILY_COUNT, package=package)
    kiln.materialize(package, forceRefresh=True)
    two = kiln.query(DAILY_COUNT, package=package)
    assert (one.served, two.served) == ("baked", "baked")
    assert source(one, "daily")["generation"] != source(two, "daily")["generation"] == kiln.fence(f"{package}_daily")["generation"]


def test_every_gateway_sees_a_new_binding_within_a_second(shopped):
    kiln, package = shopped
    for change in (lambda: kiln.materialize(package), lambda: kiln.reload(package), lambda: kiln.materialize(package)):
        change()
        began = time.monotonic()
        want = kiln.package(package)["manifestBindingStatus"]
        wait_for(lambda: kiln.package(package, gateway="gateway-2")["manifestBindingStatus"] == want, 1, f"gateway-2 is {want} too")
        served = "baked" if want == "bound" else "live"
        wait_for(lambda: all(kiln.query(DAILY_COUNT, package=package, gateway=g).served == served for g in ("gateway-1", "gateway-2")), 1,
                 f"both answer {served}")
        assert time.monotonic() - began < 3
    one, two = (kiln.query(DAILY_COUNT, package=package, gateway=g) for g in ("gateway-1", "gateway-2"))
    assert one.headers["Kiln-Epoch"] == two.headers["Kiln-Epoch"]


def test_an_epoch_that_a_client_saw_is_waited_for_and_one_that_never_comes_is_503(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    epoch = kiln.query(DAILY_COUNT, package=package).headers["Kiln-Epoch"]
    assert kiln.query(DAILY_COUNT, package=package, gateway="gateway-2", headers={"Kiln-Min-Epoch": epoch}).served == "baked"
    r = kiln.post_query(DAILY_COUNT, package=package, headers={"Kiln-Min-Epoch": str(int(epoch) + 10**12)})
    assert r.status_code == 503 and "epoch" in r.json()["message"].lower(), r.text


@pytest.mark.parametrize("change, reason", [
    ("unflagged", "model_not_flagged"),
    ("patch", "unbound_by_patch"),
    ("refused", "refused"),
])
def test_a_live_answer_says_why(kiln, name, change, reason):
    files = shop(name)
    if change == "unflagged":
        files["shop.malloy"] = files["shop.malloy"].replace("##! experimental.persistence\n", "")
    if change == "refused":
        files["shop.malloy"] = files["shop.malloy"].replace(f"marts.{name}_daily", f"otherdb.marts.{name}_daily")
    publish(kiln, name, files)
    kiln.materialize(name, status=None)
    if change == "patch":
        kiln.json("PATCH", kiln.package_path(name), json={"name": name, "manifestLocation": None})
        assert kiln.binding(name) == ("unbound", 0)
    answer = kiln.query(DAILY_COUNT, package=name)
    assert (answer.served, answer.reason) == ("live", reason), answer.decision
    assert answer.rows == [{"orders_n": ORDERS}]
