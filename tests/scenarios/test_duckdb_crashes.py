"""Every part dies during a build on DuckDB, under query load: no wrong or mixed answer, no lost run, no folder left over
(protocol.md 5, 7, 8). KILN_CRASH_ROUNDS says how many random rounds follow, KILN_CRASH_SEED repeats one series."""
import os
import random
import signal
import time

import pytest

from load import Load
from servers import process_gone, wait_for
from trio import Trio
from trio_fixtures import publish

# All rows of one result of `stamped` carry the moment it was made, and `stamps` is made of it: two results of two runs in one
# answer, or half of each, do not agree. `slow` keeps a builder busy.
MODEL = """##! experimental.persistence
#@ persist name="stamped"
source: stamped is duckdb.sql(\"\"\"SELECT r.range AS n, t.stamp FROM range(2000) r, (SELECT epoch_us(now()) AS stamp) t\"\"\")
  extend { measure: n_rows is count() }
#@ persist name="stamps"
source: stamps is stamped -> { group_by: stamp; aggregate: n_rows }
#@ persist name="slow"
source: slow is duckdb.sql(\"\"\"SELECT g.range % 3 AS k, sum(hash(g.range * 7 + h.range) % 11) AS s, any_value(t.stamp) AS stamp
  FROM range(WEIGHT) g, range(10000) h, (SELECT epoch_us(now()) AS stamp) t GROUP BY 1\"\"\") extend { measure: n_rows is count() }
source: pair is stamped extend { join_one: s is stamps on stamp = s.stamp }
"""
QUERY = "run: pair -> { aggregate: n is count(), same is count() { where: s.n_rows = 2000 } }"
WANT = [{"n": 2000, "same": 2000}]
SLOW, QUICK = 800, 150
OPEN_JOBS = "SELECT count(*) FROM kiln.job WHERE state NOT IN ('done', 'carried', 'skipped', 'failed', 'cancelled') AND kind = 'build'"
MAY_STAY = "SELECT id FROM kiln.generation WHERE state <> 'dropped'"
MUST_STAY = "SELECT id FROM kiln.generation WHERE state IN ('recorded', 'bound', 'retired')"


@pytest.fixture(scope="module")
def kiln():
    """Short leases, a sweep every second, two builders, two gateways; what dies is started again, as kiln up does it."""
    with Trio(builders=2, gateways=2, lease="3s", sweep_every="1s", sweep_age="2s", gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as trio:
        yield trio


@pytest.fixture
def slow(kiln, name):
    """(trio, package): all is baked and bound."""
    return baked(kiln, name, SLOW)


def baked(kiln, name, weight):
    publish(kiln, name, {"shop.malloy": MODEL.replace("WEIGHT", str(weight))})
    kiln.materialize(name)
    return kiln, name


def load_on(kiln, package, **kw):
    return Load(kiln, QUERY, WANT, package=package, gateways=("gateway-1", "gateway-2"), **kw)


def attempt_of_slow(kiln, run):
    """(builder, generation, token, state) of the newest attempt at the slow source, or None."""
    rows = kiln.store("SELECT a.builder, a.generation, a.token, a.state FROM kiln.attempt a JOIN kiln.job j ON j.id = a.job WHERE j.run = %s "
                      "AND j.source_id LIKE 'slow@%%' ORDER BY a.token DESC LIMIT 1", (run,))
    return rows[0] if rows else None


def at_work(kiln, run):
    """The slow source's attempt once DuckDB writes its file."""
    def writes():
        found = attempt_of_slow(kiln, run)
        return found if found and found[3] == "leased" and list(kiln.generations().get(found[1], kiln.dir / "none").glob("*parquet*")) else None

    return wait_for(writes, 30, "the slow source is being written")


def nothing_is_left(kiln, package):
    assert {r["status"] for r in kiln.runs(package)} == {"MANIFEST_FILE_READY"}
    assert kiln.store(OPEN_JOBS) == [(0,)]

    def only_what_is_recorded():
        must, there, may = ({r[0] for r in kiln.store(MUST_STAY)}, kiln.generations(), {r[0] for r in kiln.store(MAY_STAY)})
        assert set(there) <= may, f"neither recorded nor live: {set(there) - may}"
        assert must <= set(there), f"recorded and gone: {must - set(there)}"
        assert all((p / "manifest.json").is_file() for p in there.values())
        return True

    wait_for(only_what_is_recorded, 30, "the sweep takes what is not recorded")


def crash_during_a_build(slow, crash, while_down=None, excused=False, builds_again=True):
    """Bakes again; crash() while the slow source is being written; the run must end ready with everything rebuilt, under query load.
    excused: queries may fail meanwhile (502, 503, 504, no connection); never are they answered wrongly."""
    kiln, package = slow
    with kiln.supervised(), load_on(kiln, package) as load:
        load.goes_on()
        run = kiln.create_run(package, forceRefresh=True)
        before = at_work(kiln, run["id"])
        crash(before[0])
        if while_down:
            while_down(load)
        kiln.wait_ready(seconds=40)
        ended = kiln.wait_run(run["id"], package, seconds=60)
        for gateway in ("gateway-1", "gateway-2"):
            kiln.wait_bound(package, 3, seconds=20, gateway=gateway)
        load.goes_on()
    assert excused or load.excused == 0, f"{load.excused} queries failed: {load.last_excuse}"
    assert load.served.get("baked", 0) > 0 and (excused or set(load.served) == {"baked"}), load.served
    assert ended["metadata"]["sourcesFailed"] == 0
    if builds_again:
        assert ended["metadata"]["sourcesBuilt"] == 3, ended["metadata"]
    (entry,) = [e for e in ended["manifest"]["entries"].values() if e["sourceName"] == "slow"]
    assert attempt_of_slow(kiln, run["id"])[1] == entry["materializedTableId"]
    assert kiln.query("run: slow -> { aggregate: n_rows }", package=package).rows == [{"n_rows": 3}]
    nothing_is_left(kiln, package)


def test_a_builder_dies_and_another_one_builds(slow):
    crash_during_a_build(slow, lambda builder: slow[0].procs[builder].kill9())


def test_both_builders_die(slow):
    crash_during_a_build(slow, lambda _: [b.kill9() for b in slow[0].builders])


def test_the_planner_dies_and_queries_do_not_notice(slow):
    crash_during_a_build(slow, lambda _: slow[0].procs["planner"].kill9(), lambda load: load.goes_on(5))


def test_a_gateway_dies_and_comes_back_bound(slow):
    crash_during_a_build(slow, lambda _: slow[0].procs["gateway-1"].kill9(), excused=True)


def kill_compiler_children(kiln):
    killed = [pid for service in ("planner", "gateway-1", "gateway-2") for pid in kiln.compiler_children(service)]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(process_gone(p) for p in killed), 5, "the children are gone")
    return killed


def test_the_compiler_children_die(slow):
    kiln, package = slow

    def new_texts_compile(load):
        wait_for(lambda: kiln.post_query("run: stamped -> { aggregate: again is count() }", package=package).status_code == 200, 20,
                 "a new query compiles")
        load.goes_on()

    crash_during_a_build(slow, lambda _: kill_compiler_children(kiln), new_texts_compile)


def test_redis_dies_with_everything_in_it(slow):
    kiln = slow[0]

    def back(load):
        load.goes_on(5)
        kiln.redis.start()

    crash_during_a_build(slow, lambda _: kiln.redis.kill9(), back)


def test_postgresql_dies_as_in_a_power_cut(slow):
    kiln = slow[0]
    crash_during_a_build(slow, lambda _: kiln.pg.kill9(), lambda load: kiln.pg.start(), excused=True, builds_again=False)


def test_everything_dies_at_once(slow):
    kiln = slow[0]

    def crash(_):
        for proc in kiln.procs.values():
            proc.kill9()
        kiln.redis.kill9()
        kiln.pg.kill9()
        kiln.redis.start()
        kiln.pg.start()

    crash_during_a_build(slow, crash, excused=True, builds_again=False)


def goes_on_later(kiln, package, run, held):
    """The held builder's attempt is lost and another one's counts; then it goes on, and neither the record nor the folders change."""
    builder, generation, token, _ = held
    try:
        ended = kiln.wait_run(run["id"], package, seconds=60)
        newer = attempt_of_slow(kiln, run["id"])
        assert newer[0] != builder and newer[1] != generation and newer[2] > token and newer[3] == "succeeded", newer
    finally:
        kiln.procs[builder].signal(signal.SIGCONT)
    said = wait_for(lambda: [line for line in (kiln.procs[builder].out() + kiln.procs[builder].err()).splitlines()
                             if "job.end" in line and f"token={token} " in line], 30, "the held builder ends its attempt")
    (entry,) = [e for e in ended["manifest"]["entries"].values() if e["sourceName"] == "slow"]
    assert entry["materializedTableId"] == newer[1]
    assert kiln.store("SELECT state FROM kiln.attempt WHERE token = %s", (token,)) == [("lost",)]
    assert kiln.store("SELECT count(*) FROM kiln.generation WHERE id = %s", (generation,)) == [(0,)]
    wait_for(lambda: generation not in kiln.generations(), 20, "the late result's folder goes")
    assert kiln.materialize(package)["metadata"]["sourcesReused"] == 3
    nothing_is_left(kiln, package)
    return said


def test_a_builder_held_back_in_its_build_is_not_heard_later(slow):
    kiln, package = slow
    run = kiln.create_run(package, forceRefresh=True)
    held = at_work(kiln, run["id"])
    kiln.procs[held[0]].signal(signal.SIGSTOP)
    goes_on_later(kiln, package, run, held)


def test_a_result_that_was_finished_and_reported_too_late_is_refused(slow):
    """Held back after the manifest was written, before FinishJob: the folder is whole, yet it is not recorded and goes."""
    kiln, package = slow
    for _ in range(5):
        run = kiln.create_run(package, forceRefresh=True)
        held = at_work(kiln, run["id"])
        manifest = kiln.generations()[held[1]] / "manifest.json"
        end = time.monotonic() + 30
        while not manifest.exists() and time.monotonic() < end:
            pass  # a wait with pauses comes too late
        kiln.procs[held[0]].signal(signal.SIGSTOP)
        if attempt_of_slow(kiln, run["id"])[3] == "leased":
            break
        kiln.procs[held[0]].signal(signal.SIGCONT)  # its report was faster
        kiln.wait_run(run["id"], package)
    else:
        pytest.skip("the report was faster than the signal five times")
    with load_on(kiln, package) as load:
        goes_on_later(kiln, package, run, held)
        load.goes_on()
    assert load.excused == 0 and set(load.served) == {"baked"}, (load.served, load.last_excuse)


def test_random_parts_die_at_random_moments(kiln, name):
    """One package, N forced runs; in each a part dies at a moment within or after the time a run takes."""
    rounds = int(os.environ.get("KILN_CRASH_ROUNDS", "3"))
    seed = int(os.environ.get("KILN_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print(f"KILN_CRASH_SEED={seed} KILN_CRASH_ROUNDS={rounds}", flush=True)
    rand = random.Random(seed)
    baked(kiln, name, QUICK)
    began = time.monotonic()
    kiln.materialize(name, forceRefresh=True)
    takes = time.monotonic() - began
    victims = {"builder-1": 3, "builder-2": 3, "builders": 1, "planner": 3, "gateway-1": 2, "gateway-2": 2, "compilers": 1, "redis": 1, "postgresql": 1}

    def die(victim):
        if victim == "compilers":
            kill_compiler_children(kiln)
        elif victim == "builders":
            for b in kiln.builders:
                b.kill9()
        elif victim == "redis":
            kiln.redis.kill9()
            kiln.redis.start()
        elif victim == "postgresql":
            kiln.pg.kill9()
            kiln.pg.start()
        else:
            kiln.procs[victim].kill9()

    with kiln.supervised(), load_on(kiln, name, threads=2) as load:
        for i in range(rounds):
            victim, after = rand.choices(list(victims), list(victims.values()))[0], rand.uniform(0, 1.2 * takes)
            what = f"round {i} of seed {seed}: {victim} dies after {after:.3f} s of about {takes:.3f} s"
            try:
                run = kiln.create_run(name, forceRefresh=True)
                time.sleep(after)  # the moment is the test: nothing to poll for
                die(victim)
                kiln.wait_ready(seconds=40)
                ended = kiln.wait_run(run["id"], name, seconds=60)
                assert ended["metadata"]["sourcesFailed"] == 0, ended["metadata"]
                load.goes_on(2, 30)
            except Exception as e:
                raise AssertionError(f"{what}: {e}") from e
            assert not load.wrong, f"{what}: {load.wrong[:2]}"
    nothing_is_left(kiln, name)
