"""A signed publish webhook becomes an event, a load, a run, and an answer from a table (protocol.md 5; decisions 3.6, 7.5)."""
import json
import secrets
import time

import pytest

from archives import tar_of, with_manifest, zip_of
from servers import wait_for
from trio import BY_REGION, ENV, ORDERS, Trio, gated
from trio_fixtures import shop
from webhooks import sign_github, sign_standard


def events_of(kiln, package):
    return kiln.store("SELECT public_id, state FROM kiln.event WHERE name = %s ORDER BY id", (package,))


def built(kiln, package):
    return kiln.wh(f'SELECT sum(order_count)::int FROM marts."{package}_daily"')[0][0]


def test_a_signed_webhook_is_built_and_served(kiln, name):
    kiln.write_package(name, shop(name))
    event = kiln.wait_event(kiln.hook(name))
    assert (event["environment"], event["package"], event["error"]) == (ENV, name, None)
    assert built(kiln, name) == ORDERS
    assert kiln.run(event["run"], name)["status"] == "MANIFEST_FILE_READY"
    assert kiln.binding(name) == ("bound", 2)
    answer = kiln.query(BY_REGION, package=name)
    assert answer.served == "baked" and sum(r["orders_n"] for r in answer.rows) == ORDERS


def test_the_trace_of_a_webhook_is_in_the_log_lines_of_its_load_its_run_and_its_jobs(kiln, name):
    kiln.write_package(name, shop(name))
    trace = secrets.token_hex(16)
    body = json.dumps({"environment": ENV, "package": name, "location": f"./packages/{name}"}).encode()
    r = kiln.post_hook(body, headers={**sign_standard(body), "traceparent": f"00-{trace}-{secrets.token_hex(8)}-00"})
    assert r.status_code == 202, r.text
    kiln.wait_event(r.json()["id"])
    planner, builder = ([line for line in (p.out() + p.err()).splitlines() if trace in line] for p in (kiln.procs["planner"], kiln.procs["builder-1"]))
    for says in ("event.state", "package.loaded", "run.state", "job.leased", "job.reported"):
        assert any(says in line for line in planner), (says, planner)
    assert any("job.start" in line for line in builder) and any("job.end" in line for line in builder)


def test_a_webhook_that_asks_for_no_build_only_publishes(kiln, name):
    kiln.write_package(name, shop(name))
    event = kiln.wait_event(kiln.hook(name, build=False))
    assert event["run"] is None and not kiln.table_exists(f"marts.{name}_daily")
    assert kiln.query(BY_REGION, package=name).served == "live"


@pytest.mark.parametrize("forge, says", [
    (lambda body, h: h | {"webhook-signature": "v1," + "A" * 43 + "="}, "webhook-signature"),
    (lambda body, h: h | {"webhook-signature": h["webhook-signature"].replace("v1,", "v2,")}, "webhook-signature"),
    (lambda body, h: h | {"webhook-id": "msg_other"}, "webhook-signature"),
    (lambda body, h: sign_standard(body, at=time.time() - 301), "5 minutes"),
    (lambda body, h: sign_standard(body, at=time.time() + 310), "5 minutes"),
    (lambda body, h: sign_standard(body, secret="whsec_AAAA"), "webhook-signature"),
    (lambda body, h: {}, "signature"),
    (lambda body, h: sign_github(body, secret="another secret"), "X-Hub-Signature-256"),
    (lambda body, h: sign_github(body) | {"X-GitHub-Delivery": ""}, "X-GitHub-Delivery"),
], ids=["forged", "other version", "other id", "stale", "from the future", "wrong secret", "unsigned", "GitHub, wrong secret", "GitHub, no id"])
def test_a_delivery_that_is_not_rightly_signed_is_refused_and_leaves_nothing(kiln, name, forge, says):
    kiln.write_package(name, shop(name))
    body = json.dumps({"environment": ENV, "package": name, "location": f"./packages/{name}"}).encode()
    r = kiln.post_hook(body, headers=forge(body, sign_standard(body)))
    assert r.status_code == 401 and says in r.json()["message"], r.text
    assert kiln.secret not in r.text
    assert events_of(kiln, name) == []


def test_a_repeated_delivery_gets_the_first_ones_event_and_builds_once(kiln, name):
    kiln.write_package(name, shop(name))
    body = json.dumps({"environment": ENV, "package": name, "location": f"./packages/{name}"}).encode()
    headers = sign_standard(body)
    first = kiln.post_hook(body, headers=headers)
    again = kiln.post_hook(body, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202) and first.json()["id"] == again.json()["id"]
    kiln.wait_event(first.json()["id"])
    late = kiln.post_hook(body, headers=headers)
    assert late.json()["id"] == first.json()["id"] and late.json()["state"] == "done"
    assert len(events_of(kiln, name)) == 1
    assert kiln.store("SELECT count(*) FROM kiln.run r JOIN kiln.unit u ON u.id = r.unit WHERE u.name = %s", (name,))[0][0] == 1


def test_a_github_push_names_the_package_in_the_url_and_reads_its_stored_location(kiln, name):
    kiln.write_package(name, shop(name))
    kiln.wait_event(kiln.hook(name, build=False))
    body = json.dumps({"ref": "refs/heads/main", "package": {"not": "ours"}}).encode()
    where = {"environment": ENV, "package": name}
    pong = kiln.post_hook(b"{}", headers=sign_github(b"{}", event="ping"), params=where)
    other = kiln.post_hook(b"{}", headers=sign_github(b"{}", event="issues"), params=where)
    assert (pong.status_code, other.status_code) == (200, 202) and "id" not in other.json()
    r = kiln.post_hook(body, headers=sign_github(body), params=where)
    assert r.status_code == 202, r.text
    kiln.wait_event(r.json()["id"])
    assert built(kiln, name) == ORDERS


@pytest.mark.parametrize("pack", [zip_of, tar_of], ids=["zip", "tar.gz"])
def test_an_archive_as_the_body_is_published_and_built(kiln, name, pack):
    body = pack(with_manifest(name, shop(name)))
    r = kiln.post_hook(body, params={"environment": ENV, "package": name})
    assert r.status_code == 202, r.text
    kiln.wait_event(r.json()["id"])
    assert built(kiln, name) == ORDERS


@pytest.mark.parametrize("ending, pack", [("zip", zip_of), ("tar.gz", tar_of)])
def test_an_archive_on_disk_is_published_and_built(kiln, name, ending, pack):
    path = kiln.dir / f"{name}.{ending}"
    path.write_bytes(pack(with_manifest(name, shop(name))))
    kiln.wait_event(kiln.hook(name, location=path))
    assert built(kiln, name) == ORDERS


def test_a_failed_build_never_fails_the_publish(kiln, name):
    model = shop(name)["shop.malloy"] + f'''
#@ persist name="marts.{name}_broken"
source: broken is wh.sql("""SELECT 1 / (count(*) - {ORDERS}) AS n FROM orders""")
'''
    kiln.write_package(name, {"shop.malloy": model.replace(f'#@ persist name="marts.{name}_daily"', "").replace(
        f'#@ persist name="marts.{name}_regions"', "")})
    event = kiln.wait_event(kiln.hook(name))
    assert event["state"] == "done" and "published" in event["error"] and "division by zero" in event["error"], event
    assert kiln.run(event["run"], name)["status"] == "FAILED"
    assert kiln.query("run: daily -> { aggregate: orders_n }", package=name).rows == [{"orders_n": ORDERS}]


def test_a_webhook_during_an_active_run_waits_and_then_builds(kiln, name):
    files = shop(name)
    files["shop.malloy"] += gated(f"{name}_slow", 7001)
    kiln.write_package(name, files)
    with kiln.gate(7001) as waiting:
        first = kiln.hook(name)
        wait_for(waiting, 20, "the first build waits at its gate")
        files["shop.malloy"] = files["shop.malloy"].replace("view: by_region", "view: by_area")
        kiln.write_package(name, files)
        second = kiln.hook(name)
        wait_for(lambda: kiln.event(second)["state"] == "waiting", 20, "the second event waits for the first one's run")
        assert kiln.event(first)["state"] == "running"
    one, two = kiln.wait_event(first), kiln.wait_event(second)
    assert one["run"] != two["run"]
    assert kiln.query("run: daily -> by_area", package=name).served == "baked"


def test_a_publish_that_does_not_load_fails_its_event_and_keeps_what_was_served(kiln, name):
    kiln.write_package(name, shop(name))
    kiln.wait_event(kiln.hook(name))
    kiln.write_package(name, {"shop.malloy": "source: daily is nowhere"})
    event = kiln.hook(name)
    wait_for(lambda: kiln.event(event)["state"] == "failed", 30, "the event has failed")
    assert "shop.malloy:1" in kiln.event(event)["error"]
    answer = kiln.query(BY_REGION, package=name)
    assert answer.served == "baked" and sum(r["orders_n"] for r in answer.rows) == ORDERS


def test_an_event_that_was_taken_before_a_crash_of_the_planner_is_built_after_it(kiln, name):
    files = shop(name)
    files["shop.malloy"] += gated(f"{name}_slow", 7002)
    kiln.write_package(name, files)
    with kiln.gate(7002) as waiting:
        event = kiln.hook(name)
        wait_for(waiting, 20, "the build waits at its gate")
        kiln.procs["planner"].kill9()
        kiln.procs["planner"].start()
        kiln.wait_ready("planner")
    kiln.wait_event(event)
    assert built(kiln, name) == ORDERS


def test_without_a_secret_deliveries_are_taken_from_this_machine():
    with Trio(secret=None, gateways=0, packages={"shop": shop("own")}) as own:
        r = own.post_hook({"environment": ENV, "package": "shop"}, headers={})
        assert r.status_code == 202, r.text
        own.wait_event(r.json()["id"])
        assert own.table_exists("marts.own_daily")
