"""What may go wrong with packages on DuckDB: data files, generations, roots, limits. Each is told in one sentence that names the thing, the
place and the remedy; nothing is lost, and what was good last is served (issue, "Bad input")."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import uuid

import pytest

from servers import build_dir, is_sanitized, wait_for
from trio import ENV, Trio
from trio_fixtures import publish

MODEL = """##! experimental.persistence
source: orders is duckdb.table('data/orders.csv') extend { measure: n is count() }
#@ persist name="daily"
source: daily is orders -> { group_by: region; aggregate: n }
#@ persist name="sizes"
source: sizes is orders -> { group_by: amount; aggregate: n }
"""
FILES = {"shop.malloy": MODEL, "data/orders.csv": "region,amount\n" + "".join(f"{'nesw'[i % 4]},{i % 5}\n" for i in range(200))}
DAILY, DAILY_ROWS = "run: daily -> { group_by: region; aggregate: n is n.sum(); order_by: region }", [{"region": r, "n": 50} for r in "ensw"]
SIZES, SIZES_ROWS = "run: sizes -> { aggregate: c is count(), n is n.sum() }", [{"c": 5, "n": 200}]
LIVE = "run: orders -> { aggregate: n }"


@pytest.fixture(scope="module")
def kiln():
    with Trio(gateways=2, sweep_every="1s", sweep_age="1s", gateway_env={"KILN_COMPILER_CHILDREN": "1", "KILN_DUCKDB_IDLE": "2s"}) as trio:
        yield trio


@pytest.fixture
def baked(kiln, name):
    """(trio, package): both sources are built and bound. Packages have files of their own, by a comment column's name."""
    publish(kiln, name, files_of(name))
    kiln.materialize(name)
    serves(kiln, name)
    return kiln, name


def files_of(name):
    return {**FILES, "data/orders.csv": FILES["data/orders.csv"].replace("region,amount", "region,amount" + "," + name).replace("\n", ",\n").replace(name + ",", name)}


def serves(kiln, package, daily="baked", sizes="baked", gateways=("gateway-1", "gateway-2"), reason=None):
    for gateway in gateways:
        for query, rows, served in ((DAILY, DAILY_ROWS, daily), (SIZES, SIZES_ROWS, sizes)):
            answer = kiln.query(query, package=package, gateway=gateway)
            assert answer.rows == rows, (gateway, query, answer.rows)
            assert answer.served == served, (gateway, query, answer.served, answer.reason)
            assert served == "baked" or reason is None or answer.reason == reason, answer.reason


def folder(kiln, package, source="daily"):
    """The generation of a source, and its folder."""
    run = kiln.runs(package)[0]
    entries = kiln.run(run["id"], package)["manifest"]["entries"].values()
    (generation,) = [e["materializedTableId"] for e in entries if e["sourceName"] == source]
    return generation, kiln.generations()[generation]


def refused(kiln, package, files=None, status=(400, 424), says=()):
    """Publishing is refused with all these words; the message."""
    if files:
        kiln.write_package(package, files)
    r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": package, "location": f"./packages/{package}"})
    message = r.json()["message"]
    assert r.status_code in status and all(s in message for s in says) and "\n" not in message, f"{r.status_code} {r.text}"
    return message


def stored(kiln, package, file="data/orders.csv"):
    """Where the package store keeps a data file of a package."""
    want = (kiln.dir / "packages" / package / file).read_bytes()
    (found,) = [p for p in (kiln.dir / "packages.store").glob("*/*") if p.is_file() and p.read_bytes() == want]
    return found


# ---- generations ----
def truncate(path):
    path.chmod(0o644)
    with open(path, "r+b") as f:
        f.truncate(path.stat().st_size // 2)


def replace_by_another(path):
    other = path.parent.parent / next(p.name for p in path.parent.parent.iterdir() if p != path.parent) / path.name
    shutil.copyfile(other, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def overwrite_same_size(path):
    data = bytearray(path.read_bytes())
    data[4:12] = b"\0" * 8
    path.chmod(0o644)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("harm", [truncate, replace_by_another, overwrite_same_size, lambda p: p.unlink(), lambda p: shutil.rmtree(p.parent)],
                         ids=["truncated", "another one", "overwritten", "gone", "folder gone"])
def test_a_generation_that_someone_changed_is_not_served_and_is_built_again(baked, harm):
    kiln, package = baked
    generation, path = folder(kiln, package)
    harm(path / "data-0.parquet")
    serves(kiln, package, daily="live", reason="table_missing")
    run = kiln.materialize(package)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesReused"]) == (1, 1) or harm is overwrite_same_size, run["metadata"]
    if harm is overwrite_same_size:  # the size alone agrees: a forced run builds it
        kiln.materialize(package, forceRefresh=True)
    kiln.wait_bound(package, 2)
    serves(kiln, package)
    assert folder(kiln, package)[0] != generation


@pytest.mark.parametrize("text", ["", "{", "{}", '{"id": "x"}', None])
def test_a_manifest_that_someone_edited_keeps_only_its_own_source_from_being_bound(baked, text):
    kiln, package = baked
    generation, path = folder(kiln, package)
    manifest = path / "manifest.json"
    whole = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**whole, "dataset": "package-of-another"}) if text is None else text)
    serves(kiln, package)  # what is bound stays so
    kiln.procs["gateway-1"].restart()
    kiln.wait_ready("gateway-1")
    serves(kiln, package, daily="live", gateways=["gateway-1"])
    said = kiln.procs["gateway-1"].out() + kiln.procs["gateway-1"].err()
    assert any(generation in line and "duckdb.not_bound" in line for line in said.splitlines()), "the log names the folder"
    run = kiln.materialize(package)
    assert run["metadata"]["sourcesBuilt"] == 1, run["metadata"]
    kiln.wait_bound(package, 2)
    serves(kiln, package)


def test_the_sweep_takes_what_is_not_recorded_in_any_folder_of_the_root_and_nothing_else(baked):
    kiln, package = baked
    root = kiln.dir / "generations"
    own = folder(kiln, package)[1].parent
    orphans = [own / ("01A" + "B" * 23), root / "package-of-nobody" / ("01A" + "C" * 23)]
    foreign = [own / "notes", root / "package-of-nobody" / "lower", root / "readme.txt"]
    for p in orphans + foreign:
        p.mkdir(parents=True)
        (p / "data-0.parquet").write_text("x")
    (orphans[0] / "manifest.json").write_text("{}")
    wait_for(lambda: not any(p.exists() for p in orphans), 15, "the sweep takes them")
    assert all(p.exists() for p in foreign)
    serves(kiln, package)


# ---- data files ----
@pytest.mark.parametrize("harm, says", [(lambda p: p.unlink(), "is not in the package store"), (truncate, "bytes in the package store and had")], ids=["gone", "truncated"])
def test_a_stored_data_file_that_is_gone_or_changed_is_told_and_results_are_still_served(kiln, name, harm, says):
    publish(kiln, name, files_of(name))
    kiln.materialize(name)
    serves(kiln, name)
    for gateway in ("gateway-1", "gateway-2"):
        kiln.procs[gateway].stop()
    harm(stored(kiln, name))
    for gateway in ("gateway-1", "gateway-2"):
        kiln.procs[gateway].start()
    kiln.wait_ready("gateway-1", "gateway-2")
    serves(kiln, name)
    r = kiln.post_query(LIVE, package=name)
    assert r.status_code in (422, 500, 503) and "data/orders.csv" in r.json()["message"] and says in r.json()["message"], f"{r.status_code} {r.text}"
    serves(kiln, name)
    publish(kiln, name, files_of(name))  # heals it
    for gateway in ("gateway-1", "gateway-2"):
        wait_for(lambda g=gateway: kiln.post_query(LIVE, package=name, gateway=g).status_code == 200, 20, "it is read again")


def test_a_data_file_that_vanishes_from_the_location_does_not_hurt_until_it_is_read_again(baked):
    kiln, package = baked
    (kiln.dir / "packages" / package / "data/orders.csv").unlink()
    serves(kiln, package)
    assert kiln.query(LIVE, package=package).rows == [{"n": 200}]
    r = kiln.call("GET", kiln.package_path(package, "?reload=true"))
    assert r.status_code in (400, 424) and "data/orders.csv" in r.json()["message"], r.text
    serves(kiln, package)


@pytest.mark.parametrize("data, says", [(b"\x00\x01\x02", "orders.parquet"), (b"PAR1" + b"\0" * 50 + b"PAR1", "orders.parquet"), (b"", "orders.parquet")])
def test_a_file_that_is_no_parquet_is_refused_by_name(baked, data, says):
    kiln, package = baked
    bad = {"shop.malloy": "source: daily is duckdb.table('orders.parquet')\n", "orders.parquet": data}
    refused(kiln, package, bad, (400, 422, 424), (says,))
    serves(kiln, package)


@pytest.mark.parametrize("path", ["a=1/b=x y.csv", "it's.csv", 'say "x".csv', "ünï/表 ☃.csv", "per%20cent & more.csv", "semi;colon -- x.csv"])
def test_paths_with_all_kinds_of_characters_are_read_built_and_served(kiln, name, path):
    literal = path.replace("'", "''")
    model = ('##! experimental.persistence\n#@ persist name="kept"\nsource: kept is duckdb.sql("""SELECT word FROM read_csv(\'' + literal +
             '\', hive_partitioning = false)""") extend { measure: n is count() }\n')
    publish(kiln, name, {"shop.malloy": model, path: "word\nx\ny\n"})
    kiln.materialize(name)
    answer = kiln.query("run: kept -> { aggregate: n }", package=name)
    assert (answer.served, answer.rows) == ("baked", [{"n": 2}])


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside.csv", "/proc/self/environ", "nowhere.csv"])
def test_a_link_out_of_the_package_is_refused(baked, target):
    kiln, package = baked
    (kiln.dir / "outside.csv").write_text("region,amount\nx,1\n")
    (kiln.dir / "packages" / package / "data/link.csv").symlink_to(target)
    refused(kiln, package, None, (400, 424), ("data/link.csv",))
    serves(kiln, package)


# ---- limits ----
def test_a_query_beyond_the_memory_limit_is_told_so_and_nothing_else_suffers(baked):
    kiln, package = baked
    model = MODEL + 'source: heavy is duckdb.sql("""SELECT len(list(a.range * b.range)) AS l FROM range(30000) a, range(30000) b""")\n'
    own = kiln.procs["gateway-1"]
    own.env["KILN_DUCKDB_MEMORY"] = "800MB"
    own.restart()
    kiln.wait_ready("gateway-1")
    try:
        publish(kiln, package, {**files_of(package), "shop.malloy": model})
        kiln.materialize(package)
        kiln.wait_bound(package, 2)
        r = kiln.post_query("run: heavy -> { aggregate: s is l.sum() }", package=package)
        assert r.status_code in (413, 422, 503, 507) and "duckdb_memory" in r.json()["message"], f"{r.status_code} {r.text}"
        serves(kiln, package)
    finally:
        del own.env["KILN_DUCKDB_MEMORY"]
        own.restart()
        kiln.wait_ready("gateway-1")


def test_with_256_mb_small_files_of_many_packages_are_read_at_once_and_memory_stays_bounded(kiln, name):
    model = 'source: lines is duckdb.sql("SELECT * FROM \'own.ndjson\'") extend { measure: n is count() }\nsource: rows is duckdb.table(\'own.csv\') extend { measure: n is count() }\n'
    packages = [f"{name}_{i}" for i in range(8)]
    for i, package in enumerate(packages):
        publish(kiln, package, {"shop.malloy": model, "own.ndjson": json.dumps({"a": i}) + "\n", "own.csv": f"a\n{i}\n"})
    own = kiln.procs["gateway-1"]
    own.env["KILN_DUCKDB_MEMORY"] = "256MB"
    own.restart()
    kiln.wait_ready("gateway-1")

    def ask(k):
        package, source = packages[k % 8], ("lines", "rows")[k // 8 % 2]
        return kiln.query(f"run: {source} -> {{ select: a }}", package=package).rows == [{"a": k % 8}]

    def resident_mb():
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{own.pid}/status").read_text())[1]) // 1024

    try:
        before = resident_mb()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(64)))
        print(f"gateway with 256 MB for DuckDB: {before} MB before, {resident_mb()} MB with 8 packages asked at once")
        assert is_sanitized() or resident_mb() < before + 256 + 100
    finally:
        del own.env["KILN_DUCKDB_MEMORY"]
        own.restart()
        kiln.wait_ready("gateway-1")


def test_fifty_thousand_ors_do_not_hold_the_gateway(baked):
    kiln, package = baked
    terms = " or ".join(f"amount = {i}" for i in range(50000))
    began = time.monotonic()
    r = kiln.post_query("run: orders -> { where: " + terms + "; aggregate: n }", package=package)
    assert r.status_code in (200, 400, 413, 422, 503, 504), f"{r.status_code} {r.text[:500]}"
    assert time.monotonic() - began < 30
    began = time.monotonic()
    serves(kiln, package)
    assert time.monotonic() - began < 5


def test_a_full_disk_fails_the_build_by_name_and_the_last_result_is_served(baked):
    kiln, package = baked
    dataset = folder(kiln, package)[1].parent
    kept = kiln.dir / "kept"
    shutil.copytree(dataset, kept)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(dataset)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not possible here: {done.stderr.strip()}")
    try:
        shutil.copytree(kept, dataset, dirs_exist_ok=True)
        kiln.materialize(package, forceRefresh=True)
        grows = MODEL + '#@ persist name="big"\nsource: big is duckdb.sql("""SELECT range AS n, hash(range) AS h FROM range(300000)""")\n'
        publish(kiln, package, {**files_of(package), "shop.malloy": grows})
        run = kiln.materialize(package, status=None, seconds=60)
        assert "big" in json.dumps(run) and "No space left" in json.dumps(run), run
        serves(kiln, package)
        assert kiln.query(LIVE, package=package).rows == [{"n": 200}]
    finally:
        subprocess.run(["umount", "-l", str(dataset)], check=True)


# ---- extensions ----
@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_an_extension_that_is_missing_or_changed_is_named_with_the_remedy(kiln, name, harm):
    linked = subprocess.run(["ldd", str(build_dir() / "bin/kiln-builder")], capture_output=True, text=True, check=True).stdout
    library = next(line.split()[2] for line in linked.splitlines() if "libduckdb" in line)
    library = os.path.realpath(library)
    own = kiln.dir / f"prefix-{harm}"
    shutil.copytree(os.path.join(os.path.dirname(library), "duckdb"), own / "duckdb")
    shutil.copyfile(library, own / "libduckdb.so")
    (excel,) = (own / "duckdb").rglob("excel.duckdb_extension")
    if harm == "missing":
        excel.unlink()
    else:
        data = bytearray(excel.read_bytes())
        data[len(data) // 2] ^= 1
        excel.write_bytes(bytes(data))
    builder = kiln.procs["builder-1"]
    builder.env["LD_LIBRARY_PATH"] = str(own)
    builder.restart()
    kiln.wait_ready("builder-1")
    try:
        refused(kiln, name, {"shop.malloy": "source: x is duckdb.table('x.xlsx')\n", "x.xlsx": b"PK\x03\x04"}, (400, 422, 424, 501), ("excel", "deploy/setup.sh duckdb"))
        publish(kiln, name, files_of(name))  # all else works
    finally:
        del builder.env["LD_LIBRARY_PATH"]
        builder.restart()
        kiln.wait_ready("builder-1")


def test_a_result_replaced_by_one_of_the_same_size_while_nobody_has_it_bound_is_noticed_at_the_next_bind(baked):
    kiln, package = baked
    generation, path = folder(kiln, package)
    for gateway in ("gateway-1", "gateway-2"):
        assert kiln.procs[gateway].stop() == 0
    file = path / "data-0.parquet"
    was, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.with_suffix(".new").write_bytes(bytes(data))
    os.replace(file.with_suffix(".new"), file)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    for gateway in ("gateway-1", "gateway-2"):
        kiln.procs[gateway].start()
        kiln.wait_ready(gateway)
    serves(kiln, package, daily="live", reason="table_missing")
    run = kiln.materialize(package)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesReused"]) == (1, 1), run["metadata"]
    assert folder(kiln, package)[0] != generation
    serves(kiln, package)


# ---- roots and stores ----
@contextlib.contextmanager
def started_with(kiln, name, changes):
    """A service with other arguments within: {flag: value, or None for without it}."""
    proc = kiln.procs[name]
    before = list(proc.argv)
    for flag, value in changes.items():
        at = proc.argv.index(flag)
        proc.argv[at:at + 2] = [] if value is None else [flag, str(value)]
    proc.restart()
    kiln.wait_ready(name)
    try:
        yield proc
    finally:
        proc.argv = before
        proc.restart()
        kiln.wait_ready(name)


def test_a_root_of_another_installation_is_not_written_to(baked):
    kiln, package = baked
    owner = kiln.dir / "generations" / ".kiln-root"
    ours = owner.read_text()
    kiln.procs["builder-1"].stop()
    owner.write_text(json.dumps({**json.loads(ours), "installation": str(uuid.uuid4()), "renewed_us": time.time_ns() // 1000}))
    kiln.procs["builder-1"].start()
    kiln.wait_ready("builder-1")
    try:
        ready = wait_for(lambda: t if "another installation" in (t := kiln.session.get(kiln.url("builder-1") + "/readyz", timeout=5).text) else None, 10, "its health tells")
        assert str(kiln.dir / "generations") in ready and "directory of its own" in ready, ready
        serves(kiln, package)
        before = set(kiln.generations())
        run = kiln.create_run(package, forceRefresh=True)
        kiln.stop_run(run["id"], package)
        kiln.wait_run(run["id"], package, status=None)
        assert set(kiln.generations()) == before
    finally:
        kiln.procs["builder-1"].stop()
        owner.write_text(ours)
        kiln.procs["builder-1"].start()
        kiln.wait_ready("builder-1")
    assert kiln.materialize(package, forceRefresh=True)["metadata"]["sourcesBuilt"] == 2


def test_without_any_builder_on_duckdb_a_package_is_refused_with_the_remedy(baked):
    kiln, package = baked
    with started_with(kiln, "builder-1", {"--generation-root": None}):
        message = refused(kiln, package, {**files_of(package), "extra.csv": "a\n1\n", "shop.malloy": MODEL + "source: e is duckdb.table('extra.csv')\n"}, (400, 424, 503, 504))
        assert "generation root" in message and "builder" in message, message
        serves(kiln, package)
    publish(kiln, package, files_of(package))


def test_a_gateway_without_a_generation_root_serves_live(baked):
    kiln, package = baked
    with started_with(kiln, "gateway-2", {"--generation-root": None}):
        serves(kiln, package, "live", "live", gateways=["gateway-2"])
        serves(kiln, package, gateways=["gateway-1"])
    serves(kiln, package)


def test_a_gateway_that_does_not_reach_the_root_serves_live(baked):
    kiln, package = baked
    with started_with(kiln, "gateway-2", {"--generation-root": kiln.dir / "elsewhere"}):
        serves(kiln, package, "live", "live", gateways=["gateway-2"])
    serves(kiln, package)


def test_a_gateway_without_a_package_store_says_what_to_set(baked):
    kiln, package = baked
    with started_with(kiln, "gateway-2", {"--package-store": None}):
        r = kiln.post_query(DAILY, package=package, gateway="gateway-2")
        assert r.status_code in (500, 501, 503) and "gateway.package_store" in r.json()["message"], f"{r.status_code} {r.text}"
        serves(kiln, package, gateways=["gateway-1"])


def test_a_gateway_with_another_package_store_serves_results_and_says_what_it_misses(baked):
    kiln, package = baked
    (kiln.dir / "other.store").mkdir(exist_ok=True)
    with started_with(kiln, "gateway-2", {"--package-store": kiln.dir / "other.store"}):
        serves(kiln, package, gateways=["gateway-2"])
        r = kiln.post_query(LIVE, package=package, gateway="gateway-2")
        assert r.status_code in (422, 500, 503) and "must share one directory" in r.json()["message"] and "other.store" in r.json()["message"], f"{r.status_code} {r.text}"


def test_a_builder_with_another_package_store_says_what_it_misses(kiln, name):
    (kiln.dir / "other.store").mkdir(exist_ok=True)
    with started_with(kiln, "builder-1", {"--package-store": kiln.dir / "other.store"}):
        refused(kiln, name, files_of(name), (400, 424, 500, 503), ("data/orders.csv", "other.store", "must share one directory"))
    publish(kiln, name, files_of(name))


def test_a_gateway_s_relative_directories_are_those_of_its_start(baked):
    kiln, package = baked
    with started_with(kiln, "gateway-2", {"--state-dir": "relative-state"}):
        serves(kiln, package)
        assert [p.name for p in (kiln.dir / "relative-state").iterdir() if p.name != "duckdb"], "the last binding sets lie beside DuckDB's files"
        assert not list((kiln.dir / "relative-state" / "duckdb" / "empty").iterdir())


def test_ten_thousand_columns_are_read_built_and_served(kiln, name):
    columns = [f"c{i}" for i in range(10000)]
    wide = ",".join(columns) + "\n" + "".join(",".join(str(i + r) for i in range(10000)) + "\n" for r in range(3))
    model = ('##! experimental.persistence\n#@ persist name="wide"\nsource: wide is duckdb.table(\'wide.csv\') -> { select: * } extend '
             '{ measure: n is count(), s is c9999.sum() }\n')
    kiln.write_package(name, {"shop.malloy": model, "wide.csv": wide})

    def published():
        """DuckDB itself takes two seconds to look at such a file; on a busy machine the builder is given up once or twice."""
        answer = kiln.call("POST", f"environments/{ENV}/packages", json={"name": name, "location": f"./packages/{name}"})
        assert answer.status_code in (200, 504), answer.text
        return answer.status_code == 200

    wait_for(published, 180, "a package with ten thousand columns is published")
    kiln.materialize(name, seconds=180)
    answer = kiln.query("run: wide -> { aggregate: n, s }", package=name)
    assert (answer.served, answer.rows) == ("baked", [{"n": 3, "s": 30000}])


@pytest.mark.parametrize("text", ["[1, 2]", "{'a': 1, 'b': 'x'}", "[{'a': 1}]", "[[1], [2, 3]]", "{'a': [1, 2]}", "map {'a': 1}", "1::HUGEINT", "'x'::BLOB", "uuid()"])
def test_a_column_of_any_type_does_not_keep_its_model_from_being_planned(kiln, name, text):
    publish(kiln, name, {**files_of(name), "shop.malloy": MODEL + f'source: odd is duckdb.sql("""SELECT {text} AS a, 1 AS b""")\n'})
    assert kiln.package(name)["warnings"] == []
    assert kiln.materialize(name)["metadata"]["sourcesBuilt"] == 2
    assert kiln.query("run: odd -> { aggregate: s is b.sum() }", package=name).rows == [{"s": 1}]
