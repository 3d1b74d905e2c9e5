#!/usr/bin/env bash
# Writes what the documentation takes from tables and programs; --check only compares, and says what is stale.
#   ARCHITECTURE.md        diagrams of flows and state machines, between its markers
#   docs/configuration.md  the options of every program
#   docs/errors.md         the error codes
#   docs/types.md          the types of DuckDB
#   docs/cli.md            the help texts of kiln
set -euo pipefail
cd "$(dirname "$0")/.."
build=${KILN_BUILD:-build}
check=0
[ "${1:-}" != --check ] || check=1
for program in planner builder gateway; do
    [ -x "$build/tools-bin/docs_$program" ] || { echo "docs.sh: $build/tools-bin/docs_$program is not built; run make build" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stale=0

part() { "$build/tools-bin/docs_$1" "$2"; } # service section

# Puts the text of a section between <!-- generated: NAME --> and <!-- end: NAME --> of a file, or compares.
section() { # file name text-file
    awk -v name="$2" -v text="$3" '
        $0 == "<!-- generated: " name " -->" { print; print ""; while ((getline line < text) > 0) print line; skip = 1; found = 1; next }
        $0 == "<!-- end: " name " -->" { skip = 0 }
        !skip { print }
        END { exit !found }' "$1" >"$work/out" || { echo "docs.sh: $1 has no marker for $2" >&2; exit 1; }
    settle "$1"
}

settle() { # file; its new text is in $work/out
    if cmp -s "$work/out" "$1"; then return 0; fi
    if [ "$check" = 1 ]; then
        echo "docs: $1 is stale; run make docs"
        diff "$1" "$work/out" | head -10 || true
        stale=1
    else
        cat "$work/out" >"$1"
        echo "docs: wrote $1"
    fi
}

help_texts() {
    for verb in "" up publish plan materialize runs run stop delete query explain status version; do
        # shellcheck disable=SC2086,SC2016
        printf '## kiln%s\n\n```text\n%s\n```\n\n' "${verb:+ $verb}" "$(COLUMNS=100 "$build/bin/kiln" $verb --help)"
    done
}

for service in planner builder gateway; do
    part "$service" flows >>"$work/flows"
    part "$service" configuration >>"$work/configuration"
done
part planner states >"$work/states"
part planner errors >"$work/errors"
part builder duckdb_types >"$work/duckdb_types"
section ARCHITECTURE.md flows "$work/flows"
section ARCHITECTURE.md states "$work/states"
section docs/configuration.md configuration "$work/configuration"
section docs/errors.md errors "$work/errors"
section docs/types.md duckdb_types "$work/duckdb_types"
help_texts >"$work/cli"
section docs/cli.md cli "$work/cli"
exit "$stale"
