"""A gateway of two worker loops: connections are shared out, what one of them does the others see, and a drain answers whoever was let in
(protocol.md 14)."""
import http.client
import json
import re
import signal

import pytest

from load import Load
from servers import wait_for
from trio import BY_REGION, ENV, ORDERS, Trio, gated
from trio_fixtures import publish, shop

WORKERS, SLOTS = 2, 3
COUNT = "run: daily -> { aggregate: orders_n }"


@pytest.fixture(scope="module")
def two():
    with Trio(gateway_env={"KILN_WORKERS": str(WORKERS), "KILN_WAREHOUSE_SESSIONS": "6", "KILN_COMPILER_CHILDREN": "1",
                           "PUBLISHER_MAX_CONCURRENT_QUERIES": str(SLOTS)}) as trio:
        yield trio


class Client:
    """One connection of its own, kept alive."""

    def __init__(self, trio):
        self.conn = http.client.HTTPConnection("127.0.0.1", trio.ports["gateway-1"], timeout=30)
        self.conn.connect()

    def send(self, method, path, body=None, headers=None):
        where = path if path.startswith("/") else f"/api/v0/{path}"
        self.conn.request(method, where, json.dumps(body) if body is not None else None, {"Content-Type": "application/json", **(headers or {})})

    def receive(self):
        r = self.conn.getresponse()
        self.headers, text = r.headers, r.read().decode()
        self.body = json.loads(text) if text and r.headers.get_content_type() == "application/json" else text
        return r.status

    def call(self, method, path, body=None, headers=None):
        self.send(method, path, body, headers)
        return self.receive()

    def ask(self, trio, package, query, headers=None):
        return self.call("POST", trio.package_path(package, "/models/shop.malloy/query"), {"query": query, "compactJson": True}, headers)

    @property
    def rows(self):
        return json.loads(self.body["result"])

    def close(self):
        self.conn.close()


def per_worker(trio):
    """Connections of each worker, as its metrics say."""
    found = re.findall(r'^kiln_gateway_connections\{worker="(\d+)"\} (\d+)$', trio.call("GET", "/metrics").text, re.M)
    return [int(n) for _, n in sorted(found)]


@pytest.fixture
def clients(two):
    """One connection to each worker."""
    two.session.close()  # its kept connections
    wait_for(lambda: sum(per_worker(two)) <= 1, 10, "only our question is connected")
    two.session.close()
    made = [Client(two) for _ in range(2 * WORKERS)]
    for c in made:
        assert c.call("GET", "/healthz") == 200
    assert all(n >= WORKERS for n in per_worker(two))
    yield made
    for c in made:
        c.close()


def test_connections_are_shared_out(two):
    two.session.close()
    made = [Client(two) for _ in range(20)]
    for c in made:
        assert c.call("GET", "/healthz") == 200
    counts = per_worker(two)
    assert len(counts) == WORKERS and sum(counts) >= 20 and max(counts) - min(counts) <= 1, counts
    for c in made[::2]:  # those of one worker: new ones go there
        c.close()
    wait_for(lambda: sum(per_worker(two)) <= 11, 10, "half of them have ended")
    more = [Client(two) for _ in range(10)]
    counts = wait_for(lambda: (lambda n: n if sum(n) >= 20 else None)(per_worker(two)), 10, "the new ones are counted")
    assert max(counts) - min(counts) <= 1, counts
    for c in made[1::2] + more:
        c.close()


def test_calls_to_the_planner_work_on_every_worker(two, name, clients):
    publish(two, name, shop(name))
    for c in clients:
        assert c.call("GET", "/readyz") == 200 and c.body["ready"]
        assert c.call("GET", "/metrics") == 200 and "kiln_gateway_queries_total" in c.body
        assert c.call("GET", "status") == 200 and c.body["gateway"]["plannerAnswers"]
        assert c.call("GET", f"environments/{ENV}/packages") == 200 and name in [p["name"] for p in c.body]
        assert c.call("GET", two.package_path(name, "/models/shop.malloy")) == 200 and "resource" in c.body
        assert c.call("POST", two.package_path(name, "/models/shop.malloy/compile"), {"source": "run: orders -> { aggregate: order_count }"}) == 200
        assert c.call("POST", f"environments/{ENV}/connections/wh/sqlQuery", {"sqlStatement": "SELECT 1 AS x"}) == 200
        assert c.call("GET", two.package_path("ghost")) == 404
        assert c.call("POST", two.package_path(name, "/materializations"), {}) == 201
        two.wait_run(c.body["id"], name)
        assert c.ask(two, name, COUNT) == 200 and c.rows == [{"orders_n": ORDERS}]
    for c in clients:
        own = f"{name}_{clients.index(c)}"
        two.write_package(own, shop(own))
        assert c.call("POST", f"environments/{ENV}/packages", {"name": own, "location": f"./packages/{own}"}) == 200
        assert all(other.call("GET", two.package_path(own)) == 200 for other in clients)
        assert c.call("DELETE", two.package_path(own)) == 200
        assert [other.call("GET", two.package_path(own)) for other in clients] == [404] * len(clients)


def test_a_new_set_is_in_force_on_every_worker_before_it_counts(two, name, clients):
    publish(two, name, shop(name))
    seen = 0
    for _ in range(4):
        two.materialize(name, forceRefresh=True)
        epochs = []
        for c in clients:
            assert c.ask(two, name, COUNT) == 200 and c.headers["Kiln-Served"] == "baked"
            epochs.append(int(c.headers["Kiln-Epoch"]))
        assert len(set(epochs)) == 1 and epochs[0] > seen, (epochs, seen)
        seen = epochs[0]
        for c in clients:
            assert c.ask(two, name, COUNT, {"Kiln-Min-Epoch": str(seen)}) == 200
    assert clients[0].ask(two, name, COUNT, {"Kiln-Min-Epoch": str(seen + 1)}) == 503


def test_rebinding_under_load_gives_only_right_answers(two, name):
    publish(two, name, shop(name))
    two.materialize(name)
    want = two.query(BY_REGION, package=name).rows
    with Load(two, BY_REGION, want, threads=4, package=name) as load:
        for i in range(6):
            two.materialize(name, forceRefresh=True)
            if i % 3 == 2:
                two.json("GET", two.package_path(name, "?reload=true"))
            load.goes_on(8)
    assert load.served["baked"] > 20, load.served


def test_equal_misses_of_both_workers_are_one_compile(two, name, clients):
    publish(two, name, shop(name))
    before = two.call("GET", "/metrics").text
    query = "run: customers -> { aggregate: n is count() + 0 }"
    path = two.package_path(name, "/models/shop.malloy/query")
    for c in clients[:SLOTS]:
        c.send("POST", path, {"query": query, "compactJson": True})
    assert [c.receive() for c in clients[:SLOTS]] == [200] * SLOTS
    assert [c.rows for c in clients[:SLOTS]] == [[{"n": 200}]] * SLOTS
    misses = [float(re.search(r'kiln_gateway_compile_cache_total\{found="no"\} (\S+)', t).group(1)) for t in (before, two.call("GET", "/metrics").text)]
    assert 1 <= misses[1] - misses[0] <= WORKERS


def test_a_client_that_hangs_up_frees_its_slot(two, name):
    publish(two, name, {"shop.malloy": shop(name)["shop.malloy"] + gated(f"{name}_gated", 41).split("\n", 1)[1]})
    waits = f"run: {name}_gated -> {{ aggregate: n_rows }}"
    path = two.package_path(name, "/models/shop.malloy/query")
    two.materialize(name)
    with two.gate(41) as waiting:
        held = [Client(two) for _ in range(SLOTS)]
        for c in held:
            c.send("POST", path, {"query": waits, "compactJson": True})
        wait_for(lambda: waiting() == SLOTS, 15, "all of them run")
        free = Client(two)
        assert free.ask(two, name, COUNT) == 503 and "PUBLISHER_MAX_CONCURRENT_QUERIES" in free.body["message"]
        for i, c in enumerate(held):
            c.close()
            wait_for(lambda: free.ask(two, name, COUNT) == 200, 15, f"the slot of client {i} is free")
            wait_for(lambda i=i: waiting() == SLOTS - 1 - i, 15, "its statement is cancelled")
        free.close()


def test_a_drain_answers_whoever_was_let_in(two, name):
    publish(two, name, shop(name))
    two.materialize(name)
    want = two.query(BY_REGION, package=name).rows
    gateway = two.procs["gateway-1"]
    path = two.package_path(name, "/models/shop.malloy/query")
    got = []
    with Load(two, BY_REGION, want, threads=3, package=name) as load:
        load.goes_on(10)
        gateway.signal(signal.SIGSTOP)  # now the kernel lets in, and nobody takes
        made = [Client(two) for _ in range(60)]
        for c in made:
            c.send("POST", path, {"query": BY_REGION, "compactJson": True})
        gateway.signal(signal.SIGTERM)
        gateway.signal(signal.SIGCONT)
        got = [c.receive() for c in made]
        assert gateway.wait(10) == 0, gateway.last_words()
        for c in made:
            c.close()
        gateway.start()
        two.wait_ready("gateway-1")
        load.goes_on(10)
    assert set(got) <= {200, 503}, got


def test_one_worker_is_the_main_loop(two, name):
    publish(two, name, shop(name))
    gateway = two.procs["gateway-1"]
    assert gateway.stop() == 0
    gateway.env["KILN_WORKERS"] = "1"
    try:
        gateway.start()
        two.wait_ready("gateway-1")
        two.session.close()
        assert len(per_worker(two)) == 1
        two.materialize(name)
        want = two.query(BY_REGION, package=name).rows
        with Load(two, BY_REGION, want, threads=3, package=name) as load:
            two.materialize(name, forceRefresh=True)
            load.goes_on(10)
        assert gateway.stop() == 0
    finally:
        gateway.env["KILN_WORKERS"] = str(WORKERS)
        if not gateway.alive:
            gateway.start()
        two.wait_ready("gateway-1")
