"""The two load generators: wrk for Kiln, pgbench for the warehouse alone. Both answer with a Load."""
import glob
import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass

from rig import HERE, PG_BIN, QUICK, cpu_ms, median

SECONDS = 1 if QUICK else 4

# What the gateway sends for a baked query, in the same order (protocol.md 7).
FENCE = """SELECT f.target, f.build_id, f.generation, f.published, (extract(epoch FROM f.data_as_of) * 1000000)::bigint,
 (f.relid = to_regclass(format('%I.%I', '{schema}'::text, f.target))::oid) IS TRUE
 FROM {schema}.kiln_fence f WHERE f.target = ANY('{{{table}}}'::text[]);"""


@dataclass
class Load:
    rate: float  # a second
    p50: float  # ms
    p99: float  # ms
    cpu: float = 0  # ms of the server a query; wrk only


def wrk(kiln, package, model, query, connections):
    """Asks one query over HTTP. The answer must be known to be right: only its status is looked at."""
    body = json.dumps({"query": query, "compactJson": True})
    pid = kiln.pids("kiln-gateway")[0]
    before = cpu_ms(pid)
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "-s", HERE / "query.lua", kiln.url(package, f"/models/{model}/query")],
                          env={**os.environ, "KILN_BENCH_BODY": body}, capture_output=True, text=True, check=True)
    used = cpu_ms(pid) - before
    n, took_us, p50_us, p99_us, bad = map(float, re.search(r"^RESULT (.*)$", done.stdout, re.M)[1].split())
    assert n > 0 and bad == 0, f"{bad:.0f} of {n:.0f} answers were not 200: {done.stdout}"
    return Load(n / took_us * 1e6, p50_us / 1000, p99_us / 1000, used / n)


def one_line(sql):
    return " ".join(sql.strip().rstrip(";").split()) + ";"


def plain_script(sql):
    return one_line(sql) + "\n"


def receipt_script(sql, schema, table):
    """The same statements in the same pipeline as the gateway's."""
    fence = one_line(FENCE.format(schema=schema, table=table))
    return (f"\\startpipeline\nBEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;\nLOCK TABLE \"{schema}\".\"{table}\" IN ACCESS SHARE MODE;\n"
            f"{fence}\n{one_line(sql)}\nCOMMIT;\n\\endpipeline\n")


def pgbench(url, script, clients):
    """Runs a script with prepared statements, on sessions of its own."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "script.sql")
        with open(path, "w", encoding="utf8") as f:
            f.write(script)
        done = subprocess.run([PG_BIN / "pgbench", "-n", "-M", "prepared", "-f", path, "-c", str(clients), "-j", "1", "-T", str(SECONDS), "--log",
                               f"--log-prefix={place}/log", url], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        times = []
        for name in glob.glob(f"{place}/log.*"):
            with open(name, encoding="utf8") as f:
                times += [int(line.split()[2]) / 1000 for line in f]
    times.sort()
    return Load(float(re.search(r"tps = ([\d.]+)", done.stdout)[1]), median(times), times[int(len(times) * 0.99)])
