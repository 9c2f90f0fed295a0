"""The journal: the one point at which a change happens.

A turn's end moves several refs and state files. Each alone is atomic, all together are not, so what is to happen is
written down first: objects made durable, then the journal, then refs and files, then the journal removed. A kill before
the journal is in place leaves the old state; any time after it, the next command finishes the job from the journal.
"""

from __future__ import annotations

import json
import os
from hashlib import sha1

from snapstore.errors import Corrupt, Interrupted
from snapstore.git.refs import RefValue, moved_meanwhile, spell, unspell
from snapstore.worktree import durable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.refs import Refs

RefMove = tuple[str, RefValue, RefValue]


class Journal:
    def __init__(self, state: str, refs: Refs) -> None:
        self._state = state
        self._path = f"{state}/journal"
        self._refs = refs

    def pending(self) -> bool:
        return os.path.exists(self._path)

    def carry_out(self, refs: list[RefMove], files: dict[str, bytes | None], *, what: str) -> None:
        """Moves refs and replaces (None: removes) state files, all or nothing. Objects must be durable already."""
        for name, old, _ in refs:
            found = self._refs.value(name)
            if found != old:
                raise moved_meanwhile(name, old, found)
        body = {
            "what": what,
            "refs": [[name, old and spell(old), new and spell(new)] for name, old, new in refs],
            "files": {name: data and data.decode("utf-8") for name, data in files.items()},
        }
        text = json.dumps(body)
        durable.write(self._path, f"{_checksum(text)}\n{text}\n".encode())
        for name, old, new in refs:
            self._refs.update(name, old, new)
        self._finish(body["files"])  # type: ignore[arg-type]

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
        for name, old, new in body["refs"]:
            found, want = self._refs.value(name), unspell(new)
            if found == want:
                continue
            if found != unspell(old):
                raise Interrupted(
                    f"an unfinished change ({body['what']}) wants to move {name}, but something else moved it",
                    f"Put {name} back to {old or 'absent'}, or on to {new or 'absent'}, then run any command.",
                    ref=name,
                )
            self._refs.update(name, found, want)
        self._finish(body["files"])
        return str(body["what"])

    def _finish(self, files: dict[str, str | None]) -> None:
        """The removals need not be durable: a journal that comes back is carried out again to the same end, and an
        open turn that comes back is known to be over by its cursor."""
        for name, text in files.items():
            path = f"{self._state}/{name}"
            if text is None:
                durable.remove(path)
            else:
                durable.write(path, text.encode("utf-8"))
        durable.remove(self._path)


def _checksum(text: str) -> str:
    return sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
