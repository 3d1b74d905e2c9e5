#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each (default 60) on its corpus: libFuzzer where clang is, the plain driver elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
cmake --preset asan >/dev/null
ninja -C build/asan -j "$(nproc)" --quiet all
bad=0
for target in build/asan/tests/fuzz_*; do
    [ -x "$target" ] || continue
    name=$(basename "$target" | sed 's/^fuzz_//')
    printf '== %s\n' "$name"
    timeout --preserve-status "$((seconds + 30))" "$target" "--seconds=$seconds" "tests/fuzz/corpus/$name" || bad=1
done
exit "$bad"
