#!/usr/bin/env bash
# Runs the test rings of a built tree and ends with the runners' own totals.
#   tools/test.sh [--asan] [--quick]     --quick: of the scenario ring one file instead of all
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=build
quick=0
skip=()
for arg in "$@"; do
    case $arg in
        --asan)
            build=build/asan
            skip=(-E '^compiler_child') # Node's own tests: nothing of ours is compiled in
            ;;
        --quick) quick=1 ;;
        *) echo "test.sh: unknown option $arg" >&2; exit 2 ;;
    esac
done
bad=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tools/lsan.supp:print_suppressions=0}
ctest --test-dir "$build" "${skip[@]}" --output-on-failure -j 2 --no-tests=error || bad=1
some=(tests/integration tests/scenarios)
[ "$quick" = 0 ] || some=(tests/integration tests/scenarios/test_life_of_a_source.py)
KILN_BUILD=$PWD/$build /usr/bin/python3 -m pytest -q --maxfail=5 -p no:cacheprovider "${some[@]}" || bad=1
exit "$bad"
