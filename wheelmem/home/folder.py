"""The folder that is a home: names kept inside it, one lock for its writers, changes of several files made as one.

A change of several files is staged in `.txn/`, each file flushed, and takes effect with the rename that puts
`.txn/journal` in place: from then on it will be finished, by this process or by the next that takes the lock; before
that it never happened. So a kill or a full disk leaves a home as it was before a call, or as it is after.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping

from .record import Refused

LOCK = ".log.lock"
STAGING = ".txn"
JOURNAL = "journal"
_OWN_NAMES = frozenset({LOCK, STAGING, ".bak", "sessions", "dream.lock", "audit-allow.txt"})


class Home:
    """An agent's home; `root` is its absolute path. Nothing is made on disk until something is written."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._real = os.path.realpath(self.root)
        self._held = -1
        self._depth = 0

    @property
    def name(self) -> str:
        return os.path.basename(self.root)

    def exists(self) -> bool:
        return os.path.isdir(self.root)

    def path(self, name: str) -> str:
        """The real path of a file of the home; refused when a symlink or `..` leads out of it, or it is a pipe or device."""
        real = os.path.realpath(os.path.join(self._real, name))
        if not real.startswith(self._real.rstrip("/") + "/"):
            raise Refused(f"{name} leads out of the home {self.root}")
        try:
            kind = stat.S_IFMT(os.stat(real).st_mode)
        except FileNotFoundError:
            return real
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise Refused(f"{name} in the home {self.root} is no file")
        return real

    def log_name(self, given: str | None) -> str:
        """The name of a log inside the home, from `--path`."""
        if given is None:
            return "EPISODIC.jsonl"
        check_words("--path", given)
        name = os.path.relpath(self.path(given), self._real)
        if name.split("/")[0] in _OWN_NAMES or name.endswith(".md") or os.path.isdir(self.path(name)):
            raise Refused(f"--path {given} is no log: it is kept for something else")
        return name

    # --- one writer at a time

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the home's lock; what a killed writer had decided is finished first. May be nested."""
        if self._depth == 0:
            make_folder(self.root)
            fd = os.open(os.path.join(self._real, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                self._held = fd
                if self.unfinished():
                    self._finish()
            except BaseException:
                self._held = -1
                os.close(fd)
                raise
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                os.close(self._held)
                self._held = -1

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Keep writers out for a moment, to look at what they left; where the home cannot be locked, just look."""
        if self._depth:
            yield
            return
        if self.unfinished():
            with contextlib.suppress(OSError), self.exclusive():
                pass
        try:
            fd = os.open(os.path.join(self._real, LOCK), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            yield
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            yield
        finally:
            os.close(fd)

    def note(self, text: str | None = None) -> str:
        """What the last writer left in the lock file for the next; with `text`, leave that. Only while it is held."""
        if text is None:
            return os.pread(self._held, 4096, 0).decode("utf-8", "replace")
        with contextlib.suppress(OSError):  # a missing note costs the next writer a scan, nothing else
            os.ftruncate(self._held, 0)
            os.pwrite(self._held, text.encode("utf-8"), 0)
        return text

    # --- several files as one

    def unfinished(self) -> bool:
        return os.path.exists(os.path.join(self._real, STAGING, JOURNAL))

    def commit(self, files: Mapping[str, bytes]) -> None:
        """Write these files (name in the home → whole content), all of them or none. Only while the lock is held."""
        staging = self._staging()
        made: list[str] = []
        try:
            make_folder(staging)
            moves = []
            for number, (name, data) in enumerate(files.items()):
                dest = self.path(name)
                make_folder(os.path.dirname(dest))
                staged = os.path.join(staging, str(number))
                made.append(staged)
                write_synced(staged, data, like=dest)
                with open(staged, "rb") as copy:
                    if copy.read() != data:
                        raise Refused(f"{name} did not read back as it was written; nothing was changed")
                moves.append([str(number), os.path.relpath(dest, self._real)])
            journal = os.path.join(staging, JOURNAL)
            made += [journal + ".new", journal]
            write_synced(journal + ".new", json.dumps(moves).encode("utf-8"))
            os.rename(journal + ".new", journal)
            sync_folder(staging)
        except BaseException:
            for path in reversed(made):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise
        self._finish()

    def _finish(self) -> None:
        staging = self._staging()
        journal = os.path.join(staging, JOURNAL)
        try:
            with open(journal, encoding="utf-8") as file:
                moves = [(str(int(number)), self.path(str(dest))) for number, dest in json.load(file)]
        except (ValueError, TypeError) as error:
            raise Refused(f"{journal} is damaged ({error}); look at the files beside it, then remove it") from None
        for number, dest in moves:
            with contextlib.suppress(FileNotFoundError):  # moved already, before a kill
                os.replace(os.path.join(staging, number), dest)
        for folder in sorted({os.path.dirname(dest) for _, dest in moves}):
            sync_folder(folder)
        os.unlink(journal)
        sync_folder(staging)

    def _staging(self) -> str:
        return self.path(STAGING)


def check_words(what: str, text: str) -> str:
    """`text` when it is UTF-8 without control characters; refused otherwise, as such names break lines and paths."""
    if any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text):
        raise Refused(f"{what} holds a control character or is no UTF-8: {text!a}")
    return text


def make_folder(path: str) -> None:
    """Make a folder and its parents; a new one survives a crash."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_folder(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    if not os.path.isdir(path):
        raise NotADirectoryError(20, "Not a directory", path)
    sync_folder(parent)


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_synced(path: str, data: bytes, like: str | None = None) -> None:
    """A new file with these bytes, on disk when this returns; with the permissions of `like` where that exists."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    with open(fd, "wb") as file:
        if like is not None:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(fd, os.stat(like).st_mode & 0o7777)
        file.write(data)
        file.flush()
        os.fsync(fd)


def replace_file(path: str, data: bytes) -> None:
    """Put one small file in place of another; readers see the old or the new."""
    try:
        write_synced(path + ".tmp", data, like=path)
        os.replace(path + ".tmp", path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path + ".tmp")
        raise
