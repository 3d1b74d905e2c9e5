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


def run_once(demo_dir):
    env = {**os.environ, **environment(demo_dir, KILN_DEMO_ONCE="1")}
    done = subprocess.run([str(DEMO)], env=env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo_shows_equal_answers_a_receipt_and_a_speed_up(demo_dir):
    out = run_once(demo_dir)
    assert "answers equal   yes" in out
    assert "Kiln-Served: baked" in out and "marts" in out.split("The SQL that ran:")[1]
    assert re.search(r"generation +\S+", out) and re.search(r"data as of +\S+", out)
    assert float(re.search(r"speed-up +([\d,]+) times", out)[1].replace(",", "")) > 5
    assert all(ord(c) < 128 for c in out), "plain ASCII where nobody watches"


def test_a_second_demo_loads_nothing_and_reuses_the_tables(demo_dir):
    out = run_once(demo_dir)
    assert "Loading" not in out
    plan = out.split("$ kiln plan")[1].split("3. Build it")[0]
    assert "reuse" in plan and "build" not in re.findall(r"^ +(\w+) +route_month\b", plan, flags=re.M)


def test_ctrl_c_takes_everything_along(demo_dir):
    with Proc("demo", [DEMO], env=environment(demo_dir)) as demo:
        wait_for(lambda: demo.said("until Ctrl-C"), 120, "the demo serves on")
        family = demo.children()
        assert len(family) > 5
        demo.signal(signal.SIGINT)
        assert demo.wait(20) == 130
        wait_for(lambda: all(process_gone(p) for p in family), 5, "all that it started has ended")
