"""A whole Kiln for tests: its own PostgreSQL (run store `kiln`, warehouse `wh`) and Redis, a planner, builders and gateways as separate
processes that talk over unix sockets; HTTP on ports of 127.0.0.1.

    with Trio(packages={"shop": SHOP}) as kiln:
        run = kiln.materialize("shop")
        answer = kiln.query("run: daily -> { aggregate: total }")
        assert answer.served == "baked"
"""
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import threading

import requests

from archives import with_manifest
from servers import PgServer, Proc, RedisServer, binary, build_dir, descendants, free_port, process_gone, short_dir, wait_for
from webhooks import WEBHOOK_SECRET, sign_standard

ENV = "test"
ENDS = ("MANIFEST_FILE_READY", "FAILED", "CANCELLED")

# Small tables whose every sum is known. gate(n) waits for as long as someone holds the advisory lock n (Trio.gate).
SEED = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text NOT NULL);
INSERT INTO customers SELECT n, 'customer ' || n, (ARRAY['north','east','south','west'])[n % 4 + 1] FROM generate_series(1, 200) n;
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int NOT NULL, sold_on date NOT NULL, amount numeric(12,2) NOT NULL, qty int NOT NULL);
INSERT INTO orders SELECT n, n % 200 + 1, date '2024-01-01' + n % 90, (n % 1000) * 0.25, n % 7 FROM generate_series(1, 6000) n;
CREATE SCHEMA marts;
CREATE FUNCTION gate(n int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN PERFORM pg_advisory_lock_shared(n); PERFORM pg_advisory_unlock_shared(n); RETURN n; END $$;
ANALYZE;
"""
NEVER_SAID = ("bug: ", "AddressSanitizer", "LeakSanitizer", "runtime error:")
ORDERS, TOTAL = 6000, 749250.00  # count and sum(amount) of orders

SHOP_MODEL = """##! experimental.persistence
source: customers is wh.table('public.customers') extend { primary_key: id }
source: orders is wh.table('public.orders') extend {
  join_one: customers with customer_id
  measure: order_count is count()
  measure: revenue is amount.sum()
}
#@ persist name="marts.daily"
source: daily is orders -> {
  group_by: sold_on, region is customers.region
  aggregate: order_count, revenue
} extend {
  measure: orders_n is order_count.sum()
  measure: total is revenue.sum()
  view: by_region is { group_by: region; aggregate: orders_n, total; order_by: region }
}
#@ persist name="marts.regions"
source: regions is daily -> { group_by: region; aggregate: orders_n, total } extend {
  measure: all_orders is orders_n.sum()
}
"""
SHOP = {"shop.malloy": SHOP_MODEL}
BY_REGION = "run: daily -> by_region"


def gated(name, lock, rows=3):
    """Text of a persisted source whose build waits at the gate `lock`."""
    return (f'#@ persist name="marts.{name}"\nsource: {name} is wh.sql("""SELECT g AS n, gate({lock}) AS lock FROM '
            f'generate_series(1, {rows}) g""") extend {{ measure: n_rows is count() }}\n')


class Answer:
    """A query's answer."""

    def __init__(self, response):
        assert response.status_code == 200, f"{response.status_code}: {response.text[:2000]}"
        self.headers = response.headers
        self.body = response.json()
        self.result = json.loads(self.body["result"])
        self.served = self.headers.get("Kiln-Served")
        self.reason = self.headers.get("Kiln-Reason")
        self.decision = self.body.get("decision")

    @property
    def rows(self):
        """Of a compact answer: plain objects."""
        assert isinstance(self.result, list), "rows are of compact answers"
        return self.result

    @property
    def sql(self):
        """Of a full answer."""
        return self.result["sql"]


class Trio:
    def __init__(self, packages=None, builders=1, gateways=1, planners=1, lease="10s", sweep_every="1h", sweep_age=None, secret=WEBHOOK_SECRET, env=None,
                 planner_env=None, builder_env=None, gateway_env=None, pg_tcp=False, connections=None, config_text=None, seed=SEED,
                 wait_ready=30):
        """packages: name -> {path: text}, all in one environment. connections: instead of the one named wh. config_text: the whole
        publisher.config.json instead. *_env: of one service (a value of None takes a variable away). wait_ready: seconds; 0: not at all."""
        self.dir = short_dir("kt-trio-")
        self.procs, self.ports, self._supervised, self._closing = {}, {}, set(), False
        self._starting, self._stopped = threading.Lock(), threading.Event()
        self.pg = self.redis = None
        self._packages = dict(packages or {})
        self.secret = secret
        self._gates = {}
        self.session = requests.Session()
        try:
            self.pg = PgServer(tcp=pg_tcp)
            self.pg.create_db("kiln")
            self.pg.create_db("wh")
            if seed:
                self.wh(seed)
            self.redis = RedisServer()
            for name, files in self._packages.items():
                self.write_package(name, files)
            self.config = self.dir / "publisher.config.json"
            self.config.write_text(config_text if config_text is not None else self._config(connections))
            calls = [f"ipc://{self.dir}/call{'' if i == 1 else i}" for i in range(1, planners + 1)]
            self.env = {"KILN_SECRET_KEY": secrets.token_hex(32), "KILN_BUS_KEY": secrets.token_hex(32), "KILN_STORE_URL": self.pg.url("kiln"),
                        "KILN_BUS_CALL": ",".join(calls), "KILN_BUS_EVENT": f"ipc://{self.dir}/event",
                        "KILN_REDIS": self.redis.address, "KILN_COMPILER": str(build_dir() / "bin/kiln-compiler.js"),
                        "KILN_LOG_FORMAT": "text", "KILN_LEASE": lease, "KILN_SWEEP_EVERY": sweep_every, "KILN_SWEEP_AGE": sweep_age,
                        "KILN_WEBHOOK_SECRET": secret, "http_proxy": None, **(env or {})}
            self.logs = self.dir / "log"
            for made in ("log", "packages.store", "generations"):
                (self.dir / made).mkdir()
            for i, call in enumerate(calls, 1):
                name = "planner" if i == 1 else f"planner-{i}"
                self._add(name, ["kiln-planner", "--instance", f"planner-{i}", "--webhook-listen", f"127.0.0.1:{self._port(name)}",
                                 "--publisher-config", self.config, "--package-store", self.dir / "packages.store", "--bus-call", call,
                                 "--bus-event", f"ipc://{self.dir}/event{'' if i == 1 else i}"], planner_env)
            for i in range(1, builders + 1):
                self._add(f"builder-{i}", ["kiln-builder", "--instance", f"builder-{i}", "--health-listen",
                                           f"127.0.0.1:{self._port(f'builder-{i}')}", "--package-store", self.dir / "packages.store",
                                           "--generation-root", self.dir / "generations", "--state-dir", self.dir / "builders"], builder_env)
            for i in range(1, gateways + 1):
                self._add(f"gateway-{i}", ["kiln-gateway", "--instance", f"gateway-{i}", "--listen", f"127.0.0.1:{self._port(f'gateway-{i}')}",
                                           "--state-dir", self.dir / f"gateway-{i}", "--package-store", self.dir / "packages.store",
                                           "--generation-root", self.dir / "generations"], gateway_env)
            self._supervisor = threading.Thread(target=self._supervise, daemon=True)
            self._supervisor.start()
            if wait_ready:
                self.wait_ready(seconds=wait_ready)
        except BaseException:
            self.close()
            raise

    # ---- parts ----
    def _port(self, name):
        return self.ports.setdefault(name, free_port())

    def _add(self, name, argv, env):
        proc = Proc(name, [binary(argv[0]), *argv[1:]], env={**self.env, **(env or {})}, cwd=self.dir, logs=self.logs)
        self.procs[name] = proc
        return proc

    @property
    def planners(self):
        """Names of the planners."""
        return [n for n in self.procs if n.startswith("planner")]

    @property
    def builders(self):
        return [p for n, p in self.procs.items() if n.startswith("builder")]

    @property
    def gateways(self):
        return [p for n, p in self.procs.items() if n.startswith("gateway")]

    def url(self, name="gateway-1"):
        return f"http://127.0.0.1:{self.ports[name]}"

    def is_ready(self, name):
        """True when the service's /readyz says so; a service that ended unasked fails at once."""
        proc = self.procs[name]
        if not proc.alive and name not in self._supervised:
            raise RuntimeError(f"{name} ended with {proc.code}: {proc.last_words()}")
        try:
            return self.session.get(self.url(name) + "/readyz", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def wait_ready(self, *names, seconds=30):
        """All, or those named. Of several planners one serves and the others stand by: any one will do unless one is named."""
        if not names:
            wait_for(self.leader, seconds, "a planner is ready")
        for name in names or [n for n in self.procs if n not in self.planners]:
            wait_for(lambda n=name: self.is_ready(n), seconds, f"{name} is ready")

    def leader(self):
        """Name of the planner that serves, or None."""
        return next((n for n in self.planners if self.is_ready(n)), None)

    def stop_all(self):
        """SIGTERM to every service, gateways first; returns the exit codes."""
        return {name: self.procs[name].stop() for name in reversed(list(self.procs))}

    def start_all(self):
        for proc in self.procs.values():
            proc.start()
        self.wait_ready()

    @contextlib.contextmanager
    def supervised(self, *names):
        """What ends is started again within, as kiln up does it: a planner without its run store ends on purpose."""
        self._supervised |= set(names or self.procs)
        try:
            yield
        finally:
            self._supervised.clear()
            for proc in self.procs.values():
                with self._starting:
                    if not proc.alive:
                        proc.start()

    def _supervise(self):
        # One thread, which outlives what it starts: the kernel sends the death signal when the thread ends, not the process.
        while not self._stopped.wait(0.1):  # poll
            for name in list(self._supervised):
                with self._starting:
                    if not self.procs[name].alive and name in self._supervised and not self._closing:
                        self.procs[name].start()

    def compiler_children(self, name):
        """Process ids of a service's compiler children."""
        found = []
        for pid in descendants(self.procs[name].pid):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"kiln-compiler.js" in words:
                found.append(pid)
        return found

    def last_words(self, n=3000):
        return "\n".join(f"--- {name}\n{p.last_words(n)}" for name, p in self.procs.items())

    # ---- packages and configuration ----
    def generations(self):
        """Folders of DuckDB results: {generation: path}, of all packages."""
        return {p.name: p for p in (self.dir / "generations").glob("*/*") if p.is_dir()}

    def write_package(self, name, files):
        """Writes the package's directory anew; returns its path."""
        where = self.dir / "packages" / name
        shutil.rmtree(where, ignore_errors=True)
        for path, text in with_manifest(name, files).items():
            file = where / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return where

    def _config(self, connections):
        wh = {"name": "wh", "type": "postgres", "postgresConnection": {"connectionString": self.pg.url("wh")}}
        packages = [{"name": n, "location": f"./packages/{n}"} for n in self._packages]
        return json.dumps({"environments": [{"name": ENV, "packages": packages, "connections": connections or [wh]}]})

    # ---- databases ----
    def wh(self, sql, args=None):
        return self.pg.rows(sql, args, "wh")

    def store(self, sql, args=None):
        return self.pg.rows(sql, args, "kiln")

    def table_exists(self, name):
        return self.wh("SELECT to_regclass(%s) IS NOT NULL", (name,))[0][0]

    def staging_tables(self):
        return [r[0] for r in self.wh("SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE '\\_kiln\\_%'")]

    def fence(self, target):
        """The fence row of a target of schema marts, as a dict."""
        rows = self.wh("SELECT row_to_json(f) FROM marts.kiln_fence f WHERE target = %s", (target,))
        return rows[0][0] if rows else None

    @contextlib.contextmanager
    def gate(self, n):
        """Holds gate(n) closed within; yields a function that tells how many statements wait at it."""
        conn = self.pg.connect("wh")
        with conn.cursor() as c:
            c.execute("SELECT pg_advisory_lock(%s)", (n,))

        def waiting():
            return self.wh("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted", (n,))[0][0]

        try:
            yield waiting
        finally:
            conn.close()

    # ---- REST ----
    def call(self, method, path, gateway="gateway-1", **kw):
        """path: below /api/v0, or whole when it starts with a slash."""
        where = path if path.startswith("/") else f"/api/v0/{path}"
        kw.setdefault("timeout", 60)
        return self.session.request(method, self.url(gateway) + where, **kw)

    def json(self, method, path, status=200, **kw):
        r = self.call(method, path, **kw)
        assert r.status_code == status, f"{method} {path}: {r.status_code} {r.text[:2000]}"
        return r.json() if r.content else None

    def package_path(self, package="shop", rest=""):
        return f"environments/{ENV}/packages/{package}{rest}"

    def package(self, package="shop", **kw):
        return self.json("GET", self.package_path(package), **kw)

    def reload(self, package="shop", status=200, **kw):
        return self.json("GET", self.package_path(package, "?reload=true"), status=status, **kw)

    def binding(self, package="shop", **kw):
        """(manifestBindingStatus, manifestEntryCount)"""
        p = self.package(package, **kw)
        return p["manifestBindingStatus"], p["manifestEntryCount"]

    def wait_bound(self, package="shop", entries=None, seconds=10, **kw):
        def bound():
            status, n = self.binding(package, **kw)
            assert status == "bound" and (entries is None or n == entries), f"{status} with {n} entries"
            return True

        return wait_for(bound, seconds, f"{package} is bound")

    def create_run(self, package="shop", status=201, **body):
        return self.json("POST", self.package_path(package, "/materializations"), status=status, json=body)

    def run(self, run_id, package="shop", **kw):
        return self.json("GET", self.package_path(package, f"/materializations/{run_id}"), **kw)

    def runs(self, package="shop"):
        return self.json("GET", self.package_path(package, "/materializations"))

    def wait_run(self, run_id, package="shop", seconds=60, status="MANIFEST_FILE_READY"):
        def ended():
            run = self.run(run_id, package)
            return run if run["status"] in ENDS else None

        run = wait_for(ended, seconds, f"run {run_id} has ended", every=0.05)
        assert status is None or run["status"] == status, f"run {run_id}: {run['status']}: {run['error']} {json.dumps(run['manifest'])[:1500]}"
        return run

    def materialize(self, package="shop", status="MANIFEST_FILE_READY", seconds=60, **body):
        """Creates a run and waits for its end."""
        return self.wait_run(self.create_run(package, **body)["id"], package, seconds, status)

    def stop_run(self, run_id, package="shop", status=200):
        return self.json("POST", self.package_path(package, f"/materializations/{run_id}?action=stop"), status=status)

    def delete_run(self, run_id, package="shop", drop=False, status=204):
        rest = f"/materializations/{run_id}" + ("?dropTables=true" if drop else "")
        return self.json("DELETE", self.package_path(package, rest), status=status)

    def post_query(self, query=None, model="shop.malloy", package="shop", compact=True, headers=None, gateway="gateway-1", timeout=60, **body):
        if query is not None:
            body["query"] = query
        return self.call("POST", self.package_path(package, f"/models/{model}/query"), gateway, json={"compactJson": compact, **body},
                         headers=headers, timeout=timeout)

    def query(self, query=None, **kw):
        return Answer(self.post_query(query, **kw))

    def sql_of(self, query=None, **kw):
        return self.query(query, compact=False, **kw).sql

    # ---- webhooks ----
    def post_hook(self, body, headers=None, params=None):
        """body: dict or bytes; headers: signed the Standard way when None."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.session.post(self.url("planner") + "/hooks/publish", data=data, params=params, timeout=30,
                                 headers=sign_standard(data, self.secret) if headers is None else headers)

    def hook(self, package="shop", location=None, **more):
        """A signed publish webhook; returns the event's id."""
        r = self.post_hook({"environment": ENV, "package": package, "location": str(location or f"./packages/{package}"), **more})
        assert r.status_code == 202, f"{r.status_code}: {r.text}"
        return r.json()["id"]

    def event(self, event_id):
        r = self.session.get(f"{self.url('planner')}/hooks/events/{event_id}", timeout=30)
        assert r.status_code == 200, f"{r.status_code}: {r.text}"
        return r.json()

    def wait_event(self, event_id, state="done", seconds=60):
        def there():
            event = self.event(event_id)
            if event["state"] != state and event["state"] in ("done", "failed"):
                raise RuntimeError(f"event ended {event}")
            return event if event["state"] == state else None

        return wait_for(there, seconds, f"event {event_id} is {state}", every=0.05)

    def close(self):
        """Ends everything; returns what was not in order: a part that did not drain, a broken promise or a sanitizer's finding in its log."""
        with self._starting:
            self._closing = True
        self._supervised.clear()
        for proc in self.procs.values():
            with contextlib.suppress(OSError, ProcessLookupError):
                proc.signal(signal.SIGCONT)  # one may still be held back
        problems = []
        for name, proc in self.procs.items():
            children = descendants(proc.pid) if proc.alive else []
            was_alive = proc.alive
            code = proc.stop(20)
            if was_alive and code != 0:
                problems.append(f"{name} ended with {code} on SIGTERM: {proc.last_words(9000 if code < 0 else 600)}")
            problems += [f"{name} said: {line}" for line in (proc.out() + proc.err()).splitlines() if any(w in line for w in NEVER_SAID)][:3]
            proc.close()
            for pid in children:
                if not process_gone(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        self._stopped.set()
        if hasattr(self, "_supervisor"):
            self._supervisor.join()
        for server in (self.redis, self.pg):
            if server:
                server.close()
        if not os.environ.get("KILN_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)
        return problems

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        problems = self.close()
        if kind is None:
            assert not problems, "\n".join(problems)
