"""Real servers on loopback, each a context manager on a free port, run as whoever runs the tests, with files of its
own: `git daemon`, lighttpd with `git http-backend` (and a password, and TLS before it), sshd with a key. And a wire
that can be cut.

    with daemon(folder) as url: …          # f"{url}/name.git" for a repository folder/name.git
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import plain_environment

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")
LIGHTTPD = shutil.which("lighttpd", path="/usr/sbin:/usr/bin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd")
needs_lighttpd = pytest.mark.skipif(LIGHTTPD is None, reason="needs lighttpd")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")

USER, PASSWORD = "ada", "kept:apart from @ll/logs"


def bare(path: Path, **settings: str) -> Path:
    """Make an empty bare repository that accepts pushes over http too."""
    environment = plain_environment()
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", path], check=True, env=environment)
    for key, value in {"http.receivepack": "true", **settings}.items():
        subprocess.run(["git", "--git-dir", path, "config", key.replace("__", "."), value], check=True, env=environment)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def daemon(folder: Path) -> Iterator[str]:
    """`git daemon`, open to pushes."""
    port = free_port()
    command = ["git", "daemon", f"--base-path={folder}", "--export-all", "--enable=receive-pack", "--reuseaddr"]
    command += ["--informative-errors", "--listen=127.0.0.1", f"--port={port}", str(folder)]
    with _running(command, port):
        yield f"git://127.0.0.1:{port}"


@contextmanager
def web(folder: Path, work: Path, *, password: bool = True) -> Iterator[str]:
    """lighttpd with `git http-backend`; with a password, USER's, unless told otherwise. Its log of requests is
    work/access.log."""
    assert LIGHTTPD is not None
    work.mkdir(parents=True, exist_ok=True)
    port = free_port()
    backend = subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip()
    (work / "passwords").write_text(f"{USER}:{PASSWORD}\n")
    auth = f"""
auth.backend = "plain"
auth.backend.plain.userfile = "{work}/passwords"
auth.require = ("/git/" => ("method" => "basic", "realm" => "turns", "require" => "valid-user"))
"""
    (work / "lighttpd.conf").write_text(f"""
server.modules = ("mod_access", "mod_alias", "mod_auth", "mod_authn_file", "mod_cgi", "mod_setenv", "mod_accesslog",
    "mod_redirect")
server.document-root = "{work}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{work}/error.log"
server.upload-dirs = ("{work}")
accesslog.filename = "{work}/access.log"
alias.url = ("/git/" => "{backend}/git-http-backend/")
url.redirect = ("^/moved/(.*)" => "/git/$1", "^/astray/(.*)" => "/elsewhere/login")
cgi.assign = ("" => "")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "{folder}", "GIT_HTTP_EXPORT_ALL" => "1", "HOME" => "{work}",
    "GIT_CONFIG_NOSYSTEM" => "1", "PATH" => "{os.environ["PATH"]}", "GIT_CONFIG_COUNT" => "1",
    "GIT_CONFIG_KEY_0" => "safe.directory", "GIT_CONFIG_VALUE_0" => "*")
{auth if password else ""}
""")
    with _running([LIGHTTPD, "-D", "-f", str(work / "lighttpd.conf")], port):
        yield f"http://127.0.0.1:{port}/git"


class Certificate:
    """Two files: what everybody may see, and the key."""

    def __init__(self, path: Path, key: Path) -> None:
        self.path = path
        self.key = key


def certificate(work: Path, *names: str) -> Certificate:
    """Signed by itself, for names as OpenSSL writes them: `DNS:localhost`, `IP:127.0.0.1`."""
    work.mkdir(parents=True, exist_ok=True)
    made = Certificate(work / "certificate.pem", work / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=a test", "-keyout", str(made.key), "-out", str(made.path)]
    # A Python from 3.13 on takes no certificate that signs without saying that it may.
    for extension in (f"subjectAltName={','.join(names)}", "keyUsage=critical,keyCertSign,digitalSignature"):
        command += ["-addext", extension]
    subprocess.run(command, check=True, capture_output=True, env=plain_environment())
    return made


@contextmanager
def tls(
    port: int,
    shown: Certificate,
    heard: list[bytes] | None = None,
    calls: list[socket.socket] | None = None,
    caller: Certificate | None = None,
) -> Iterator[int]:
    """A port that leads to another through TLS. What came out of the cipher is heard: of a caller who leaves during the
    handshake, nothing. In `calls` are the connections to the other port; one that is shut down ends the call, and is
    gone from there when the caller's end is closed. With `caller`, only who shows that certificate is let in."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(shown.path, shown.key)
    if caller is not None:
        context.load_verify_locations(caller.path)
        context.verify_mode = ssl.CERT_REQUIRED
    held = [] if calls is None else calls

    def unwrap(connection: socket.socket) -> None:
        connection.settimeout(20)
        try:
            with socket.create_connection(("127.0.0.1", port)) as server:
                held.append(server)
                try:
                    with context.wrap_socket(connection, server_side=True) as client:
                        _decipher(client, server, [] if heard is None else heard)
                finally:
                    held.remove(server)
        except OSError:
            connection.close()

    with _listening(unwrap) as own:
        yield own


@contextmanager
def tunnel(port: int, heard: list[bytes]) -> Iterator[int]:
    """A proxy that leads whoever asks for a connection, wherever to, to one port. Heard is what it was asked."""

    def carry(connection: socket.socket) -> None:
        asked = b""
        while not asked.endswith(b"\r\n\r\n"):
            piece = connection.recv(1)
            if not piece:
                connection.close()
                return
            asked += piece
        heard.append(asked)
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        _forward(connection, port, None, None)

    with _listening(carry) as own:
        yield own


@contextmanager
def socks(port: int, heard: list[bytes], password: bytes = b"", refused: int = 0) -> Iterator[int]:
    """The same that speaks SOCKS 5: heard are the hosts it was asked for. With a password it wants `ada` and that."""

    def carry(connection: socket.socket) -> None:
        stream = connection.makefile("rwb", buffering=0)

        def say(words: bytes) -> None:
            stream.write(words)

        ways = stream.read(stream.read(2)[1])
        way = 2 if password else 0
        say(bytes((5, way if way in ways else 255)))
        if password and way in ways:
            assert stream.read(1) == b"\1"
            user, given = (stream.read(stream.read(1)[0]) for _ in range(2))
            fits = (user, given) == (b"ada", password)
            say(bytes((1, not fits)))
            if not fits:
                connection.close()
                return
        elif way not in ways:
            connection.close()
            return
        kind = stream.read(4)[3]
        heard.append(stream.read({1: 4, 4: 16}.get(kind) or stream.read(1)[0]))
        stream.read(2)
        say(bytes((5, refused, 0, 1)) + bytes(6))
        stream.close()
        if refused:
            connection.close()
        else:
            _forward(connection, port, None, None)

    with _listening(carry) as own:
        yield own


def _decipher(client: ssl.SSLSocket, server: socket.socket, heard: list[bytes]) -> None:
    """In one thread: two must not use one TLS connection at a time."""
    while True:
        ready = [client] if client.pending() else select.select([client, server], [], [], 60)[0]
        for source in ready:
            piece = source.recv(65536)
            if not piece:
                return
            if source is client:
                heard.append(piece)
            (server if source is client else client).sendall(piece)


class Ssh:
    """Where the server is, and the environment under which its key is used."""

    def __init__(self, url: str, port: int, environment: dict[str, str]) -> None:
        self.url = url
        self.port = port
        self.environment = environment


@contextmanager
def ssh(work: Path) -> Iterator[Ssh]:
    """sshd that knows one key. Paths are absolute: f"{server.url}{path}"."""
    assert SSHD is not None
    work.mkdir(parents=True, exist_ok=True)
    port = free_port()
    for name in ("host", "key"):
        if not (work / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(work / name)], check=True)
    (work / "authorized").write_text((work / "key.pub").read_text())
    (work / "known").write_text(f"[127.0.0.1]:{port} {(work / 'host.pub').read_text()}")
    forced = work / "forced"
    forced.write_text(f'#!/bin/sh\nHOME={work} GIT_CONFIG_NOSYSTEM=1 exec sh -c "$SSH_ORIGINAL_COMMAND"\n')
    forced.chmod(0o755)
    (work / "sshd_config").write_text(f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {work}/host
PidFile {work}/pid
AuthorizedKeysFile {work}/authorized
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
ForceCommand {forced}
""")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # where a privileged sshd wants to stand while it asks who it is
    name = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    client = f"ssh -F none -i {work}/key -o IdentitiesOnly=yes -o UserKnownHostsFile={work}/known"
    with _running([SSHD, "-D", "-e", "-f", str(work / "sshd_config")], port):
        yield Ssh(f"ssh://{name}@127.0.0.1:{port}", port, {**os.environ, "GIT_SSH_COMMAND": client})


@contextmanager
def wire(port: int, *, down: int | None = None, up: int | None = None, times: int | None = None) -> Iterator[int]:
    """A port that leads to another, and is cut after so many bytes from the server (down) or to it (up): each call, or
    the first so many."""
    calls = iter(range(1 << 30))

    def carry(connection: socket.socket) -> None:
        cut = times is None or next(calls) < times
        _forward(connection, port, down if cut else None, up if cut else None)

    with _listening(carry) as own:
        yield own


@contextmanager
def stalling(port: int, down: int) -> Iterator[int]:
    """A port that leads to another, and says no more after so many bytes of a call, without hanging up."""
    held: list[socket.socket] = []

    def carry(connection: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", port))
        held.extend((connection, server))
        threading.Thread(target=_carry, args=(connection, server, None), daemon=True).start()
        left = down
        while left > 0 and (piece := server.recv(min(65536, left))):
            connection.sendall(piece)
            left -= len(piece)

    try:
        with _listening(carry) as own:
            yield own
    finally:
        for end in held:
            end.close()


@contextmanager
def silence() -> Iterator[int]:
    """Run a server that accepts connections and never answers."""
    held: list[socket.socket] = []
    try:
        with _listening(held.append) as port:
            yield port
    finally:
        for connection in held:
            connection.close()


@contextmanager
def saying(words: bytes, heard: list[bytes] | None = None) -> Iterator[int]:
    """Run a server that sends everybody the same bytes and hangs up."""

    def say(connection: socket.socket) -> None:
        with connection:
            connection.settimeout(10)
            try:
                said = connection.recv(65536)
                if heard is not None and said:
                    heard.append(said)
                connection.sendall(words)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except OSError:
                pass

    with _listening(say) as port:
        yield port


@contextmanager
def _listening(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)


def _forward(client: socket.socket, port: int, down: int | None, up: int | None) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        ways = [
            threading.Thread(target=_carry, args=(client, server, up), daemon=True),
            threading.Thread(target=_carry, args=(server, client, down), daemon=True),
        ]
        for way in ways:
            way.start()
        for way in ways:
            way.join(60)


def _carry(source: socket.socket, target: socket.socket, most: int | None) -> None:
    try:
        while most is None or most > 0:
            piece = source.recv(65536 if most is None else min(65536, most))
            if not piece:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(piece)
            if most is not None:
                most -= len(piece)
        for end in (source, target):
            end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=plain_environment(),
    )
    try:
        _await(process, port)
        yield
    finally:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                said = process.communicate()[1].decode(errors="replace")
                raise AssertionError(f"the server did not come up: {said}") from None
            time.sleep(0.01)
