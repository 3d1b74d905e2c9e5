"""The flights example's rows, few and computed, the same in PostgreSQL and in files: enough for every source of its packages."""
import os
import pathlib
import sys

from servers import ROOT

TOOLS = pathlib.Path(os.environ.get("KILN_PREFIX", ROOT / "build/tools"))
EXAMPLE = ROOT / "examples/flights"

FLIGHTS = """
CREATE SCHEMA flights; CREATE SCHEMA marts;
CREATE TABLE flights.flights (date timestamp, delay bigint, distance bigint, origin text, destination text);
CREATE TABLE flights.airports (iata text PRIMARY KEY, name text, city text, state text, country text, latitude double precision, longitude double precision);
INSERT INTO flights.airports SELECT 'A' || i, 'Airport ' || i, 'City', 'S' || i % 3, 'USA', i, i FROM generate_series(1, 9) i;
INSERT INTO flights.flights SELECT timestamp '2001-01-01' + i * interval '3 hours', i % 40, 100 + i % 900, 'A' || 1 + i % 9, 'A' || 1 + (i * 7) % 9
  FROM generate_series(1, 2000) i;
"""
FILES = {
    "flights-3m.parquet": "SELECT timestamp '2001-01-01' + i * interval '3 hours' AS date, i % 40 AS delay, 100 + i % 900 AS distance, "
                          "'A' || (1 + i % 9) AS origin, 'A' || (1 + (i * 7) % 9) AS destination FROM range(1, 2001) r(i)",
    "airports.csv": "SELECT 'A' || i AS iata, 'Airport ' || i AS name, 'City' AS city, 'S' || (i % 3) AS state, 'USA' AS country, "
                    "i::double AS latitude, i::double AS longitude FROM range(1, 10) r(i)",
}


def duckdb():
    """DuckDB's Python module, of the version that Kiln has; deploy/setup.sh data installs it."""
    if str(TOOLS / "python") not in sys.path:
        sys.path.append(str(TOOLS / "python"))
    import duckdb as module
    return module


def write_files(directory):
    """The data files of the DuckDB package."""
    directory.mkdir(parents=True, exist_ok=True)
    with duckdb().connect() as db:
        for name, sql in FILES.items():
            path = str(directory / name).replace("'", "''")
            db.sql(f"COPY ({sql}) TO '{path}' ({'FORMAT csv, HEADER' if name.endswith('.csv') else 'FORMAT parquet'})")
