"""Connections through a SOCKS proxy, version 5 (RFC 1928, with the user and password of RFC 1929).

Our own, since the handshake is this short and the library for it is one more that every installation would carry.
"""

from __future__ import annotations

import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.transports.urls import Address

# The proxy looks names up with `socks5h`, we with `socks5`: as curl has it, and so git.
SCHEMES = ("socks5", "socks5h")
_OPEN, _PASSWORD = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_WORDS = {2: "the proxy does not allow it", 3: "the network is unreachable", 4: "the host is unreachable"}
_WORDS |= {5: "the connection was refused", 6: "it took too long", 8: "the proxy does not know such addresses"}


def connect(proxy: Address, place: tuple[str, int], timeout: float | None) -> socket.socket:
    """A connection to a place, as the proxy sees it. Raises OSError."""
    host, port = place
    if proxy.scheme == "socks5":
        host = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    connection = socket.create_connection((proxy.host, proxy.port or 1080), timeout)
    try:
        _introduce(connection, proxy)
        connection.sendall(b"\5\1\0" + _spelled(host) + port.to_bytes(2, "big"))
        answer = _read(connection, 4)
        if answer[0] != 5 or answer[1] != 0:
            raise OSError(f"{_WORDS.get(answer[1], 'the proxy could not connect')} (proxy)")
        length = {_IPV4: 4, _IPV6: 16}.get(answer[3])
        _read(connection, 2 + (length if length is not None else _read(connection, 1)[0]))  # where it connects from
    except BaseException:
        connection.close()
        raise
    return connection


def _introduce(connection: socket.socket, proxy: Address) -> None:
    ways = bytes((_OPEN, _PASSWORD)) if proxy.user else bytes((_OPEN,))
    connection.sendall(bytes((5, len(ways))) + ways)
    version, way = _read(connection, 2)
    if version != 5 or way not in ways:
        raise OSError("the proxy wants a user and a password" if version == 5 else "it is no SOCKS 5 proxy")
    if way == _PASSWORD:
        words = [text.encode()[:255] for text in (proxy.user, proxy.password)]
        connection.sendall(b"\1" + b"".join(bytes((len(word),)) + word for word in words))
        if _read(connection, 2)[1] != 0:
            raise OSError("the proxy did not take the user and password")


def _spelled(host: str) -> bytes:
    for kind, family in ((_IPV4, socket.AF_INET), (_IPV6, socket.AF_INET6)):
        try:
            return bytes((kind,)) + socket.inet_pton(family, host)
        except OSError:
            continue
    name = host.encode("idna")
    return bytes((_NAME, len(name))) + name


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            raise OSError("the proxy broke off")
        found += piece
    return found
