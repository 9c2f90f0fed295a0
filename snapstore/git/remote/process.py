"""Run the git program: report progress, limit silence, and always end the process.

git runs in a session of its own. So git has no terminal to ask on, and can be ended together with every process it
started. No process outlives the call, unless this process itself is killed.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO

from snapstore.base.text import one_line
from snapstore.errors import Remote
from snapstore.git.remote.connection import ConnectionFailed, Progress
from snapstore.git.remote.questions import Questions

_PIECE = 1 << 16
_MOST_OUTPUT = 1 << 27
_MOST_LINES = 100
_TICK = 0.2  # seconds between checks of things that send no event
_PATIENCE = 2.0  # seconds between SIGTERM and SIGKILL
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][A-Za-z ]{2,40}): +\d+% \((\d{1,17})/(\d{1,17})\)")
_WORDS = {"Writing objects": "sending", "Receiving objects": "receiving"}


@dataclass(frozen=True, slots=True)
class Finished:
    """A completed run: its status, its output, and its messages without progress."""

    status: int
    output: bytes
    said: list[str]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of git: its command, its input and output, and how it is monitored."""

    words: Sequence[str]
    silence: float  # seconds without output after which git is ended
    settings: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    feed: bytes | IO[bytes] = b""  # standard input: bytes or an open file
    output: IO[bytes] | None = None  # a file for standard output
    progress: Progress | None = None
    watch: Callable[[], None] | None = None  # called from time to time; may raise to end git
    may_fail: bool = False  # status 1 is an answer, not a failure

    def command(self, program: str) -> list[str]:
        """Return the command line."""
        return [program, *(word for setting in self.settings for word in ("-c", setting)), *self.words]


# Runs a job with the environment and the error messages of its owner.
Runner = Callable[[Job], Finished]


def run(
    job: Job, program: str, environment: Mapping[str, str], *, who: str, questions: Questions | None = None
) -> Finished:
    """Run git until it ends, or until it is silent for too long."""
    with _input(job.feed) as file, _Run(job, program, {**environment, **job.variables}, file, who) as running:
        return running.follow(job, questions)


def _input(feed: bytes | IO[bytes]) -> IO[bytes]:
    """Return the input as a file. With a pipe, git's reading could block the caller."""
    if not isinstance(feed, bytes):
        return os.fdopen(os.dup(feed.fileno()), "rb")
    file = tempfile.TemporaryFile() if feed else open(os.devnull, "rb")
    if feed:
        file.write(feed)
        file.seek(0)
    return file


@contextmanager
def _interrupts_held() -> Iterator[list[int]]:
    """Hold Ctrl-C back, and yield the list of the signals held back.

    An interrupt while git starts would leave a git process that nothing ends.
    """
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield came  # no handler of Python's runs in this thread
        return
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, handler)


class _Run:
    def __init__(self, job: Job, program: str, environment: Mapping[str, str], file: IO[bytes], who: str) -> None:
        self._who = who
        self._output = bytearray()
        self._waiting = b""
        self._said: list[str] = []
        with _interrupts_held() as came:
            try:
                self._process = subprocess.Popen(
                    job.command(program),
                    stdin=file,
                    stdout=subprocess.PIPE if job.output is None else job.output,
                    stderr=subprocess.PIPE,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                why = f"git cannot be run: {error.strerror}"
                raise Remote(why, "Check the git program that PATH leads to.") from None
        self._came = came

    def __enter__(self) -> _Run:
        if self._came:
            try:
                signal.raise_signal(signal.SIGINT)  # now to its own handler
            except BaseException:
                self.__exit__(None, None, None)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._process.poll() is None:
                self._end()
        finally:
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()

    def _end(self) -> None:
        """End git and its children.

        On SIGTERM, git ends its own children. Processes that ignore the signal are killed with the process group.
        """
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def follow(self, job: Job, questions: Questions | None) -> Finished:
        process = self._process
        assert process.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, selectors.EVENT_READ)
            if questions is not None:
                selector.register(questions.fd, selectors.EVENT_READ)
            end = time.monotonic() + job.silence
            looked = time.monotonic()
            while True:
                # First check whether git has ended, then read: git may write its last output in between.
                ended = process.poll() is not None
                ready = selector.select(0 if ended else _TICK)
                for key, _ in ready:
                    if questions is not None and key.fd == questions.fd:
                        questions.answer()
                    elif not self._heard(key.fd, key.fd == process.stderr.fileno(), job.progress):
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if ready:
                    end = now + job.silence
                if job.watch is not None and now - looked > _TICK:
                    looked = now
                    job.watch()
                open_pipes = len(selector.get_map()) - (questions is not None)
                if not open_pipes:
                    process.wait(max(0.1, end - now))
                # A process that git left behind (an ssh that stays for the next call) may hold the pipes open.
                if not open_pipes or (not ready and ended):
                    self._line(self._waiting, job.progress)
                    return Finished(process.returncode, bytes(self._output), self._said)
                if now > end:
                    raise ConnectionFailed(
                        f"{self._who} did not answer in time", "Try again later, or check the network."
                    )

    def _heard(self, fd: int, is_words: bool, progress: Progress | None) -> bool:
        """Read from a pipe, and return whether more may come."""
        try:
            piece = os.read(fd, _PIECE)
        except BlockingIOError:
            return True
        if not is_words:
            self._output += piece
            if len(self._output) > _MOST_OUTPUT:
                raise Remote(f"{self._who} sends too many messages", "Use a repository made for turns.")
        else:
            *lines, self._waiting = re.split(rb"[\r\n]", (self._waiting + piece)[-_PIECE * 2 :])
            for line in lines:
                self._line(line, progress)
        return bool(piece)

    def _line(self, line: bytes, progress: Progress | None) -> None:
        text = line.decode("utf-8", "replace")
        found = _PROGRESS.match(text)
        if found is None:
            if kept := one_line(text):
                self._said = [*self._said, kept[:1000]][-_MOST_LINES:]
        elif progress is not None:
            progress(_WORDS.get(found[1], found[1]), int(found[2]), int(found[3]))
