"""A gateway that was held back for more than a minute reads its bindings again before it serves results by binding (protocol.md 6)."""
import os
import signal
import time

import pytest

from servers import wait_for
from test_duckdb import MODEL, ORDERS, QUERY, WANT
from trio import Trio
from trio_fixtures import publish


@pytest.fixture(scope="module")
def kiln():
    with Trio(gateway_env={"KILN_COMPILER_CHILDREN": "1"}) as trio:
        yield trio


def ask(kiln, package):
    answer = kiln.query(QUERY, package=package)
    assert answer.rows == WANT, answer.rows
    return answer.served, answer.reason


def test_a_gateway_that_slept_is_live_until_it_has_read_its_bindings_or_nobody_answers(kiln, name):
    publish(kiln, name, {"shop.malloy": MODEL, "data/orders.csv": ORDERS})
    kiln.materialize(name)
    kiln.wait_bound(name, 2)
    assert ask(kiln, name)[0] == "baked"
    held = [kiln.procs["planner"].pid, kiln.redis.pid, kiln.procs["gateway-1"].pid]
    try:
        for pid in held:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(62)  # the minute is the test: nothing to poll for
        kiln.session.close()  # its connections have been idle for too long
        kiln.procs["gateway-1"].signal(signal.SIGCONT)
        assert ask(kiln, name) == ("live", "bindings_unread")
        wait_for(lambda: ask(kiln, name)[0] == "baked", 10, "nobody answers, so it goes on")
    finally:
        for pid in held:
            os.kill(pid, signal.SIGCONT)
    wait_for(lambda: ask(kiln, name)[0] == "baked", 30, "all are back")
