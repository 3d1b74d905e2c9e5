"""Servers and processes for tests in Python: each has its own directory, its own ports, and ends with the test program.

    with PgServer() as pg, RedisServer() as redis:
        ...
    with Proc("gateway", [binary("kiln-gateway"), "--listen", f"127.0.0.1:{free_port()}"]) as gateway:
        wait_for(lambda: ready(...), 10, "the gateway is ready")

Nothing here touches a server that it did not start: a PgServer asks the server for the name it was given, a RedisServer for its directory.
"""
import contextlib
import ctypes
import os
import pathlib
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import psycopg2

ROOT = pathlib.Path(__file__).resolve().parents[2]
PG_BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_given_ports = set()


def is_sanitized():
    """The build's memory is a sanitizer's as well: no bound says anything of ours."""
    return build_dir().name == "asan"


def build_dir():
    """The built tree: KILN_BUILD, else build/ of the repository."""
    return pathlib.Path(os.environ.get("KILN_BUILD", ROOT / "build")).resolve()


def binary(name):
    """Path of a program of the built tree, as text."""
    path = build_dir() / "bin" / name
    assert path.exists(), f"{path} is not built; run make build"
    return str(path)


def free_port():
    """A TCP port of 127.0.0.1 that is free now, below the range the kernel takes ports for clients from, never given twice."""
    for _ in range(500):
        port = random.randint(20000, 32000)
        if port in _given_ports:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given_ports.add(port)
        return port
    raise RuntimeError("no free port between 20000 and 32000")


def wait_for(condition, seconds, what="the condition", every=0.02):
    """Calls condition() until it gives something true, and returns that. An AssertionError from it counts as not yet."""
    end = time.monotonic() + seconds
    why = None
    while True:
        try:
            got = condition()
            why = None
        except AssertionError as e:
            got, why = None, e
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s still not: {what}" + (f" ({why})" if why else ""))
        time.sleep(every)  # poll


def short_dir(prefix="kt-"):
    """A new directory under /tmp with a path short enough for sockets in it."""
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))


def where_it_hangs(pid):
    """Every thread of a process: what the kernel waits for in it, and its stack when a debugger is here."""
    said = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            state = next(line for line in (task / "status").read_text().splitlines() if line.startswith("State"))
            said.append(f"thread {task.name} {(task / 'comm').read_text().strip()}: {state.split(None, 1)[1]}, in {(task / 'wchan').read_text()}")
    if shutil.which("gdb"):
        done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 24"], capture_output=True, text=True, timeout=60, check=False)
        said.append(done.stdout)
    return "\n".join(said)


def _dies_with_us(sig):
    def before_exec():
        _libc.prctl(_PR_SET_PDEATHSIG, sig)

    return before_exec


class Proc:
    """One process in a session of its own; its output goes to files, so that a full pipe never stops it."""

    def __init__(self, name, argv, env=None, cwd=None, logs=None, user=None, death_signal=signal.SIGKILL, start=True):
        """env: added to ours; a value of None takes the variable away. logs: directory for NAME.out and NAME.err (made when None)."""
        self.name, self.argv, self.cwd, self.user = name, [str(a) for a in argv], cwd, user
        self.env = {k: v for k, v in {**os.environ, **(env or {})}.items() if v is not None}
        self._own_logs = logs is None
        self.logs = pathlib.Path(logs) if logs else short_dir("kt-log-")
        self.out_path, self.err_path = self.logs / f"{name}.out", self.logs / f"{name}.err"
        self._death_signal = death_signal
        self._popen = None
        if start:
            self.start()

    def start(self):
        assert not self.alive, f"{self.name} runs already"
        more = {}
        if self.user:
            who = pwd.getpwnam(self.user)
            more = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self._popen = subprocess.Popen(
                self.argv, env=self.env, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                preexec_fn=_dies_with_us(self._death_signal), **more)
        return self

    @property
    def pid(self):
        return self._popen.pid

    @property
    def alive(self):
        return self._popen is not None and self._popen.poll() is None

    @property
    def code(self):
        """Exit code, or minus the signal; None while it runs."""
        return self._popen.poll()

    def out(self):
        return self.out_path.read_text(errors="replace")

    def err(self):
        return self.err_path.read_text(errors="replace")

    def said(self, text):
        """True when text is in its output; an ended process fails at once, with its last words."""
        if text in self.out() or text in self.err():
            return True
        if not self.alive:
            raise RuntimeError(f"{self.name} ended with {self.code}: {self.last_words()}")
        return False

    def last_words(self, n=2000):
        return (self.out() + self.err())[-n:]

    def signal(self, sig):
        self._popen.send_signal(sig)

    def wait(self, seconds):
        return self._popen.wait(seconds)

    def stop(self, seconds=10):
        """SIGTERM and wait; SIGKILL for the whole session when that takes too long (then the answer is -9). Returns the exit code."""
        if self.alive:
            self.signal(signal.SIGTERM)
            try:
                self.wait(seconds)
            except subprocess.TimeoutExpired:
                with open(self.err_path, "ab") as err:
                    err.write(f"\n{self.name} did not end within {seconds} s of SIGTERM:\n{where_it_hangs(self.pid)}\n".encode())
                self.kill9_all()
        return self.code

    def kill9(self):
        """SIGKILL for this process alone, as a crash would be: its children are left to notice."""
        if self.alive:
            self._popen.kill()
            self.wait(10)

    def kill9_all(self):
        """SIGKILL for it and all that share its session's process group."""
        if self._popen is None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._popen.wait(10)

    def restart(self):
        """Starts the same command again after its end; the logs go on."""
        self.stop()
        return self.start()

    def children(self):
        """Process ids of the descendants, nearest first."""
        return descendants(self.pid)

    def close(self):
        self.stop()
        self.kill9_all()
        if self._own_logs:
            shutil.rmtree(self.logs, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def descendants(pid):
    """Process ids of all that pid started, and of what they started in turn."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended meanwhile
        parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, look = [], [pid]
    while look:
        kids = parents.get(look.pop(0), [])
        found += kids
        look += kids
    return found


def process_gone(pid):
    """True when pid has ended; a zombie has ended."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state in ("Z", "X")


class PgServer:
    """A PostgreSQL 15 of its own on a unix socket, and on 127.0.0.1 when tcp is asked for. Nothing in it survives the test: fsync is off.

    url(db): libpq connection string over the socket. tcp_url(db): postgresql:// with the password, over TCP.
    """

    superuser = "postgres"

    def __init__(self, tcp=False, password="test", settings=None, user="postgres"):
        """user: the superuser's name. Over the socket everyone is trusted; over TCP the password is asked for."""
        self.superuser, self.password, self.token = user, password, "kt_" + secrets.token_hex(8)
        self.dir = short_dir("kt-pg-")
        self.data = self.dir / "data"
        self.port = free_port() if tcp else 5432
        self._tcp, self._settings = tcp, settings or {}
        self._os_user = "postgres" if os.geteuid() == 0 else None
        if self._os_user:
            shutil.chown(self.dir, self._os_user, self._os_user)
        self.dir.chmod(0o755)
        self._proc = None
        try:
            self._initdb()
            self.start()
        except BaseException:
            self.close()
            raise

    def _initdb(self):
        pw = self.dir / "pw"
        pw.write_text(self.password + "\n")
        if self._os_user:
            shutil.chown(pw, self._os_user)
        argv = [PG_BIN / "initdb", "-D", self.data, "-U", self.superuser, "-N", "-E", "UTF8", "--locale=C.UTF-8", "--auth-local=trust",
                "--auth-host=scram-sha-256", f"--pwfile={pw}"]
        done = subprocess.run(argv, cwd="/", capture_output=True, text=True, user=self._os_user, check=False)
        assert done.returncode == 0, f"initdb: {done.stderr}"

    def start(self):
        """Starts it (again) and makes sure that it is this one that answers."""
        settings = {"cluster_name": self.token, "unix_socket_directories": self.dir, "port": self.port,
                    "listen_addresses": "127.0.0.1" if self._tcp else "", "fsync": "off", "full_page_writes": "off",
                    "synchronous_commit": "off", "shared_buffers": "64MB", "max_connections": 100, **self._settings}
        argv = [PG_BIN / "postgres", "-D", self.data]
        for key, value in settings.items():
            argv += ["-c", f"{key}={value}"]
        # SIGQUIT is PostgreSQL's immediate shutdown: it takes its own children along.
        self._proc = Proc("postgres", argv, cwd="/", logs=self.dir, user=self._os_user, death_signal=signal.SIGQUIT)
        wait_for(self._answers, 30, "PostgreSQL answers")

    def _answers(self):
        assert self._proc.alive, f"PostgreSQL ended: {self._proc.last_words()}"
        try:
            name = self.value("SHOW cluster_name")
        except psycopg2.OperationalError:
            return False
        if name != self.token:
            raise RuntimeError(f"the server in {self.dir} is another one: {name}")
        return True

    @property
    def pid(self):
        return self._proc.pid

    def url(self, db="postgres"):
        return f"host={self.dir} port={self.port} dbname={db} user={self.superuser}"

    def tcp_url(self, db="postgres"):
        assert self._tcp, "PgServer(tcp=True) listens on TCP"
        return f"postgresql://{self.superuser}:{self.password}@127.0.0.1:{self.port}/{db}"

    def connect(self, db="postgres"):
        """A psycopg2 connection in autocommit mode."""
        conn = psycopg2.connect(self.url(db))
        conn.autocommit = True
        return conn

    def rows(self, sql, args=None, db="postgres"):
        """Runs one statement; its rows, or [] when it has none."""
        conn = self.connect(db)
        try:
            with conn.cursor() as c:
                c.execute(sql, args)
                return c.fetchall() if c.description else []
        finally:
            conn.close()

    def value(self, sql, args=None, db="postgres"):
        """The first column of the first row."""
        return self.rows(sql, args, db)[0][0]

    def create_db(self, name):
        self.rows(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def stop(self, sig=signal.SIGINT):
        """SIGINT: fast, sessions are ended; SIGTERM: waits for them; SIGQUIT: immediate."""
        if self._proc and self._proc.alive:
            self._proc.signal(sig)
            self._proc.wait(30)

    def kill9(self):
        """The whole server dies at once, as in a power cut: postmaster first, then every session."""
        sessions = self._proc.children()
        self._proc.kill9()
        for pid in sessions:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_for(lambda: all(process_gone(p) for p in sessions), 10, "PostgreSQL's sessions have ended")

    def restart(self):
        self.stop()
        self.start()

    def close(self):
        if self._proc:
            self.stop(signal.SIGQUIT)
            self._proc.kill9_all()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class RedisServer:
    """A Redis of its own on a unix socket, and on 127.0.0.1 when tcp is asked for; keeps nothing on disk.

    address: what Kiln's redis.url takes ("unix:/path"); tcp_address: "127.0.0.1:port".
    """

    def __init__(self, tcp=False):
        self.dir = short_dir("kt-redis-")
        self.port = free_port() if tcp else 0
        self.socket_path = self.dir / "r"
        self._proc = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        self.socket_path.unlink(missing_ok=True)
        self._proc = Proc("redis", ["/usr/bin/redis-server", "--port", self.port, "--bind", "127.0.0.1", "--unixsocket", self.socket_path,
                                    "--dir", self.dir, "--save", "", "--appendonly", "no"], cwd=self.dir, logs=self.dir)
        wait_for(self._answers, 10, "Redis answers")

    def _answers(self):
        assert self._proc.alive, f"Redis ended: {self._proc.last_words()}"
        try:
            told = self.command("CONFIG", "GET", "dir")[1]
        except OSError:
            return False
        if told.decode() != str(self.dir):
            raise RuntimeError(f"the server on {self.socket_path} is another one: {told}")
        return True

    @property
    def address(self):
        return f"unix:{self.socket_path}"

    @property
    def tcp_address(self):
        assert self.port, "RedisServer(tcp=True) listens on TCP"
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self._proc.pid

    def command(self, *words):
        """Sends one command; strings come back as bytes, arrays as lists, an error raises."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(str(self.socket_path))
            parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
            s.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
            with s.makefile("rb") as f:
                return _resp(f)

    def kill9(self):
        self._proc.kill9()

    def stop(self):
        self._proc.stop()

    def restart(self):
        self.stop()
        self.start()

    def close(self):
        if self._proc:
            self._proc.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _resp(f):
    line = f.readline()
    kind, rest = line[:1], line[1:].rstrip(b"\r\n")
    if kind == b"-":
        raise RuntimeError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == b"-1" else f.read(int(rest) + 2)[:-2]
    if kind == b"*":
        return None if rest == b"-1" else [_resp(f) for _ in range(int(rest))]
    return rest
