"""The helpers of tests/support/servers.py do what they say: the other tests lean on them."""
import signal

import psycopg2
import pytest

from servers import PgServer, Proc, RedisServer, descendants, free_port, process_gone, wait_for


def test_postgres_serves_on_socket_and_tcp_and_is_gone_afterwards():
    with PgServer(tcp=True) as pg:
        assert pg.value("SELECT 1 + 1") == 2
        conn = psycopg2.connect(pg.tcp_url())
        conn.close()
        pid, place = pg.pid, pg.dir
    assert process_gone(pid) and not place.exists()


def test_postgres_comes_back_with_its_rows_after_a_kill():
    with PgServer(settings={"fsync": "on", "synchronous_commit": "on"}) as pg:
        pg.rows("CREATE TABLE t (n int)")
        pg.rows("INSERT INTO t VALUES (%s)", (7,))
        pg.kill9()
        pg.start()
        assert pg.value("SELECT n FROM t") == 7


def test_redis_answers_and_forgets_when_killed():
    with RedisServer(tcp=True) as redis:
        redis.command("SET", "a", b"\x00b")
        assert redis.command("GET", "a") == b"\x00b"
        redis.kill9()
        redis.start()
        assert redis.command("GET", "a") is None


def test_process_output_is_kept_over_a_restart_and_its_children_are_found():
    with Proc("shell", ["/bin/sh", "-c", "echo started; sleep 60 & wait"]) as p:
        wait_for(lambda: p.said("started"), 5, "the process speaks")
        wait_for(lambda: descendants(p.pid), 5, "it has a child")
        child = descendants(p.pid)[0]
        p.kill9()
        assert p.code == -signal.SIGKILL and not process_gone(child)
        p.kill9_all()
        wait_for(lambda: process_gone(child), 5, "the child is gone")
        p.start()
        wait_for(lambda: p.out().count("started") == 2, 5, "it speaks again")


def test_waiting_names_what_did_not_come():
    with pytest.raises(AssertionError, match="still not: the moon"):
        wait_for(lambda: False, 0.05, "the moon")
    assert free_port() != free_port()
