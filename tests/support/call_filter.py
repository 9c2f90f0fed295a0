"""Stops a process at its system calls of some kinds only, and lets the tests decide what becomes of each.

strace stops a process at every call, which is most of what a strike costs: a move makes 800 calls, of which five are
of the struck kind. The kernel's seccomp filters report calls of the listed kinds to another process and let the rest
pass. No package wraps that for a process and its parent (pyseccomp keeps the listener to itself), so it stands here,
for the machines whose call numbers are known; elsewhere faults.py takes strace. test_faults_counts.py holds the two
against each other.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterable

_X86_64 = """
read 0 write 1 close 3 lseek 8 pread64 17 pwrite64 18 flock 73 fsync 74 fdatasync 75 ftruncate 77 rename 82 mkdir 83
rmdir 84 link 86 unlink 87 symlink 88 readlink 89 fchmod 91 getdents64 217 openat 257 mkdirat 258 newfstatat 262
unlinkat 263 renameat 264 linkat 265 symlinkat 266 readlinkat 267 syncfs 306 renameat2 316 utimensat 280
"""
_KNOWN = _X86_64 if platform.machine() == "x86_64" else ""
NUMBERS = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", _KNOWN)}
_SECCOMP = 317  # the call's own number, on x86_64

_NO_NEW_PRIVILEGES = 38  # prctl
_SET_FILTER, _NEW_LISTENER = 1, 8
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF: ld [k] / jeq k / ret k
_REPORT, _ALLOW = 0x7FC00000, 0x7FFF0000
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101  # ioctls of the listener
_REQUEST = struct.Struct("QIIiI56x")  # id, thread, flags, number of the call, ...
_REPLY = struct.Struct("QqiI")  # id, value, error, flags
_GO_ON = 1

Decide = Callable[[str, int], int]  # call and how many of the kind this thread made -> an errno, 0, or KILL
KILL = -1


def known(calls: Iterable[str]) -> bool:
    return bool(NUMBERS) and all(call in NUMBERS for call in calls)


def install(calls: Iterable[str]) -> int:
    """Report calls of these kinds, of this process and those that it starts, to the listener that is returned."""
    numbers = sorted(NUMBERS[call] for call in calls)
    rows = [(_LOAD, 0, 0, 0)]
    rows += [(_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    rows += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REPORT)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), 0, 0, 0)
    listener: int = libc.syscall(
        ctypes.c_long(_SECCOMP), ctypes.c_uint(_SET_FILTER), ctypes.c_uint(_NEW_LISTENER), ctypes.byref(program)
    )
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


class Listener:
    """The other side of a filter: hears of each call before it is made."""

    def __init__(self, descriptor: int, decide: Decide) -> None:
        self.descriptor = descriptor
        self.counting = False
        self.made: Counter[str] = Counter()
        self._decide = decide
        self._threads: Counter[tuple[int, str]] = Counter()
        self._names = {number: name for name, number in NUMBERS.items()}

    def hear(self) -> None:
        """Take one report and answer it."""
        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, request)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # the caller is gone already
                return
            raise
        id, thread, _, number, _ = _REQUEST.unpack(request)
        verdict = self._verdict(thread, self._names[number]) if self.counting else 0
        if verdict == KILL:
            os.kill(thread, 9)
            return
        reply = bytearray(_REPLY.pack(id, 0, -verdict, 0 if verdict else _GO_ON))
        try:
            fcntl.ioctl(self.descriptor, _ANSWER, reply)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def _verdict(self, thread: int, call: str) -> int:
        self.made[call] += 1
        self._threads[thread, call] += 1
        return self._decide(call, self._threads[thread, call])


def hand_over(door: socket.socket, listener: int) -> None:
    """Give the listener to the parent. Only calls that nobody strikes come after the last word."""
    socket.send_fds(door, [b"l"], [listener])
    os.close(listener)
    door.send(b"r")


def take_over(door: socket.socket) -> int:
    _, (listener, *_), _, _ = socket.recv_fds(door, 1, 1)
    return listener
