"""A remote over http or https: the same protocol in requests, with the user's password, proxy and certificates.

On the standard library's client: its time limits and headers are ours to set, and it neither follows a redirect with
our password in hand nor tries a push again by itself. (dulwich takes `https_proxy` for http addresses too, and its
import costs as much as the requests of a small fetch.)
"""

from __future__ import annotations

import time

from snapstore.errors import Remote
from snapstore.git.commits import one_line
from snapstore.git.transport import Connection, unpacked
from snapstore.git.transports import urls, usersgit
from snapstore.git.transports.negotiation import haves
from snapstore.git.transports.pktline import FLUSH, packet, packets, read_advertisement
from snapstore.git.transports.requests import Answer, Requests
from snapstore.git.transports.stream import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from snapstore.git.transports.negotiation import Negotiation
    from snapstore.git.transports.pktline import Advertisement, Source

_REDIRECTS = 5
_QUESTIONS = 3
_BUFFERED = 1 << 20  # a larger push is sent in chunks
_BUSY = (429, 502, 503, 504)


class HttpConnection(Connection):
    _requests: Requests | None = None
    _who: usersgit.Credentials | None = None
    _asked = 0
    _url_password_used = False

    def close(self) -> None:
        super().close()
        if self._requests is not None:
            self._requests.close()
            self._requests = None

    def _open(self, service: str) -> Advertisement:
        answer = self._get(service)
        if answer.header("content-type") != f"application/x-{service}-advertisement":
            raise Remote(
                f"{self.shown} is no repository, or its server does not speak git's smart protocol",
                "Check the address; a clone address often ends in .git.",
            )
        for line in packets(answer):
            if not line.startswith(b"# service="):
                raise Remote("the other side does not speak git as we know it")
        offered = read_advertisement(answer)
        answer.drain()
        return offered

    def _get(self, service: str) -> Answer:
        for _ in range(_REDIRECTS):
            path = f"{self.address.path.rstrip('/')}/info/refs?service={service}"
            answer = self._asked_again(lambda path=path: self._send("GET", path, {}, None))  # type: ignore[misc]
            if answer.status in (301, 302, 303, 307, 308):
                self._follow(answer, service)
            else:
                return self._fine(answer)
        raise Remote(f"{self.shown} sends us on and on", "Check the address.")

    def _follow(self, answer: Answer, service: str) -> None:
        """To where a server says the repository is now. A password goes along to the same place only, and nothing
        goes from https to http."""
        target = answer.header("location", lower=False)
        answer.drain()
        if target.startswith("/"):
            target = f"{self.address.scheme}://{self.address.place}{target}"
        end = f"/info/refs?service={service}"
        if not target.endswith(end):
            raise Remote(f"{self.shown} sends us to where no repository is", "Check the address.")
        new = urls.parse(target.removesuffix(end))
        if new.scheme not in ("http", "https") or (self.address.scheme == "https" and new.scheme == "http"):
            raise Remote(f"{self.shown} sends us to a less safe place", "Ask whoever runs it.")
        if (new.scheme, new.place) != (self.address.scheme, self.address.place):
            self._who = None
            self._url_password_used = True
        elif not new.user:
            new = urls.Address(new.scheme, new.path, new.host, new.port, self.address.user, self.address.password)
        super().close()
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        self.address = new

    def _asked_again(self, send: Callable[[], Answer]) -> Answer:
        """Sends until the server is neither busy nor asks who we are."""
        pause = 0.3
        while True:
            try:
                answer = send()
            except Broken as error:
                if pause > 2 or not error.again:
                    raise
                answer = None
            if answer is not None and answer.status == 401:
                answer.drain()
                self._authenticate()
            elif answer is not None and (answer.status not in _BUSY or pause > 2):
                if self._who is not None and self._who.from_git and answer.status < 400:
                    usersgit.tell(self.address, self._who, self._environment, right=True)
                    self._who.from_git = False
                return answer
            else:
                time.sleep(pause)
                pause *= 3

    def _authenticate(self) -> None:
        """The next password to try: the address's own, a helper's, a person's."""
        if self._who is not None and self._who.from_git:
            usersgit.tell(self.address, self._who, self._environment, right=False)
        tried, self._who = self._who, None
        if self.address.password and not self._url_password_used:
            self._url_password_used = True
            self._who = usersgit.Credentials(self.address.user, self.address.password, from_git=False)
            return
        if self._asked == 0:
            self._asked = 1
            self._who = usersgit.fill(self.address, self._environment)
        while self._who is None and self._ask is not None and self._asked <= _QUESTIONS:
            self._asked += 1
            user = self.address.user or self._ask(f"User name for {self.address.url}", False)
            password = user and self._ask(f"Password for {user} at {self.address.url}", True)
            if not user or not password:
                break
            self._who = usersgit.Credentials(user, password, from_git=True)
        if self._who is None:
            raise Remote(
                f"{self.shown} {'refused the password' if tried else 'asks for a password'}",
                "Set up a git credential helper that knows it (see `git help credentials`), then run this again.",
            )

    def _packed(self, talk: Negotiation) -> Iterator[bytes]:
        unheard = b""
        for words in talk.rounds():
            if not talk.talks:
                unheard += words
            else:
                said = talk.wants + haves(talk.shared) + words + FLUSH
                talk.hear(answer := self._post("git-upload-pack", lambda said=said: (said,)))  # type: ignore[misc]
                answer.drain()
        final = talk.wants + haves(talk.shared) + unheard + packet(b"done\n")
        answer = self._post("git-upload-pack", lambda: (final,))
        talk.hear_last(answer)
        yield from unpacked(answer, talk, self._progress)

    def _exchange(self, commands: bytes, pack: Callable[[], Iterable[bytes]]) -> Source:
        def body() -> Iterator[bytes]:
            yield commands
            yield from pack()

        return self._post("git-receive-pack", body)

    def _post(self, service: str, body: Callable[[], Iterable[bytes]]) -> Answer:
        headers = {"Content-Type": f"application/x-{service}-request", "Accept": f"application/x-{service}-result"}
        path = f"{self.address.path.rstrip('/')}/{service}"

        def send() -> Answer:
            pieces = iter(body())
            first: list[bytes] = []
            size = 0
            for piece in pieces:
                first.append(piece)
                size += len(piece)
                if size > _BUFFERED:
                    return self._send("POST", path, headers, _chain(first, pieces))
            return self._send("POST", path, headers, b"".join(first))

        answer = self._fine(self._asked_again(send) if service == "git-upload-pack" else self._once(send))
        if answer.header("content-type") != headers["Accept"]:
            raise Remote(f"{self.shown} does not speak git's smart protocol")
        return answer

    def _once(self, send: Callable[[], Answer]) -> Answer:
        """A push is not sent twice, unless the server has only asked who we are."""
        answer = send()
        if answer.status == 401:
            answer.drain()
            self._authenticate()
            answer = send()
        return answer

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | Iterator[bytes] | None) -> Answer:
        if self._requests is None:
            self._requests = Requests(self.address, self._environment, self._timeout)
        if self._who is not None:
            headers = {**headers, "Authorization": self._who.header()}
        return self._requests.send(method, path, headers, body)

    def _fine(self, answer: Answer) -> Answer:
        if answer.status == 200:
            return answer
        said = one_line(answer.read_some()[:300].decode("utf-8", "replace"))
        answer.drain()
        if answer.status == 401:
            raise Remote(f"{self.shown} refused the password", "Check what your credential helper keeps for it.")
        if answer.status == 403:
            raise Remote(f"{self.shown} does not let us in: {said or 'forbidden'}", "Ask for access to it.")
        if answer.status in (404, 410):
            raise Remote(f"there is no repository at {self.shown}", "Check the address.")
        text = said if said and "<" not in said else answer.reason
        raise Broken(f"{self.shown} answers with {answer.status}: {text}")


def _chain(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from first
    yield from rest
