"""Generation roots: two installations on one directory, and hosts that do not share theirs (protocol.md 8)."""
import shutil
import signal
import time

import pytest

from servers import wait_for
from test_duckdb import MODEL, ORDERS, QUERY, WANT
from trio import BY_REGION, ENV, SHOP, Trio
from trio_fixtures import publish

FILED = {"shop.malloy": MODEL, "data/orders.csv": ORDERS}


@pytest.fixture(scope="module")
def kiln():
    with Trio(gateways=2, gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as trio:
        yield trio


def said(proc):
    return (proc.out() + proc.err()).splitlines()


def asks(kiln, package, served, reason=None, gateway="gateway-1"):
    answer = kiln.query(QUERY, package=package, gateway=gateway)
    assert answer.rows == WANT, answer.rows
    assert (answer.served, answer.reason) == (served, reason), (answer.served, answer.reason)


def test_a_second_installation_on_a_root_is_refused_by_name_and_does_all_the_rest(kiln, name):
    publish(kiln, name, FILED)
    kiln.materialize(name)
    kiln.wait_bound(name, 2)
    root = kiln.dir / "generations"
    with Trio(gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as second:
        own = second.dir / "generations"
        builder = second.procs["builder-1"]
        assert builder.stop() == 0
        shutil.rmtree(own)
        own.symlink_to(root)
        builder.start()
        told = wait_for(lambda: [line for line in said(builder) if "belongs to another installation" in line], 20, "the builder says why")
        assert str(own) in told[0] and "give this one a directory of its own" in told[0], told[0]
        second.wait_ready("builder-1")  # for all else

        second.write_package("filed", FILED)
        r = second.call("POST", f"environments/{ENV}/packages", json={"name": "filed", "location": "./packages/filed"})
        message = r.json()["message"]
        assert r.status_code in (424, 503, 504) and "\n" not in message, r.text
        for word in ("no_capable_builder", "builder-1", str(own), "belongs to another installation", "give this one a directory of its own"):
            assert word in message, (word, message)

        publish(second, "shop", SHOP)
        second.materialize("shop")
        second.wait_bound("shop", 2)
        assert second.query(BY_REGION).served == "baked"
        asks(kiln, name, "baked")
        assert all(root.glob("*/*/manifest.json"))
    asks(kiln, name, "baked")
    assert kiln.materialize(name, forceRefresh=True)["metadata"]["sourcesBuilt"] == 2


def test_a_gateway_on_another_directory_says_so_serves_live_and_costs_the_others_nothing(kiln, name):
    publish(kiln, name, FILED)
    kiln.materialize(name)
    kiln.wait_bound(name, 2)
    gateway = kiln.procs["gateway-2"]
    other = kiln.dir / "other"
    shutil.copytree(kiln.dir / "generations", other)  # the same installation, as two hosts without a shared directory have it
    owner = (other / ".kiln-root").read_text()
    (root_id,) = kiln.store("SELECT DISTINCT root::text FROM kiln.generation WHERE root IS NOT NULL")[0]
    assert root_id in owner
    (other / ".kiln-root").write_text(owner.replace(root_id, "0" * 8 + root_id[8:]))
    for generation in other.glob("*/*"):
        shutil.rmtree(generation)
    at = gateway.argv.index("--generation-root") + 1
    given, gateway.argv[at] = gateway.argv[at], str(other)
    try:
        gateway.restart()
        kiln.wait_ready("gateway-2")
        wait_for(lambda: any("root_not_reachable" in line and "must share one directory" in line for line in said(gateway)), 20, "it says why")
        asks(kiln, name, "live", "root_not_reachable", "gateway-2")
        asks(kiln, name, "baked")
        run = kiln.materialize(name, forceRefresh=True)
        assert run["metadata"]["sourcesBuilt"] == 2 and run["metadata"].get("unbound") == ["gateway-2"], run["metadata"]
        asks(kiln, name, "live", "root_not_reachable", "gateway-2")
        time.sleep(2)  # nothing to poll for: two reports, if there were anything to tell
        assert kiln.materialize(name)["metadata"]["sourcesReused"] == 2
        asks(kiln, name, "baked")
    finally:
        gateway.argv[at] = given
        gateway.restart()
        kiln.wait_ready("gateway-2")
    asks(kiln, name, "baked", gateway="gateway-2")


@pytest.fixture
def mount(kiln):
    """The root as gateway-2 has it: a link that can be moved away and back."""
    gateway, link = kiln.procs["gateway-2"], kiln.dir / "mount"
    link.symlink_to(kiln.dir / "generations")
    at = gateway.argv.index("--generation-root") + 1
    given, gateway.argv[at] = gateway.argv[at], str(link)
    yield link
    gateway.argv[at] = given
    gateway.restart()
    kiln.wait_ready("gateway-2")
    for p in (link, away(link)):
        p.unlink(missing_ok=True)


def away(link):
    return link.with_name("mount.away")


def baked_again(kiln, package):
    def ask():
        answer = kiln.query(QUERY, package=package, gateway="gateway-2")
        assert answer.rows == WANT and answer.reason in (None, "root_not_reachable"), (answer.rows, answer.reason)
        return answer.served == "baked"

    wait_for(ask, 10, "what is in force is bound")


def test_a_root_that_comes_back_is_bound_again_at_the_same_epoch(kiln, name, mount):
    gateway = kiln.procs["gateway-2"]
    publish(kiln, name, FILED)
    mount.rename(away(mount))
    gateway.restart()
    kiln.wait_ready("gateway-2")
    assert kiln.materialize(name)["metadata"].get("unbound") == ["gateway-2"]
    asks(kiln, name, "live", "root_not_reachable", "gateway-2")
    epoch = kiln.store("SELECT max(epoch) FROM kiln.binding_set")

    away(mount).rename(mount)
    baked_again(kiln, name)
    assert kiln.materialize(name)["metadata"]["sourcesReused"] == 2
    assert kiln.store("SELECT max(epoch) FROM kiln.binding_set") == epoch


def test_a_root_that_comes_back_is_told_to_the_planner(kiln, name, mount):
    gateway, held = kiln.procs["gateway-2"], kiln.procs["gateway-1"]
    publish(kiln, name, FILED)
    gateway.restart()
    kiln.wait_ready("gateway-2")
    path = kiln.package_path(name, "/materializations")

    def failures():
        return [line for line in said(gateway) if "binder.failed" in line and name in line]

    def tells():
        """A run waits for gateway-1, as long as that counts as alive; meanwhile gateway-2 loses the root and has it again."""
        before = len(failures())
        mount.rename(away(mount))
        held.signal(signal.SIGSTOP)
        try:
            run = kiln.json("POST", path, status=201, gateway="gateway-2", json={"forceRefresh": True})["id"]
            wait_for(lambda: len(failures()) > before, 10, "the new set is in force")
            away(mount).rename(mount)
            baked_again(kiln, name)
        finally:
            held.signal(signal.SIGCONT)
        return "unbound" not in kiln.wait_run(run, name)["metadata"]

    wait_for(tells, 60, "the run is bound everywhere")


def test_a_root_that_was_away_when_a_package_was_first_asked_for_is_bound_when_it_comes_back(kiln, name, mount):
    gateway = kiln.procs["gateway-2"]
    publish(kiln, name, FILED)
    kiln.materialize(name)
    kiln.wait_bound(name, 2)
    gateway.restart()
    kiln.wait_ready("gateway-2")
    mount.rename(away(mount))
    asks(kiln, name, "live", "root_not_reachable", "gateway-2")
    wait_for(lambda: any("binder.failed" in line and "root_not_reachable" in line for line in said(gateway)), 10, "it says so")
    away(mount).rename(mount)
    baked_again(kiln, name)

    mount.rename(away(mount))
    asks(kiln, name, "live", "root_not_reachable", "gateway-2")
    away(mount).rename(mount)
    asks(kiln, name, "baked", gateway="gateway-2")


def test_what_a_dead_planner_left_goes_when_it_starts_however_young(kiln, name):
    publish(kiln, name, FILED)
    kiln.materialize(name)
    kiln.wait_bound(name, 2)
    root = kiln.dir / "generations"
    kept = {p for p in root.glob("*/*")}
    left = root / "package-left" / "01HF7YAT00AAAAAAAAAAAAAAAA"
    young = next(iter(kept)).parent / (next(iter(kept)).name[:10] + "A" * 16)
    for orphan in (left, young):
        orphan.mkdir(parents=True)
        (orphan / "data-0.parquet").write_text("x")
    kiln.procs["planner"].restart()
    wait_for(lambda: not left.parent.exists() and not young.exists(), 30, "orphans and the empty folder go")
    assert kept == {p for p in root.glob("*/*")}
    asks(kiln, name, "baked")
