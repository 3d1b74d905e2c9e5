"""The flights example's tables, small and computed: enough for every source of the package."""

FLIGHTS = """
CREATE SCHEMA flights; CREATE SCHEMA marts;
CREATE TABLE flights.flights (date timestamp, delay bigint, distance bigint, origin text, destination text);
CREATE TABLE flights.airports (iata text PRIMARY KEY, name text, city text, state text, country text, latitude double precision, longitude double precision);
INSERT INTO flights.airports SELECT 'A' || i, 'Airport ' || i, 'City', 'S' || i % 3, 'USA', i, i FROM generate_series(1, 9) i;
INSERT INTO flights.flights SELECT timestamp '2001-01-01' + i * interval '3 hours', i % 40, 100 + i % 900, 'A' || 1 + i % 9, 'A' || 1 + (i * 7) % 9
  FROM generate_series(1, 2000) i;
"""
