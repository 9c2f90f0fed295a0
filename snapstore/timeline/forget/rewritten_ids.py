"""What commits were called before something was forgotten: a remote has them under those names until it is told, and
whatever else was made before, a bundle or a clone, for good. What comes in by such a name is what was forgotten."""

from __future__ import annotations

from snapstore.store.state import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.store.handle import StoreHandle

FILE = "former.json"


class Former:
    """`commits` leads from each former id to the one of today, through however many times something was forgotten;
    `gone` are those of turns that are none any more, and `done` the remotes that have been told."""

    __slots__ = ("commits", "done", "gone")

    def __init__(
        self,
        *,
        commits: dict[str, str] | None = None,
        gone: list[str] | None = None,
        done: list[str] | None = None,
    ) -> None:
        self.commits = commits or {}
        self.gone = gone or []
        self.done = done or []

    @property
    def new(self) -> dict[bytes, bytes]:
        return {bytes.fromhex(old): bytes.fromhex(new) for old, new in self.commits.items()}


def read(store: StoreHandle) -> Former:
    return store.documents.read(Former, FILE) or Former()


def after(store: StoreHandle, new: Mapping[bytes, bytes], turn: bytes | None) -> dict[str, bytes | None]:
    """The file as it is to be once commits have new ids, for the change that gives them."""
    known = read(store)
    moved = {old.hex(): now.hex() for old, now in new.items()}
    commits = {old: moved.get(now, now) for old, now in known.commits.items()}
    gone = set(known.gone)
    if turn is not None:
        gone |= {turn.hex(), *(old for old, now in known.commits.items() if now == turn.hex())}
    return {FILE: encode(Former(commits={**moved, **commits}, gone=sorted(gone)))}


def told(store: StoreHandle, remote: str) -> dict[str, bytes | None]:
    """The file once a remote has been told."""
    known = read(store)
    known.done = sorted({*known.done, remote})
    return {FILE: encode(known)}
