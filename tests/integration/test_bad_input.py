"""Every "Bad input" line of the issue that can be reached from outside: one sentence that names the thing, the place and the remedy; the
right status; nothing lost. Webhooks that are forged, stale or repeated are in tests/scenarios/test_webhook.py."""
import io
import json
import os
import signal
import subprocess
import tarfile
import time
import zipfile

import pytest

from archives import with_manifest, zip_of
from servers import PgServer, Proc, binary, wait_for
from trio import BY_REGION, ENV, ORDERS, Trio
from trio_fixtures import publish, shop
from webhooks import sign_standard

COUNT = "run: daily -> { aggregate: orders_n }"
HEAD = "##! experimental.persistence\nsource: orders is wh.table('public.orders') extend { measure: n is count() }\n"


def persisted(annotation, name="one", more=""):
    return {"shop.malloy": f"{HEAD}#@ persist {annotation}\nsource: {name} is orders -> {{ group_by: qty; aggregate: n }} extend "
            f"{{ measure: rows_n is n.sum(); {more} }}\n"}


def still_serves(kiln, package):
    answer = kiln.query(COUNT, package=package)
    assert (answer.served, answer.rows) == ("baked", [{"orders_n": ORDERS}])


@pytest.fixture
def served(shopped):
    """(trio, package) with its tables in force."""
    kiln, package = shopped
    kiln.materialize(package)
    still_serves(kiln, package)
    return kiln, package


def republish(kiln, package, files, raw_manifest=None):
    """Publishes other files under the same name; the answer, whatever it is."""
    where = kiln.write_package(package, files)
    if raw_manifest is not None:
        (where / "publisher.json").write_text(raw_manifest)
    return kiln.call("POST", f"environments/{ENV}/packages", json={"name": package, "location": f"./packages/{package}"})


# ---- manifest, configuration, model ----
@pytest.mark.parametrize("text, says", [('{"name": ', "publisher.json"), ("[]", "publisher.json")])
def test_a_broken_manifest_does_not_load_and_what_was_served_stays(served, text, says):
    kiln, package = served
    r = republish(kiln, package, shop(package), raw_manifest=text)
    assert r.status_code in (400, 424) and says in r.json()["message"] and package in r.json()["message"], r.text
    still_serves(kiln, package)


def test_a_directory_without_a_manifest_is_no_package(kiln, name):
    (kiln.write_package(name, shop(name)) / "publisher.json").unlink()
    r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": name, "location": f"./packages/{name}"})
    assert r.status_code == 424 and "publisher.json" in r.json()["message"] and name in r.json()["message"], r.text
    assert kiln.call("GET", kiln.package_path(name)).status_code == 404


@pytest.mark.parametrize("location, says", [("nowhere", "./nowhere"), ("./packages/nowhere", "nowhere"), ("s3://bucket/x", "s3://bucket/x"), (None, "location")])
def test_a_location_that_cannot_be_read_is_told(kiln, name, location, says):
    r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": name, **({"location": location} if location else {})})
    assert r.status_code in (400, 404, 501) and says in r.json()["message"], r.text


def test_a_model_that_does_not_compile_names_file_line_and_word_and_the_old_one_serves(served):
    kiln, package = served
    r = republish(kiln, package, {"shop.malloy": "source: daily is orders_nowhere extend {}\n"})
    assert r.status_code == 424 and "shop.malloy:1:" in r.json()["message"] and "orders_nowhere" in r.json()["message"], r.text
    still_serves(kiln, package)
    still_serves(kiln, package)


BROKEN_CONFIGS = {
    "{ not json": "publisher.config.json",
    '{"environments": {}}': "environments",
    '{"environments": [{"name": "e", "connections": [{"name": "c", "type": "postgres", "postgresConnection": {"host": "${KT_UNSET_NAME}"}}]}]}':
        "KT_UNSET_NAME",
}


def test_a_broken_configuration_is_told_in_the_status_and_the_services_run_on_with_what_they_had():
    with Trio(packages={"shop": shop("conf")}, builders=0, gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as own:
        wait_for(lambda: own.call("GET", own.package_path()).status_code == 200, 20, "the package is loaded")
        for text, says in BROKEN_CONFIGS.items():
            own.config.write_text(text)
            own.procs["planner"].restart()
            errors = wait_for(lambda: own.json("GET", "status").get("loadErrors"), 20, f"the status tells of {text}")
            wait_for(lambda: any(says in e["message"] for e in own.json("GET", "status").get("loadErrors", [])), 20, f"{says} in {errors}")
            assert own.query(COUNT).rows == [{"orders_n": ORDERS}]
        own.json("POST", "environments", json={"name": "made", "readme": ""})
        assert {ENV, "made"} == {e["name"] for e in own.json("GET", "environments")}


@pytest.mark.parametrize("program, env, says", [
    ("kiln-planner", {"KILN_LEASE": "soon"}, "KILN_LEASE"),
    ("kiln-planner", {"KILN_STORE_URL": None}, "store.url"),
    ("kiln-planner", {"KILN_SECRET_KEY": "abc"}, "KILN_SECRET_KEY"),
    ("kiln-builder", {"KILN_SLOTS": "99"}, "KILN_SLOTS"),
    ("kiln-gateway", {"PUBLISHER_MAX_CONCURRENT_QUERIES": "many"}, "PUBLISHER_MAX_CONCURRENT_QUERIES"),
    ("kiln-gateway", {"KILN_LISTEN": "0.0.0.0:0"}, "trusted"),
])
def test_a_wrong_setting_ends_the_program_with_one_sentence_that_names_it(kiln, program, env, says):
    merged = {k: v for k, v in {**os.environ, **kiln.env, **env}.items() if v is not None}
    run = subprocess.run([binary(program)], env=merged, cwd=kiln.dir, capture_output=True, text=True, timeout=20, check=False)
    assert run.returncode not in (0, None) and says in run.stderr, run.stderr
    assert kiln.env["KILN_BUS_KEY"] not in run.stderr


# ---- persist annotations ----
def test_an_unquoted_name_does_not_load(served):
    kiln, package = served
    r = republish(kiln, package, persisted(f"name=marts_{package}"))
    assert r.status_code in (400, 424) and "persist annotation name must be quoted" in r.json()["message"] and "shop.malloy" in r.json()["message"], r.text
    still_serves(kiln, package)


def test_a_doubly_quoted_name_is_built_and_served_and_advised_about(kiln, name):
    publish(kiln, name, persisted(f'name="\\"{name} Tbl\\""'))
    assert any("quoted" in a["message"] for a in kiln.package(name)["advisories"]) and kiln.package(name)["warnings"] == []
    kiln.materialize(name)
    assert kiln.table_exists(f'public."{name} Tbl"')
    answer = kiln.query("run: one -> { aggregate: rows_n }", package=name)
    assert (answer.served, answer.rows) == ("baked", [{"rows_n": ORDERS}])


@pytest.mark.parametrize("bad", ["a b", "a;b", "a'b", "a`b"])
def test_a_name_with_other_characters_does_not_load_and_names_the_character(kiln, name, bad):
    r = republish(kiln, name, persisted(f'name="marts.{bad}"'))
    message = r.json()["message"]
    assert r.status_code in (400, 424) and "shop.malloy" in message and "'one'" in message, r.text
    assert "must be quoted" not in message


@pytest.mark.parametrize("label", ["grün", "Ünïcödé_表", "with-dash"])
def test_unicode_names_are_built_served_and_dropped(kiln, name, label):
    table = f"{name}_{label}"[:50]
    publish(kiln, name, persisted(f'name="marts.{table}"'))
    run = kiln.materialize(name)
    answer = kiln.query("run: one -> { aggregate: rows_n }", package=name)
    assert (answer.served, answer.rows) == ("baked", [{"rows_n": ORDERS}])
    kiln.delete_run(run["id"], name, drop=True)
    assert not kiln.table_exists(f'marts."{table}"')


def test_a_name_with_quotes_and_dots_inside_is_one_table(kiln, name):
    table = f'{name} "x.y" \' z'
    quoted = '"' + table.replace('"', '""') + '"'
    publish(kiln, name, persisted('name="' + f'marts.{quoted}'.replace('"', '\\"') + '"'))
    run = kiln.materialize(name)
    assert kiln.table_exists(f"marts.{quoted}")
    assert kiln.query("run: one -> { aggregate: rows_n }", package=name).served == "baked"
    kiln.delete_run(run["id"], name, drop=True)
    assert not kiln.table_exists(f"marts.{quoted}") and kiln.wh("SELECT count(*) FROM orders") == [(ORDERS,)]


def test_a_package_name_with_dots_slashes_or_control_characters_is_refused(kiln):
    for bad in ("../x", "a/b", "a\nb", "materializations", ""):
        r = kiln.call("POST", f"environments/{ENV}/packages", json={"name": bad, "location": "./packages/x"})
        assert r.status_code == 400 and "name" in r.json()["message"], (bad, r.text)


def test_persist_on_a_table_extend_warns_and_fails_the_runs_that_cover_it(kiln, name):
    files = shop(name)
    files["shop.malloy"] += f'\n#@ persist name="marts.{name}_ext"\nsource: extended is wh.table(\'public.orders\') extend {{ measure: n is count() }}\n'
    publish(kiln, name, files)
    assert any("extended" in w["message"] for w in kiln.package(name)["warnings"])
    run = kiln.materialize(name, status="FAILED")
    assert "extended" in run["error"] and "not recognized as a materializable source" in run["error"] and "shop.malloy" in run["error"]
    assert not kiln.table_exists(f"marts.{name}_daily"), "a whole-package run builds nothing"
    kiln.materialize(name, sourceNames=["daily", "regions"])
    still_serves(kiln, name)


def test_a_missing_container_fails_its_source_by_name_and_is_never_created(kiln, name):
    files = shop(name)
    files["shop.malloy"] += f'#@ persist name="no_such_schema.{name}"\nsource: one is orders -> {{ group_by: qty; aggregate: order_count }}\n'
    publish(kiln, name, files)
    run = kiln.materialize(name)
    (failure,) = run["manifest"]["failures"].values()
    assert failure["sourceName"] == "one" and "no_such_schema" in failure["reason"] and "create" in failure["reason"].lower(), failure
    assert kiln.wh("SELECT count(*) FROM pg_namespace WHERE nspname = 'no_such_schema'") == [(0,)]
    still_serves(kiln, name)


def test_a_given_inside_a_persisted_query_is_refused_and_its_siblings_are_built(kiln, name):
    files = shop(name)
    files["shop.malloy"] = files["shop.malloy"].replace("##! experimental.persistence", "##! experimental { persistence, givens }\ngiven: cut :: number") + f'''
#@ persist name="marts.{name}_given"
source: by_given is orders -> {{ where: qty > $cut; group_by: qty; aggregate: order_count }}
'''
    publish(kiln, name, files)
    package = kiln.package(name)
    (refused,) = package["buildPlan"]["refusedSources"].values()
    assert refused["name"] == "by_given" and refused["reason"] == "given_in_persisted_query"
    assert "references a given" in refused["message"] and "extend" in refused["message"] and "shop.malloy" in refused["message"]
    run = kiln.materialize(name)
    assert (run["metadata"]["sourcesBuilt"], run["metadata"]["sourcesRefused"]) == (2, 1)
    answer = kiln.query("run: by_given -> { aggregate: kinds is count() }", package=name, givens={"cut": 3})
    assert (answer.served, answer.reason, answer.rows) == ("live", "given_in_persisted_query", [{"kinds": 3}])
    without = kiln.post_query("run: by_given -> { aggregate: kinds is count() }", package=name)
    assert without.status_code == 400 and "'cut' has no value" in without.json()["message"], without.text
    still_serves(kiln, name)


# ---- connections and warehouses ----
def test_an_unknown_connection_is_named_with_its_environment(kiln, name):
    r = republish(kiln, name, {"shop.malloy": "source: x is nowhere_db.table('public.orders')\n"})
    message = r.json()["message"]
    assert r.status_code == 424 and "nowhere_db" in message and "shop.malloy:1" in message and "add it to the environment" in message, r.text


@pytest.fixture(scope="module")
def tcp_server():
    with PgServer(tcp=True, password="right-word") as pg:
        pg.rows("CREATE TABLE t AS SELECT 1 AS n")
        yield pg


def add_connection(kiln, name, pg, password):
    kiln.json("POST", f"environments/{ENV}/connections/{name}", status=201, json={"name": name, "type": "postgres", "postgresConnection": {
        "host": "127.0.0.1", "port": pg.port, "databaseName": "postgres", "userName": "postgres", "password": password}})


def test_a_wrong_password_is_told_and_never_printed(kiln, name, tcp_server):
    add_connection(kiln, name, tcp_server, "wr0ng-w0rd-of-the-test")
    seen = []
    r = republish(kiln, name, {"shop.malloy": f"source: x is {name}.table('public.t')\n"})
    seen.append(r.text)
    assert r.status_code == 422 and name in r.json()["message"] and "password" in r.json()["message"], r.text
    r = kiln.call("POST", f"environments/{ENV}/connections/{name}/sqlQuery", json={"sqlStatement": "SELECT 1"})
    seen.append(r.text)
    assert r.status_code == 422 and name in r.json()["message"], r.text
    tried = kiln.json("POST", "connections/test", json={"name": "try", "type": "postgres", "postgresConnection": {
        "connectionString": tcp_server.tcp_url().replace("right-word", "wr0ng-w0rd-of-the-test")}})
    seen.append(json.dumps(tried))
    assert tried["status"] == "failed"
    seen += [p.out() + p.err() for p in kiln.procs.values()] + [kiln.call("GET", "status").text]
    seen.append(str(kiln.store("SELECT load_error, stale_error FROM kiln.unit")) + str(kiln.store("SELECT body::text, error FROM kiln.event")))
    assert not [s for s in seen if "wr0ng-w0rd-of-the-test" in s]
    kiln.json("PATCH", f"environments/{ENV}/connections/{name}", json={"postgresConnection": {"password": "right-word"}})
    publish(kiln, name, {"shop.malloy": f"source: x is {name}.table('public.t') extend {{ measure: c is count() }}\n"})
    assert kiln.query("run: x -> { aggregate: c }", package=name).rows == [{"c": 1}]


def test_a_warehouse_that_is_down_is_502_with_its_name_and_is_served_again_when_it_is_back(kiln, name):
    with PgServer(tcp=True) as pg:
        pg.rows("CREATE TABLE t AS SELECT 1 AS n")
        add_connection(kiln, name, pg, pg.password)
        publish(kiln, name, {"shop.malloy": f'##! experimental.persistence\n#@ persist name="{name}_t"\nsource: x is {name}.table(\'public.t\') -> '
                             '{ aggregate: c is count() } extend { measure: s is c.sum() }\n'})
        kiln.materialize(name)
        assert kiln.query("run: x -> { aggregate: s }", package=name).served == "baked"
        pg.stop()
        r = kiln.post_query("run: x -> { aggregate: s }", package=name)
        assert r.status_code == 502 and name in r.json()["message"], r.text
        assert kiln.call("GET", kiln.package_path(name, "?reload=true")).status_code == 502
        assert kiln.binding(name) == ("bound", 1), "a reload that cannot be done changes nothing"
        run = kiln.materialize(name, status="FAILED", forceRefresh=True, seconds=90)
        assert name in run["error"], run["error"]
        pg.start()
        wait_for(lambda: kiln.post_query("run: x -> { aggregate: s }", package=name).status_code == 200, 10, "it is served again")
        assert kiln.query("run: x -> { aggregate: s }", package=name).served == "baked"


# ---- compiler ----
def test_a_hanging_compiler_child_costs_one_query_its_time_and_is_replaced(served):
    kiln, package = served
    still_serves(kiln, package)
    children = kiln.compiler_children("gateway-1")
    for pid in children:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    still_serves(kiln, package)  # compiled before: no child on its path
    assert time.monotonic() - began < 2
    r = kiln.post_query("run: daily -> { aggregate: hung is orders_n }", package=package)
    assert r.status_code == 504 and "5000 ms" in r.json()["message"] and time.monotonic() - began < 15, r.text
    wait_for(lambda: kiln.post_query("run: daily -> { aggregate: later is orders_n }", package=package).status_code == 200, 20, "a new child compiles")
    assert not set(children) & set(kiln.compiler_children("gateway-1"))


# ---- archives ----
def tar_with(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for info, data in entries:
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def entry_of(path, **more):
    info = tarfile.TarInfo(path)
    for k, v in more.items():
        setattr(info, k, v)
    return info


MANIFEST = (entry_of("publisher.json"), b'{"name": "x"}')
BOMB = zip_of(with_manifest("bomb", {"zeros.csv": "0" * 60_000_000}))


@pytest.mark.parametrize("archive, says", [
    (tar_with([MANIFEST, (entry_of("../../etc/evil.malloy"), b"x")]), "../../etc/evil.malloy"),
    (tar_with([MANIFEST, (entry_of("/etc/evil.malloy"), b"x")]), "/etc/evil.malloy"),
    (tar_with([MANIFEST, (entry_of("link.malloy", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b"")]), "link.malloy"),
    (tar_with([MANIFEST, (entry_of("hard.malloy", type=tarfile.LNKTYPE, linkname="publisher.json"), b"")]), "hard.malloy"),
    (BOMB, "zeros.csv"),
    (BOMB[:2000], "archive"),
], ids=["dot dot", "absolute", "link", "hard link", "bomb", "cut off"])
def test_an_archive_that_is_not_safe_is_refused_by_the_name_of_its_entry(served, archive, says):
    kiln, package = served
    r = kiln.post_hook(archive, headers=sign_standard(archive), params={"environment": ENV, "package": package})
    if r.status_code == 202:
        event = r.json()["id"]
        wait_for(lambda: kiln.event(event)["state"] == "failed", 30, "the event has failed")
        text = kiln.event(event)["error"]
    else:
        assert r.status_code == 400, r.text
        text = r.json()["message"]
    assert says in text and package in text, text
    still_serves(kiln, package)


def test_a_body_that_is_neither_json_nor_an_archive_is_400(kiln):
    r = kiln.post_hook(b"hello", params={"environment": ENV, "package": "x"})
    assert r.status_code == 400 and "archive" in r.json()["message"], r.text


# ---- targets ----
def test_a_target_that_is_a_base_table_is_refused_and_the_table_stays(kiln, name):
    publish(kiln, name, persisted('name="public.orders"'))
    (refused,) = kiln.package(name)["buildPlan"]["refusedSources"].values()
    assert refused["reason"] == "target_is_a_source" and "orders" in refused["message"] and "name=" in refused["message"]
    run = kiln.materialize(name, status="FAILED")
    assert "orders" in run["error"]
    assert kiln.wh("SELECT count(*) FROM orders") == [(ORDERS,)]


@pytest.mark.parametrize("make, reason", [
    ("CREATE VIEW marts.{0}_t AS SELECT 1 AS n", "target_not_a_table"),
    ("CREATE MATERIALIZED VIEW marts.{0}_t AS SELECT 1 AS n", "target_not_a_table"),
    ("CREATE SEQUENCE marts.{0}_t", "target_not_a_table"),
    ("CREATE TABLE marts.{0}_t AS SELECT 42 AS n", "target_exists"),
], ids=["view", "materialized view", "sequence", "someone else's table"])
def test_what_stands_at_a_targets_name_is_not_replaced(kiln, name, make, reason):
    kiln.wh(make.format(name))
    publish(kiln, name, persisted(f'name="marts.{name}_t"'))
    run = kiln.materialize(name, status="FAILED")
    said = json.dumps(run)
    assert reason in said and f"{name}_t" in run["error"], said
    assert kiln.table_exists(f"marts.{name}_t")
    assert kiln.query("run: one -> { aggregate: rows_n }", package=name).rows == [{"rows_n": ORDERS}]
    if reason == "target_exists":
        assert kiln.wh(f"SELECT n FROM marts.{name}_t") == [(42,)]
        kiln.materialize(name, takeOver=True)
        assert kiln.query("run: one -> { aggregate: rows_n }", package=name).served == "baked"


def test_an_empty_table_at_a_targets_name_is_taken(kiln, name):
    kiln.wh(f"CREATE TABLE marts.{name}_t (n int)")
    publish(kiln, name, persisted(f'name="marts.{name}_t"'))
    assert kiln.materialize(name)["metadata"]["sourcesBuilt"] == 1


def test_two_sources_with_one_target_are_told_apart_and_the_first_is_built(kiln, name):
    publish(kiln, name, {"shop.malloy": HEAD + "".join(
        f'#@ persist name="marts.{name}_t"\nsource: {s} is orders -> {{ group_by: {c}; aggregate: n }}\n' for s, c in (("one", "qty"), ("two", "sold_on")))})
    assert any("'one'" in w["message"] and "'two'" in w["message"] and f"{name}_t" in w["message"] for w in kiln.package(name)["warnings"])
    run = kiln.materialize(name)
    assert run["metadata"]["sourcesBuilt"] == 1
    assert "target_collision" in json.dumps(run["metadata"])


def test_a_model_with_access_rules_does_not_load(kiln, name):
    r = republish(kiln, name, {"shop.malloy": HEAD + '#(access_filter) "qty = $LEVEL"\nsource: gated is orders -> { group_by: qty }\n'})
    assert r.status_code == 424 and "access" in r.json()["message"] and "shop.malloy" in r.json()["message"], r.text


# ---- ports ----
@pytest.mark.parametrize("program, moved", [("planner", ("ipc:", "store")), ("gateway-1", ()), ("planner", ("store",))],
                         ids=["webhook port", "gateway's port", "bus address"])
def test_a_taken_address_ends_the_program_with_its_name_and_a_remedy(kiln, name, program, moved):
    old, own = kiln.procs[program], kiln.dir / name
    own.mkdir()
    argv = [a.replace(str(kiln.dir), str(own)) if any(m in a for m in moved) else a for a in old.argv[1:]]
    env = {**kiln.env, "KILN_INSTANCE": "another", "KILN_STATE_DIR": str(own)}
    with Proc("another", old.argv[:1] + argv, env=env, cwd=own, logs=own) as another:
        assert another.wait(20) not in (0, None)
        said = another.err() + another.out()
    taken = f"{kiln.dir}/call" if moved == ("store",) else str(kiln.ports[program])
    assert taken in said and ("in use" in said or "taken" in said), said
    assert old.alive and kiln.is_ready(program)
