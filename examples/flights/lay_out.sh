#!/usr/bin/env bash
# Lays the DuckDB package out with its data files and a publisher.config.json beside it: lay_out.sh DIR [DATA_DIR]
# DATA_DIR holds flights-3m.parquet and airports.csv (deploy/setup.sh data fetches them into build/tools/data, the default). They are
# linked where DIR is on the same file system, else copied.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
data=${2:-$here/../../build/tools/data}
for file in flights-3m.parquet airports.csv; do
    [ -e "$data/$file" ] || { echo "lay_out.sh: $data/$file is missing; run deploy/setup.sh data" >&2; exit 1; }
done
mkdir -p "$dir"
rm -rf "$dir/package"
cp -r "$here/package" "$dir/package"
cp "$here/publisher.config.json" "$dir/publisher.config.json"
for file in flights-3m.parquet airports.csv; do
    ln "$data/$file" "$dir/package/$file" 2>/dev/null || cp "$data/$file" "$dir/package/$file"
done
