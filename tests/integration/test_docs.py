"""The documentation does what it says: blocks marked `sh test` are run, against the flights example on small files and tables; links and generated parts hold."""
import os
import re
import shutil
import subprocess

import pytest

from flights import EXAMPLE, FLIGHTS, write_files
from servers import ROOT, PgServer, Proc, build_dir, free_port, short_dir, wait_for

DOCS = [ROOT / n for n in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```sh test\n(.*?)^```$", re.M | re.S)


def blocks(path):
    return BLOCK.findall(path.read_text())


TESTED = [p for p in DOCS if blocks(p)]


@pytest.fixture(name="world", scope="module")
def kiln_up_over_small_flights():
    """A `kiln up` as the quick start has it, and the PostgreSQL of its last part; gives the environment that its blocks find."""
    place = short_dir("kt-docs-")
    place.chmod(0o755)
    write_files(place / "data")
    subprocess.run([EXAMPLE / "lay_out.sh", place, place / "data"], check=True)
    port = free_port()
    with PgServer() as pg:
        warehouse = pg.create_db("warehouse")
        pg.rows(FLIGHTS, db="warehouse")
        path = f"{build_dir() / 'bin'}:{os.environ['PATH']}"
        argv = [build_dir() / "bin/kiln", "up", "--config", place / "publisher.config.json", "--server_root", place, "--port", port,
                "--webhook-port", webhook_port := free_port()]
        with Proc("up", argv, env={"PATH": path, "KILN_WEBHOOK_SECRET": None}, cwd=place) as up:
            wait_for(lambda: up.said("PUBLISHER_READY"), 60, "kiln up serves")
            yield {"PATH": path, "KILN_URL": f"http://127.0.0.1:{port}", "KILN_WEBHOOK_URL": f"http://127.0.0.1:{webhook_port}", "KILN_DEMO_PG": warehouse}
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("path", TESTED, ids=lambda p: p.name)
def test_commands_of_the_documentation_run(world, path):
    for script in blocks(path):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, env={**os.environ, **world}, capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode == 0, f"{path.name}:\n{script}\n{done.stdout}{done.stderr}"


def test_the_quick_start_really_is_tested():
    assert len(blocks(ROOT / "docs/quickstart.md")) >= 5


def test_links_inside_the_repository_lead_somewhere():
    for path in DOCS:
        for link in re.findall(r"\]\(([^)#]+)", path.read_text()):
            if not re.match(r"[a-z]+:", link):
                assert (path.parent / link).exists(), f"{path.name} links to {link}"


def test_generated_parts_are_fresh():
    done = subprocess.run([str(ROOT / "tools/docs.sh"), "--check"], env={**os.environ, "KILN_BUILD": str(build_dir())}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_quick_starts_configuration_is_the_examples():
    shown = re.search(r"```json\n(.*?)```", (ROOT / "docs/quickstart.md").read_text(), re.S)[1]
    example = (EXAMPLE / "publisher.config.json").read_text()
    assert re.sub(r"\s", "", shown)[1:-1] in re.sub(r"\s", "", example)


def test_the_examples_two_packages_are_the_same_models_over_two_engines():
    """They differ in models/tables.malloy, and in marts.malloy by the schema that PostgreSQL's tables are named with."""
    here, there = EXAMPLE / "package", EXAMPLE / "postgres/package"
    models = [sorted(str(p.relative_to(d)) for p in d.rglob("*.malloy")) for d in (here, there)]
    assert models[0] == models[1] and "models/tables.malloy" in models[0]
    for name in models[0]:
        if name != "models/tables.malloy":
            assert (there / name).read_text().replace('name="marts.', 'name="') == (here / name).read_text(), name
