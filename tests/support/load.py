"""Queries that go on while a test does something to the services."""
import json
import threading

import requests

from servers import wait_for


class Load:
    """Threads that go on asking one query and judge every answer: rows must equal `want`. Failures that clients may see while a part is
    down (no connection, 502, 503, 504) are counted apart; a wrong answer, or any other status, is kept in `wrong`."""

    EXCUSED = (502, 503, 504)

    def __init__(self, trio, query, want, threads=2, gateways=("gateway-1",), **kw):
        self.trio, self.query, self.want, self.kw, self.gateways = trio, query, want, kw, gateways
        self.good = self.excused = 0
        self.last_excuse = None
        self.served, self.wrong = {}, []
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(i,), daemon=True) for i in range(threads)]

    def _ask(self, i):
        session = requests.Session()
        where = self.trio.url(self.gateways[i % len(self.gateways)])
        path = "/api/v0/" + self.trio.package_path(self.kw.get("package", "shop"), f"/models/{self.kw.get('model', 'shop.malloy')}/query")
        while not self._end.is_set():
            try:
                r = session.post(where + path, json={"query": self.query, "compactJson": True}, timeout=30)
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as e:
                with self._lock:
                    self.excused += 1
                    self.last_excuse = str(e)
                self._end.wait(0.02)  # the gateway is away
                continue
            with self._lock:
                self._judge(r)

    def _judge(self, r):
        if r.status_code in self.EXCUSED:
            self.excused += 1
            self.last_excuse = r.text
            return
        if r.status_code != 200:
            self.wrong.append(f"{r.status_code}: {r.text[:500]}")
            return
        rows = json.loads(r.json()["result"])
        if rows != self.want:
            self.wrong.append(f"{rows} ({r.headers.get('Kiln-Served')})")
            return
        self.good += 1
        served = r.headers.get("Kiln-Served")
        self.served[served] = self.served.get(served, 0) + 1

    def goes_on(self, n=3, seconds=20):
        """Waits until n more good answers have come."""
        there = self.good + n
        wait_for(lambda: self.good >= there, seconds, f"{n} more good answers (so far {self.good} good, {self.excused} excused, {self.wrong[:2]})")

    def __enter__(self):
        for t in self._threads:
            t.start()
        return self

    def __exit__(self, kind, *_):
        self._end.set()
        for t in self._threads:
            t.join(40)
        if kind is None:
            assert not self.wrong, f"{len(self.wrong)} wrong answers, the first: {self.wrong[0]}"
