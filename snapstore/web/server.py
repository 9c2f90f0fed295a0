"""The HTTP server of one project, on the loopback address only."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from threading import Thread
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from snapstore.errors import SnapstoreError, Unknown, Usage
from snapstore.store.handle import failed
from snapstore.web.answers import refusal
from snapstore.web.events import Channel
from snapstore.web.guard import Guard
from snapstore.web.project import Project
from snapstore.web.routes import branches, compat, diff, moves, read

STATIC = os.path.join(os.path.dirname(__file__), "static")
ADDRESS = "127.0.0.1"
_GRACE = 5  # seconds that responses get when the server stops
_HEAD = 10.0  # seconds that the head of a request may take


class Connection(H11Protocol):
    """A connection with a timeout for the head of a request.

    Every user of the machine can open connections, so silent ones and half-sent heads must not use up the limit.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        waiting = self.conn.their_state is h11.IDLE
        if self._patience is not None and not waiting:
            self._patience.cancel()
            self._patience = None
        elif self._patience is None and waiting:
            self._patience = self.loop.call_later(_HEAD, self.transport.close)


class Server(uvicorn.Server):
    """The server of one page. `url` is the address to open, `run()` serves."""

    def __init__(self, folder: str, *, port: int = 0) -> None:
        self._project = project = Project(folder)
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        prefix, token = f"/{secrets.token_urlsafe(16)}", secrets.token_urlsafe(32)
        self.base = f"http://{ADDRESS}:{self.port}{prefix}"
        self.url = f"{self.base}/?token={token}"
        self.channel = Channel(project)
        self.guard = Guard(application(project, self.channel), self.port, prefix, token)
        super().__init__(
            uvicorn.Config(
                self.guard,
                http=Connection,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE,
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        warming = Thread(target=self._project.warm_up)
        warming.start()
        try:
            super().run([self._socket])
        finally:
            self.close()
            warming.join()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.channel.close()  # event streams never end by themselves
        while self._project.at_work and not self.force_exit:  # a move in progress is finished, however long it takes
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop on the first signal, and without waiting on the second.

        Stopping by signal is the normal end and not a failure.
        """
        self.force_exit = self.should_exit
        self.should_exit = True

    def stop(self) -> None:
        self.should_exit = True

    def close(self) -> None:
        self._socket.close()


def application(project: Project, channel: Channel) -> FastAPI:
    app = FastAPI(
        title="snapstore", openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.add_exception_handler(SnapstoreError, _refuse)
    app.add_exception_handler(OSError, _refuse)
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(HTTPException, _no_such)
    for group in (read, diff, moves, branches, compat):
        app.include_router(group.routes(project))

    @app.get("/api/events", include_in_schema=False)
    async def events() -> Response:
        return StreamingResponse(channel.listen(), media_type="text/event-stream")

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return FileResponse(os.path.join(STATIC, "index.html"), media_type="text/html; charset=utf-8")

    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False))
    return app


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((ADDRESS, port))
        found.listen(128)  # several clients may connect at once
    except (OSError, OverflowError) as error:
        found.close()
        why = error.strerror if isinstance(error, OSError) else "no such port"
        raise Usage(f"port {port} cannot be used: {why}", "Omit --port to use a free one.") from None
    return found


# Refusals.


async def _refuse(request: Any, error: Exception) -> Response:
    if isinstance(error, OSError):
        error = failed(error)
    assert isinstance(error, SnapstoreError)
    return refusal(error)


async def _misunderstood(request: Any, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()[:5]]
    return refusal(Usage("; ".join(wrong), "See /api/openapi.json for the requests."))


async def _no_such(request: Any, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return refusal(Unknown("there is nothing at this address", "See /api/openapi.json for the addresses."))
    answer = refusal(Usage(str(error.detail), "See /api/openapi.json for the requests."), error.status_code)
    answer.headers.update(error.headers or {})
    return answer
