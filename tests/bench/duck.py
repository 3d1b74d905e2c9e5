"""DuckDB: the flights over their own files in Kiln, beside DuckDB alone. What is measured, one round each, and the rows made of it."""
import json
import os
import re
import shutil
import subprocess
import threading
import time

import measure
from flights import duckdb, write_files
from load import SECONDS, Load, one_line, wrk
from report import Row, ms
from rig import DATA, QUICK, ROOT, Kiln, median, ms_since, rss_kb, short_dir, wait_for

PACKAGE = ROOT / "examples/flights/package"
FILES = ("flights-3m.parquet", "airports.csv")
# Malloy Publisher on DuckDB, one repeated query on a small baked table, measured on a machine of this kind: the best figure of each range.
PUBLISHER = {1: 89, 8: 145, 32: 149}


class Data:
    """The data files: the real ones, or in the quick form small ones of its own."""

    def __init__(self):
        self.dir = DATA
        if QUICK:
            self.dir = short_dir("kt-bench-data-")
            self.dir.chmod(0o755)
            write_files(self.dir)

    def package(self):
        texts = {str(p.relative_to(PACKAGE)): p.read_text() for p in sorted(PACKAGE.rglob("*")) if p.is_file()}
        return {**texts, **{name: self.dir / name for name in FILES}}

    def close(self):
        if QUICK:
            shutil.rmtree(self.dir, ignore_errors=True)


class Alone:
    """DuckDB alone: a warm session with the package's files, and with what Kiln built as tables in memory."""

    def __init__(self, kiln):
        self.db = duckdb().connect(config={"threads": os.cpu_count()})
        self.db.execute(f"SET file_search_path = '{kiln.dir / 'duck'}'")
        self.out = kiln.dir / "alone.parquet"
        self.build_sql = {name: measure.sql_of(kiln, "duck", name) for name in ("route_month", "state_summary")}
        for name, sql in self.build_sql.items():
            self.db.execute(f"CREATE TABLE {name} AS {sql}")

    def ctas(self, sql):
        """Milliseconds of DuckDB's own COPY of a statement to Parquet."""
        start = time.perf_counter()
        self.db.execute(f"COPY ({sql}) TO '{self.out}' (FORMAT parquet)")
        return ms_since(start)

    def asks(self, sql, sessions):
        """The statement, prepared, over and over in each of so many sessions."""
        times, end = [], time.perf_counter() + SECONDS

        def ask(db):
            db.execute(f"PREPARE q AS {one_line(sql)}")
            while (start := time.perf_counter()) < end:
                db.execute("EXECUTE q").fetchall()
                times.append(ms_since(start))

        threads = [threading.Thread(target=ask, args=(self.db.cursor(),)) for _ in range(sessions)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        took = time.perf_counter() - start
        times.sort()
        return Load(len(times) / took, median(times), times[int(len(times) * 0.99)])


class Question:
    def __init__(self, kiln, name, text):
        self.name, self.text = name, text
        answer = kiln.query("duck", text)
        assert answer.headers["Kiln-Served"] == "baked", answer.headers
        self.sql = json.loads(kiln.query("duck", text, compact=False).json()["result"])["sql"]


def questions(kiln):
    return Question(kiln, "small", measure.SMALL), Question(kiln, "larger", measure.LARGER)


def one_round(s, kiln, alone, small, larger):
    for q in (small, larger):
        s.add(f"duck.query.{q.name}.alone", alone.asks(q.sql, 1).p50)
        s.add(f"duck.query.{q.name}", wrk(kiln, "duck", "marts.malloy", q.text, 1).p50)
    for n in measure.CONNECTIONS:
        load = wrk(kiln, "duck", "marts.malloy", small.text, n)
        for part, value in (("", load.rate), (".cpu", load.cpu), (".p99", load.p99), (".alone", alone.asks(small.sql, n).rate)):
            s.add(f"duck.rate.{n}{part}", value)
    measure.build(s, kiln, alone, "duck", alone.build_sql["route_month"])


def one_package(s, warehouse, data):
    """A kiln up with this one package: its gateway's memory, and the first query after its DuckDB was closed."""
    with Kiln(warehouse, {"duck": data.package()}, env={"KILN_DUCKDB_IDLE": "500ms"}) as kiln:
        kiln.start()
        kiln.materialize("duck", every=0.01)
        questions(kiln)
        s.add("duck.rss", rss_kb(kiln.pids("kiln-gateway")[0]) / 1024)
        laid_out = kiln.dir / "kiln/gateway/duckdb"
        for _ in range(1 if QUICK else 10):
            assert any(laid_out.rglob(FILES[0])), f"the gateway lays packages out below {laid_out}"
            wait_for(lambda: not any(laid_out.rglob(FILES[0])), 20, "the gateway has closed the package's DuckDB", every=0.05)
            start = time.perf_counter()
            answer = kiln.query("duck", measure.SMALL)
            s.add("duck.idle", ms_since(start))
            assert answer.headers["Kiln-Served"] == "baked", answer.headers


def demo(s, data):
    """The demo's first act in a new directory: from its start to the first answer from a table."""
    place = short_dir("kt-bench-demo-")
    place.chmod(0o755)
    try:
        env = {**os.environ, "KILN_DEMO_ONCE": "1", "KILN_DEMO_ACTS": "1", "KILN_DEMO_DIR": str(place), "KILN_DEMO_DATA": str(data.dir)}
        done = subprocess.run([ROOT / "examples/flights/demo.sh"], env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        s.add("duck.demo", float(re.search(r"first baked +([\d.]+) s", done.stdout)[1]) * 1000)
    finally:
        shutil.rmtree(place, ignore_errors=True)


# ---- rows ----
def query_row(s, name, what):
    kiln, alone = s[f"duck.query.{name}"], s[f"duck.query.{name}.alone"]
    return Row(f"DuckDB: repeated query, p50, {what}", ms(kiln), f"{ms(alone)}, its SQL in a warm session", f"{kiln - alone:+.2f} ms",
               "+15 % + 0.3 ms of its SQL alone", kiln <= 1.15 * alone + 0.3)


def rate_row(s, n):
    rate, cpu, p99, alone = (s[f"duck.rate.{n}{part}"] for part in ("", ".cpu", ".p99", ".alone"))
    best = PUBLISHER[n]
    return Row(f"DuckDB: repeated query, {n} connection{'s' if n > 1 else ''}", f"{rate:,.0f}/s, {cpu:.2f} ms of CPU each, p99 {ms(p99)}",
               f"{alone:,.0f}/s, DuckDB alone (Python, as many sessions); {best}/s, Publisher (measured apart)",
               f"{rate / alone:.2f}, {rate / best:,.0f} times", ">= 10 times Publisher", rate >= 10 * best)


def rows_of(s):
    kiln, copy = s["build.duck"], s["build.duck.reference"]
    return [
        Row(f"DuckDB: build of route_month from {'2 k' if QUICK else '3 M'} rows of Parquet", ms(kiln), f"{ms(copy)}, its own COPY to Parquet",
            f"{kiln / copy:.3f}, {kiln - copy:+.0f} ms", "<= 1.1 times", kiln <= 1.1 * copy),
        query_row(s, "small", "one row"),
        query_row(s, "larger", "some rows"),
        *[rate_row(s, n) for n in measure.CONNECTIONS],
        Row("DuckDB: first query on an idle package", ms(s["duck.idle"]), "-", f"at most {ms(s.worst('duck.idle'))}", "< 50 ms", s["duck.idle"] < 50),
        Row("DuckDB: gateway with one package", f"{s['duck.rss']:.0f} MB", "-", "-", "< 120 MB", s["duck.rss"] < 120),
        Row("demo, from its start to the first baked answer", ms(s["duck.demo"]), "-", "-", "< 10,000 ms", s["duck.demo"] < 10000),
    ]
