"""What is measured. Every function does one round and adds its samples to a Samples; nothing is judged here."""
import collections
import json
import time

from load import pgbench, plain_script, receipt_script, wrk
from rig import QUICK, Kiln, Trio, flights_package, log_events, median, ms_since, rss_kb, trivial_package, wait_for, write_package

SMALL = "run: state_summary -> { aggregate: all_flights }"
LARGER = "run: route_month -> by_month"
CONNECTIONS = (1, 8, 32)
HUNDRED = 5 if QUICK else 100


class Samples:
    """Named lists of numbers; what is asked for is their median."""

    def __init__(self):
        self._lists = collections.defaultdict(list)

    def add(self, name, value):
        self._lists[name].append(value)

    def __getitem__(self, name):
        return median(self._lists[name])

    def worst(self, name):
        return max(self._lists[name])


def packages():
    return {"flights": flights_package("flights.flights", ""), "some": flights_package("flights.some", "_some"),
            "one": trivial_package("one", 1), "many": trivial_package("many", HUNDRED), "hook": trivial_package("hook", 1)}


# ---- builds ----
def sql_of(kiln, package, source):
    """The statement that the newest job of a package's source built."""
    return kiln.store("SELECT j.spec->>'sql' FROM kiln.job j JOIN kiln.unit u ON u.id = j.unit "
                      f"WHERE j.kind = 'build' AND u.name = '{package}' AND j.spec->>'sourceName' = '{source}' ORDER BY j.id DESC LIMIT 1")[0][0]


def build(s, kiln, warehouse, package, sql):
    """route_month built by the engine alone, then by Kiln."""
    s.add(f"build.{package}.reference", warehouse.ctas(sql))
    ended = len(kiln.log("job.end"))
    kiln.materialize(package, every=0.01, forceRefresh=True, sourceNames=["route_month"])
    wait_for(lambda: len(kiln.log("job.end")) > ended, 5, "the builder has said that its job ended")
    s.add(f"build.{package}", float(kiln.log("job.end")[-1]["took_ms"]))


def trivial(s, kiln, warehouse):
    for _ in range(1 if QUICK else 8):
        s.add("noop", kiln.materialize("one")[0])
        s.add("trivial.reference", warehouse.ctas("SELECT 1 AS n, 0 AS i"))
        s.add("trivial", kiln.materialize("one", forceRefresh=True)[0])


def many(s, kiln, warehouse):
    start = time.perf_counter()
    for i in range(HUNDRED):
        warehouse.ctas(f"SELECT 1 AS n, {i} AS i")
    s.add("many.reference", ms_since(start))
    s.add("many", kiln.materialize("many", every=0.02, forceRefresh=True)[0])


# ---- publish to first build ----
def publish(s, kiln, value):
    """A webhook with a changed package: from its acceptance, and from the end of its compile, to the start of the first build."""
    write_package(kiln.dir / "hook", trivial_package("hook", 1, value))
    seen = len(kiln.log("job.start", source="hook_0"))
    sent = time.time() * 1000
    event = kiln.publish("hook")
    wait_for(lambda: len(kiln.log("job.start", source="hook_0")) > seen, 30, "the publish's first build has started", every=0.01)
    started = kiln.log("job.start", source="hook_0")[-1]["at"]
    wait_for(lambda: kiln.event(event)["state"] == "done", 30, "the event is done", every=0.01)
    s.add("publish", started - sent)
    s.add("publish.compiled", started - kiln.log("package.loaded", package="hook")[-1]["at"])


# ---- queries ----
class Question:
    def __init__(self, kiln, name, package, text, table):
        self.name, self.package, self.text = name, package, text
        sql = json.loads(kiln.query(package, text, compact=False).json()["result"])["sql"]
        self.plain, self.receipt = plain_script(sql), receipt_script(sql, "marts", table)
        answer = kiln.query(package, text)
        assert answer.headers["Kiln-Served"] == "baked", answer.headers


def repeated(s, kiln, warehouse, q):
    for name, load in (("plain", pgbench(warehouse.url, q.plain, 1)), ("kiln", wrk(kiln, q.package, "marts.malloy", q.text, 1)),
                       ("receipt", pgbench(warehouse.url, q.receipt, 1))):
        s.add(f"query.{q.name}.{name}", load.p50)


def throughput(s, kiln, warehouse, q):
    for n in CONNECTIONS:
        load = wrk(kiln, q.package, "marts.malloy", q.text, n)
        s.add(f"rate.{n}", load.rate)
        s.add(f"rate.{n}.cpu", load.cpu)
        s.add(f"rate.{n}.p99", load.p99)
        s.add(f"rate.{n}.reference", pgbench(warehouse.url, q.receipt, n).rate)


def compile_cache(s, kiln, number):
    """Texts never asked before, then the same again."""
    for i in range(3 if QUICK else 20):
        text = f"run: route_month -> {{ where: origin != 'x{number}_{i}' group_by: origin_state aggregate: flights_flown, late_share limit: 5 }}"
        for name in ("miss", "hit"):
            start = time.perf_counter()
            kiln.query("some", text)
            s.add(f"cache.{name}", ms_since(start))


# ---- memory, start, binding ----
def memory(s, kiln):
    parts = [p for name in ("kiln-planner", "kiln-builder", "kiln-gateway") for p in kiln.pids(name)]
    s.add("rss", sum(rss_kb(p) for p in parts) / 1024)
    s.add("rss.compilers", sum(rss_kb(p) for p in kiln.pids("node")) / 1024)


def boot(s, warehouse):
    """kiln up on nothing, and once more on what it left."""
    with Kiln(warehouse, {"flights": flights_package("flights.flights", "")}) as kiln:
        s.add("ready.new", kiln.start())
        kiln.stop()
        s.add("ready.existing", kiln.start())


def binding(s, n):
    """With three gateways: from the commit of a run's binding set until the last of them has it in force, n times."""
    gateways = ("gateway-1", "gateway-2", "gateway-3")
    with Trio(packages={"shop": trivial_package("shop", 1, connection="wh")}, gateways=len(gateways), env={"KILN_LOG_FORMAT": "json", "KILN_LOG_LEVEL": "info"}) as trio:
        for _ in range(n):
            trio.materialize("shop", forceRefresh=True)
        commits = [e["at"] for e in log_events(trio.procs["planner"].err(), "run.state", state="binding")]
        applied = [[e["at"] for e in log_events(trio.procs[g].err(), "binder.applied", cause="run")] for g in gateways]
    assert len(commits) == n and all(len(a) == n for a in applied), f"{len(commits)} commits, {[len(a) for a in applied]} applied"
    for i, commit in enumerate(commits):
        s.add("binding", max(a[i] for a in applied) - commit)
