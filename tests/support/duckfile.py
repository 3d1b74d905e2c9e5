"""A DuckDB database file for tests, written by the library that Kiln itself loads, in a process of its own.

    DuckFile(path).run("CREATE TABLE t AS SELECT 1 AS a")
    with DuckFile(path).open_to_write():    # as a program that works on it
        ...
"""
import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def library():
    return pathlib.Path(os.environ.get("KILN_PREFIX", ROOT / "build/tools")) / "lib/libduckdb.so"


class DuckFile:
    def __init__(self, path):
        self.path = pathlib.Path(path)

    def _process(self, *words):
        return subprocess.Popen([sys.executable, __file__, str(self.path), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, *statements):
        """Runs statements; another process must not have it open."""
        said, _ = self._process(*statements).communicate("")
        assert said == "open\n", said
        return self

    def refused(self, statement):
        """Why a program that wants to write it cannot."""
        said, _ = self._process(statement).communicate("")
        assert said != "open\n"
        return said

    @contextlib.contextmanager
    def open_to_write(self):
        """Another process has it open within; yields its id."""
        with self._process() as proc:
            assert proc.stdout.readline() == "open\n"
            yield proc.pid
            proc.stdin.close()
            proc.wait(10)


def main(path, statements):
    """Opens, runs, says `open`, and holds it until its input ends."""
    lib = ctypes.CDLL(str(library()))
    db, con, why, result = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_char_p(), (ctypes.c_byte * 64)()
    lib.duckdb_result_error.restype = ctypes.c_char_p
    if lib.duckdb_open_ext(path.encode(), ctypes.byref(db), None, ctypes.byref(why)):
        sys.exit(print(why.value.decode()))
    lib.duckdb_connect(db, ctypes.byref(con))
    for statement in statements:
        if lib.duckdb_query(con, statement.encode(), ctypes.byref(result)):
            sys.exit(print(lib.duckdb_result_error(ctypes.byref(result)).decode()))
    print("open", flush=True)
    sys.stdin.read()
    lib.duckdb_disconnect(ctypes.byref(con))
    lib.duckdb_close(ctypes.byref(db))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
