"""make bench, in its quick form: that it runs to its end and fills every row of its table. It says nothing about speed."""
import os
import re
import subprocess

from servers import ROOT, build_dir

ROWS = ["build of route_month from 2 k rows", "build of route_month from 1 k rows", "run that has nothing to build", "run that builds one trivial source",
        "5 trivial sources built and bound", "repeated query, p50, one row", "repeated query, p50, some rows", "repeated query, 1 connection",
        "repeated query, 8 connections", "repeated query, 32 connections", "query text never seen, p50", "webhook to first build started, p50",
        "new binding in force in three gateways", "planner, builder and gateway at rest", "kiln up ready, new stores", "kiln up ready, existing stores",
        "DuckDB: build of route_month from 2 k rows of Parquet", "DuckDB: repeated query, p50, one row", "DuckDB: repeated query, p50, some rows",
        "DuckDB: repeated query, 1 connection", "DuckDB: repeated query, 8 connections", "DuckDB: repeated query, 32 connections",
        "DuckDB: first query on an idle package", "DuckDB: gateway with one package", "demo, from its start to the first baked answer"]


def test_the_quick_bench_fills_every_row():
    env = {**os.environ, "KILN_BENCH_QUICK": "1", "KILN_BUILD": str(build_dir())}
    env.pop("KILN_BENCH_PG", None)
    done = subprocess.run([ROOT / "tests/bench/run.sh"], env=env, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    table = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[0] for row in table[1:]] == ROWS
    for what, kiln, reference, _, _, held in table[1:]:
        assert re.match(r"[\d,.]+ ?(ms|MB|/s)", kiln), f"{what}: {kiln}"
        assert reference == "-" or re.match(r"[\d,.]+ ?(ms|MB|/s)", reference), f"{what}: {reference}"
        assert held in ("yes", "no", "-")
    assert "Linux" in done.stdout.splitlines()[-1], "the machine is named"


def test_the_documentation_has_a_place_for_the_table():
    text = (ROOT / "docs/performance.md").read_text()
    assert text.count("<!-- bench: table -->") == text.count("<!-- end: bench -->") == 1
