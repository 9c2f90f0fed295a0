"""Access control: admit only our own page, in the browser that has the token.

A server on the loopback address can be reached by every page that the person has open, and by every user of the
machine. So a request must have our own host name (a page that rebinds its name to 127.0.0.1 sends another), come from
our own page (Origin, Sec-Fetch-Site), and carry the cookie that was issued for the one-time token. Cookies are not
separated by port: the browser would send ours to any other server on this machine. The cookie is therefore limited to a
path that nobody else can guess. A request body is read here, bounded in size and time, before any other code sees it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any
from urllib.parse import parse_qs

from fastapi import Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from snapstore.errors import SnapstoreError, Unknown, Unsafe, Usage
from snapstore.web.answers import refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 8 << 20
LARGEST_UNWANTED = 64 << 10
BODY_SECONDS = 20.0
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_READING = ("GET", "HEAD")
# No redirect: if another site led the browser here, it would follow a redirect without the SameSite cookie.
_WELCOME = (
    '<!doctype html><meta http-equiv="refresh" content="0;url=./"><title>snapstore</title>'
    '<link rel="icon" href="static/icon.svg">'
)


class Guard:
    """The ASGI middleware around the whole application."""

    def __init__(self, app: App, port: int, prefix: str, token: str) -> None:
        self._app = app
        self._prefix = prefix
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._token = token
        self._used = False
        self._secret = secrets.token_urlsafe(32)
        self._cookie = f"snapstore-{port}"
        self.body_seconds = BODY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no websockets, whatever their origin
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(message, self._below(scope))
            await send(message)

        try:
            answer = await self._handled(scope, receive, sending)
        except Exception as error:  # a bug: report the error, but no traceback
            if started:
                raise
            failure = SnapstoreError(f"unexpected: {type(error).__name__}: {error}", "`snapstore status` may say more.")
            answer = refusal(failure)
        if answer is not None:
            await answer(scope, receive, sending)

    def _refused(self, scope: Scope) -> Response | None:
        headers = _headers(scope)
        method = scope["method"]
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _no("the host name in the request is not this server's")
        if any(origin != f"http://{hosts[0].lower()}" for origin in headers.get("origin", [])):
            return _no("the request comes from another page")
        path = self._below(scope)
        if path is None:
            nothing = Unknown("there is nothing at this address", "Open the one that `snapstore ui` prints.")
            return refusal(nothing) if headers.get("sec-fetch-dest") != ["document"] else _text(nothing, 404)
        if method == "GET" and path == "/" and b"token=" in scope["query_string"]:
            return self._exchange(scope, headers)
        for site in headers.get("sec-fetch-site", []):
            typed = site == "none" and method in _READING
            if site != "same-origin" and not (typed and headers.get("sec-fetch-dest", ["document"]) == ["document"]):
                return _no("the request comes from another page")
        if not self._has_cookie(headers):
            error = Unsafe("this browser has no access", "Open the address that `snapstore ui` prints.")
            if path.startswith("/api/") or method not in _READING:
                return refusal(error, 401)
            return _text(error, 401)
        if method not in _READING:
            kinds = [kind.partition(";")[0].strip().lower() for kind in headers.get("content-type", [])]
            if kinds != ["application/json"]:
                return refusal(Usage("a request for a change must be JSON", "Send it as application/json."), 415)
        return None

    def _below(self, scope: Scope) -> str | None:
        """Return the path below the prefix, or None if the prefix is wrong."""
        start, path = scope["path"][: len(self._prefix)], scope["path"][len(self._prefix) :]
        return path if compare_digest(start.encode(), self._prefix.encode()) and path.startswith("/") else None

    def _exchange(self, scope: Scope, headers: dict[str, list[str]]) -> Response:
        """Exchange the one-time token for the cookie."""
        if self._has_cookie(headers):  # the address was opened again
            return HTMLResponse(_WELCOME)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        fits = compare_digest(given.encode("utf-8", "replace"), self._token.encode())
        if self._used or not fits:
            what = "this address has already been used" if fits else "this is not the address that was printed"
            text = f"snapstore: {what}. Run `snapstore ui` again for a new one.\n"
            return PlainTextResponse(text, 403)
        self._used = True
        answer = HTMLResponse(_WELCOME)
        answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict", path=f"{self._prefix}/")
        return answer

    def _has_cookie(self, headers: dict[str, list[str]]) -> bool:
        pairs = [pair.strip().partition("=") for line in headers.get("cookie", []) for pair in line.split(";")]
        given = [value for name, _, value in pairs if name == self._cookie]
        return any(compare_digest(value.encode("latin-1"), self._secret.encode()) for value in given)

    async def _handled(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Pass the request on, or return the refusal.

        A small body is read to its end even if the request is refused. A browser whose connection is closed while it
        sends would not receive the response.
        """
        refused = self._refused(scope)
        scope["root_path"] = self._prefix
        if scope["method"] in _READING:
            if refused is None:
                await self._app(scope, receive, send)
            return refused
        try:
            async with asyncio.timeout(self.body_seconds):
                body = await _body(receive, LARGEST_BODY if refused is None else LARGEST_UNWANTED)
        except ConnectionResetError:  # a client that disconnects before the end of the request has requested nothing
            return refusal(Usage("the request is incomplete", "Send it again."))
        except TimeoutError:
            return _hang_up(refusal(Usage("the request took too long to arrive", "Send it again."), 408))
        if body is None:
            too_much = refusal(Usage(f"more than {LARGEST_BODY >> 20} MiB", "Send several smaller requests."), 413)
            return _hang_up(refused or too_much)
        if refused is None:
            await self._app(scope, _replay(body, receive), send)
        return refused


async def _body(receive: Receive, limit: int) -> bytes | None:
    """Read the whole body, or return None if it exceeds the limit."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        body += message.get("body", b"")
        if len(body) > limit:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _hang_up(answer: Response) -> Response:
    """Make the connection close after the response, with the rest of the body unread."""
    answer.headers["connection"] = "close"
    return answer


def _replay(body: bytes, receive: Receive) -> Receive:
    pending = [body]

    async def again() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return again


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _add_headers(message: Message, path: str | None) -> None:
    known = {name.lower() for name, _ in message["headers"]}
    static = path is not None and path.startswith("/static/")
    added = {**HEADERS, "cache-control": "no-cache" if static else "no-store"}
    extra = [(name.encode(), value.encode()) for name, value in added.items() if name.encode() not in known]
    message["headers"] = [*message["headers"], *extra]


def _text(error: SnapstoreError, status: int) -> Response:
    """Return an error as plain text, for a person who opens the address in a browser."""
    return PlainTextResponse(f"snapstore: {error.message}. {error.hint}\n", status)


def _no(why: str) -> Response:
    return refusal(Unsafe(why, "Open the address that `snapstore ui` prints."), 403)
