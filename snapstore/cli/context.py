"""The context that every command receives: store, session and output streams."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snapstore.api import Session, Store
from snapstore.cli.output import DIM, Output, safe
from snapstore.cli.paths import shell_word
from snapstore.cli.progress import Progress
from snapstore.errors import NoStore, Usage
from snapstore.store.handle import DEFAULT_SESSION
from snapstore.store.locations import home_folder
from snapstore.store.state import check_name
from snapstore.timeline.record.create_store import moved_root_hint

if TYPE_CHECKING:
    from snapstore.surface.records.base import Record


class Context:
    """The options, output streams and store of one command."""

    def __init__(self, *, json: bool = False, debug: bool = False, session: str | None = None) -> None:
        self.json = json
        self.debug = debug
        self.session = session if session is not None else os.environ.get("SNAPSTORE_SESSION") or None
        self.out = Output(sys.stdout)
        self.err = Output(sys.stderr)
        self.quiet = False

    def say(self, text: str) -> None:
        """Print a message on standard error, apart from the result.

        The library also calls this in the middle of a change, so a closed stream must not raise.
        """
        if self.quiet:
            return
        try:
            self.err.line(f"snapstore: {safe(text)}", DIM)
            self.err.flush()
        except OSError:
            pass

    def document(self, record: Record) -> None:
        """Print a record as the only JSON document on standard output."""
        from snapstore.surface.records.base import document

        self.out.document(document(record))

    def store(self) -> Store:
        try:
            return Store.open(".", say=self.say)
        except NoStore as error:
            error.hint = f"{error.hint} {moved_root_hint(home_folder(), '.')}".rstrip()
            raise

    def reading(self) -> Session:
        """Return the session for a command that reads.

        That is the session named on the command line, else the last active one.
        """
        return self.store().session(self.session)

    def recording(self, *, create: bool = False) -> Session:
        """Return the session for a command that records.

        With `create`, a missing store is created.
        """
        name = check_name(self.session or DEFAULT_SESSION)
        if not create:
            return self.store().session(name)
        with self.progress("Taking the first snapshot") as progress:
            store = Store.open(".", create=True, session=name, say=self.say, progress=progress)
        store.progress = None  # the bar covers only the first snapshot, which is done
        return store.session(name)

    def progress(self, what: str) -> Progress:
        return Progress(what, self.err)


@dataclass
class CommonOptions:
    """The options of every command, from all levels of the command line."""

    folders: list[str] = field(default_factory=list)
    session: str | None = None
    json: bool = False
    debug: bool = False

    def note(self, arguments: list[str]) -> None:
        """Find `--json` and `--debug` in a command line that could not be parsed.

        The two options decide how the parse error is reported.
        """
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        self.json |= "--json" in options
        self.debug |= "--debug" in options

    def start(self) -> Context:
        """Change to the folders that `-C` names and return the command's context."""
        for folder in self.folders:
            _enter(folder)
        context = Context(json=self.json, debug=self.debug, session=self.session)
        if self.folders:  # a command printed for the user to type must act on the same project
            context.out.program = f"snapstore -C {shell_word(os.path.join(*self.folders))}"
        return context


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a path"
        raise Usage(f"cannot change to {folder!r}: {why}", "Give -C an existing folder.") from None
