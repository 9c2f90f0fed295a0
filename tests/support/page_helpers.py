"""What the tests of the page share: a story told to a store, the server as a process of its own, a real browser.

Turns are recorded through the library, with the records that an agent's hooks would give them: a story of many turns
then takes no longer than its commits.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import ID
from helpers import git, write
from test_transcripts_builders import Claude as Transcript

from snapstore import Session, Store
from snapstore.store.conversations import AgentSession

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# How many seconds a test waits for the page before it fails. Long, since a busy machine is no failure of the page.
PATIENCE = 30

Files = dict[str, str | bytes | None]


class Story:
    """A conversation with Claude Code in a project, turn by turn."""

    def __init__(self, store: Store, root: Path, session: str = "claude-3f2a9c1d", id: str = ID) -> None:
        self.store = store
        self.root = root
        self.name = session
        self.id = id
        self.transcript = Transcript()

    @property
    def session(self) -> Session:
        return self.store.session(self.name)

    def turn(
        self,
        prompt: str,
        files: Files,
        *,
        reply: str = "Done.",
        thinking: Sequence[str] = (),
        shell: Sequence[tuple[str, str]] = (),
        **conversation: Any,
    ) -> str:
        """One turn that writes (or with None deletes) files; gives its commit."""
        self.begin(prompt)
        calls = [self._call(path, text) for path, text in files.items()]
        calls += [
            {"name": "Bash", "type": "shell", "input": {"command": command}, "result": out} for command, out in shell
        ]
        for path, text in files.items():
            change(self.root / path, text)
        self.transcript.reply(reply)
        lines = [line.decode() for line in self.transcript.data().splitlines(keepends=True)]
        about = {"agent_session": self.id, "prompt_id": "", "message_id": self.first, "complete": True, **conversation}
        self.transcript.records.clear()
        record = {"replies": [reply], "thinking": list(thinking), "tool_calls": calls, "lines": lines}
        return self.session.end(scan=True, **record, conversation=about).hex()

    def begin(self, prompt: str) -> None:
        """The agent is at work until `end`."""
        known = AgentSession(id=self.id, agent="claude", session=self.name, created="2026-11-16T10:00:00.000Z")
        before = self.store.documents.read(AgentSession, f"agents/{self.id}.json")
        self.session.begin(prompt, agent="claude", known=before or known, origin={"session": self.id})
        self.first = self.transcript.prompt(prompt)

    def end(self) -> None:
        self.session.end(scan=True)

    def undo(self, count: int = 1) -> None:
        self.session.move(self.session.plan_undo(count))

    def _call(self, path: str, text: str | bytes | None) -> dict[str, Any]:
        full = self.root / path
        shown = text if isinstance(text, str) else ""
        if text is None:
            return {"name": "Bash", "type": "shell", "input": {"command": f"rm {path}"}, "result": ""}
        old = full.read_text() if full.exists() and isinstance(text, str) else None
        if old is None:
            return {"name": "Write", "type": "Write", "file_path": str(full), "content": shown}
        return {"name": "Edit", "type": "Edit", "file_path": str(full), "old_string": old, "new_string": shown}


def change(path: Path, data: str | bytes | None) -> None:
    if data is None:
        path.unlink()
    else:
        write(path, data)


def many_turns(story: Story, number: int) -> None:
    """Adds turns to the tip, as fast as git imports them. They only talk."""
    git_dir, name = story.store.shadow.git_dir, story.name
    ref = f"refs/heads/{name}/main"
    tip = git(git_dir, "rev-parse", ref).decode().strip()
    first = int(git(git_dir, "log", "-1", "--format=%(trailers:key=Snapstore-Turn,valueonly)", tip).strip()) + 1
    stream = []
    for turn in range(first, first + number):
        message = f"Prompt {turn}\n\nSnapstore-Kind: turn\nSnapstore-Session: {name}\n"
        message += f"Snapstore-Turn: {turn}\nSnapstore-Seq: {turn}\nSnapstore-Agent: claude\n"
        who = "claude <claude@snapstore>"
        at = 1_794_800_000 + turn
        stream.append(f"commit {ref}\nauthor {who} {at} +0000\ncommitter {who} {at} +0000\n")
        stream.append(f"data {len(message)}\n{message}" + (f"from {tip}\n" if turn == first else "") + "\n")
    git(git_dir, "fast-import", "--quiet", "--depth=0", feed="".join(stream).encode())


def remember(story: Story) -> None:
    """Gives every turn of the branch without a record one, as agents' hooks would."""
    git_dir = story.store.shadow.git_dir
    commits = git(git_dir, "rev-list", f"refs/heads/{story.name}/main").decode().split()
    who = "snapstore <snapstore@localhost> 1794800000 +0000"
    notes = git(git_dir, "rev-parse", "refs/notes/turns").decode().strip()
    stream = [f"commit refs/notes/turns\ncommitter {who}\ndata 1\nn\nfrom {notes}\n".encode()]
    for turn, commit in enumerate(reversed(commits)):
        if turn == 0 or story.store.shadow.note(bytes.fromhex(commit)) is not None:
            continue
        said = "what was said, at some length. " * 20
        lines = [json.dumps({"uuid": f"u{turn}-{at}", "message": said}) for at in (1, 2)]
        about = {"agent_session": story.id, "prompt_id": "", "message_id": f"u{turn}-1", "complete": True}
        record = {"format": 1, "kind": "turn", "session": story.name, "turn": turn, "seq": turn, "agent": "claude"}
        record |= {"prompt": f"Prompt {turn}", "replies": [f"Reply {turn}. " * 30], "thinking": [], "tool_calls": []}
        text = json.dumps({**record, "lines": lines, "conversation": about, "status": "done"}).encode()
        stream.append(f"M 100644 inline {commit[:2]}/{commit[2:]}\ndata {len(text)}\n".encode() + text + b"\n")
    git(git_dir, "fast-import", "--quiet", "--depth=0", feed=b"".join(stream))


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """The server, on a thread of its own; gives the address to open."""
    pytest.importorskip("fastapi", reason="needs fastapi")
    pytest.importorskip("uvicorn", reason="needs uvicorn")
    from snapstore.web.server import Server

    server = Server(str(root))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join(timeout=20)
        assert not thread.is_alive()


@contextmanager
def command(root: Path) -> Iterator[str]:
    """`snapstore ui` as a person starts it; gives the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "snapstore", "ui", "--no-open", "--json"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        assert process.stdout is not None and process.stderr is not None
        said = process.stdout.readline()
        assert said, process.stderr.read()
        yield json.loads(said)["url"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@contextmanager
def browser(home: Path) -> Iterator[Any]:
    """A real Chromium, in a home of its own. Without one the tests are skipped, and say so."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    with api.sync_playwright() as playwright:
        args = ["--no-sandbox"] if os.geteuid() == 0 else []
        environment = {**os.environ, "HOME": str(home)}
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=args, env=environment)
        try:
            yield found
        finally:
            found.close()


def until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Looks again and again; fails when it does not come true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


class Sight:
    """The page as a person sees and uses it. Whatever goes wrong inside it fails the test."""

    def __init__(self, context: Any, url: str) -> None:
        self.context = context
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)
        self.origin = url.partition("?")[0]
        self.page.goto(url)
        self.page.wait_for_selector("body[data-live=on]")

    def _said(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        """Nothing is ever asked of anybody else."""
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.wrong.append(request.url)

    def turn(self, number: int) -> Any:
        return self.page.locator(f"#timeline [data-turn='{number}']")

    def dialog(self) -> Any:
        return self.page.locator("dialog[open]").last

    def text(self, found: Any) -> str:
        """What is read there, in one line."""
        return " ".join(found.inner_text().split())

    def says(self, found: Any, *texts: str) -> None:
        """Waits until all of it can be read there."""
        until(lambda: found.count() == 1 and all(text in self.text(found) for text in texts))

    def button(self, name: str, inside: Any = None, *, exact: bool = True) -> Any:
        return (inside or self.page).get_by_role("button", name=name, exact=exact)

    def restore(self, number: int) -> Any:
        """Hovers over a turn and presses what appears; gives the dialog."""
        self.turn(number).hover()
        self.button("Restore to here", self.turn(number)).click()
        self.dialog().wait_for()
        return self.dialog()

    def menu(self, number: int, item: str | None = None) -> Any:
        """Right-clicks a turn; gives the menu, or presses an item of it."""
        self.turn(number).locator(".turn-head").click(button="right")
        menu = self.page.get_by_role("menu")
        if item is None:
            return menu
        menu.get_by_role("menuitem", name=item).click()
        self.dialog().wait_for()
        return self.dialog()

    def view(self, name: str) -> Any:
        self.page.locator("nav.tabs").get_by_role("button", name=name).click()
        return self.page.locator("#panel")

    def toast(self, text: str) -> Any:
        found = self.page.locator(".toast", has_text=text).first
        found.wait_for()
        return found
