"""From samples to rows, on standard output and in docs/performance.md."""
import os
import pathlib
import platform
import re
import subprocess
from dataclasses import dataclass

from measure import CONNECTIONS, HUNDRED
from rig import QUICK, ROOT, SOME, build_dir

DOC = ROOT / "docs/performance.md"
# Malloy Publisher, one repeated query on a small baked table, measured on a machine of this kind: the best figure of each range.
PUBLISHER = {1: 21, 8: 26, 32: 29}


@dataclass
class Row:
    what: str
    kiln: str
    reference: str
    against: str  # ratio or difference
    hold: str
    met: bool | None  # None: nothing is promised


def ms(value):
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def build_row(s, package, what):
    kiln, reference = s[f"build.{package}"], s[f"build.{package}.reference"]
    more = kiln - reference
    return Row(f"build of route_month from {what}", ms(kiln), f"{ms(reference)}, the engine's own CREATE TABLE AS and ANALYZE",
               f"{kiln / reference:.3f}, {more:+.0f} ms", "+2 % or +50 ms", more <= max(50, 0.02 * reference))


def query_row(s, name, what):
    kiln, plain, receipt = (s[f"query.{name}.{k}"] for k in ("kiln", "plain", "receipt"))
    return Row(f"repeated query, p50, {what}", ms(kiln), f"{ms(plain)}, its SQL alone, prepared; {ms(receipt)} with the receipt's statements",
               f"{kiln - plain:+.2f} ms, {kiln - receipt:+.2f} ms", "+10 % + 0.2 ms of its SQL alone", kiln <= 1.1 * plain + 0.2)


def rate_row(s, n):
    rate, cpu, p99, alone = (s[f"rate.{n}{part}"] for part in ("", ".cpu", ".p99", ".reference"))
    best = PUBLISHER[n]
    return Row(f"repeated query, {n} connection{'s' if n > 1 else ''}", f"{rate:,.0f}/s, {cpu:.2f} ms of CPU each, p99 {ms(p99)}",
               f"{alone:,.0f}/s, the warehouse alone (pgbench, same statements); {best}/s, Publisher (measured apart)",
               f"{rate / alone:.2f}, {rate / best:,.0f} times", ">= 50 times Publisher", rate >= 50 * best)


def rows_of(s):
    trivial = s["trivial"] - s["trivial.reference"]
    size = "2 k" if QUICK else "3 M"
    return [
        build_row(s, "flights", f"{size} rows"),
        build_row(s, "some", f"{SOME // 1000} k rows"),
        Row("run that has nothing to build", ms(s["noop"]), "-", "-", "< 20 ms", s["noop"] < 20),
        Row("run that builds one trivial source", ms(s["trivial"]), f"{ms(s['trivial.reference'])}, CREATE TABLE AS and ANALYZE", f"{trivial:+.1f} ms",
            "< 50 ms more", trivial < 50),
        Row(f"{HUNDRED} trivial sources built and bound", ms(s["many"]), f"{ms(s['many.reference'])}, as many CREATE TABLE AS and ANALYZE in a row",
            f"{s['many'] / s['many.reference']:.2f}", "< 2,000 ms", s["many"] < 2000),
        query_row(s, "small", "one row"),
        query_row(s, "larger", "some rows"),
        *[rate_row(s, n) for n in CONNECTIONS],
        Row("query text never seen, p50", ms(s["cache.miss"]), f"{ms(s['cache.hit'])}, the same text again", f"{s['cache.miss'] - s['cache.hit']:+.1f} ms", "-",
            None),
        Row("webhook to first build started, p50", ms(s["publish"]), f"{ms(s['publish.compiled'])} of it after the compile", "-", "< 10 ms after the compile",
            s["publish.compiled"] < 10),
        Row("new binding in force in three gateways", f"{ms(s['binding'])}, at most {ms(s.worst('binding'))}", "-", "-", "< 50 ms after its commit",
            s["binding"] < 50),
        Row("planner, builder and gateway at rest", f"{s['rss']:.0f} MB", f"{s['rss.compilers']:.0f} MB, the compiler children", "-", "< 150 MB without children",
            s["rss"] < 150),
        Row("kiln up ready, new stores", ms(s["ready.new"]), "-", "-", "< 6,000 ms", s["ready.new"] < 6000),
        Row("kiln up ready, existing stores", ms(s["ready.existing"]), "-", "-", "< 2,000 ms", s["ready.existing"] < 2000),
    ]


def table(rows):
    said = {True: "yes", False: "no", None: "-"}
    lines = ["| what | Kiln | reference in the same run | against it | to hold | held |", "|---|---|---|---|---|---|"]
    return lines + [f"| {r.what} | {r.kiln} | {r.reference} | {r.against} | {r.hold} | {said[r.met]} |" for r in rows]


def first_line(path, pattern):
    found = re.search(pattern, pathlib.Path(path).read_text(encoding="utf8"), re.M)
    return found[1].strip() if found else "?"


def machine(load_before):
    """One sentence about where and when."""
    build = first_line(build_dir() / "CMakeCache.txt", r"^CMAKE_BUILD_TYPE:\w+=(.*)$")
    memory = int(first_line("/proc/meminfo", r"^MemTotal:\s+(\d+)")) / 1024**2
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "?"
    return (f"{os.cpu_count()} x {first_line('/proc/cpuinfo', r'^model name.*: (.*)$')}, {memory:.0f} GB, Linux {platform.release()}, PostgreSQL 15, DuckDB 1.5.5; "
            f"build {build} of {commit}; load average {load_before[0]:.1f} before and {os.getloadavg()[0]:.1f} at the end. "
            "Clients, warehouse and Kiln share the machine.")


def write_doc(lines):
    """Puts the lines between the markers of docs/performance.md."""
    text = DOC.read_text(encoding="utf8")
    begin, end = "<!-- bench: table -->", "<!-- end: bench -->"
    assert begin in text and end in text, f"{DOC} has no markers for the table"
    head, rest = text.split(begin)
    DOC.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + rest.split(end)[1], encoding="utf8")
