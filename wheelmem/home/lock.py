"""dream.lock: who may write the stores and drain the log; held across calls by a session, or for one call by a verb.

A lock taken for one call is also held as a file lock by that process, so one left behind by a killed call is known
from one in use, and does not keep others out until it is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from typing import Any

from .folder import Home
from .record import Refused, dump, parse_json, short_host

STALE_MS = 2 * 60 * 60 * 1000
NAME = "dream.lock"


class Found:
    """The lock as it is on disk now; ages in milliseconds."""

    def __init__(self, path: str, fd: int) -> None:
        self.age = max(0, time.time_ns() - os.fstat(fd).st_mtime_ns) // 1_000_000
        text = os.pread(fd, 65536, 0).decode("utf-8", "replace").strip()
        self.holder = "".join(c if c >= " " else " " for c in text)
        try:
            value: Any = parse_json(text)
        except ValueError:
            value = None
        value = value if isinstance(value, dict) else {}
        self.session = value.get("session")
        self.for_a_call = "verb" in value
        left_behind = self.for_a_call and value.get("host") == short_host() and _unlocked(fd)
        self.stale = self.age > STALE_MS or left_behind

    def is_held_by(self, session: str | None) -> bool:
        """Whether this session took the lock to keep it across calls."""
        return session is not None and self.session == session and not self.for_a_call and not self.stale

    def held(self) -> str:
        """The refusal, as one line."""
        return f"lock held (age {age(self.age)}, stale after {age(STALE_MS)}){self._told()}"

    def status(self) -> str:
        return f"held (age {age(self.age)}){self._told()}"

    def _told(self) -> str:
        return f": {self.holder}" if self.holder else ""


def _unlocked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    fcntl.flock(fd, fcntl.LOCK_UN)
    return True


def age(ms: float) -> str:
    return f"{ms / 60000:.1f}m"


def find(home: Home) -> Found | None:
    path = home.path(NAME)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return Found(path, fd)
    finally:
        os.close(fd)


def _make(home: Home, session: str | None, verb: str | None = None) -> int:
    """Make the lock; its descriptor, which holds the file lock of a lock taken for one call."""
    now = time.time_ns() // 1_000_000
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000)) + f".{now % 1000:03d}Z"
    value: dict[str, Any] = {"pid": os.getpid(), "host": short_host()}
    if session is not None:
        value["session"] = session
    value["at"] = at
    if verb is not None:
        value["verb"] = verb
    path = home.path(NAME)
    made = home.path(NAME + ".tmp")
    data = dump(value).encode("utf-8")
    fd = os.open(made, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        if verb is not None:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.write(fd, data) != len(data):
            raise OSError(28, "No space left on device", path)
        _put_in_place(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        os.close(fd)
        raise
    return fd


def _put_in_place(made: str, path: str) -> None:
    """Give the lock its name: it must be free, and never stands there without its holder in it."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; among ourselves the home's lock keeps the name free
        os.rename(made, path)
    else:
        os.unlink(made)


def acquire(home: Home, session: str | None) -> str:
    """Take the lock until it is released; what happened, as a line. Refused while anyone holds it."""
    with home.exclusive():
        found = find(home)
        if found is not None:
            if not found.stale:
                raise Refused(found.held())
            os.unlink(home.path(NAME))
        os.close(_make(home, session))
    return "acquired" if found is None else f"acquired (stole stale lock, age {age(found.age)})"


def release(home: Home, session: str | None, force: bool = False) -> str:
    """Give the lock back: its holder may, anyone may when it names nobody or is stale, and `force` does."""
    if not home.exists():
        return "no lock held"
    with home.exclusive():
        found = find(home)
        if found is None:
            return "no lock held"
        if not (force or found.stale or found.session is None or found.session == session):
            raise Refused(f"{found.held()}; only its holder releases it, or --force")
        os.unlink(home.path(NAME))
    return "released"


@contextlib.contextmanager
def guard(home: Home, session: str | None, verb: str) -> Iterator[None]:
    """Hold the lock for one call, unless this session holds it already; refused while another does."""
    with home.exclusive():
        found = find(home)
        if found is not None and found.is_held_by(session):
            fd = -1
        else:
            if found is not None:
                if not found.stale:
                    raise Refused(found.held())
                os.unlink(home.path(NAME))
            fd = _make(home, session, verb)
    try:
        yield
    finally:
        if fd >= 0:
            with home.exclusive():
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.stat(home.path(NAME)), os.fstat(fd)):
                        os.unlink(home.path(NAME))
                os.close(fd)
