"""What the tests of the page's server share: a real server on the loopback address, and clients as browsers are."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from snapstore.web.server import Server


class Client:
    """A browser that was opened with the token, or (without a cookie) anybody."""

    def __init__(self, server: Server, cookies: dict[str, str]) -> None:
        self.port = server.port
        self.http = httpx.Client(base_url=server.base, cookies=cookies, timeout=30)

    def get(self, path: str, status: int = 200, /, **query: Any) -> Any:
        answer = self.http.get(path, params=query or None)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, body: dict[str, Any] | None = None, status: int = 200, /, **fields: Any) -> Any:
        # As a browser encodes it: half a character, which a path may hold, as an escape.
        content = json.dumps({**(body or {}), **fields})
        answer = self.http.post(path, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == status, answer.text
        return answer.json()

    def expected(self, session: str) -> str:
        found: str = self.get(f"/api/sessions/{session}/tree")["expected"]
        return found

    def move(self, session: str, move: str, status: int = 200, /, **fields: Any) -> Any:
        fields.setdefault("expected", self.expected(session))
        return self.post(f"/api/sessions/{session}/move", {"move": move, **fields}, status)


class Serving:
    """A server at work."""

    def __init__(self, server: Server, *, exchange: bool) -> None:
        self.server = server
        self.port, self.url = server.port, server.url
        self.base = server.base
        self.origin, _, path = self.base.rpartition("/")
        self.prefix = f"/{path}"
        self._clients: list[Client] = []
        self.cookies: dict[str, str] = {}
        if exchange:
            self.welcome = httpx.get(self.url)
            assert self.welcome.status_code == 200, self.welcome.text
            self.cookies = dict(self.welcome.cookies)

    def client(self) -> Client:
        self._clients.append(Client(self.server, self.cookies))
        return self._clients[-1]

    def stranger(self) -> httpx.Client:
        self._clients.append(Client(self.server, {}))
        return self._clients[-1].http

    @contextmanager
    def events(self) -> Iterator[Events]:
        with httpx.stream("GET", f"{self.base}/api/events", cookies=self.cookies, timeout=30) as stream:
            assert stream.status_code == 200
            yield Events(stream)

    def close(self) -> None:
        for client in self._clients:
            client.http.close()


class Events:
    """A page's event stream: each with its name, its data and when it came."""

    def __init__(self, stream: httpx.Response) -> None:
        self._lines = stream.iter_lines()
        self.hello = self.next()[1]

    def next(self) -> tuple[str, dict[str, Any], float]:
        name = ""
        for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: ")), time.monotonic()
        raise AssertionError("the stream ended")

    def until(self, wanted: str, **fields: Any) -> tuple[dict[str, Any], float]:
        """Wait for the next event of a name that has these fields."""
        while True:
            name, data, when = self.next()
            if name == wanted and fields.items() <= data.items():
                return data, when


@contextmanager
def serving(root: Path, *, exchange: bool = True) -> Iterator[Serving]:
    """A server for a project. Without `exchange` its token is still unused."""
    server = Server(str(root))
    thread = threading.Thread(target=server.run)
    thread.start()
    found = None
    try:
        found = Serving(server, exchange=exchange)
        yield found
    finally:
        if found is not None:
            found.close()
        server.stop()
        thread.join()
