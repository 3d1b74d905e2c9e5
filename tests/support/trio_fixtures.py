"""Fixtures of the scenario and integration tests: one trio for the whole session, whose tests use packages of their own."""
import itertools
import re

import pytest

from trio import ENV, SHOP_MODEL, Trio

_numbers = itertools.count(1)


def shop(prefix):
    """The shop package with tables of its own: marts.<prefix>_daily and marts.<prefix>_regions."""
    return {"shop.malloy": SHOP_MODEL.replace('"marts.', f'"marts.{prefix}_')}


@pytest.fixture(scope="session")
def kiln():
    """Two gateways, one builder with two slots, nothing published at first. Whoever stops a part starts it again."""
    with Trio(gateways=2, gateway_env={"KILN_COMPILER_CHILDREN": "1", "PUBLISHER_MAX_QUERY_ROWS": "5000", "PUBLISHER_MAX_RESPONSE_BYTES": "400000",
                                       "PUBLISHER_MAX_CONCURRENT_QUERIES": "4", "PUBLISHER_QUERY_TIMEOUT_MS": "4s"}) as trio:
        yield trio


@pytest.fixture
def name(request):
    """A package name of this test's own."""
    return re.sub(r"[^a-z0-9]", "_", request.node.name.removeprefix("test_").lower())[:24].strip("_") + f"_{next(_numbers)}"


def publish(trio, package, files, status=200):
    """Writes the package and publishes it over REST."""
    trio.write_package(package, files)
    return trio.json("POST", f"environments/{ENV}/packages", status=status, json={"name": package, "location": f"./packages/{package}"})


@pytest.fixture
def shopped(kiln, name):
    """(trio, package): the shop package published under a name of its own, nothing built."""
    publish(kiln, name, shop(name))
    return kiln, name


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what the services said last."""
    report = (yield).get_result()
    trio = next((v for v in getattr(item, "funcargs", {}).values() if isinstance(v, Trio)), None)
    if report.when == "call" and report.failed and trio:
        report.sections.append(("services", trio.last_words()))
