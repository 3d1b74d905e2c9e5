"""The REST API of the gateway beside queries: routes, packages, environments, connections, runs, frozen configuration."""
import hashlib
import secrets

import pytest

from servers import wait_for
from trio import BY_REGION, ENV, Trio
from trio_fixtures import publish, shop

HERE = f"environments/{ENV}"


def message(response, status):
    assert response.status_code == status, f"{response.status_code} {response.text[:1000]}"
    body = response.json()
    assert body["code"] == status
    return body["message"]


# ---- routes ----
@pytest.mark.parametrize("method,path,status,says", [
    ("GET", "nothing", 404, "there is nothing at"),
    ("GET", f"{HERE}/packages/ghost", 404, "'ghost'"),
    ("GET", f"{HERE}/packages/ghost/models", 404, "'ghost'"),
    ("GET", "environments/ghost", 404, "'ghost'"),
    ("GET", "environments/a%2Fb", 400, "environment name"),
    ("GET", f"{HERE}/packages/x/models/..%2F..%2Fetc", 400, "model path"),
    ("GET", f"{HERE}/packages/x?versionId=1", 501, "versionId"),
    ("GET", f"{HERE}/packages/x/dashboards", 501, "not built yet"),
    ("POST", "watch-mode/start", 501, "?reload=true"),
    ("PUT", "status", 405, "GET, HEAD, OPTIONS"),
])
def test_what_cannot_be_answered_is_refused_with_a_status_and_a_sentence(kiln, method, path, status, says):
    assert says in message(kiln.call(method, path), status)


def test_answers_are_open_to_browsers_and_head_stands_for_get(kiln):
    preflight = kiln.call("OPTIONS", f"{HERE}/packages")
    assert preflight.status_code == 204 and "PATCH" in preflight.headers["Access-Control-Allow-Methods"]
    assert {"Idempotency-Key", "Kiln-Mode", "traceparent"} <= set(preflight.headers["Access-Control-Allow-Headers"].split(", "))
    exposed = set(kiln.call("GET", "status").headers["Access-Control-Expose-Headers"].split(", "))
    assert {"Kiln-Served", "Kiln-Reason", "Kiln-Epoch", "Kiln-Generation", "Location", "Retry-After"} <= exposed
    got, head = kiln.call("GET", "status"), kiln.call("HEAD", "environments")
    assert got.headers["Access-Control-Allow-Origin"] == "*" == kiln.call("GET", "nothing").headers["Access-Control-Allow-Origin"]
    assert head.status_code == 200 and head.content == b"" and int(head.headers["Content-Length"]) > 2
    refused = kiln.call("DELETE", "theme/x")
    assert refused.status_code == 404
    assert kiln.call("PATCH", "theme").headers["Allow"] == "GET, HEAD, PUT, DELETE, OPTIONS"


def test_the_root_names_the_server_and_the_index_lists_every_route(kiln):
    assert kiln.json("GET", "/")["name"] == "kiln"
    routes = kiln.json("GET", "/api/v0")["routes"]
    assert {"method": "GET", "path": "/api/v0/status"}.items() <= routes[[r["path"] for r in routes].index("/api/v0/status")].items()
    assert any(not r["built"] for r in routes) and kiln.json("GET", "theme") == {}
    assert kiln.json("GET", "watch-mode/status")["enabled"] is False


def test_the_old_spelling_of_environments_is_taken(shopped):
    kiln, package = shopped
    assert kiln.json("GET", f"projects/{ENV}/packages/{package}")["name"] == package
    assert isinstance(kiln.json("GET", f"projects/{ENV}/packages/materializations?limit=1"), list)


# ---- packages ----
def test_a_publish_is_in_force_when_it_is_answered_and_gone_when_its_delete_is(kiln, name):
    kiln.write_package(name, shop(name))
    body = {"name": name, "location": f"./packages/{name}", "description": "of this test"}
    for _ in range(2):  # the second time under the name of one that was deleted
        r = kiln.call("POST", f"{HERE}/packages", json=body)
        assert r.status_code == 200 and r.json()["description"] == "of this test", r.text
        assert r.json()["manifestBindingStatus"] == "unbound" and int(r.headers["Kiln-Epoch"]) > 0
        assert [m["path"] for m in kiln.json("GET", f"{HERE}/packages/{name}/models")] == ["shop.malloy"]
        kiln.json("DELETE", f"{HERE}/packages/{name}")
        message(kiln.call("GET", f"{HERE}/packages/{name}"), 404)


@pytest.mark.parametrize("body,status,says", [
    ({}, 400, "'name' is missing"),
    ({"name": 7}, 400, "'name' must be a string"),
    ({"name": "a/b"}, 400, "slashes"),
    ({"name": "materializations"}, 400, "reserved"),
    ({"name": "a", "location": []}, 400, "'location'"),
    ({"name": "a", "versionId": "1"}, 501, "versionId"),
])
def test_a_publish_of_a_bad_body_is_refused(kiln, body, status, says):
    assert says in message(kiln.call("POST", f"{HERE}/packages", json=body), status)


def test_a_package_that_does_not_compile_is_424_and_leaves_nothing(kiln, name):
    kiln.write_package(name, {"x.malloy": "source: x is nothing"})
    r = kiln.call("POST", f"{HERE}/packages", json={"name": name, "location": f"./packages/{name}"})
    assert "does not compile" in message(r, 424)
    assert kiln.call("GET", f"{HERE}/packages/{name}").status_code in (404, 424)


def test_a_manifest_whose_name_is_no_string_is_refused_with_one_sentence(kiln, name):
    where = kiln.write_package(name, shop(name))
    (where / "publisher.json").write_text('{"name": 7}')
    says = message(kiln.call("POST", f"{HERE}/packages", json={"name": name, "location": f"./packages/{name}"}), 424)
    assert says == f"package '{name}': publisher.json: \"name\" must be a string, such as \"sales\", and it is a number"


def test_patch_changes_what_it_names_keeps_the_bindings_and_unbinds_on_null(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    path = f"{HERE}/packages/{package}"
    changed = kiln.json("PATCH", path, json={"name": package, "description": "new words"})
    assert (changed["description"], changed["manifestBindingStatus"], changed["manifestEntryCount"]) == ("new words", "bound", 2)
    assert kiln.package(package)["description"] == "new words"
    assert "renaming" in message(kiln.call("PATCH", path, json={"name": "other"}), 400)
    assert "'materialization'" in message(kiln.call("PATCH", path, json={"materialization": 3}), 400)
    cleared = kiln.json("PATCH", path, json={"manifestLocation": None})
    assert (cleared["manifestBindingStatus"], cleared["manifestEntryCount"]) == ("unbound", 0)
    assert kiln.query(BY_REGION, package=package).served == "live"


def test_a_patch_that_unbinds_changes_the_rest_of_its_body_as_well(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    path = f"{HERE}/packages/{package}"
    body = {"name": package, "manifestLocation": None, "description": "and new words", "materialization": {"schedule": "0 5 * * *"}, "scope": "version"}
    for manifest_location in (None, ""):
        changed = kiln.json("PATCH", path, json={**body, "manifestLocation": manifest_location})
        assert (changed["manifestBindingStatus"], changed["manifestEntryCount"]) == ("unbound", 0)
        assert (changed["description"], changed["scope"], changed["materialization"]["schedule"]) == ("and new words", "version", "0 5 * * *")
        assert kiln.query(BY_REGION, package=package).served == "live"
        assert kiln.materialize(package)["status"] == "MANIFEST_FILE_READY"
    assert "'explores'" in message(kiln.call("PATCH", path, json={"manifestLocation": None, "explores": 7}), 400)
    assert kiln.package(package)["manifestBindingStatus"] == "bound", "what is refused unbinds nothing"


def test_a_reload_unbinds_and_says_so(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    reloaded = kiln.reload(package)
    assert reloaded["manifestBindingStatus"] == "unbound"
    assert any(a["message"].startswith("unbound by reload: run a build") for a in reloaded["advisories"])
    assert not any("unbound" in w["message"] for w in reloaded["warnings"])


def test_a_change_too_long_for_its_message_is_413_and_says_so(kiln, name):
    body = {"name": name, "location": f"./packages/{name}", "description": "x" * 300_000}
    assert message(kiln.call("POST", f"{HERE}/packages", json=body), 413).startswith("PUBLISH: a request of 300")


# ---- environments ----
def test_an_environment_comes_with_its_packages_and_goes_with_them(kiln, name):
    kiln.write_package(name, shop(name))
    kiln.write_package(name + "_bad", {"x.malloy": "source: x is nothing"})
    wh = {"name": "wh", "type": "postgres", "postgresConnection": {"connectionString": kiln.pg.url("wh")}}
    body = {"name": name, "readme": "hello", "connections": [wh],
            "packages": [{"name": p, "location": f"./packages/{p}"} for p in (name, name + "_bad")]}
    made = kiln.json("POST", "environments", json=body)
    assert (made["readme"], [p["name"] for p in made["packages"]], [c["name"] for c in made["connections"]]) == ("hello", [name], ["wh"])
    assert [e["package"] for e in made["loadErrors"]] == [name + "_bad"]
    assert kiln.json("PATCH", f"environments/{name}", json={"readme": "ho"})["readme"] == "ho"
    assert "renaming" in message(kiln.call("PATCH", f"environments/{name}", json={"name": "x"}), 400)
    assert [p["name"] for p in kiln.json("GET", f"environments/{name}?reload=true")["packages"]] == [name]
    assert name in [e["name"] for e in kiln.json("GET", "environments")]
    kiln.json("DELETE", f"environments/{name}")
    message(kiln.call("GET", f"environments/{name}"), 404)
    message(kiln.call("GET", f"environments/{name}/packages/{name}"), 404)


# ---- connections ----
def test_a_connection_is_created_read_without_its_secrets_changed_and_deleted(kiln, name):
    path = f"{HERE}/connections/{name}"
    settings = {"host": "/nowhere", "userName": "u", "databaseName": "d", "password": "hunter22 of the test"}
    assert "'type'" in message(kiln.call("POST", path, json={"postgresConnection": settings}), 400)
    kiln.json("POST", path, status=201, json={"type": "postgres", "postgresConnection": settings})
    assert "PATCH" in message(kiln.call("POST", path, json={"type": "postgres"}), 409)
    kiln.json("PATCH", path, json={"postgresConnection": {"databaseName": "other"}})
    got = kiln.json("GET", path)
    assert got["postgresConnection"] == {"host": "/nowhere", "userName": "u", "databaseName": "other"}
    kiln.json("DELETE", path)
    message(kiln.call("GET", path), 404)
    message(kiln.call("DELETE", path), 404)
    message(kiln.call("PATCH", path, json={}), 404)
    assert "hunter22" not in kiln.last_words(1_000_000)


def test_no_credential_of_a_connection_is_shown_whatever_its_setting_is_called(kiln, name):
    path, secret = f"{HERE}/connections/{name}", "s3cr3t-of-the-test"
    settings = {"host": "/nowhere", "userName": "u", "sslpassword": secret, "ssh": {"identity_key": secret, "jump": f"ssh://u:{secret}@host"},
                "options": f"-c x password={secret}", "list": [{"clientSecret": secret}], "proxyUrl": f"http://u:{secret}@proxy"}
    kiln.json("POST", path, status=201, json={"type": "postgres", "postgresConnection": settings, "sessionToken": secret})
    assert kiln.json("GET", path)["postgresConnection"] == {"host": "/nowhere", "userName": "u", "ssh": {}, "list": [{}]}
    for where in ("status", HERE, "environments", f"{HERE}/connections"):
        shown = kiln.call("GET", where)
        assert shown.status_code == 200 and name in shown.text and secret not in shown.text, where
    kiln.json("DELETE", path)
    assert secret not in kiln.last_words(1_000_000)


# ---- runs ----
@pytest.mark.parametrize("body,status,says", [
    ({"forceRefresh": "yes"}, 400, "'forceRefresh'"),
    ({"sourceNames": ["daily", 1]}, 400, "'sourceNames'"),
    ({"sourceNames": ["ghost"]}, 400, "'ghost'"),
    ({"runContext": {"trigger": "cron"}}, 400, "'runContext.trigger'"),
    ({"buildInstructions": {}}, 501, "'buildInstructions'"),
])
def test_a_run_of_a_bad_body_is_refused_and_the_field_is_named(shopped, body, status, says):
    kiln, package = shopped
    assert says in message(kiln.call("POST", f"{HERE}/packages/{package}/materializations", json=body), status)


def test_one_idempotency_key_makes_one_run(shopped):
    kiln, package = shopped
    runs = f"{HERE}/packages/{package}/materializations"
    key = {"Idempotency-Key": hashlib.sha256(package.encode()).hexdigest()}
    first = kiln.call("POST", runs, json={}, headers=key)
    second = kiln.call("POST", runs, json={}, headers=key)
    assert first.status_code == second.status_code == 201
    assert first.json()["id"] == second.json()["id"] and first.headers["Location"].endswith(first.json()["id"])
    kiln.wait_run(first.json()["id"], package)


def once_and_again(kiln, method, path, status, package=None, **kw):
    """The same call twice with one key: the same answer, and the package's binding set stays what the first one made it."""
    key = {"Idempotency-Key": secrets.token_hex(8)}
    first = kiln.call(method, path, headers=key, **kw)
    epoch = package and epoch_of(kiln, package)
    second = kiln.call(method, path, headers=key, **kw)
    assert first.status_code == second.status_code == status and first.content == second.content, (first.text, second.text)
    assert not package or epoch_of(kiln, package) == epoch
    return second


def test_a_repeat_with_its_idempotency_key_gets_the_same_answer_and_changes_nothing(kiln, name):
    path, body = f"{HERE}/connections/{name}", {"type": "postgres", "postgresConnection": {"host": "/nowhere"}}
    key = {"Idempotency-Key": f"create {name}"}
    made = [kiln.call("POST", path, json=body, headers=key) for _ in range(2)]
    assert [m.status_code for m in made] == [201, 201] and made[0].content == made[1].content
    for again in range(2):  # errors are answers too
        assert "PATCH" in message(kiln.call("POST", path, json=body, headers={"Idempotency-Key": f"other {name}"}), 409)
    once_and_again(kiln, "PATCH", path, 200, json={"postgresConnection": {"databaseName": "d"}})
    assert "another call" in message(kiln.call("PATCH", path, json={}, headers=key), 400)
    assert "another call" in message(kiln.call("POST", path + "_b", json=body, headers=key), 400)
    once_and_again(kiln, "DELETE", path, 200)
    assert kiln.call("POST", path, json=body, headers=key).status_code == 201  # the answer of then; nothing is made
    message(kiln.call("GET", path), 404)


def test_an_environment_is_made_and_deleted_once_by_calls_that_come_twice(kiln, name):
    kiln.write_package(name, shop(name))
    wh = {"name": "wh", "type": "postgres", "postgresConnection": {"connectionString": kiln.pg.url("wh")}}
    body = {"name": name, "connections": [wh], "packages": [{"name": name, "location": f"./packages/{name}"}]}
    once_and_again(kiln, "POST", "environments", 200, json=body)
    once_and_again(kiln, "PATCH", f"environments/{name}", 200, json={"readme": "ho"})
    once_and_again(kiln, "DELETE", f"environments/{name}", 200)
    message(kiln.call("GET", f"environments/{name}"), 404)
    message(kiln.call("DELETE", f"environments/{name}"), 404)


def epoch_of(kiln, package):
    return kiln.call("POST", f"{HERE}/packages/{package}/models/shop.malloy/query", json={"query": BY_REGION}).headers["Kiln-Epoch"]


def test_packages_and_runs_are_changed_once_by_calls_that_come_twice(kiln, name):
    where = str(kiln.write_package(name, shop(name)))
    once_and_again(kiln, "POST", f"{HERE}/packages", 200, name, json={"name": name, "location": where})
    once_and_again(kiln, "PATCH", f"{HERE}/packages/{name}", 200, name, json={"description": "once"})
    once_and_again(kiln, "PATCH", f"{HERE}/packages/{name}", 200, name, json={"manifestLocation": None})
    runs = f"{HERE}/packages/{name}/materializations"
    made = once_and_again(kiln, "POST", runs, 201, json={}).json()
    kiln.wait_run(made["id"], name)
    assert len(kiln.json("GET", runs)) == 1
    once_and_again(kiln, "DELETE", f"{runs}/{made['id']}", 204)
    once_and_again(kiln, "DELETE", f"{HERE}/packages/{name}", 200)
    message(kiln.call("GET", f"{HERE}/packages/{name}"), 404)


def test_the_trace_of_a_request_is_in_the_log_lines_of_its_run_in_every_service(shopped):
    kiln, package = shopped
    trace = secrets.token_hex(16)
    parent = {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-01"}
    run = kiln.call("POST", f"{HERE}/packages/{package}/materializations", json={}, headers=parent).json()
    kiln.wait_run(run["id"], package)
    lines = {name: [line for line in (p.out() + p.err()).splitlines() if trace in line] for name, p in kiln.procs.items()}
    planner = " ".join(lines["planner"])
    for says in ("control.answered kind=CREATE_RUN", f"run.state run={run['id']} state=ready", "job.leased", "job.reported"):
        assert says in planner, lines
    builders = " ".join(line for name, of in lines.items() if name.startswith("builder") for line in of)
    assert builders.count("job.start") == builders.count("job.end") == 2 == planner.count("job.reported")
    assert any("rest.answered method=POST" in line for line in lines["gateway-1"])


def test_requests_without_a_trace_get_one_of_their_own(shopped):
    kiln, package = shopped
    kiln.materialize(package)
    kiln.materialize(package)
    answered = [line for line in kiln.procs["planner"].err().splitlines() + kiln.procs["planner"].out().splitlines() if "kind=CREATE_RUN" in line]
    traces = [line.split("trace=")[1].split()[0] for line in answered]
    assert len(traces) >= 2 and len(set(traces)) == len(traces) and all(len(t) == 32 for t in traces)


def test_runs_are_planned_listed_paged_and_deleted_under_their_own_package_only(shopped, name):
    kiln, package = shopped
    other = publish(kiln, name + "_b", shop(name + "_b"))["name"]
    runs = f"{HERE}/packages/{package}/materializations"
    plan = kiln.json("POST", runs + "?action=plan")
    assert [t["action"] for t in plan["targets"]] == ["build", "build"] and kiln.json("GET", runs) == []
    ids = [kiln.materialize(package)["id"] for _ in range(3)][::-1]
    assert [r["id"] for r in kiln.json("GET", runs)] == ids == sorted(ids, reverse=True)
    assert [r["id"] for r in kiln.json("GET", runs + "?limit=1&offset=1")] == ids[1:2]
    assert kiln.json("GET", runs + "?limit=0") == []
    for bad in ("limit=-1", "limit=x", "offset=1.5"):
        assert "non-negative integer" in message(kiln.call("GET", f"{runs}?{bad}"), 400)
    assert "action" in message(kiln.call("POST", f"{runs}/{ids[0]}?action=go"), 400)
    assert "cannot stop" in message(kiln.call("POST", f"{runs}/{ids[0]}?action=stop"), 409)
    elsewhere = f"{HERE}/packages/{other}/materializations/{ids[0]}"
    message(kiln.call("GET", elsewhere), 404)
    message(kiln.call("POST", elsewhere + "?action=stop"), 404)
    message(kiln.call("DELETE", elsewhere), 404)
    message(kiln.call("GET", f"{runs}/{ids[0]}0"), 404)
    for run in ids:
        assert kiln.call("DELETE", f"{runs}/{run}").content == b""
    assert kiln.json("GET", runs) == [] and kiln.query(BY_REGION, package=package).served == "live"


# ---- metrics ----
def metric(kiln, service, name):
    """Sum over all labels that `name` leaves open; 0 when it is not there."""
    lines = kiln.call("GET", "/metrics", service).text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def test_publishers_metrics_count_runs_sources_builds_and_bindings(kiln, name):
    m = "publisher_materialization_"
    wanted = [("planner", m + 'runs_total{mode="auto",outcome="ready"}'), ("planner", m + "run_duration_ms_count"),
              ("planner", m + 'sources_total{outcome="built",mode="auto"}'), ("planner", m + 'sources_total{outcome="reused",mode="auto"}'),
              ("planner", m + 'sources_total{outcome="refused",mode="auto"}'), ("planner", m + "eligibility_refused_total{"),
              ("planner", m + "build_plan_compute_duration_ms_count"), ("planner", m + "table_collision_total"),
              ("builder-1", m + "source_build_duration_ms_count"), ("builder-1", m + "drop_tables_total{"),
              ("gateway-1", m + "manifest_bind_total"), ("gateway-1", m + "auto_load_total")]
    before = [metric(kiln, *w) for w in wanted]
    files = shop(name)
    twin = files["shop.malloy"] + f'#@ persist name="marts.{name}_daily"\nsource: twin is orders -> {{ group_by: region is customers.region }}\n'
    publish(kiln, name, {"shop.malloy": twin})
    first = kiln.materialize(name)
    assert (first["metadata"]["sourcesBuilt"], first["metadata"]["sourcesRefused"]) == (2, 1), first["metadata"]
    second = kiln.materialize(name)
    assert second["metadata"]["sourcesReused"] == 2
    for run in (second, first):
        assert kiln.call("DELETE", f"{HERE}/packages/{name}/materializations/{run['id']}?dropTables=true").status_code == 204
    grown = [metric(kiln, *w) - b for w, b in zip(wanted, before)]
    assert grown[:6] == [2, 2, 2, 2, 2, 2] and grown[6] >= 1 and grown[7] >= 1, list(zip(wanted, grown))
    assert grown[8] == 2 and grown[9] >= 1 and grown[10] >= 3 > grown[11] >= 1, list(zip(wanted, grown))


# ---- other configurations ----
def test_a_frozen_configuration_allows_runs_and_reloads_only():
    with Trio(gateway_env={"KILN_COMPILER_CHILDREN": "1"}, wait_ready=False, packages={"shop": shop("fz")}) as kiln:
        kiln.wait_ready()
        wait_for(lambda: kiln.call("GET", kiln.package_path()).status_code == 200, 30, "the package is loaded")
        kiln.config.write_text('{"frozenConfig": true, ' + kiln.config.read_text()[1:])
        kiln.procs["planner"].stop()
        kiln.procs["planner"].start()
        kiln.wait_ready()
        wait_for(lambda: kiln.json("GET", "status")["frozenConfig"], 30, "the frozen configuration is read")
        for method, path, body in [("POST", f"{HERE}/packages", {"name": "x"}), ("PATCH", f"{HERE}/packages/shop", {}),
                                   ("DELETE", f"{HERE}/packages/shop", None), ("POST", "environments", {"name": "new"}),
                                   ("DELETE", HERE, None), ("POST", f"{HERE}/connections/x", {"type": "postgres"}),
                                   ("DELETE", f"{HERE}/connections/wh", None)]:
            assert "frozen" in message(kiln.call(method, path, json=body), 403), (method, path)
        kiln.materialize()
        assert kiln.reload()["manifestBindingStatus"] == "unbound"
