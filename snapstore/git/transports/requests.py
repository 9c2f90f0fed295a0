"""Single http requests to one server, kept alive between them; through a proxy where the user has one."""

from __future__ import annotations

import http.client

from snapstore.errors import Remote
from snapstore.git.commits import one_line
from snapstore.git.transports import socks, urls, usersgit
from snapstore.git.transports.stream import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterator, Mapping

PIECE = 1 << 16
_DRAINED = 1 << 20
_WORKING = 10  # times the usual patience
_OTHER_HOST = (62, 64)  # OpenSSL's numbers for a certificate of another name or address
_FALSE = ("false", "0", "no", "off", "")


class Answer:
    """A response, readable as a stream of packet lines is."""

    def __init__(self, response: http.client.HTTPResponse, who: str) -> None:
        self._response = response
        self._who = who
        self.status = response.status
        self.reason = one_line(response.reason or "")[:100]

    def header(self, name: str, *, lower: bool = True) -> str:
        value = one_line(self._response.headers.get(name) or "")
        return value.partition(";")[0].strip().lower() if lower else value

    def read(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            piece = self._some(size - len(out))
            if not piece:
                raise Broken(f"{self._who} broke off in the middle", again=True)
            out += piece
        return out

    def read_some(self) -> bytes:
        return self._some(PIECE)

    def drain(self) -> None:
        """Reads what is left, so that the connection can be used again; a long rest is not worth it."""
        left = _DRAINED
        while left > 0 and (piece := self._some(PIECE)):
            left -= len(piece)

    def _some(self, size: int) -> bytes:
        try:
            return self._response.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"{self._who} {_why(error)}", again=not isinstance(error, TimeoutError)) from None


class Requests:
    def __init__(self, address: urls.Address, environment: Mapping[str, str], timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._who = address.shown
        settings = usersgit.settings("http", address.url, environment)
        self._headers = {"User-Agent": "git/2 (snapstore)", "Pragma": "no-cache"}
        for header in settings.get("http.extraheader", []):
            name, separator, value = header.partition(":")
            if separator:
                self._headers[name.strip()] = value.strip()
        self._prefix = ""
        self._connection = self._connect(_proxy(address, settings, environment), settings, environment, timeout)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes | Iterator[bytes] | None) -> Answer:
        fresh = self._connection.sock is None
        try:
            self._connection.request(
                method, self._prefix + path, body, {**self._headers, **headers}, encode_chunked=not _sized(body)
            )
            if method == "POST" and self._connection.sock is not None:
                # A server that answers through a gateway says nothing before it has stored or packed everything.
                self._connection.sock.settimeout(self._timeout * _WORKING)
            return Answer(self._connection.getresponse(), self._who)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            # A kept connection may have been closed while we thought; a request that was answered by nothing but that
            # is sent again, if it can be.
            if not fresh and _hung_up(error) and _sized(body):
                return self.send(method, path, headers, body)
            if hasattr(error, "verify_code"):
                raise _unproven(self._who, error) from None
            raise Broken(f"{self._who} {_why(error)}", again=_passing(error)) from None

    def close(self) -> None:
        self._connection.close()

    def _connect(
        self,
        proxy: urls.Address | None,
        settings: Mapping[str, list[str]],
        environment: Mapping[str, str],
        timeout: float,
    ) -> http.client.HTTPConnection:
        address = self._address
        if proxy is not None and proxy.scheme in socks.SCHEMES:
            straight = self._connect(None, settings, environment, timeout)

            def through(place: tuple[str, int], timeout: float | None, _: object = None) -> socket.socket:
                return socks.connect(proxy, place, timeout)

            straight._create_connection = through  # type: ignore[attr-defined]  # where both kinds make theirs
            return straight
        first = proxy or address
        if address.scheme == "http":
            if proxy is not None:
                self._prefix = f"http://{address.place}"
                self._headers.update(_for_proxy(proxy))
            return http.client.HTTPConnection(first.host, first.port, timeout=timeout)
        context = _tls(settings, environment)
        connection = http.client.HTTPSConnection(first.host, first.port, timeout=timeout, context=context)
        if proxy is not None:
            connection.set_tunnel(address.host, address.port or 443, _for_proxy(proxy))
        return connection


def _sized(body: object) -> bool:
    return body is None or isinstance(body, bytes)


def _hung_up(error: Exception) -> bool:
    """Over TLS a write into a closed connection is an error of its own kind."""
    import ssl

    return isinstance(
        error, http.client.RemoteDisconnected | ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError
    )


def _passing(error: Exception) -> bool:
    """Whether it may go better at once: not after a long wait, and not where the two sides disagree about TLS."""
    import ssl

    return not isinstance(error, TimeoutError | ssl.SSLError) or _hung_up(error)


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    if isinstance(error, http.client.HTTPException):
        return "broke off in the middle"
    return f"cannot be reached: {one_line(str(getattr(error, 'strerror', '') or error))}"


def _unproven(who: str, error: Exception) -> Remote:
    """No Broken: the same certificate would come again."""
    said = one_line(str(getattr(error, "verify_message", ""))).rstrip(".")
    hint = "If you trust this server, name its certificate, or that of who signed it, in git's setting http.sslCAInfo."
    if getattr(error, "verify_code", 0) in _OTHER_HOST:
        hint = "Check the host name in the address; the certificate is for another."
    return Remote(f"{who} could not prove who it is, and nothing was sent to it: {said}", hint)


def _for_proxy(proxy: urls.Address) -> dict[str, str]:
    if not proxy.user:
        return {}
    return {"Proxy-Authorization": usersgit.Credentials(proxy.user, proxy.password, from_git=False).header()}


def _proxy(
    address: urls.Address, settings: Mapping[str, list[str]], environment: Mapping[str, str]
) -> urls.Address | None:
    """git's setting, else the environment's, as curl reads it."""
    text = settings.get("http.proxy", [None])[-1]
    if text is None:
        names = ["http_proxy"] if address.scheme == "http" else ["https_proxy", "HTTPS_PROXY"]
        text = next((environment[name] for name in [*names, "all_proxy", "ALL_PROXY"] if environment.get(name)), "")
        if any(_excepted(name, address.host) for name in _exceptions(environment)):
            text = ""
    if not text:
        return None
    if "://" not in text:
        text = f"http://{text}"
    scheme, _, place = text.partition("://")
    if scheme.lower() not in ("http", *socks.SCHEMES):
        hint = "Set http.proxy or the environment to one of http://, socks5:// or socks5h://, or to nothing."
        raise Remote(f"{one_line(scheme)[:20]}:// proxies are not supported", hint)
    proxy = urls.parse("http://" + place.rstrip("/") + "/-")
    return urls.Address(scheme.lower(), proxy.path, proxy.host, proxy.port or 1080, proxy.user, proxy.password)


def _exceptions(environment: Mapping[str, str]) -> list[str]:
    text = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def _excepted(name: str, host: str) -> bool:
    host = host.lower()
    return name == "*" or host == name.lstrip(".") or host.endswith("." + name.lstrip("."))


def _tls(settings: Mapping[str, list[str]], environment: Mapping[str, str]) -> ssl.SSLContext:
    """Whom to believe: as git is told; else OpenSSL's own, with SSL_CERT_FILE and SSL_CERT_DIR."""
    import ssl

    def file(name: str, variable: str) -> str | None:
        path = environment.get(variable) or settings.get(name, [""])[-1]
        home = environment.get("HOME")
        return (f"{home}{path[1:]}" if home and path.startswith("~/") else path) or None

    try:
        context = ssl.create_default_context(
            cafile=file("http.sslcainfo", "GIT_SSL_CAINFO"), capath=file("http.sslcapath", "GIT_SSL_CAPATH")
        )
        if certificate := file("http.sslcert", "GIT_SSL_CERT"):
            context.load_cert_chain(certificate, file("http.sslkey", "GIT_SSL_KEY"))
    except OSError as error:  # ssl.SSLError is one
        raise Remote(
            f"the certificates of your git configuration cannot be read: {error.strerror or error}",
            "Check the files that http.sslCAInfo, http.sslCert and http.sslKey name, or GIT_SSL_CAINFO and the like.",
        ) from None
    if "GIT_SSL_NO_VERIFY" in environment or settings.get("http.sslverify", ["true"])[-1].lower() in _FALSE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
