#!/usr/bin/env bash
# Runs every fuzz target on its corpus and ROUNDS mutations of it (default 200000), under the address and undefined sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-200000}
cmake --preset asan >/dev/null
ninja -C build/asan -j "$(nproc)" --quiet all
bad=0
for target in build/asan/tests/fuzz_*; do
    [ -x "$target" ] || continue
    name=$(basename "$target" | sed 's/^fuzz_//')
    printf '== %s\n' "$name"
    timeout 300 "$target" "tests/fuzz/corpus/$name" "$rounds" || bad=1
done
exit "$bad"
