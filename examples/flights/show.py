"""The show of make demo: one question live and from a table, over HTTP as any client would. show.py KILN URL"""
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.parse
from http.client import HTTPConnection

KILN, URL = sys.argv[1:3]
ENVIRONMENT, PACKAGE, MODEL, QUERY = "demo", "flights", "marts.malloy", "run: route_month -> by_month"
LIVE_TIMES, BAKED_TIMES = 3, 25
BOLD, PLAIN = ("\033[1m", "\033[0m") if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" else ("", "")


class Gateway:
    """One connection that is kept open, as a client under load would keep it."""

    def __init__(self):
        self.http = HTTPConnection(urllib.parse.urlsplit(URL).netloc, timeout=120)

    def ask(self, live, compact=True):
        """One query. Gives (milliseconds, the answer as it came, its Kiln headers)."""
        path = f"/api/v0/environments/{ENVIRONMENT}/packages/{PACKAGE}/models/{MODEL}/query"
        headers = {"Content-Type": "application/json", **({"Kiln-Mode": "live"} if live else {})}
        body = json.dumps({"query": QUERY, "compactJson": compact})
        began = time.perf_counter()
        self.http.request("POST", path, body, headers)
        response = self.http.getresponse()
        text = response.read()
        took = (time.perf_counter() - began) * 1000
        if response.status != 200:
            sys.exit(f"demo: the query was answered {response.status}: {text.decode(errors='replace')}")
        kept = {k: v for k, v in response.getheaders() if k.lower().startswith("kiln-")}
        return took, json.loads(text), kept

    def median(self, live, times, at_most=5.0):
        """(median of so many answers in ms, how many): fewer than `times` when they take more than at_most seconds together."""
        took, end = [], time.monotonic() + at_most
        while len(took) < times and (not took or time.monotonic() < end):
            took.append(self.ask(live)[0])
        return statistics.median(took), len(took)


def head(text):
    print(f"\n{BOLD}{text}{PLAIN}")
    print("-" * len(text))


def show_command(*words):
    print("\n  $ kiln " + " ".join(f"'{w}'" if " " in w else w for w in words))


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
    for name, value in headers.items():
        print(f"    {name}: {value}")
    for source in answer["decision"].get("sources", []):
        print(f"    {source.get('name')}: {source.get('served')}")
        for key, label in (("table", "table"), ("generation", "generation"), ("buildId", "build id"), ("dataAsOf", "data as of"), ("reason", "reason")):
            if source.get(key):
                print(f"        {label:<12}{source[key]}")


def show_sql(gateway, live):
    sql = json.loads(gateway.ask(live, compact=False)[1]["result"])["sql"]
    lines = sql.strip().splitlines()
    for line in lines[:14]:
        print("    " + line)
    if len(lines) > 14:
        print(f"    ... {len(lines)} lines in all")


def main():
    gateway = Gateway()
    print(f"{BOLD}Kiln: three million flights, one question{PLAIN}")

    head("1. Computed live: every query reads all the flights")
    show_command("query", ENVIRONMENT, PACKAGE, MODEL, QUERY, "--live")
    _, live, _ = gateway.ask(live=True)
    live_rows = json.loads(live["result"])
    table(live_rows)
    live_ms, n = gateway.median(True, LIVE_TIMES)
    print(f"\n    {measured(live_ms, n)}")

    head("2. What a run would build, reuse and refuse")
    run("plan", ENVIRONMENT, PACKAGE)

    head("3. Build it")
    run("materialize", ENVIRONMENT, PACKAGE, "--wait")

    head("4. The same question again")
    show_command("query", ENVIRONMENT, PACKAGE, MODEL, QUERY)
    _, baked, headers = gateway.ask(live=False)
    baked_rows = json.loads(baked["result"])
    table(baked_rows)
    baked_ms, n = gateway.median(False, BAKED_TIMES)
    print(f"\n    {measured(baked_ms, n)}")
    print("\n  The receipt that came with it:")
    show_receipt(baked, headers)
    print("\n  The SQL that ran:")
    show_sql(gateway, live=False)

    head("5. What that means")
    if baked["decision"]["served"] != "baked":
        sys.exit(f"demo: the answer was not served from the table: {baked['decision']}")
    if live_rows != baked_rows:
        sys.exit("demo: the live and the baked answer differ")
    print(f"    answers equal   yes, all {len(baked_rows)} rows")
    print(f"    live            {time_of(live_ms)}")
    print(f"    baked           {time_of(baked_ms)}")
    print(f"    speed-up        {live_ms / baked_ms:,.0f} times")
    if os.environ.get("KILN_DEMO_ONCE"):
        return
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
        main()
    except OSError as e:
        sys.exit(f"demo: no answer from {URL}: {e}")
