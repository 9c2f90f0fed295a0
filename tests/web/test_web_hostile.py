"""Whoever must not be heard by the page's server, and whatever must not hurt it. One test for each way in."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from helpers import all_refs, as_root, bit_by_bit, on_disk, turn, write
from hypothesis import HealthCheck, Phase, given, settings
from page_helpers import browser
from schemathesis.checks import not_a_server_error
from webserver import Client, Serving, serving

from snapstore import Store
from snapstore.web.guard import LARGEST_BODY

MARKUP = "<img src=x onerror=alert(1)>\u202e\x1b[31m</script><script>alert(2)</script>"


@pytest.fixture
def told(store: Store, root: Path) -> Store:
    session = store.session("shell")
    turn(session, root, "First", **{"a.txt": "one\n"})
    turn(session, root, "Second", **{"a.txt": "one\ntwo\n"})
    return store


@pytest.fixture
def server(told: Store, root: Path) -> Iterator[Serving]:
    with serving(root) as found:
        yield found


@pytest.fixture
def page(server: Serving) -> Client:
    return server.client()


def refused(answer: httpx.Response, status: int) -> dict[str, Any]:
    """As a document of the family, and with nothing that would let another page read it."""
    assert answer.status_code == status, answer.text
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    found: dict[str, Any] = answer.json()
    assert found["error"] and found["message"] and found["hint"] and "Traceback" not in answer.text
    return found


@pytest.fixture
def untouched(told: Store, root: Path) -> Iterator[None]:
    """Whatever the test does: no file and no ref changes."""
    before = on_disk(root), all_refs(told)
    yield
    assert (on_disk(root), all_refs(told)) == before


def undo(page: Client) -> dict[str, Any]:
    return {"move": "undo", "expected": page.expected("shell")}


# Who may not.


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_a_name_that_was_rebound_to_this_machine(page: Client, host: str) -> None:
    """A foreign Host, even with the cookie."""
    headers = {"host": host.format(port=page.port)}
    answer = page.http.get("/api/sessions", headers=headers)
    assert answer.status_code in (400, 403) and "sessions" not in answer.text
    answer = page.http.post("/api/sessions/shell/move", json=undo(page), headers=headers)
    assert answer.status_code in (400, 403)


def test_the_two_names_that_are_ours(page: Client) -> None:
    for name in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert page.http.get("/api/sessions", headers={"host": f"{name}:{page.port}"}).status_code == 200


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}"],
)
def test_another_origin(page: Client, origin: str) -> None:
    headers = {"origin": origin.format(port=page.port)}
    refused(page.http.post("/api/sessions/shell/move", json=undo(page), headers=headers), 403)
    refused(page.http.get("/api/sessions", headers=headers), 403)
    asked = {**headers, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    refused(page.http.options("/api/sessions/shell/move", headers=asked), 403)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "nonsense"])
def test_a_fetch_from_another_page(page: Client, site: str) -> None:
    """A page on another port of this machine is `same-site`, and its browser sends the cookie along."""
    headers = {"sec-fetch-site": site, "sec-fetch-dest": "empty", "sec-fetch-mode": "no-cors"}
    refused(page.http.post("/api/sessions/shell/move", json=undo(page), headers=headers), 403)
    refused(page.http.get("/api/sessions", headers=headers), 403)
    refused(page.http.get("/static/main.js", headers=headers), 403)


def test_an_address_typed_by_hand_is_a_document(page: Client) -> None:
    typed = {"sec-fetch-site": "none", "sec-fetch-dest": "document"}
    assert page.http.get("/", headers=typed).status_code == 200
    refused(page.http.post("/api/sessions/shell/move", json=undo(page), headers=typed), 403)
    assert page.http.get("/api/sessions", headers={"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.usefixtures("untouched")
def test_without_the_token_nobody_reads_or_changes_anything(server: Serving) -> None:
    """The second local user: everyone on the machine reaches the port."""
    page, stranger = server.client(), server.stranger()
    name = next(iter(server.cookies))
    for cookie in ("", f"{name}=", f"{name}=wrong", f"{name}={'x' * 43}", f"other={server.cookies[name]}"):
        headers = {"cookie": cookie} if cookie else {}
        for path in ("/api/sessions", "/api/events", "/api/openapi.json", "/api/stats"):
            refused(stranger.get(path, headers=headers), 401)
        refused(stranger.post("/api/sessions/shell/move", json=undo(page), headers=headers), 401)
        for path in ("/", "/static/main.js", "/nowhere"):
            assert stranger.get(path, headers=headers).status_code == 401


def test_the_token_is_worth_one_cookie(server: Serving) -> None:
    """Used twice, or wrong, it buys nothing; the browser that has the cookie may open the address again."""
    stranger = server.stranger()
    for address in (server.url, f"{server.base}/?token=wrong", f"{server.base}/?token=", f"{server.base}/?token=%ff"):
        answer = stranger.get(address)
        assert answer.status_code == 403 and "set-cookie" not in answer.headers
    refused(stranger.get("/api/sessions"), 401)
    assert server.client().http.get(server.url).status_code == 200
    name, value = next(iter(server.cookies.items()))
    assert len(value) >= 40 and value not in server.url and str(server.port) in name


def test_the_cookie_is_for_this_page_only(told: Store, root: Path) -> None:
    with serving(root) as server:
        cookie = server.welcome.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
    assert f"path={server.prefix.lower()}/" in cookie.replace(" ", "")


def test_other_users_cannot_learn_the_token(told: Store, root: Path, tmp_path: Path) -> None:
    """Neither from the words of the browser's command, nor from a file: what is written is for its owner only, and
    goes with the server."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.new && mv {seen}.new {seen}\n')
    browser.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = bit_by_bit(Path(told.home))
    environment = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "snapstore", "ui", "--json"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            token = url.partition("token=")[2]
            with httpx.Client() as client:
                page = client.get(url, headers={"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"})
            assert page.status_code == 200, "a browser that a file leads here is let in by the token"
            while not seen.exists():
                assert process.poll() is None
                time.sleep(0.01)
            words = seen.read_text()
            assert token not in words and token not in Path(f"/proc/{process.pid}/cmdline").read_text()
            opened = Path(words.strip().removeprefix("file://"))
            assert stat.S_IMODE(opened.stat().st_mode) == 0o600 and token in opened.read_text()
            assert list(scratch.iterdir()) == [opened]
        finally:
            process.terminate()
    assert not list(scratch.iterdir()), "gone with the server"
    assert bit_by_bit(Path(told.home)).keys() == before.keys()


@as_root
def test_another_user_at_the_same_machine(server: Serving) -> None:
    """A process of somebody else: the port answers, and tells nothing."""
    code = (
        "import os, socket, sys\n'x'.encode('idna')\nos.setgid(65534); os.setuid(65534)\n"
        "speaking = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "speaking.sendall(sys.argv[2].encode())\n"
        "print(speaking.recv(4096).split()[1].decode())"
    )
    request = f"GET {server.prefix}/api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    words = [sys.executable, "-c", code, str(server.port), request]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.stdout.strip() == b"401", done.stderr


@as_root
def test_a_store_of_somebody_else_is_not_moved_through(page: Client, told: Store, root: Path) -> None:
    """S1-62: everyone moves through their own sessions only, also where another's folder has come into the place."""
    whole = on_disk(root)
    os.chown(told.folder, 65534, 65534)
    assert refused(page.http.get("/api/sessions"), 403)["error"] == "unsafe"
    body = {"move": "undo", "expected": "0" * 40}
    assert refused(page.http.post("/api/sessions/shell/move", json=body), 403)["error"] == "unsafe"
    os.chown(told.folder, os.geteuid(), os.getegid())
    assert on_disk(root) == whole
    page.move("shell", "undo")


def test_no_door_to_other_machines(server: Serving) -> None:
    with pytest.raises(OSError), socket.create_connection(("::1", server.port), timeout=1):
        pass
    assert server.server._socket.getsockname()[0] == "127.0.0.1"


def test_a_websocket_is_not_spoken(server: Serving) -> None:
    upgrade = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version": "13",
    }
    for origin in ("http://evil.example", server.origin):
        answer = server.client().http.get("/api/events/socket", headers={**upgrade, "origin": origin})
        assert answer.status_code in (403, 404)


# A real browser, which has the cookie.


@pytest.fixture
def browsing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("browser")) as chromium, closing(chromium.new_context()) as context:
        yield context


def test_a_browser_that_a_file_leads_here_is_let_in(told: Store, root: Path, tmp_path: Path, browsing: Any) -> None:
    """As `snapstore ui` opens it: the cookie is for our pages only, and comes along all the same."""
    with serving(root, exchange=False) as server:
        lead = tmp_path / "lead.html"
        lead.write_text(f'<meta http-equiv="refresh" content="0;url={server.url}">')
        view = browsing.new_page()
        view.goto(lead.as_uri())
        view.wait_for_url(f"{server.base}/")
        assert view.evaluate("fetch('api/sessions').then(answer => answer.json())")["active"] == "shell"
        view.close()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_another_page_of_the_same_browser(told: Store, root: Path, browsing: Any, name: str) -> None:
    """A page of another site, and one on another port of this machine, to which the cookie is sent too. Fetches, forms,
    images, scripts, frames and streams: nothing is done, and nothing can be read."""
    with serving(root, exchange=False) as server, elsewhere(_EVIL) as port:
        view = browsing.new_page()
        view.goto(server.url)
        view.wait_for_url(f"{server.base}/")
        expected = view.evaluate("fetch('api/sessions/shell/tree').then(answer => answer.json())")["expected"]
        evil = browsing.new_page()
        evil.goto(f"http://{name}:{port}/")
        found = evil.evaluate("([base, expected]) => attack(base, expected)", [server.base, expected])
        assert len(found) == 9 and set(found.values()) == {"nothing"}, found
        evil.close()
        assert view.evaluate("fetch('api/sessions/shell/tree').then(answer => answer.json())")["expected"] == expected
        view.close()


_EVIL = """<!doctype html><title>evil</title><iframe name="frame"></iframe><script>
const tried = async (deed) => { try { return await deed() ? "something" : "nothing" } catch { return "nothing" } };
const loaded = (element, source) => new Promise((resolve) => {
  element.onload = () => resolve(true); element.onerror = () => resolve(false);
  element.src = source; document.body.append(element);
});
async function attack(base, expected) {
  const move = base + "/api/sessions/shell/move", body = JSON.stringify({move: "undo", expected});
  const json = {"content-type": "application/json"}, send = {method: "POST", credentials: "include", body};
  const form = document.createElement("form");
  form.method = "post"; form.enctype = "text/plain"; form.action = move; form.target = "frame";
  const field = document.createElement("input");
  field.name = body.slice(0, -1) + ', "x": "'; field.value = '"}';
  form.append(field); document.body.append(form);
  const framed = new Promise((resolve) => { document.querySelector("iframe").onload = resolve; });
  form.submit(); await framed;
  return {
    json: await tried(() => fetch(move, {...send, headers: json})),
    plain: await tried(() => fetch(move, {...send, headers: {"content-type": "text/plain"}})),
    blind: await tried(async () => (await fetch(move, {...send, mode: "no-cors"})).type !== "opaque"),
    beacon: await tried(() => (navigator.sendBeacon(move, body), false)),
    read: await tried(() => fetch(base + "/api/sessions", {credentials: "include"})),
    form: await tried(() => frames[0].document.body.textContent.includes("move")),
    image: await tried(() => loaded(new Image(), base + "/static/icon.svg")),
    script: await tried(() => loaded(document.createElement("script"), base + "/static/main.js")),
    stream: await tried(() => new Promise((resolve) => {
      const stream = new EventSource(base + "/api/events", {withCredentials: true});
      stream.addEventListener("hello", () => resolve(true)); stream.onerror = () => resolve(false);
    })),
  };
}
</script>"""


def test_another_server_on_this_machine_is_not_sent_the_cookie(told: Store, root: Path, browsing: Any) -> None:
    """Cookies know no ports: a browser sends those of 127.0.0.1 to everyone who listens there. Ours is for one path,
    which the other cannot learn: no address that a browser gives away holds it."""
    heard: list[str] = []
    with serving(root, exchange=False) as server, elsewhere(_EVIL, heard) as port:
        view = browsing.new_page()
        view.goto(server.url)
        view.wait_for_url(f"{server.base}/")
        assert view.evaluate("fetch('api/sessions').then(answer => answer.status)") == 200
        assert [cookie["path"] for cookie in browsing.cookies(f"{server.base}/")] == [f"{server.prefix}/"]
        for address in ("", "api/sessions", f"{server.prefix[1:]}x/"):
            evil = browsing.new_page()
            evil.goto(f"http://127.0.0.1:{port}/{address}")
            evil.close()
        view.evaluate("address => { location.href = address }", f"http://127.0.0.1:{port}/left")
        view.wait_for_url("**/left")
        view.close()
    assert len(heard) >= 4 and not any("snapstore" in line.lower() for line in heard)
    assert not any(server.prefix in line for line in heard if "/left" in line)


def test_an_old_address_is_answered_to_a_person(server: Serving) -> None:
    answer = server.stranger().get(f"{server.origin}/old/", headers={"sec-fetch-dest": "document"})
    assert answer.status_code == 404 and answer.headers["content-type"].startswith("text/plain")
    assert "snapstore ui" in answer.text


def test_outside_its_own_path_the_server_says_nothing(server: Serving) -> None:
    """With the cookie or without, with the token or not: the same nothing, and no cookie."""
    other = f"{server.origin}/{'x' * len(server.prefix[1:])}"
    token = server.url.partition("?")[2]
    bases = (server.origin, other, server.base[:-1], f"{server.base}x", f"{server.origin}/{server.prefix}")
    for speaker in (server.client().http, server.stranger()):
        answers = [speaker.get(f"{base}{path}") for base in bases for path in ("/", "/api/sessions", f"/?{token}")]
        answers += [speaker.get(server.base + suffix) for suffix in ("x", "?token=x", "%00/")]
        answers += [speaker.post(f"{base}/api/sessions/shell/move", json={}) for base in bases]
        assert {refused(answer, 404)["error"] for answer in answers} == {"unknown"}
        assert len({answer.text for answer in answers}) == 1
        assert not any("set-cookie" in answer.headers for answer in answers)


@contextmanager
def elsewhere(text: str, heard: list[str] | None = None) -> Iterator[int]:
    """Somebody else's server on this machine, which keeps what it is told."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if heard is not None:
                heard.append(f"{self.path} {self.headers}")
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        try:
            yield found.server_port
        finally:
            found.shutdown()
            thread.join()


# What is sent.


def test_every_answer_is_locked_down(server: Serving) -> None:
    page, stranger = server.client().http, server.stranger()
    answers = [page.get(path) for path in ("/", "/static/main.js", "/api/sessions", "/api/nowhere", "/nowhere")]
    answers += [stranger.get("/"), stranger.get("/api/sessions"), page.post("/api/sessions/shell/move", json={})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy and "form-action 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "server" not in answer.headers
    assert page.get("/api/sessions").headers["cache-control"] == "no-store"


@pytest.mark.usefixtures("untouched")
def test_reading_changes_nothing(page: Client, told: Store) -> None:
    """A GET has no side effect: no change can be asked for by one, whatever stands in it."""
    document = page.get("/api/openapi.json")
    changing = [path for path, ways in document["paths"].items() if "post" in ways]
    assert len(changing) > 15
    before = bit_by_bit(Path(told.folder))
    for path in changing:
        if path == "/api/events":  # its GET is the stream, which has no end
            continue
        at = path.format(name="shell", branch="main", checkpoint="x", id="shell")
        body = {"move": "undo", "expected": told.shadow.refs.read("refs/snapstore/cursor/shell")}
        assert page.http.get(at, params={name: str(value) for name, value in body.items()}).status_code in (
            200,
            404,
            405,
        )
    for path in ("/api/sessions", "/api/sessions/shell/tree", "/api/sessions/shell/status", "/api/stats"):
        page.get(path)
    assert bit_by_bit(Path(told.folder)) == before


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_a_form_is_no_request(page: Client, kind: str) -> None:
    """What a foreign page can send without being asked: forms and plain text."""
    body = json.dumps(undo(page))
    headers = {"content-type": kind} if kind else {}
    refused(page.http.post("/api/sessions/shell/move", content=body, headers=headers), 415)


@pytest.mark.usefixtures("untouched")
def test_what_is_no_request_at_all(page: Client) -> None:
    kind = {"content-type": "application/json"}
    deep = "[" * 100_000 + "]" * 100_000
    bodies = [b"", b"{", b"null", b"[]", b"1", b'"x"', b"\xff\xfe", deep.encode(), b'{"move": ' + b"9" * 5000 + b"}"]
    for body in bodies:
        refused(page.http.post("/api/sessions/shell/move", content=body, headers=kind), 400)
    half = json.dumps({"move": "goto", "address": "\ud800", "expected": page.expected("shell")})
    refused(page.http.post("/api/sessions/shell/move", content=half, headers=kind), 404)


@pytest.mark.usefixtures("untouched")
def test_a_body_without_end(page: Client, server: Serving) -> None:
    """More than a request can need is not read to its end, and is not kept."""
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 20
            yield b" " * (1 << 20)

    try:
        answer = page.http.post(
            "/api/sessions/shell/move", content=endless(), headers={"content-type": "application/json"}
        )
        refused(answer, 413)
    except httpx.TransportError:  # the server hung up while we were still sending
        pass
    assert sent < 64 * LARGEST_BODY
    assert server.client().get("/api/sessions")["active"] == "shell"


@pytest.mark.usefixtures("untouched")
def test_a_client_that_sends_slowly_holds_nobody_up(server: Serving, root: Path) -> None:
    """Half a request: others are served meanwhile, the store is not locked, and in the end it is told off."""
    server.server.guard.body_seconds = 0.5
    cookie = "; ".join(f"{name}={value}" for name, value in server.cookies.items())
    head = (
        f"POST {server.prefix}/api/sessions/shell/move HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Cookie: {cookie}\r\n"
        'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"move":'
    )
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    try:
        for connection in slow:
            connection.sendall(head.encode())
        assert server.client().get("/api/sessions")["active"] == "shell"
        with Store.open(root) as store, store.lock:
            assert store.lock.held
        for connection in slow:
            connection.settimeout(20)
            assert b" 408 " in connection.recv(4096).partition(b"\r\n")[0]
    finally:
        for connection in slow:
            connection.close()


def test_who_says_nothing_is_hung_up_on(told: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyone on the machine can open connections, and there may be only so many."""
    monkeypatch.setattr("snapstore.web.server._HEAD", 0.2)
    with serving(root) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for number, connection in enumerate(silent):
            connection.sendall([b"", b"GET / HTTP/1.1\r\nHost: x\r\n"][number % 2])
        for connection in silent:
            connection.settimeout(20)
            assert connection.recv(4096) == b""
            connection.close()
        # Who was heard once and then falls silent in the middle of asking, too; who listens to events is left alone.
        with server.events() as events:
            cookie = "; ".join(f"{name}={value}" for name, value in server.cookies.items())
            head = f"Host: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n"
            with socket.create_connection(("127.0.0.1", server.port)) as speaking:
                speaking.settimeout(20)
                speaking.sendall(f"GET {server.prefix}/api/sessions HTTP/1.1\r\n{head}\r\n".encode())
                assert b" 200 " in speaking.recv(65536)
                speaking.sendall(b"GET /")
                while speaking.recv(65536):
                    pass
            server.client().move("shell", "undo")
            events.until("session.updated")


# Names and texts.


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2f..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static/..%5cserver.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/%00",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/api/sessions/..%2f..%2fx/tree",
        "/api/sessions/%2e%2e/tree",
        "/api/sessions/shell/nodes/..%2fHEAD",
        "/api/sessions/x%00y/tree",
        "/api/sessions/-rf/tree",
        "/api/sessions/@%7Bu%7D/tree",
        "/api/sessions/x.lock/tree",
        "/api/sessions/$(touch%20x)/tree",
        "/api/blobs/..%2f..%2fconfig",
        "/api/undo-state/..%2f..%2fformat",
        "/api/undo-state/%2e%2e",
    ],
)
def test_paths_that_climb(server: Serving, path: str) -> None:
    """S1-63, G-09: sent as they are, not as a client would tidy them up."""
    cookie = "; ".join(f"{name}={value}" for name, value in server.cookies.items())
    head = f"Host: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\nConnection: close"
    request = f"GET {server.prefix}{path} HTTP/1.1\r\n{head}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert int(answer.split(b" ")[1]) in (403, 404, 405), answer
    assert b"root:" not in answer and b"def " not in answer


def test_markup_in_every_text_stays_text(page: Client, told: Store, root: Path) -> None:
    """Prompts, replies, agents, file names, contents and names: data in JSON, never a document; and what could end a
    line of the event stream is escaped."""
    session = told.session("shell")
    name = MARKUP.replace("/", "\u2215")
    open_turn = session.begin(MARKUP, agent=MARKUP)
    write(root / name, f"{MARKUP}\n")
    open_turn.reply(MARKUP)
    commit = open_turn.end(thinking=[MARKUP], tool_calls=[{"name": MARKUP}]).hex()
    node = page.http.get(f"/api/sessions/shell/nodes/{commit}")
    assert (node.json()["prompt"], node.json()["replies"]) == (MARKUP, [MARKUP])
    assert node.json()["files"][0]["path"] == name
    diff = page.http.get("/api/sessions/shell/diff", params={"a": "2", "b": "3", "path": name})
    assert MARKUP in diff.json()["patch"]
    wrong = page.http.get("/api/sessions/shell/diff", params={"a": MARKUP, "b": "3"})
    missing = page.http.post(
        "/api/sessions/shell/branches/main/rename", json={"to": MARKUP, "expected": page.expected("shell")}
    )
    for answer in (
        node,
        diff,
        wrong,
        missing,
        page.http.get("/api/sessions"),
        page.http.get("/api/sessions/shell/tree"),
    ):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.content.isascii() and b"\x1b" not in answer.content
    assert (wrong.status_code, missing.status_code) == (404, 403)


def test_a_path_that_is_not_utf8_can_be_moved(page: Client, told: Store, root: Path) -> None:
    odd = os.fsencode(root) + b"/caf\xe9.txt"
    with told.session("shell").turn("Odd"):
        write(odd, "x\n")
    write(odd, "mine\n")
    conflicts = page.move("shell", "undo", 409)["conflicts"]
    assert conflicts[0]["path_b64"]
    disk = page.get("/api/sessions/shell/diff", a="@", path_b64=conflicts[0]["path_b64"])
    assert disk["path_b64"] == conflicts[0]["path_b64"] and "+mine" in disk["patch"]
    page.get("/api/sessions/shell/diff", 400, a="@", path_b64="no base64!")
    page.get("/api/sessions/shell/diff", 400, a="@", path_b64=conflicts[0]["path_b64"], path="a.txt")
    page.get("/api/sessions/shell/diff", 403, a="@", path_b64=b64encode(b"../x").decode())
    page.move("shell", "undo", theirs=[conflicts[0]["path"]])
    assert not os.path.lexists(odd)


def test_no_request_makes_the_server_fail(page: Client, server: Serving) -> None:
    """schemathesis, over the document that the server gives of itself: whatever is asked, no 5xx. Left to itself it
    would hardly ever name a session or expect the right commit, so it is helped to, every other time."""
    schema = schemathesis.openapi.from_dict(page.get("/api/openapi.json"))
    schema.config.base_url = server.base
    answers: Counter[int] = Counter()
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 30
    for operation in operations:
        ask = _asking(page, server, operation, answers)
        ask()
    assert {200, 400, 404, 409} <= set(answers), answers


def _asking(page: Client, server: Serving, operation: Any, answers: Counter[int]) -> Any:
    number = 0

    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        nonlocal number
        number += 1
        if number % 2:
            for name in {"name", "id"} & set(case.path_parameters or {}):
                case.path_parameters[name] = "shell"
            if isinstance(case.body, dict):
                for name, real in (("expected", page.expected("shell")), ("sessionId", "shell"), ("filePath", "a.txt")):
                    if name in case.body:
                        case.body[name] = real
        answer = case.call(cookies=server.cookies, timeout=20)
        answers[answer.status_code] += 1
        case.validate_response(answer, checks=[not_a_server_error])

    return ask
