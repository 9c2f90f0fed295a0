"""Addresses of other repositories, refusing any that could run a program.

An address may come from a store, a message or a web page. So `ext::` and every other `transport::` is refused, and no
part of an address may look like an option to ssh or git (CVE-2017-1000117 was `ssh://-oProxyCommand=…`).
"""

from __future__ import annotations

import os
from urllib.parse import quote

from snapstore.errors import Unsafe

_PORTS = {"ssh": 22, "git": 9418, "http": 80, "https": 443}
_ALSO = {"git+ssh": "ssh", "ssh+git": "ssh"}
_IN_HOSTS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%")
_HINT = "Use a path, or an https, http, ssh, git or file address."


class Address:
    """The address of a repository. `shown` has no secrets, for people to read."""

    __slots__ = ("given", "host", "password", "path", "port", "scheme", "shown", "user")

    def __init__(
        self, scheme: str, path: str, host: str = "", port: int | None = None, user: str = "", password: str = ""
    ) -> None:
        self.scheme = scheme  # path, git, ssh, http or https
        self.path = path
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.given = ""  # as it was written
        user = user.replace("@", "%40")
        who = "…" if scheme in ("http", "https") and is_token(user) else user
        self.shown = path if scheme == "path" else f"{scheme}://{who and who + '@'}{self.place}{path}"

    @property
    def place(self) -> str:
        """Return host and port as written in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, _PORTS.get(self.scheme)) else f"{host}:{self.port}"

    @property
    def secret(self) -> tuple[str, str]:
        """Return user and password if the address has a password or token.

        Otherwise both are empty.
        """
        if self.scheme in ("http", "https") and (self.password or is_token(self.user)):
            return self.user, self.password
        return "", ""

    @property
    def without_secret(self) -> str:
        """Return the address for git, without secrets.

        An address without secrets is returned as written, so that the user's `insteadOf` matches it.
        """
        if not any(self.secret):
            return self.given
        user = quote(self.user, safe="") if not is_token(self.user) else ""
        return f"{self.scheme}://{user and user + '@'}{self.place}{self.path}"


def is_token(user: str) -> bool:
    """Return whether the user in a web address is probably a token.

    An example is `https://ghp_…@github.com/`.
    """
    return len(user) >= 20 and not set(user) & set(".%@ ")


def shown(text: str) -> str:
    """Return an address without password or token, to be printed or stored."""
    if text.partition("://")[0].lower() in ("http", "https"):
        try:
            return parse(text).shown
        except Unsafe:
            return text.partition("://")[0] + "://…"
    return text


def parse(text: str) -> Address:
    """Parse an address. Raises Unsafe unless it is a plain repository address."""
    address = _parsed(text)
    address.given = text
    return address


def _parsed(text: str) -> Address:
    if not text or any(not c.isprintable() for c in text):
        raise Unsafe("an address is empty or has control characters in it", _HINT)
    scheme, separator, rest = text.partition("://")
    if separator and scheme.replace("+", "").isalnum():
        return _with_scheme(_ALSO.get(scheme.lower(), scheme.lower()), rest)
    if "::" in text.partition("/")[0] and "[" not in text.partition("/")[0]:
        raise Unsafe(f"{text.partition('::')[0]}:: addresses run programs and are not followed", _HINT)
    if text.startswith("-"):
        raise Unsafe("an address must not begin with a dash", _HINT)
    colon = text.find("]:") + 1 if text.startswith("[") or "@[" in text.partition("/")[0] else text.find(":")
    if colon > 0 and "/" not in text[:colon]:
        return _like_scp(text[:colon], text[colon + 1 :])
    return Address("path", os.path.abspath(text))


def _with_scheme(scheme: str, rest: str) -> Address:
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not slash:
            raise Unsafe("a file address names another machine", "Write file:///folder, or the folder alone.")
        return Address("path", os.path.abspath(_decoded("/" + path)))
    if scheme not in _PORTS:
        raise Unsafe(f"{scheme}:// addresses are not followed", _HINT)
    place, slash, path = rest.partition("/")
    who, _, place = place.rpartition("@")
    user, _, password = who.partition(":")
    host, port = _host_and_port(place)
    path = f"/{path}" if slash else ""
    if scheme in ("ssh", "git"):
        path = _decoded(path)
        if path.startswith("/~"):
            path = path[1:]
    if not path or path == "/" or path.startswith("-"):
        raise Unsafe("an address names no repository", _HINT)
    if scheme in ("http", "https") and any(c in path for c in "?# "):
        raise Unsafe("an address has a query or a space in it", _HINT)
    if scheme == "git" and who:
        raise Unsafe("git:// addresses have no users", "Remove the name, or use ssh or https.")
    if scheme == "ssh" and password:
        raise Unsafe("ssh takes no password from an address", "Use a key, and leave the password out.")
    user = _decoded(user)
    # In a web address, a user may be a mail address: it goes into a header, not to a program.
    checked = _user(user.replace("@", "")) and user if scheme in ("http", "https") else _user(user)
    return Address(scheme, path, host, port, checked, _decoded(password))


def _like_scp(place: str, path: str) -> Address:
    """Parse `user@host:path`.

    The path is relative to the user's home on the server, unless it begins with a slash.
    """
    user, _, host = place.rpartition("@")
    host, port = _host_and_port(host)
    if port is not None or not path or path.startswith("-"):
        raise Unsafe("an address names no repository", _HINT)
    return Address("ssh", path, host, None, _user(user))


def _host_and_port(place: str) -> tuple[str, int | None]:
    port: int | None = None
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or ":" not in host or (rest and not rest.startswith(":")):
            raise Unsafe("an address has no valid host", _HINT)
        digits = rest[1:]
    else:
        host, _, digits = place.partition(":")
    if digits:
        if not (digits.isascii() and digits.isdigit()) or not 0 < int(digits[:9]) < 65536:
            raise Unsafe("an address has an invalid port", _HINT)
        port = int(digits)
    if not host or host[0] in "-%" or not _IN_HOSTS.issuperset(host):
        raise Unsafe("an address has no valid host", _HINT)
    return host, port


def _user(user: str) -> str:
    if user.startswith("-") or any(c in "/\\@:'\"`$;&|<>() " for c in user):
        raise Unsafe("an address has an invalid user name", _HINT)
    return user


def _decoded(text: str) -> str:
    """Return the text with percent escapes decoded, which callers check afterwards."""
    if "%" not in text:
        return text
    first, *rest = text.split("%")
    out = bytearray(os.fsencode(first))
    for part in rest:
        try:
            out += bytes.fromhex(part[:2])
        except ValueError:
            raise Unsafe("an address has a malformed % escape", _HINT) from None
        if len(part) < 2:
            raise Unsafe("an address has a malformed % escape", _HINT)
        out += os.fsencode(part[2:])
    decoded = os.fsdecode(bytes(out))
    if any(ord(c) < 32 or ord(c) == 127 for c in decoded):
        raise Unsafe("an address has control characters in it", _HINT)
    return decoded
