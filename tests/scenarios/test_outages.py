"""Losing Redis, planner or both: queries go on from tables (design.md 3; protocol.md 6)."""
import concurrent.futures
import time

import pytest
import requests

from servers import wait_for
from trio import BY_REGION, ORDERS, Trio, gated
from trio_fixtures import shop


@pytest.fixture(scope="module")
def kiln():
    with Trio(packages={"shop": shop("out")}, gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as trio:
        wait_for(lambda: trio.call("GET", trio.package_path()).status_code == 200, 20, "the package is loaded")
        trio.materialize()
        yield trio


def is_baked(kiln, query=BY_REGION):
    answer = kiln.query(query)
    assert answer.served == "baked", (answer.headers, answer.decision)
    assert sum(r["orders_n"] for r in answer.rows) == ORDERS


def test_without_redis_queries_are_baked_and_a_new_binding_still_arrives(kiln):
    kiln.redis.kill9()
    try:
        is_baked(kiln)
        before = kiln.query(BY_REGION).headers["Kiln-Epoch"]
        kiln.materialize(forceRefresh=True)
        wait_for(lambda: kiln.query(BY_REGION).headers["Kiln-Epoch"] > before, 5, "the new epoch is in force")
        is_baked(kiln)
        assert "redis" in kiln.call("GET", "/readyz").text.lower() + kiln.call("GET", "/healthz").text.lower() + kiln.call("GET", "/metrics").text.lower()
    finally:
        kiln.redis.start()
    wait_for(lambda: kiln.redis.command("KEYS", "kiln:*"), 10, "the sets are written again into an empty Redis")


def test_without_the_planner_queries_are_baked_and_a_change_is_503_soon_and_made_once_when_it_is_back(kiln):
    runs = len(kiln.runs())
    path, key = kiln.package_path("shop", "/materializations"), {"Idempotency-Key": "made once"}
    kiln.procs["planner"].kill9()
    try:
        is_baked(kiln)
        is_baked(kiln, "run: daily -> { group_by: sold_on; aggregate: orders_n }")  # compiled now
        for method, what in (("POST", path), ("PATCH", kiln.package_path("shop")), ("POST", "environments/test/connections/x"), ("GET", path)):
            asked = time.monotonic()
            away = kiln.call(method, what, json={"type": "postgres"} if what.endswith("x") else {}, headers=key)
            took = time.monotonic() - asked
            assert away.status_code == 503 and "planner does not answer" in away.json()["message"], (method, what, away.text)
            assert int(away.headers["Retry-After"]) >= 1 and took < 4, (method, what, took)
        status = kiln.json("GET", "status")
        assert status["environments"][0]["packages"][0]["manifestBindingStatus"] == "bound"
        assert status["gateway"]["plannerAnswers"] is False and "planner" in status["loadErrors"][0]["message"]
        assert kiln.binding() == ("bound", 2)
        assert kiln.call("GET", kiln.package_path("shop", "/models")).status_code == 200
    finally:
        kiln.procs["planner"].start()
    kiln.wait_ready()
    made = [kiln.call("POST", path, json={}, headers=key) for _ in range(2)]
    assert [m.status_code for m in made] == [201, 201] and made[0].json()["id"] == made[1].json()["id"], made[0].text
    assert kiln.wait_run(made[0].json()["id"])["metadata"]["sourcesReused"] == 2 and len(kiln.runs()) == runs + 1


def test_a_change_waits_for_a_planner_that_is_back_at_once(kiln):
    runs = len(kiln.runs())
    kiln.procs["planner"].kill9()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(requests.post, kiln.url() + "/api/v0/" + kiln.package_path("shop", "/materializations"), json={}, timeout=60)
        kiln.procs["planner"].start()
        made = asked.result()
    assert made.status_code == 201, made.text
    kiln.wait_ready()
    kiln.wait_run(made.json()["id"])
    assert len(kiln.runs()) == runs + 1


def test_a_gateway_started_without_planner_and_redis_serves_what_it_last_served(kiln):
    is_baked(kiln)
    epoch = kiln.query(BY_REGION).headers["Kiln-Epoch"]
    gateway = kiln.procs["gateway-1"]
    kiln.procs["planner"].kill9()
    kiln.redis.kill9()
    try:
        gateway.kill9()
        gateway.start()
        wait_for(lambda: gateway.alive and kiln_answers(kiln), 20, "the gateway answers alone")
        is_baked(kiln)
        assert kiln.query(BY_REGION).headers["Kiln-Epoch"] == epoch
    finally:
        kiln.redis.start()
        kiln.procs["planner"].start()
    kiln.wait_ready()
    assert kiln.materialize()["metadata"]["sourcesReused"] == 2
    is_baked(kiln)


def kiln_answers(kiln):
    try:
        return kiln.post_query(BY_REGION).status_code == 200
    except OSError:
        return False


def test_a_restored_redis_with_older_sets_does_not_turn_a_gateway_back(kiln):
    (key,) = kiln.redis.command("KEYS", "kiln:*:b:*")
    old = kiln.redis.command("GET", key)
    before = kiln.query(BY_REGION).headers["Kiln-Epoch"]
    kiln.materialize(forceRefresh=True)
    wait_for(lambda: kiln.query(BY_REGION).headers["Kiln-Epoch"] > before, 5, "the new set is in force")
    new = kiln.query(BY_REGION).headers["Kiln-Epoch"]
    kiln.redis.command("SET", key, old)
    is_baked(kiln)
    assert kiln.query(BY_REGION).headers["Kiln-Epoch"] == new
    wait_for(lambda: kiln.redis.command("GET", key)[:20] > old[:20], 15, "the newer set is written over it again")


def test_a_planner_that_stands_by_takes_over_and_ends_the_run_that_the_first_one_began():
    files = shop("standby")
    files["shop.malloy"] += gated("standby_slow", 7401)
    with Trio(packages={"shop": files}, planners=2, gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as own:
        first = own.leader()
        (second,) = set(own.planners) - {first}
        assert not own.is_ready(second), "one planner decides at a time"
        wait_for(lambda: own.call("GET", own.package_path()).status_code == 200, 20, "the package is loaded")
        with own.gate(7401) as waiting:
            run = own.create_run()
            wait_for(waiting, 20, "the build waits at its gate")
            own.procs[first].kill9()
            own.wait_ready(second)
        ended = own.wait_run(run["id"])
        assert ended["metadata"]["sourcesBuilt"] == 3
        is_baked(own)
        own.procs[first].start()
        wait_for(lambda: (own.procs[first].out() + own.procs[first].err()).count("service.started") == 2, 20, "the first one is back")
        assert own.materialize()["metadata"]["sourcesReused"] == 3
        assert own.leader() == second, "who took over goes on"
