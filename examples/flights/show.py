"""The show of make demo: one question live and from a table, over HTTP as any client would. show.py KILN URL 1|2|hints"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.parse
from http.client import HTTPConnection

HERE = pathlib.Path(__file__).resolve().parent
KILN, URL, ACT = sys.argv[1:4]
ENVIRONMENT, MODEL, QUERY = "demo", "marts.malloy", "run: route_month -> by_month"
DUCKDB, POSTGRES = "flights", "flights_pg"  # the packages
LIVE_TIMES, BAKED_TIMES = 3, 25
BOLD, PLAIN = ("\033[1m", "\033[0m") if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" else ("", "")


class Gateway:
    """One connection that is kept open, as a client under load would keep it."""

    def __init__(self):
        self.http = HTTPConnection(urllib.parse.urlsplit(URL).netloc, timeout=120)

    def call(self, method, path, body, **headers):
        """(status, text, headers) of a call below the environment."""
        self.http.request(method, f"/api/v0/environments/{ENVIRONMENT}{path}", json.dumps(body), {"Content-Type": "application/json", **headers})
        response = self.http.getresponse()
        return response.status, response.read(), response.getheaders()

    def ask(self, package, live, compact=True):
        """One query. Gives (milliseconds, the answer as it came, its Kiln headers)."""
        body = {"query": QUERY, "compactJson": compact}
        began = time.perf_counter()
        status, text, headers = self.call("POST", f"/packages/{package}/models/{MODEL}/query", body, **({"Kiln-Mode": "live"} if live else {}))
        took = (time.perf_counter() - began) * 1000
        if status != 200:
            sys.exit(f"demo: the query was answered {status}: {text.decode(errors='replace')}")
        return took, json.loads(text), {k: v for k, v in headers if k.lower().startswith("kiln-")}

    def rows(self, package, live):
        """(rows, the answer, its Kiln headers)"""
        _, answer, headers = self.ask(package, live)
        if answer["decision"]["served"] != ("live" if live else "baked"):
            sys.exit(f"demo: the answer was not served {'live' if live else 'from the table'}: {answer['decision']}")
        return json.loads(answer["result"]), answer, headers

    def median(self, package, live, times, at_most=2.0):
        """(median of so many answers in ms, how many): fewer than `times` when they take more than at_most seconds together."""
        took, end = [], time.monotonic() + at_most
        while len(took) < times and (not took or time.monotonic() < end):
            took.append(self.ask(package, live)[0])
        return statistics.median(took), len(took)


def head(text):
    print(f"\n{BOLD}{text}{PLAIN}")
    print("-" * len(text), flush=True)


def show_command(*words):
    print("\n  $ kiln " + " ".join(f"'{w}'" if " " in w else w for w in words), flush=True)


def run(*words):
    """Runs a verb of kiln and shows what it prints, indented."""
    show_command(*words)
    done = subprocess.run([KILN, *words, "--url", URL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    for line in done.stdout.splitlines():
        print("    " + line)
    if done.returncode:
        sys.exit(f"demo: kiln {words[0]} ended with {done.returncode}")


def table(rows, most=6):
    columns = list(rows[0])
    cells = [[f"{v:,.4f}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v) for v in row.values()] for row in rows[:most]]
    widths = [max(len(x) for x in column) for column in zip(columns, *cells)]
    for line in [columns, *cells]:
        print("    " + "  ".join(x.rjust(w) for x, w in zip(line, widths)))
    if len(rows) > most:
        print(f"    ... {len(rows)} rows in all")


def time_of(ms):
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms"


def measured(ms, n):
    return f"{time_of(ms)}, the query compiled before" + (f" (median of {n})" if n > 1 else "")


def show_receipt(answer, headers):
    print("\n  The receipt that came with it:")
    for name, value in headers.items():
        print(f"    {name}: {value}")
    for source in answer["decision"].get("sources", []):
        print(f"    {source.get('name')}: {source.get('served')}")
        for key, label in (("table", "table"), ("generation", "generation"), ("buildId", "build id"), ("dataAsOf", "data as of"), ("reason", "reason")):
            if source.get(key):
                print(f"        {label:<12}{source[key]}")


def show_sql(gateway, package):
    print("\n  The SQL that ran:")
    sql = json.loads(gateway.ask(package, live=False, compact=False)[1]["result"])["sql"]
    lines = sql.strip().splitlines()
    for line in lines[:14]:
        print("    " + line)
    if len(lines) > 14:
        print(f"    ... {len(lines)} lines in all")


def show_speed(rows, live_ms, baked_ms, more=()):
    for label, value in [("answers equal", f"yes, all {len(rows)} rows"), *more, ("live", time_of(live_ms)), ("baked", time_of(baked_ms)),
                         ("speed-up", f"{live_ms / baked_ms:,.0f} times")]:
        print(f"    {label:<16}{value}")
    sys.stdout.flush()


def must_be_equal(a, b, what):
    if a != b:
        differ = next((pair for pair in zip(a, b) if pair[0] != pair[1]), (f"{len(a)} rows", f"{len(b)} rows"))
        sys.exit(f"demo: {what} differ: {differ[0]} and {differ[1]}")


def act_1(gateway):
    print(f"\n{BOLD}Act 1. Three million flights, one question, no warehouse{PLAIN}")
    print("The package reads its own Parquet and CSV files, on the DuckDB that comes with Kiln.")

    head("1. Computed live: every query reads all the flights")
    show_command("query", ENVIRONMENT, DUCKDB, MODEL, QUERY, "--live")
    live_rows, _, _ = gateway.rows(DUCKDB, live=True)
    table(live_rows)
    live_ms, n = gateway.median(DUCKDB, True, LIVE_TIMES)
    print(f"\n    {measured(live_ms, n)}")

    head("2. What a run would build, reuse and refuse")
    run("plan", ENVIRONMENT, DUCKDB)

    head("3. Build it")
    run("materialize", ENVIRONMENT, DUCKDB, "--wait")

    head("4. The same question again")
    show_command("query", ENVIRONMENT, DUCKDB, MODEL, QUERY)
    baked_rows, baked, headers = gateway.rows(DUCKDB, live=False)
    first = time.time() - float(os.environ.get("KILN_DEMO_BEGAN", "nan"))
    table(baked_rows)
    baked_ms, n = gateway.median(DUCKDB, False, BAKED_TIMES)
    print(f"\n    {measured(baked_ms, n)}")
    show_receipt(baked, headers)
    show_sql(gateway, DUCKDB)

    head("5. What that means")
    must_be_equal(live_rows, baked_rows, "the live and the baked answer")
    show_speed(baked_rows, live_ms, baked_ms, [("first baked", f"{first:.1f} s after the demo was started")])


def connect(gateway):
    """The connection to the demo's PostgreSQL, over REST."""
    body = {"name": "pg", "type": "postgres", "postgresConnection": {"connectionString": os.environ["KILN_DEMO_PG"]}}
    print(f"\n  $ curl -X POST {URL}/api/v0/environments/{ENVIRONMENT}/connections/pg -H 'Content-Type: application/json' \\")
    print("      -d '{\"name\": \"pg\", \"type\": \"postgres\", \"postgresConnection\": {\"connectionString\": \"...\"}}'")
    status, text, _ = gateway.call("POST", "/connections/pg", body)
    if status == 409:
        print("    (it is there, from an earlier demo)")
    elif status not in (200, 201):
        sys.exit(f"demo: the connection was answered {status}: {text.decode(errors='replace')}")


def act_2(gateway):
    print(f"\n{BOLD}Act 2. The same models over PostgreSQL, published to the Kiln that runs{PLAIN}")
    print("Only models/tables.malloy is another one; tables are built in PostgreSQL itself, in its schema marts.")

    head("1. Connect and publish")
    connect(gateway)
    run("publish", ENVIRONMENT, POSTGRES, "--location", str(HERE / "postgres/package"))

    head("2. Ask, build, ask again")
    show_command("query", ENVIRONMENT, POSTGRES, MODEL, QUERY, "--live")
    live_rows, _, _ = gateway.rows(POSTGRES, live=True)
    live_ms, n = gateway.median(POSTGRES, True, LIVE_TIMES)
    print(f"    {measured(live_ms, n)}")
    run("materialize", ENVIRONMENT, POSTGRES, "--wait")
    show_command("query", ENVIRONMENT, POSTGRES, MODEL, QUERY)
    baked_rows, baked, headers = gateway.rows(POSTGRES, live=False)
    baked_ms, n = gateway.median(POSTGRES, False, BAKED_TIMES)
    print(f"    {measured(baked_ms, n)}")
    show_receipt(baked, headers)

    head("3. What that means")
    must_be_equal(live_rows, baked_rows, "the live and the baked answer")
    must_be_equal(baked_rows, gateway.rows(DUCKDB, live=False)[0], "PostgreSQL's answer and DuckDB's")
    show_speed(baked_rows, live_ms, baked_ms, [("as on DuckDB", "yes, every value")])


def hints(_):
    at = "" if URL.endswith(":4000") else f" --url {URL}"
    shown = os.path.relpath(KILN)
    print(f"\nServing at {URL} until Ctrl-C, which ends everything. From another terminal, for instance:\n")
    for words in (f"status{at}", f"explain demo flights marts.malloy 'run: route_month -> state_story'{at}",
                  f"explain demo flights marts.malloy 'run: route_month_live -> {{ aggregate: live_flights }}'{at}", f"runs demo flights{at}",
                  f"materialize demo flights --force-refresh{at}"):
        print(f"  {shown} {words}")
    print(f"  curl -s {URL}/api/v0/environments/demo/packages/flights", flush=True)


if __name__ == "__main__":
    try:
        {"1": act_1, "2": act_2, "hints": hints}[ACT](Gateway())
    except OSError as e:
        sys.exit(f"demo: no answer from {URL}: {e}")
