#!/usr/bin/env python3
"""Makes docs/reasons.md, the reason codes of receipts, from services/gateway/core/reasons.def.

Without arguments it writes the file. With --check it only compares, and looks through gateway and planner for codes that the table
lacks, and through the table for codes that nobody says; it exits with 1 when something is off.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "services/gateway/core/reasons.def"
PAGE = ROOT / "docs/reasons.md"
ROW = re.compile(r'^REASON\(\s*(\w+)\s*,\s*"((?:[^"\\]|\\.)*)"\s*,\s*"((?:[^"\\]|\\.)*)"\s*\)\s*$')
# How code says one: the gateway by its enum; the planner as the code of an entry that is not baked.
SAID = re.compile(r'\bREASON_([a-z]\w*)')
UNBAKED = re.compile(r'(?:draft_unbaked|draft_rest)\(([^;]*)\);', re.S)
UNBOUND = re.compile(r'"(unbound_by_\w+)"')
CODE = re.compile(r'"([a-z]+(?:_[a-z]+)*)"')

HEAD = """\
# Why an answer was not served from a table

<!-- Made from services/gateway/core/reasons.def by tools/make_reasons_md.py. Change that, then run it again. -->

Every answer to a query says in `Kiln-Served` whether it was `baked` (every persisted source that it reads came from its table),
`live` or `mixed`. Where something was computed live, `Kiln-Reason` gives the first reason, and `decision.sources[]` in the body the
reason of each source. `Kiln-Mode: live` asks for the live answer.

| code | when | what to do |
|---|---|---|
"""


def rows():
    found = []
    for line in TABLE.read_text().splitlines():
        match = ROW.match(line)
        if match:
            found.append(match.groups())
        elif line.startswith("REASON("):
            sys.exit(f"reasons.def: this row does not parse: {line}")
    return found


def page():
    clean = [[cell.replace('\\"', '"').replace("|", "\\|") for cell in row] for row in rows()]
    return HEAD + "".join(f"| `{code}` | {when} | {remedy} |\n" for code, when, remedy in clean)


def said():
    codes = set()
    for path in sorted((ROOT / "services/gateway").rglob("*.c")):
        codes |= set(SAID.findall(path.read_text())) - {"NONE", "COUNT"}
    for path in sorted((ROOT / "services/planner/core").glob("*.c")):
        text = path.read_text()
        codes |= set(UNBOUND.findall(text))
        for call in UNBAKED.findall(text):
            codes |= set(CODE.findall(call))
    return codes


def main():
    if sys.argv[1:] != ["--check"]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page())
        return
    faults = []
    if not PAGE.exists() or PAGE.read_text() != page():
        faults.append("docs/reasons.md is stale: run tools/make_reasons_md.py")
    known = {row[0] for row in rows()}
    faults += [f"'{code}' is said but not in reasons.def" for code in sorted(said() - known)]
    faults += [f"'{code}' is in reasons.def but nobody says it" for code in sorted(known - said())]
    if faults:
        sys.exit("\n".join(faults))


main()
