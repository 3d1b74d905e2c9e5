"""The life of a baked source, over HTTP only (seed A; spec/malloy-persistence.md 3.9, 3.10, 4.2)."""
from servers import wait_for
from trio import BY_REGION, ORDERS, TOTAL

REGIONS = [{"region": r, "orders_n": 1500, "total": t} for r, t in
           (("east", 187125), ("north", 186750), ("south", 187500), ("west", 187875))]


def asked(kiln, package, gateway="gateway-1"):
    """The query's full answer, its rows checked on the way."""
    compact = kiln.query(BY_REGION, package=package, gateway=gateway)
    assert sorted(compact.rows[0]) == ["orders_n", "region", "total"]
    assert sum(r["orders_n"] for r in compact.rows) == ORDERS and sum(float(r["total"]) for r in compact.rows) == TOTAL
    return kiln.query(BY_REGION, package=package, compact=False, gateway=gateway)


def test_a_source_is_baked_bound_unbound_by_reload_reused_restarted_lost_rebuilt_and_dropped(shopped):
    kiln, package = shopped
    table = f'"{package}_daily"'

    def is_baked():
        answer = asked(kiln, package)
        assert answer.served == "baked" and table in answer.sql and "orders" not in answer.sql.split("FROM", 1)[1].split("GROUP", 1)[0], answer.sql
        return answer

    def is_live(reason):
        answer = asked(kiln, package)
        assert (answer.served, answer.reason) == ("live", reason) and table not in answer.sql, (answer.headers, answer.sql)

    assert kiln.binding(package) == ("unbound", 0)
    is_live("never_built")

    first = kiln.create_run(package)
    assert first["status"] == "PENDING"
    first = kiln.wait_run(first["id"], package)
    assert first["status"] == "MANIFEST_FILE_READY"
    assert (first["metadata"]["sourcesBuilt"], first["metadata"]["sourcesReused"]) == (2, 0)
    names = {e["sourceName"]: e["physicalTableName"] for e in first["manifest"]["entries"].values()}
    assert set(names) == {"daily", "regions"} and f"{package}_daily" in names["daily"]
    assert kiln.binding(package) == ("bound", 2)
    is_baked()

    kiln.reload(package)
    assert kiln.binding(package) == ("unbound", 0)
    is_live("unbound_by_reload")

    second = kiln.materialize(package)
    assert (second["metadata"]["sourcesBuilt"], second["metadata"]["sourcesReused"]) == (0, 2)
    assert kiln.binding(package) == ("bound", 2)
    generation = is_baked().decision["sources"][0]["generation"]

    assert all(code == 0 for code in kiln.stop_all().values())
    kiln.start_all()
    kiln.wait_bound(package, 2)
    assert is_baked().decision["sources"][0]["generation"] == generation

    kiln.wh(f'DROP TABLE marts.{table} CASCADE')  # someone else
    is_live("table_missing")
    third = kiln.materialize(package)
    assert (third["metadata"]["sourcesBuilt"], third["metadata"]["sourcesReused"]) == (1, 1)
    kiln.wait_bound(package, 2)
    assert is_baked().decision["sources"][0]["generation"] != generation

    ids = [r["id"] for r in kiln.runs(package)]
    assert ids == sorted(ids, reverse=True) == [third["id"], second["id"], first["id"]]
    for run in ids[1:]:
        kiln.delete_run(run, package, drop=True)  # the third names the tables: they stay
    assert kiln.binding(package) == ("bound", 2)
    is_baked()
    kiln.delete_run(third["id"], package, drop=True)
    assert kiln.binding(package) == ("unbound", 0)
    is_live("run_deleted")
    assert not kiln.table_exists(f"marts.{table}") and not kiln.table_exists(f'marts."{package}_regions"')
    assert kiln.fence(f"{package}_daily")["published"] == 0, "a drop leaves its mark in the fence"

    fourth = kiln.materialize(package)
    assert fourth["metadata"]["sourcesBuilt"] == 2
    is_baked()


def test_deleting_the_newest_run_goes_back_to_the_one_before(shopped):
    kiln, package = shopped
    first = kiln.materialize(package, sourceNames=["daily"])
    both = kiln.materialize(package)
    assert kiln.binding(package) == ("bound", 2)
    kiln.delete_run(both["id"], package, drop=True)
    assert kiln.binding(package) == ("bound", 1)
    assert asked(kiln, package).served == "baked"
    assert not kiln.table_exists(f'marts."{package}_regions"')
    assert [r["id"] for r in kiln.runs(package)] == [first["id"]]


def test_deleting_a_run_without_drop_tables_keeps_the_tables_and_serves_live(shopped):
    kiln, package = shopped
    run = kiln.materialize(package)
    kiln.delete_run(run["id"], package)
    assert kiln.binding(package) == ("unbound", 0)
    assert asked(kiln, package).served == "live"
    assert kiln.table_exists(f'marts."{package}_daily"')


def test_a_republish_with_the_same_logic_builds_nothing_and_the_next_run_reuses(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    kiln.json("POST", "environments/test/packages", json={"name": package, "location": f"./packages/{package}"})
    run = kiln.materialize(package)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesReused"]) == (0, 2)
    assert asked(kiln, package).served == "baked"


def test_a_deleted_package_is_gone_and_its_tables_stay(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    kiln.json("DELETE", kiln.package_path(package))
    assert kiln.call("GET", kiln.package_path(package)).status_code == 404
    wait_for(lambda: kiln.post_query(BY_REGION, package=package, gateway="gateway-2").status_code == 404, 5, "the other gateway forgets it too")
    assert kiln.table_exists(f'marts."{package}_daily"')
