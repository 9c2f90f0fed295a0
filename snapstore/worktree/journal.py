"""The journal: the one point at which a change happens.

A turn's end moves several refs and state files. Each alone is atomic, all together are not, so what is to happen is
written down first: objects made durable, then the journal, then refs and files, then the journal removed. A kill before
the journal is in place leaves the old state; any time after it, the next command finishes the job from the journal.
"""

from __future__ import annotations

import json
import os
from hashlib import sha1

from snapstore.errors import Conflict, Corrupt, Interrupted
from snapstore.worktree import durable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.refs import Refs

RefMove = tuple[str, bytes | None, bytes | None]


class Journal:
    def __init__(self, state: str, refs: Refs) -> None:
        self._state = state
        self._path = f"{state}/journal"
        self._refs = refs

    def pending(self) -> bool:
        return os.path.exists(self._path)

    def carry_out(
        self,
        refs: list[RefMove],
        files: dict[str, bytes | None],
        *,
        head: str | None = None,
        what: str,
    ) -> None:
        """Moves refs and replaces (None: removes) state files, all or nothing. Objects must be durable already."""
        body = {
            "what": what,
            "pid": os.getpid(),
            "refs": [[name, old and old.hex(), new and new.hex()] for name, old, new in refs],
            "files": {name: data and data.decode("utf-8") for name, data in files.items()},
            "head": head,
        }
        text = json.dumps(body)
        for name, old, _ in refs:
            found = self._refs.read(name)
            if found != old:
                raise Conflict(f"ref {name} moved meanwhile", "Run the command again.", ref=name)
        durable.write(self._path, f"{_checksum(text)}\n{text}\n".encode())
        self._apply(body)

    def recover(self) -> str | None:
        """Finishes what a killed process had begun; says what that was. Call under the lock."""
        try:
            with open(self._path, encoding="utf-8") as file:
                checksum, _, text = file.read().partition("\n")
            text = text.rstrip("\n")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            checksum = text = ""
        if checksum != _checksum(text):
            raise Corrupt(
                "the journal of an unfinished change is damaged",
                f"Move {self._path} away, then run `snapstore check`; no file of yours is involved.",
                file="journal",
            )
        body = json.loads(text)
        self._apply(body)
        return str(body["what"])

    def _apply(self, body: dict[str, object]) -> None:
        moves: list[list[str | None]] = body["refs"]  # type: ignore[assignment]
        for name, old, new in moves:
            assert name is not None
            want = bytes.fromhex(new) if new else None
            found = self._refs.read(name)
            if found == want:
                continue
            if found != (bytes.fromhex(old) if old else None):
                raise Interrupted(
                    f"an unfinished change ({body['what']}) wants to move {name}, but something else moved it",
                    f"Put {name} back to {old or 'absent'}, or on to {new or 'absent'}, then run any command.",
                    ref=name,
                )
            self._refs.update(name, found, want)
        files: dict[str, str | None] = body["files"]  # type: ignore[assignment]
        for name, text in files.items():
            path = f"{self._state}/{name}"
            if text is None:
                durable.remove(path)
            else:
                durable.make_folder(os.path.dirname(path))
                durable.write(path, text.encode("utf-8"))
        head = body.get("head")
        if isinstance(head, str) and self._refs.head() != head:
            self._refs.set_head(head)
        durable.remove(self._path)


def _checksum(text: str) -> str:
    return sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
