"""Lets every test import the helpers of tests/support by their bare names."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

from trio_fixtures import kiln, name, pytest_runtest_makereport, shopped  # noqa: E402,F401
