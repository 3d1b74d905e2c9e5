#!/usr/bin/env python3
"""Checks that includes only go in the allowed direction, and that each library appears where it may (design.md 8, CONTRIBUTING.md)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A folder may include itself and every folder to its left; folders in one set do not see each other.
ORDER = [
    {"common/base"}, {"common/err"}, {"common/json", "common/toml"}, {"common/log"}, {"common/conf"}, {"common/flow"}, {"common/loop"},
    {"common/bus", "common/pgc", "common/cache", "common/http", "common/httpc", "common/duck", "common/generation"}, {"common/compiler"}, {"common/warehouse"}, {"common/service"}, {"common/sandbox"},
    {"services/planner", "services/builder", "services/gateway", "services/kiln"},
]
LEVEL = {folder: i for i, group in enumerate(ORDER) for folder in group}
# header prefix -> where it may be included
LIBRARIES = {
    "nng/": ["common/bus/bus_nng"], "libpq-fe.h": ["common/pgc/"], "hiredis/": ["common/cache/cache_redis"], "llhttp.h": ["common/http/"],
    "toml++/": ["common/toml/"], "curl/": ["common/httpc/"], "archive.h": ["services/planner/package/"], "openssl/": ["common/base/"], "duckdb.h": ["common/duck/"],
    "uv.h": ["common/loop/", "common/bus/", "common/pgc/", "common/cache/", "common/http/", "common/httpc/", "common/compiler/", "services/kiln/"],
}
PURE_REFUSES = ("common/loop", "common/bus", "common/pgc", "common/cache", "common/http", "common/duck", "common/warehouse", "common/service", "common/compiler",
                "uv.h", "sys/socket.h", "unistd.h", "fcntl.h", "time.h", "pthread.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else None


def check(path, lines):
    rel = str(path.relative_to(ROOT))
    own = folder_of(rel)
    for number, line in enumerate(lines, 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        inc = m.group(1)
        place = f"{rel}:{number}"
        for prefix, allowed in LIBRARIES.items():
            if inc.startswith(prefix) and not any(rel.startswith(a) for a in allowed):
                yield f"{place}: {inc} belongs into {', '.join(allowed)} only"
        if "/core/" in rel and inc.startswith(PURE_REFUSES):
            yield f"{place}: core/ is pure and cannot include {inc}"
        target = folder_of(inc)
        if own in LEVEL and target in LEVEL and own != target and LEVEL[target] >= LEVEL[own]:
            yield f"{place}: {own} cannot see {target}: the arrow goes the other way"
        if inc.endswith(".h") and "/" not in inc and (path.parent / inc).exists():
            yield f"{place}: write the include from the repository's root, not {inc}"


def main():
    found = []
    for folder in ("common", "services"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            if "node_modules" not in path.parts:
                found += check(path, path.read_text().splitlines())
    print("\n".join(found) if found else "includes: every arrow goes the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
