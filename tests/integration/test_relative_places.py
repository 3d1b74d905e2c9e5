"""Addresses in settings that are relative paths: those of the directory a service was started in, also where it works in another one."""
from test_duckdb_bad_input import files_of, serves
from trio import Trio
from trio_fixtures import publish


def test_builder_and_gateway_find_relative_sockets_although_duckdb_has_its_own_working_directory(name):
    relative = {"KILN_BUS_CALL": "ipc://call", "KILN_BUS_EVENT": "ipc://event"}
    with Trio(builder_env=relative, gateway_env=relative) as kiln:
        assert kiln.is_ready("builder-1") and kiln.is_ready("gateway-1")
        publish(kiln, name, files_of(name))
        kiln.materialize(name)
        kiln.wait_bound(name)
        serves(kiln, name, gateways=("gateway-1",))
