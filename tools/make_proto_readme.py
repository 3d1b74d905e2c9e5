#!/usr/bin/env python3
"""Makes proto/README.md, the catalogue of bus messages, from proto/kinds.def.

Without arguments it writes the file; with --check it only compares and exits with 1 when the file is stale.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ROOT / "proto" / "kinds.def"
README = ROOT / "proto" / "README.md"
ROW = re.compile(r'^KIND\(\s*(\w+)\s*,\s*(\d+)\s*,\s*(.*)\)\s*$')
FIELD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\d+)')
PLACES = {"P": "planner", "B": "builder", "G": "gateway"}

HEAD = """\
# Messages of the bus

<!-- Made from kinds.def by tools/make_proto_readme.py. Change that, then run it again. -->

Services call each other over nng REQ/REP and the planner hints over PUB/SUB. A frame is

| bytes | what |
|---|---|
| 4 | topic, used by hints; zeroes in calls |
| 32 | HMAC-SHA256 under `KILN_BUS_KEY` over the whole frame with this field zeroed; zeroes without a key |
| rest | `Envelope` of `envelope.proto`: version, kind, ids, installation, sender, budget, payload or error |

A frame is 16 MiB at most. `payload` is the packed request or reply message of the kind; sender and receiver refuse one
that is longer than its kind may be (`ERR_LIMIT`).

## Rules

- A receiver of version N understands N and N-1 and ignores fields that it does not know. Numbers of fields and kinds are
  never reused. Raise the version only when a receiver of the old one would misread a message, not for additions.
- Every call is idempotent by what its row says, for it is repeated with the same `request_id` until the caller's time is
  over: after a lost connection, after a transient error, and when no answer comes. While a request is held, repeats of it
  do not reach the handler; after the answer they do.
- A hint only says "look now". It never carries content, and everything that it speeds up also happens by a timer.
- An unknown kind is answered `ERR_UNKNOWN_KIND`, another version `ERR_VERSION`, another installation `ERR_INSTALLATION`, a
  wrong or missing signature `ERR_MAC`: by the bus itself, before any handler.

## Kinds

| number | kind | from | to | request | reply | most bytes | timeout | idempotent by | carries |
|---:|---|---|---|---|---|---:|---:|---|---|
"""


def rows():
    for at, line in enumerate(KINDS.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("KIND("):
            continue
        match = ROW.match(line)
        fields = [text or number for text, number in FIELD.findall(match.group(3))] if match else []
        if len(fields) != 9:
            sys.exit(f"{KINDS}:{at}: expected KIND(name, number, from, to, request, reply, timeout, KiB of request and reply, idempotent by, says)")
        yield match.group(1), int(match.group(2)), *fields


def places(text):
    return ", ".join(PLACES.get(p.strip(), p.strip()) for p in text.split(","))


def message(text):
    return "-" if text == "-" else f"`{text}`"


def size(kib):
    kib = int(kib)
    return "-" if not kib else f"{kib // 1024} MiB" if kib % 1024 == 0 else f"{kib} KiB"


def make():
    lines = []
    numbers = {}
    for name, number, sender, receiver, request, reply, timeout, request_kib, reply_kib, by, says in rows():
        if number in numbers:
            sys.exit(f"{KINDS}: number {number} stands for both {numbers[number]} and {name}")
        numbers[number] = name
        wait = f"{int(timeout)} ms" if int(timeout) else "-"
        most = f"{size(request_kib)} / {size(reply_kib)}"
        cells = [str(number), f"`{name}`", places(sender), places(receiver), message(request), message(reply), most, wait, by, says]
        lines.append("| " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n"


def main():
    text = make()
    if sys.argv[1:] == ["--check"]:
        if not README.exists() or README.read_text(encoding="utf-8") != text:
            sys.exit("proto/README.md does not fit proto/kinds.def: run tools/make_proto_readme.py")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
