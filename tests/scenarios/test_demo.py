"""make demo, as a program would run it: to its end, with its data in a directory of its own, leaving nothing behind."""
import os
import re
import signal
import subprocess

import pytest

from servers import ROOT, Proc, binary, build_dir, free_port, process_gone, short_dir, wait_for

DEMO = ROOT / "examples/flights/demo.sh"
DATA = ROOT / "build/tools/data/flights-3m.parquet"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the flights are not fetched: deploy/setup.sh data")


@pytest.fixture(name="demo_dir", scope="module")
def directory_of_the_demo():
    binary("kiln")
    path = short_dir("kt-demo-")
    path.chmod(0o755)
    yield path
    subprocess.run(["rm", "-rf", str(path)], check=True)


def environment(demo_dir, **more):
    return {"KILN_DEMO_DIR": str(demo_dir), "KILN_DEMO_PORT": str(free_port()), "KILN_BUILD": str(build_dir()), **more}


def run_once(demo_dir, **more):
    env = {**os.environ, **environment(demo_dir, KILN_DEMO_ONCE="1", **more)}
    done = subprocess.run([str(DEMO)], env=env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(ord(c) < 128 for c in done.stdout), "plain ASCII where nobody watches"
    return done.stdout


def speed_up(act):
    return float(re.search(r"speed-up +([\d,]+) times", act)[1].replace(",", ""))


def built(act):
    """(built, reused) of the act's run."""
    return tuple(map(int, re.search(r"(\d+) built, (\d+) reused", act).groups()))


def test_the_first_act_needs_no_warehouse(demo_dir):
    out = run_once(demo_dir, KILN_DEMO_ACTS="1")
    assert "answers equal   yes" in out and re.search(r"first baked +[\d.]+ s after", out)
    assert "Kiln-Served: baked" in out and '"main"."route_month"' in out.split("The SQL that ran:")[1]
    assert re.search(r"generation +\S+", out) and re.search(r"data as of +\S+", out)
    assert built(out) == (2, 0) and speed_up(out) > 5
    assert "Act 2" not in out and not (demo_dir / "warehouse").exists()


def test_the_second_act_shows_the_same_answers_from_postgresql(demo_dir):
    first, second = run_once(demo_dir).split("Act 2.")
    assert "Loading" in first and built(first) == (0, 2), "what the demo before built is there"
    assert "answers equal   yes" in second and "as on DuckDB    yes" in second
    assert "Kiln-Served: baked" in second and '"marts"."route_month"' in second
    assert built(second) == (2, 0) and speed_up(second) > 5


def test_a_third_demo_loads_nothing_and_reuses_the_tables_of_both(demo_dir):
    out = run_once(demo_dir)
    assert "Loading" not in out
    plan = out.split("$ kiln plan")[1].split("3. Build it")[0]
    assert "reuse" in plan and "build" not in re.findall(r"^ +(\w+) +route_month\b", plan, flags=re.M)
    assert [built(act) for act in out.split("Act 2.")] == [(0, 2), (0, 2)]


def test_ctrl_c_takes_everything_along(demo_dir):
    with Proc("demo", [DEMO], env=environment(demo_dir)) as demo:
        wait_for(lambda: demo.said("until Ctrl-C"), 120, "the demo serves on")
        family = demo.children()
        assert len(family) > 5
        demo.signal(signal.SIGINT)
        assert demo.wait(20) == 130
        wait_for(lambda: all(process_gone(p) for p in family), 5, "all that it started has ended")
