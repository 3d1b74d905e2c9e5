#!/usr/bin/env bash
# Loads the flights and airports into PostgreSQL: load.sh CONNINFO DATA_DIR
# DATA_DIR holds flights-3m.parquet and airports.csv (deploy/setup.sh data fetches them into build/tools/data).
set -euo pipefail
conninfo=$1
data=$2
tools=$(cd "$data/.." && pwd)
psql() { command psql -X -q -v ON_ERROR_STOP=1 -d "$conninfo" "$@"; }

psql <<'SQL'
CREATE SCHEMA IF NOT EXISTS flights;
CREATE SCHEMA IF NOT EXISTS marts;
DROP TABLE IF EXISTS flights.flights, flights.airports;
CREATE TABLE flights.flights (date timestamp, delay bigint, distance bigint, origin text, destination text);
CREATE TABLE flights.airports (iata text PRIMARY KEY, name text, city text, state text, country text, latitude double precision, longitude double precision);
SQL
psql -c '\copy flights.airports FROM PSTDIN CSV HEADER' <"$data/airports.csv"
PYTHONPATH=$tools/python /usr/bin/python3 - "$data/flights-3m.parquet" <<'PY' | psql -c '\copy flights.flights FROM PSTDIN CSV'
import sys
import duckdb

path = sys.argv[1].replace("'", "''")
duckdb.sql(f"COPY (SELECT date, delay, distance, origin, destination FROM '{path}') TO '/dev/stdout' (FORMAT csv, HEADER false)")
PY
# Without statistics on the month PostgreSQL expects millions of groups and sorts all rows: the live answer should be a fair one.
psql -c "CREATE STATISTICS flights.months ON date_trunc('month', date), origin, destination FROM flights.flights"
psql -c 'ANALYZE flights.flights' -c 'ANALYZE flights.airports'
