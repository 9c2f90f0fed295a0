"""What a command is given to work with: where, for whom, and how to speak."""

from __future__ import annotations

import os
import sys

from snapstore.cli.errors import guarded
from snapstore.cli.output import DIM, Output, safe
from snapstore.errors import NoStore, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.options import Command
    from snapstore.cli.parser import Values
    from snapstore.cli.progress import Progress
    from snapstore.timeline.session import Session
    from snapstore.timeline.store import Store


class Context:
    """One run of one command."""

    def __init__(self, *, json: bool = False, debug: bool = False, session: str | None = None) -> None:
        self.json = json
        self.debug = debug
        self.session = session if session is not None else os.environ.get("SNAPSTORE_SESSION") or None
        self.out = Output(sys.stdout)
        self.err = Output(sys.stderr)
        self.quiet = False

    def say(self, text: str) -> None:
        """A word beside the result. The library speaks through this too, in the middle of a change, so a closed
        stream must not disturb it."""
        if self.quiet:
            return
        try:
            self.err.line(f"snapstore: {safe(text)}", DIM)
            self.err.flush()
        except OSError:
            pass

    def document(self, data: dict[str, Any]) -> None:
        self.out.document(data)

    def store(self) -> Store:
        from snapstore.timeline.store import Store

        try:
            return Store.open(".", say=self.say)
        except NoStore as error:
            from snapstore.timeline.creation import if_moved
            from snapstore.timeline.places import home_folder

            error.hint = f"{error.hint} {if_moved(home_folder(), '.')}".rstrip()
            raise

    def reading(self) -> Session:
        """The session a reading command is about: the one named, else the one last active here."""
        return self.store().session(self.session)

    def recording(self, *, create: bool = False) -> Session:
        """The session a turn belongs to. With `create` its store is made when there is none."""
        from snapstore.timeline.documents import check_name
        from snapstore.timeline.store import DEFAULT_SESSION, Store

        name = check_name(self.session or DEFAULT_SESSION)
        if not create:
            return self.store().session(name)
        with self.progress("Taking the first snapshot") as progress:
            store = Store.open(".", create=True, session=name, say=self.say, progress=progress)
        store.progress = None  # the bar is for the first snapshot, and over
        return store.session(name)

    def progress(self, what: str) -> Progress:
        from snapstore.cli.progress import Progress

        return Progress(what, self.err)


def carry_out(command: Command, levels: list[Values], own: Values) -> int:
    """Does what was asked for. Common options may stand at every level; the innermost wins, and folders add up."""
    json = any(level.get("json") for level in levels)
    debug = any(level.get("debug") for level in levels)

    def action() -> int:
        folders = [folder for level in levels for folder in level.get("folder") or ()]
        for folder in folders:
            _enter(folder)
        sessions = [level["session"] for level in levels if level.get("session") is not None]
        context = Context(json=json, debug=debug, session=sessions[-1] if sessions else None)
        if folders:  # a command that is printed to be typed must act on the same project
            from snapstore.cli.paths import shell_word

            context.out.program = f"snapstore -C {shell_word(os.path.join(*folders))}"
        context.quiet = bool(own.pop("quiet", False))
        return command.function(context, **own)

    return guarded(action, json=json, debug=debug)


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a path"
        raise Usage(f"cannot change to {folder!r}: {why}", "Give -C an existing folder.") from None
