"""What the bench runs against: a warehouse with the flights, kiln up over it and over packages' own files, its log and its CPU time."""
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import psycopg2
import requests

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from flights import FLIGHTS  # noqa: E402
from servers import PG_BIN, PgServer, Proc, binary, build_dir, descendants, free_port, short_dir, wait_for  # noqa: E402,F401
from trio import ENDS, Trio  # noqa: E402,F401
from webhooks import WEBHOOK_SECRET, sign_standard  # noqa: E402,F401

QUICK = bool(os.environ.get("KILN_BENCH_QUICK"))
DATA = pathlib.Path(os.environ.get("KILN_DEMO_DATA", ROOT / "build/tools/data"))
EXAMPLE = ROOT / "examples/flights/postgres/package"
ENV = "bench"
SOME = 1000 if QUICK else 100_000
_TICKS = os.sysconf("SC_CLK_TCK")

median = statistics.median


def ms_since(start):
    return (time.perf_counter() - start) * 1000


def rounds(n):
    return 1 if QUICK else n


class Warehouse:
    """A PostgreSQL with durable settings and the flights, and the first SOME of them as flights.some."""

    SETTINGS = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "shared_buffers": "256MB", "work_mem": "64MB", "jit": "off",
                "max_wal_size": "4GB", "max_connections": 200}

    def __init__(self):
        """KILN_BENCH_PG: libpq connection string of one that has the flights already."""
        self.url = os.environ.get("KILN_BENCH_PG")
        self.server = None
        if not self.url:
            self.server = PgServer(settings=self.SETTINGS)
            self.url = self.server.create_db("wh")
            self._load()
        self.conn = psycopg2.connect(self.url)
        self.conn.autocommit = True
        if not self.rows("SELECT to_regclass('flights.some')")[0][0]:
            self.run(f"CREATE TABLE flights.some AS SELECT * FROM flights.flights LIMIT {SOME}")
            self.run("CREATE STATISTICS flights.some_months ON date_trunc('month', date), origin, destination FROM flights.some")
            self.run("VACUUM ANALYZE flights.some")

    def _load(self):
        if QUICK:
            with contextlib.closing(psycopg2.connect(self.url)) as conn, conn, conn.cursor() as c:
                c.execute(FLIGHTS)
            return
        subprocess.run([ROOT / "examples/flights/load.sh", self.url, DATA], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def run(self, sql):
        """Milliseconds that the statement took."""
        with self.conn.cursor() as c:
            start = time.perf_counter()
            c.execute(sql)
            return ms_since(start)

    def rows(self, sql):
        with self.conn.cursor() as c:
            c.execute(sql)
            return c.fetchall()

    def ctas(self, sql, name="marts.bench_reference"):
        """Milliseconds of the engine's own CREATE TABLE AS and ANALYZE of a statement."""
        self.run(f"DROP TABLE IF EXISTS {name}")
        return self.run(f"CREATE TABLE {name} AS {sql}") + self.run(f"ANALYZE {name}")

    def close(self):
        self.conn.close()
        if self.server:
            self.server.close()


# ---- packages ----
def flights_package(table, suffix):
    """The example's files over another table of flights, with tables of their own."""
    files = {}
    for path in sorted(EXAMPLE.rglob("*")):
        if path.is_file():
            text = path.read_text()
            text = text.replace("'flights.flights'", f"'{table}'")
            files[str(path.relative_to(EXAMPLE))] = re.sub(r'name="marts\.(\w+)"', rf'name="marts.\1{suffix}"', text)
    return files


def trivial_package(name, n, value=1, connection="pg"):
    """n sources whose tables hold one row."""
    source = "#@ persist name=\"marts.{name}_{i}\"\nsource: {name}_{i} is {wh}.sql(\"\"\"SELECT {value} AS n, {i} AS i\"\"\")\n"
    text = "##! experimental.persistence\n" + "".join(source.format(name=name, i=i, value=value, wh=connection) for i in range(n))
    return {"publisher.json": json.dumps({"name": name, "version": "1.0.0"}), "model.malloy": text}


def write_package(directory, files):
    shutil.rmtree(directory, ignore_errors=True)
    for path, content in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            shutil.copy(content, file)
        else:
            file.write_text(content)


# ---- kiln up ----
def cpu_ms(pid):
    """User and system time of a process and its threads, in milliseconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS


def rss_kb(pid):
    return int(re.search(r"^VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def log_events(text, event, **fields):
    """The lines of an event in a service's log whose fields are so; `at` is added, in milliseconds since the epoch."""
    found = []
    for line in text.splitlines():
        if f'"event":"{event}"' not in line:
            continue
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if all(entry.get(k) == v for k, v in fields.items()):
                when = datetime.datetime.fromisoformat(entry["ts"].replace("Z", "+00:00"))
                found.append({**entry, "at": when.timestamp() * 1000})
    return found


class Kiln:
    """One kiln up. Its server root is kept until close, so that it can be started again on existing stores."""

    def __init__(self, warehouse, packages, env=None):
        self.dir = short_dir("kt-bench-")
        self.dir.chmod(0o755)  # the private PostgreSQL runs as somebody else when we are root
        self.port, self.hook_port = free_port(), free_port()
        for name, files in packages.items():
            write_package(self.dir / name, files)
        self.config = self.dir / "publisher.config.json"
        self.config.write_text(json.dumps({"environments": [{
            "name": ENV, "packages": [{"name": n, "location": f"./{n}"} for n in packages],
            "connections": [{"name": "pg", "type": "postgres", "postgresConnection": {"connectionString": warehouse.url}}]}]}))
        self.session = requests.Session()
        self.session.trust_env = False
        self.proc = Proc("kiln", [binary("kiln"), "up", "--server_root", self.dir, "--config", self.config, "--port", self.port, "--webhook-port",
                                  self.hook_port, "--log-format", "json"],
                         env={"KILN_WEBHOOK_SECRET": WEBHOOK_SECRET, "KILN_SECRET_KEY": None, **(env or {})}, logs=self.dir, start=False)

    def start(self):
        """Milliseconds until it says PUBLISHER_READY."""
        at = self.proc.out_path.stat().st_size if self.proc.out_path.exists() else 0
        start = time.perf_counter()
        self.proc.start()
        wait_for(lambda: "PUBLISHER_READY" in self.proc.out()[at:] or not self.proc.alive, 120, "kiln up is ready", every=0.005)
        assert self.proc.alive, f"kiln up ended: {self.proc.last_words()}"
        return ms_since(start)

    def stop(self):
        self.proc.stop(15)

    def close(self):
        self.stop()
        self.proc.close()
        if not os.environ.get("KILN_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- processes ----
    def pids(self, program):
        """Process ids of a program's processes, kiln-gateway for example."""
        found = []
        for pid in descendants(self.proc.pid):
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == program:
                    found.append(pid)
        return found

    def log(self, event, **fields):
        """Log lines of an event, oldest first; each has `at`, milliseconds since the epoch."""
        return log_events(self.proc.err(), event, **fields)

    def store(self, sql):
        """Rows of a statement on the private run store."""
        words = pathlib.Path(f"/proc/{self.pids('kiln-gateway')[0]}/cmdline").read_bytes().decode().split("\0")
        run = next(w for w in words if w.startswith("--bus-call=")).removeprefix("--bus-call=ipc://").removesuffix("/call")
        with contextlib.closing(psycopg2.connect(f"host={run}/pg user=kiln dbname=kiln")) as conn, conn.cursor() as c:
            c.execute(sql)
            return c.fetchall()

    # ---- REST ----
    def url(self, package, rest=""):
        return f"http://127.0.0.1:{self.port}/api/v0/environments/{ENV}/packages/{package}{rest}"

    def call(self, method, package, rest="", status=200, **kw):
        r = self.session.request(method, self.url(package, rest), timeout=300, **kw)
        assert r.status_code == status, f"{method} {r.url}: {r.status_code} {r.text[:1000]}"
        return r.json() if r.content else None

    def materialize(self, package, every=0.001, **body):
        """Creates a run and sees it through: (milliseconds from the request until it is ready, the run)."""
        start = time.perf_counter()
        run = self.call("POST", package, "/materializations", status=201, json=body)
        while run["status"] not in ENDS:
            time.sleep(every)  # poll
            run = self.call("GET", package, f"/materializations/{run['id']}")
        took = ms_since(start)
        assert run["status"] == "MANIFEST_FILE_READY", f"{run['status']}: {run['error']}"
        return took, run

    def query(self, package, text, model="marts.malloy", compact=True):
        r = self.session.post(self.url(package, f"/models/{model}/query"), json={"query": text, "compactJson": compact}, timeout=300)
        assert r.status_code == 200, f"{r.status_code} {r.text[:1000]}"
        return r

    def publish(self, package):
        """A signed webhook that publishes a package of ours again; the event's id."""
        data = json.dumps({"environment": ENV, "package": package, "location": f"./{package}"}).encode()
        r = self.session.post(f"http://127.0.0.1:{self.hook_port}/hooks/publish", data=data, headers=sign_standard(data), timeout=60)
        assert r.status_code == 202, f"{r.status_code} {r.text}"
        return r.json()["id"]

    def event(self, event_id):
        return self.session.get(f"http://127.0.0.1:{self.hook_port}/hooks/events/{event_id}", timeout=60).json()


