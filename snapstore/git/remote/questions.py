"""Answer questions of git and ssh: user names, passwords, trust in a host.

git and ssh run a small helper script, which sends the question through one pipe and receives the answer through
another. So a password is in no argument, no environment variable and no file, and a process in the background can ask
through the process that has the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from urllib.parse import urlsplit

from snapstore.base.text import one_line

Ask = Callable[[str, bool], str | None]

_PROGRAM = """\
#!/bin/sh
folder=${0%/*}
printf '%s\\0' "$1" > "$folder/question"
IFS= read -r line < "$folder/answer"
case $line in =*) printf '%s\\n' "${line#=}" ;; *) exit 1 ;; esac
"""
_CREDENTIAL = re.compile(r"(Username|Password) for '(.*)': ?")
_LONGEST = 4096


class Questions:
    """Known answers for one server, and a person for all other questions.

    Close it after use.
    """

    def __init__(self, place: tuple[str, str], user: str, password: str, ask: Ask | None) -> None:
        """Prepare the helper script and its pipes.

        `place` is the scheme and the host with its port that the known user and password are for.
        """
        self._place = place
        self._known = {"Username": user, "Password": password}
        self._ask = ask
        self.asked = False  # whether a person was asked
        self._remembered: dict[str, str] = {}  # a person's answers: each run of git asks again
        self._folder = tempfile.mkdtemp(prefix="snapstore-ask-")
        self._fds: list[int] = []
        try:
            self.program = f"{self._folder}/ask"
            fd = os.open(self.program, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
            with open(fd, "w") as file:
                file.write(_PROGRAM)
            for name in ("question", "answer"):
                os.mkfifo(f"{self._folder}/{name}", 0o600)
                # Open at both ends, so that opening does not wait for the other end, and no end of file is reported.
                self._fds.append(os.open(f"{self._folder}/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except BaseException:
            self.close()
            raise
        self._heard = b""

    @property
    def fd(self) -> int:
        """Return the descriptor that is readable when a question waits."""
        return self._fds[0]

    def answer(self) -> None:
        """Answer the waiting questions that are complete."""
        self._heard += os.read(self.fd, _LONGEST)
        *questions, self._heard = self._heard[-_LONGEST:].split(b"\0")
        for question in questions:
            found = self._answered(question.decode("utf-8", "replace"))
            line = "-" if found is None or "\n" in found or "\0" in found else f"={found}"
            os.write(self._fds[1], os.fsencode(line) + b"\n")

    def _answered(self, question: str) -> str | None:
        found = _CREDENTIAL.fullmatch(question)
        if found is not None and any(self._known.values()) and self._is_place(found[2]):
            return self._known[found[1]]
        if question in self._remembered:
            return self._remembered[question]
        if self._ask is None:
            return None
        self.asked = True
        secret = not (found is not None and found[1] == "Username") and "(yes/no" not in question
        answer = self._ask(one_line(question).rstrip(": "), secret)
        if answer is not None:
            self._remembered[question] = answer
        return answer

    def forget(self) -> None:
        """Forget all answers, because one was wrong."""
        self.asked = False
        self._remembered.clear()
        self._known = dict.fromkeys(self._known, "")

    def _is_place(self, url: str) -> bool:
        """Return whether a question is about the server the known answers are for.

        A server that redirects to another one must not receive a password there.
        """
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        return (parts.scheme, parts.netloc.rpartition("@")[2]) == self._place

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        shutil.rmtree(self._folder, ignore_errors=True)
