"""make bench: rounds in which Kiln and its references take turns, then the medians as one table.

    KILN_BENCH_QUICK=1   one short round on small tables; shows that everything runs, says nothing about speed
    KILN_BENCH_PG        libpq connection string of a warehouse that has the flights already
    KILN_BENCH_DOC=0     leaves docs/performance.md alone
"""
import os
import sys

import duck
import measure
import report
from rig import QUICK, Kiln, Warehouse, rounds


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def first_builds(kiln, packages):
    """Every package once, so that the rounds find tables and warm caches."""
    for package in packages:
        kiln.materialize(package, every=0.01)


def run_rounds(s, kiln, warehouse):
    sql = {p: measure.sql_of(kiln, p, "route_month") for p in ("flights", "some")}
    small = measure.Question(kiln, "small", "some", measure.SMALL, "state_summary_some")
    larger = measure.Question(kiln, "larger", "some", measure.LARGER, "route_month_some")
    alone = duck.Alone(kiln)
    duck_questions = duck.questions(kiln)
    n = rounds(5)
    for i in range(n):
        say(f"round {i + 1} of {n}")
        for question in (small, larger):
            measure.repeated(s, kiln, warehouse, question)
        measure.throughput(s, kiln, warehouse, small)
        duck.one_round(s, kiln, alone, *duck_questions)
        measure.compile_cache(s, kiln, i)
        measure.trivial(s, kiln, warehouse)
        measure.many(s, kiln, warehouse)
        measure.publish(s, kiln, i + 2)
        for package in ("some", "flights"):
            if package == "some" or i < 3:
                measure.build(s, kiln, warehouse, package, sql[package])


def main():
    load = os.getloadavg()
    s = measure.Samples()
    say("making the warehouse")
    warehouse = Warehouse()
    data = duck.Data()
    try:
        for i in range(rounds(3)):
            say(f"kiln up, {i + 1} of {rounds(3)}")
            measure.boot(s, warehouse)
        say("the demo, and one package on DuckDB")
        for _ in range(rounds(3)):
            duck.demo(s, data)
        duck.one_package(s, warehouse, data)
        say("bindings in three gateways")
        measure.binding(s, 3 if QUICK else 20)
        packages = {**measure.packages(), "duck": data.package()}
        with Kiln(warehouse, packages) as kiln:
            kiln.start()
            measure.memory(s, kiln)
            say("first builds")
            first_builds(kiln, packages)
            run_rounds(s, kiln, warehouse)
    finally:
        warehouse.close()
        data.close()
    lines = report.table(report.rows_of(s) + duck.rows_of(s))
    note = report.machine(load)
    print("\n".join([*lines, "", note]), flush=True)
    if not QUICK and os.environ.get("KILN_BENCH_DOC") != "0":
        report.write_doc([*lines, "", note])


main()
