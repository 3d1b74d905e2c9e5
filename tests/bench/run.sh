#!/usr/bin/env bash
# make bench: measures the built tree against references in the same run, prints the table and writes it into docs/performance.md.
#   KILN_BENCH_QUICK=1   one short round on small tables, for the test that everything runs (more: bench.py)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${KILN_BUILD:-$root/build}" && pwd)
fail() { printf 'bench: %s\n' "$*" >&2; exit 1; }

[ -x "$build/bin/kiln" ] || fail "$build/bin/kiln is not there; run make build"
command -v wrk >/dev/null || fail "wrk is not installed; run deploy/setup.sh bench"
[ -d "${KILN_PREFIX:-$root/build/tools}/python/duckdb" ] || fail "DuckDB for Python is not fetched; run deploy/setup.sh demo data"
if [ -z "${KILN_BENCH_QUICK:-}" ] && [ ! -e "${KILN_DEMO_DATA:-$root/build/tools/data}/flights-3m.parquet" ]; then
    fail "the flights are not fetched; run deploy/setup.sh demo data"
fi
export KILN_BUILD=$build
exec /usr/bin/python3 "$here/bench.py"
