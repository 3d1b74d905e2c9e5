"""Two hundred packages on DuckDB at once: all can be asked, memory stays bounded, and what nobody asks is closed (issue, part 7)."""
import concurrent.futures
import pathlib
import re

import pytest

from servers import is_sanitized, wait_for
from trio import ENV, Trio

N = 200
MODEL = """##! experimental.persistence
source: own is duckdb.table('own.csv') extend { measure: n is count() }
#@ persist name="kept"
source: kept is own -> { group_by: word; aggregate: n }
"""
IDLE_S = 15


@pytest.fixture(scope="module")
def kiln():
    env = {"KILN_DUCKDB_IDLE": f"{IDLE_S}s", "KILN_DUCKDB_MEMORY": "1GB"}
    packages = {f"p{i}": {"shop.malloy": MODEL, "own.csv": f"word\nword {i}\n"} for i in range(N)}
    with Trio(packages=packages, builder_env=env, gateway_env={"KILN_COMPILER_CHILDREN": "1", **env}, wait_ready=180) as trio:
        yield trio


def instances(kiln, name):
    text = kiln.session.get(kiln.url(name) + "/metrics", timeout=30).text
    return int(float(re.search(r"^kiln_duckdb_instances(?:\{.*\})? (\S+)", text, re.M)[1]))


def resident_mb(kiln, name):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{kiln.procs[name].pid}/status").read_text())[1]) // 1024


def test_two_hundred_packages_are_served_and_what_is_idle_is_closed(kiln):
    wait_for(lambda: len(kiln.json("GET", f"environments/{ENV}/packages")) == N, 180, "all packages are loaded", every=0.5)
    wait_for(lambda: instances(kiln, "builder-1") == 0, 60, "the builder has closed what it opened to describe them")
    before = resident_mb(kiln, "gateway-1")
    assert instances(kiln, "gateway-1") == 0
    peak = 0
    for i in range(N):
        answer = kiln.query("run: own -> { select: word }", package=f"p{i}")
        assert answer.rows == [{"word": f"word {i}"}]
        if i % 20 == 19:
            peak = max(peak, instances(kiln, "gateway-1"))
    open_mb = resident_mb(kiln, "gateway-1")
    assert 20 <= peak <= 120, f"{peak} instances are open at once"
    if not is_sanitized():
        assert open_mb - before < 600, f"{before} MB with none, {open_mb} MB with up to {peak} instances"
    wait_for(lambda: instances(kiln, "gateway-1") == 0, 60, "idle instances are closed", every=0.2)

    def ask(i):  # all at once: as many as there are slots, the rest in turn
        r = kiln.post_query("run: own -> { select: word }", package=f"p{i}")
        return r.status_code == 200 and f"word {i}" in r.text

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(N)))
    kiln.materialize("p7")
    answer = kiln.query("run: kept -> { select: word }", package="p7")
    assert (answer.served, answer.rows) == ("baked", [{"word": "word 7"}])
    print(f"gateway: {before} MB, {open_mb} MB with {peak} instances; now {resident_mb(kiln, 'gateway-1')} MB; builder {resident_mb(kiln, 'builder-1')} MB")
