"""kiln up as its user runs it: one foreground process that brings everything, and takes everything with it."""
import json
import shutil
import signal
import subprocess

import pytest
import requests

from flights import FLIGHTS
from servers import ROOT, PgServer, Proc, binary, descendants, free_port, process_gone, short_dir, wait_for

QUERY = {"query": "run: route_month -> { aggregate: flights_flown }", "compactJson": True}
MODEL = "api/v0/environments/demo/packages/flights_pg/models/marts.malloy/query"


@pytest.fixture(name="warehouse", scope="module")
def warehouse_with_flights():
    with PgServer() as pg:
        pg.rows(FLIGHTS)
        yield pg


class Up:
    """One kiln up on a root of its own."""

    def __init__(self, warehouse, root=None, port=None):
        self.root = root or short_dir("kt-up-")
        self.root.chmod(0o755)  # the unprivileged user of the private PostgreSQL walks through it
        self.port = port or free_port()
        self.proc = Proc("kiln-up", [binary("kiln"), "up", "--server_root", self.root, "--config", ROOT / "examples/flights/postgres/publisher.config.json",
                                     "--port", self.port, "--webhook-port", free_port()],
                         env={"KILN_DEMO_PG": warehouse.url()}, death_signal=signal.SIGTERM)

    def ready(self, seconds=90):
        wait_for(lambda: self.proc.said("PUBLISHER_READY"), seconds, "kiln up is ready")
        return self

    def url(self, path):
        return f"http://127.0.0.1:{self.port}/{path}"

    def stop(self, seconds=5):
        if self.proc.alive:
            self.proc.signal(signal.SIGTERM)
            self.proc.wait(seconds)
        return self.proc.code


def test_it_serves_builds_and_is_gone_within_five_seconds_and_serves_again(warehouse):
    up = Up(warehouse).ready()
    try:
        answer = requests.post(up.url(MODEL), json=QUERY, timeout=60)
        assert answer.status_code == 200 and answer.headers["Kiln-Served"] == "live"
        assert json.loads(answer.json()["result"]) == [{"flights_flown": 2000}]
        kiln = subprocess.run([binary("kiln"), "materialize", "demo", "flights_pg", "--wait", "--json", "--url", f"http://127.0.0.1:{up.port}"],
                              capture_output=True, text=True, timeout=120, check=False)
        assert kiln.returncode == 0, kiln.stderr
        assert requests.post(up.url(MODEL), json=QUERY, timeout=60).headers["Kiln-Served"] == "baked"
        below = descendants(up.proc.pid)
        assert len(below) > 5
        assert up.stop() == 0, up.proc.last_words()
        wait_for(lambda: all(process_gone(p) for p in below), 2, "every child is gone")

        again = Up(warehouse, root=up.root, port=up.port).ready()
        answer = requests.post(again.url(MODEL), json=QUERY, timeout=60)
        assert answer.headers["Kiln-Served"] == "baked", "a restart binds again"
        assert again.stop() == 0
    finally:
        up.proc.close()
        shutil.rmtree(up.root, ignore_errors=True)


def test_six_of_them_run_on_one_machine(warehouse):
    ups = [Up(warehouse) for _ in range(6)]
    try:
        for up in ups:
            up.ready(180)
        for up in ups:
            answer = requests.post(up.url(MODEL), json=QUERY, timeout=60)
            assert json.loads(answer.json()["result"]) == [{"flights_flown": 2000}]
        for up in ups:
            up.proc.signal(signal.SIGTERM)
        for up in ups:
            up.proc.wait(10)
            assert up.proc.code == 0, up.proc.last_words()
    finally:
        for up in ups:
            up.proc.close()
            shutil.rmtree(up.root, ignore_errors=True)


def test_a_second_one_on_the_same_root_and_a_taken_port_end_with_one_sentence(warehouse):
    up = Up(warehouse).ready()
    try:
        second = Up(warehouse, root=up.root)
        second.proc.wait(20)
        assert second.proc.code == 1 and str(up.root) in second.proc.err() and str(up.proc.pid) in second.proc.err()
        other = Up(warehouse, port=up.port)
        other.proc.wait(20)
        assert other.proc.code == 1 and str(up.port) in other.proc.err() and "--port" in other.proc.err()
        shutil.rmtree(other.root, ignore_errors=True)
        assert requests.get(up.url("readyz"), timeout=10).status_code == 200, "the first one serves on"
        assert up.stop() == 0
    finally:
        up.proc.close()
        shutil.rmtree(up.root, ignore_errors=True)
