"""docker-compose.yml without a container engine: the very same commands and environment as separate processes over TCP.

Addresses and directories of the containers are mapped to this machine, nothing else is changed; health checks are run as they are written.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import requests
import yaml

from flights import EXAMPLE, FLIGHTS, write_files
from servers import ROOT, PgServer, Proc, RedisServer, binary, build_dir, free_port, short_dir, wait_for

SECRETS = {"KILN_SECRET_KEY": "5e" * 32, "KILN_BUS_KEY": "b5" * 32, "KILN_WEBHOOK_SECRET": "whsec_" + "QUJD" * 8, "KILN_PG_PASSWORD": "test"}
TRIO = ("planner", "builder-1", "builder-2", "gateway")
SHARED = ("package_store", "generations")  # volumes that more than one service mounts


def tools_dir():
    return os.environ.get("KILN_PREFIX", str(ROOT / "build/tools"))


def image_environment():
    """ENV of the Dockerfile's last stage."""
    text = (ROOT / "deploy/Dockerfile").read_text().replace("\\\n", " ").split("\nFROM ")[-1]
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(re.findall(r"^ENV (.*)$", text, flags=re.M))))


class Composed:
    """The services of docker-compose.yml on this machine."""

    def __init__(self, pg, redis):
        done = subprocess.run(["docker-compose", "-f", "docker-compose.yml", "config"], cwd=ROOT, env={**os.environ, **SECRETS}, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.services = yaml.safe_load(done.stdout)["services"]
        mounts = [v.split(":") for v in self.services["planner"]["volumes"]]
        self.config = next(m[0] for m in mounts if m[1] == "/config")
        self.dir = short_dir("kt-deploy-")
        for shared in SHARED:
            (self.dir / shared).mkdir()
        self.ports = {("postgres", "5432"): pg.port, ("redis", "6379"): redis.port}
        self.procs = {}

    def port(self, service, inner):
        """The port on this machine of a container's port."""
        key = (service, str(inner))
        if key not in self.ports:
            self.ports[key] = free_port()
        return self.ports[key]

    def here(self, service, text):
        """A value of the compose file, for this machine."""
        text = re.sub(r"\b(?:0\.0\.0\.0|127\.0\.0\.1):(\d+)", lambda m: f"127.0.0.1:{self.port(service, m[1])}", text)
        names = "|".join(map(re.escape, self.services))
        text = re.sub(rf"(^|//|@)({names}):(\d+)", lambda m: f"{m[1]}127.0.0.1:{self.port(m[2], m[3])}", text)
        text = text.replace("/opt/kiln/bin/node", shutil.which("node")).replace("/opt/kiln/bin", str(build_dir() / "bin"))
        for shared in SHARED:
            text = text.replace(f"/var/lib/kiln/{shared}", str(self.dir / shared))
        text = text.replace("/var/lib/kiln", str(self.dir / service))
        return re.sub(r"^/config\b", self.config, text)

    def start(self, name):
        service = self.services[name]
        (self.dir / name).mkdir(exist_ok=True)
        env = {key: None for key in os.environ if key not in ("PATH", "HOME", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS")}
        given = {**image_environment(), **service["environment"]}
        env.update({k: self.here(name, str(v)) for k, v in given.items() if k != "PATH"})
        argv = [binary(service["command"][0]), *service["command"][1:]]
        self.procs[name] = Proc(name, argv, env=env, cwd=self.dir / name, logs=self.dir)
        wait_for(lambda: self.is_healthy(name), 60, f"{name} is healthy")

    def is_healthy(self, name):
        """The service's own health check, run here."""
        proc = self.procs[name]
        if not proc.alive:
            raise RuntimeError(f"{name} ended with {proc.code}: {proc.last_words()}")
        test = self.services[name]["healthcheck"]["test"]
        assert test[0] == "CMD"
        return subprocess.run([self.here(name, t) for t in test[1:]], capture_output=True, check=False).returncode == 0

    def start_all(self):
        """In the order of depends_on, each when what it depends on is healthy."""
        waiting = list(TRIO)
        while waiting:
            name = next(n for n in waiting if not set(self.services[n]["depends_on"]) & set(waiting))
            waiting.remove(name)
            self.start(name)

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port('gateway', 4000)}{path}"

    def close(self):
        for name in reversed(TRIO):
            if name in self.procs:
                self.procs[name].close()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture(name="composed", scope="module")
def composed_trio():
    with PgServer(tcp=True, user="kiln", password=SECRETS["KILN_PG_PASSWORD"]) as pg, RedisServer(tcp=True) as redis:
        pg.create_db("kiln")
        pg.rows((ROOT / "deploy/warehouse.sql").read_text().split("\n", 1)[1])
        pg.rows(FLIGHTS, db="warehouse")
        trio = Composed(pg, redis)
        try:
            trio.start_all()
            yield trio
        finally:
            trio.close()


def test_every_service_is_healthy_by_its_own_check(composed):
    assert all(composed.is_healthy(name) for name in TRIO)


def ask(composed, package="flights_pg", live=False):
    r = requests.post(composed.url(f"/api/v0/environments/demo/packages/{package}/models/marts.malloy/query"),
                      json={"query": "run: route_month -> by_month", "compactJson": True},
                      headers={"Kiln-Mode": "live"} if live else {}, timeout=30)
    assert r.status_code == 200, r.text
    return r


def built_and_asked(composed, package):
    """A run of the package, between a live and a baked answer, which are equal."""
    live = ask(composed, package)
    runs = composed.url(f"/api/v0/environments/demo/packages/{package}/materializations")
    made = requests.post(runs, json={}, timeout=30)
    assert made.status_code == 201, made.text

    def ended():
        run = requests.get(f"{runs}/{made.json()['id']}", timeout=10).json()
        return run if run["status"] not in ("PENDING", "MANIFEST_ROWS_READY") else None

    run = wait_for(ended, 60, "the run has ended")
    assert run["status"] == "MANIFEST_FILE_READY", run
    baked = ask(composed, package)
    assert (live.headers["Kiln-Served"], baked.headers["Kiln-Served"]) == ("live", "baked")
    assert json.loads(baked.json()["result"]) == json.loads(live.json()["result"])
    return json.loads(baked.json()["result"])


def test_a_query_is_answered_live_and_then_from_the_table_that_a_builder_built(composed):
    assert built_and_asked(composed, "flights_pg")


def test_a_package_with_its_own_files_is_built_and_served_over_the_shared_volumes(composed, tmp_path):
    shutil.copytree(EXAMPLE / "package", tmp_path / "package")
    write_files(tmp_path / "package")
    archive = shutil.make_archive(str(tmp_path / "flights"), "gztar", tmp_path / "package")
    done = subprocess.run([binary("kiln"), "publish", "demo", "flights", "--archive", archive, "--url", composed.url()], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert built_and_asked(composed, "flights") == json.loads(ask(composed, "flights_pg", live=True).json()["result"]), "the same rows as PostgreSQL's"


def test_a_gateway_that_starts_again_serves_from_the_tables(composed):
    composed.procs["gateway"].kill9()
    composed.start("gateway")
    assert [ask(composed, p).headers["Kiln-Served"] for p in ("flights_pg", "flights")] == ["baked", "baked"]


def test_containers_run_as_nobody_special_and_publish_on_loopback_only(composed):
    for name, service in composed.services.items():
        for port in service.get("ports", []):
            assert str(port).startswith("127.0.0.1:"), name
    assert "\nUSER kiln\n" in (ROOT / "deploy/Dockerfile").read_text()


def test_the_image_has_all_that_its_build_needs(tmp_path):
    """CMake configures from the files that the Dockerfile copies, and from no others."""
    for line in (ROOT / "deploy/Dockerfile").read_text().splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and "--from=build" not in words:
            for source in words[1:-1]:
                target = tmp_path / source
                target.parent.mkdir(parents=True, exist_ok=True)
                if pathlib.Path(ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("node_modules"))
                else:
                    shutil.copy(ROOT / source, target)
    tools = {**os.environ, "KILN_PREFIX": tools_dir()}  # the image has them elsewhere, too
    done = subprocess.run(["cmake", "--preset", "release"], cwd=tmp_path, env=tools, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = ["kiln", "kiln-planner", "kiln-builder", "kiln-gateway", "kiln_compiler_bundle"]
    done = subprocess.run(["ninja", "-C", "build", "-n", *wanted], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def setup_duckdb(prefix):
    """deploy/setup.sh duckdb where no registry answers; its exit code and its own lines."""
    env = {**os.environ, "KILN_PREFIX": str(prefix), "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "npm_config_registry": "http://127.0.0.1:9/",
           "npm_config_fetch_retries": "0"}
    done = subprocess.run([ROOT / "deploy/setup.sh", "duckdb"], env=env, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("setup: fetching")]


@pytest.fixture(name="prefix")
def installed_duckdb(tmp_path):
    """DuckDB as setup.sh installed it, in a folder of its own: links, which a test may replace."""
    tools = pathlib.Path(tools_dir())
    files = [tools / "lib/libduckdb.so", tools / "include/duckdb.h", *sorted((tools / "lib/duckdb/ext").rglob("*.duckdb_extension"))]
    assert len(files) == 7, "deploy/setup.sh duckdb was not run"
    for file in files:
        link = tmp_path / file.relative_to(tools)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file)
    return tmp_path


def test_duckdb_that_is_installed_is_left_alone_without_a_network(prefix):
    assert setup_duckdb(prefix) == (0, [])


@pytest.mark.parametrize("name", ["include/duckdb.h", "lib/duckdb/ext/v1.5.5/linux_amd64/excel.duckdb_extension"])
def test_a_file_of_duckdb_that_was_changed_by_a_byte_is_named_and_not_replaced(prefix, name):
    file = prefix / name
    changed = bytearray(file.read_bytes())
    changed[1000] ^= 1
    file.unlink()
    file.write_bytes(changed)
    code, said = setup_duckdb(prefix)
    assert code == 1
    assert said == [f"setup: {file} does not have the pinned hash of DuckDB 1.5.5; delete it and run deploy/setup.sh duckdb again"]
    assert file.read_bytes() == changed


@pytest.mark.parametrize(("name", "who"), [("lib/libduckdb.so", "npm"), ("lib/duckdb/ext/v1.5.5/linux_amd64/excel.duckdb_extension", "pip")])
def test_a_file_of_duckdb_that_cannot_be_fetched_is_one_sentence(prefix, name, who):
    (prefix / name).unlink()
    code, said = setup_duckdb(prefix)
    assert code == 1
    assert len(said) == 1 and said[0].startswith(f"setup: {who} could not fetch"), said
    assert not (prefix / name).exists()
    assert not list(prefix.glob("duckdb.*")), "what was begun is left behind"
