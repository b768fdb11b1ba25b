"""The raw log, one record a line: appended to, read, drained. A line that stays or moves keeps its bytes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from .folder import Home, make_folder, sync_folder
from .record import is_ulid, next_ulid, parse_record, ulid_text, ulid_value
from .session import now_ms

Record = dict[str, Any]


class Line(NamedTuple):
    number: int
    raw: bytes  # without its newline
    record: Record | None  # None: torn, or no record


class Log:
    """A log of a home, by its name there."""

    def __init__(self, home: Home, name: str = "EPISODIC.jsonl") -> None:
        self.home, self.name = home, name

    @property
    def path(self) -> str:
        return self.home.path(self.name)

    @property
    def quarantine(self) -> str:
        return self.name.removesuffix(".jsonl") + ".quarantine.jsonl"

    # --- reading

    def read(self, warn: bool = True) -> Iterator[tuple[bytes, Record]]:
        """(line, record) of each record, as the log was when this began, without holding it in memory.

        Lines that are no record are left out; with `warn` one line on stderr says which.
        """
        with self.home.shared():
            try:
                file = open(self.path, "rb")  # noqa: SIM115
            except FileNotFoundError:
                return
            size = os.fstat(file.fileno()).st_size
        bad: list[int] = []
        with file:
            for line in _lines(file, size):
                if line.record is not None:
                    yield line.raw, line.record
                else:
                    bad.append(line.number)
        if bad and warn:
            which = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
            print(
                f"{self.name}: line {which} is torn or no record: left out here, "
                f"and set aside in {self.quarantine} by the next verb that writes",
                file=sys.stderr,
            )

    def load(self) -> list[tuple[bytes, Record]]:
        """(line, record) of each record; what is none is set aside first. Only while the home's lock is held."""
        self._ready()
        return [(line.raw, line.record) for line in self._scan() if line.record is not None]

    def _scan(self) -> Iterator[Line]:
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            yield from _lines(file, os.fstat(file.fileno()).st_size)

    # --- writing

    def append(self, make: Callable[[str], bytes]) -> str:
        """Append the line that `make` gives for a new id, on disk when this returns; the id."""
        with self.home.exclusive():
            id = next_ulid(self._ready(), now_ms())
            line = make(ulid_text(id)) + b"\n"
            path = self.path
            make_folder(os.path.dirname(path))
            new = not os.path.exists(path)
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                size = os.fstat(fd).st_size
                try:
                    if os.write(fd, line) != len(line):
                        raise OSError(28, "No space left on device", path)
                    os.fsync(fd)
                    if new:
                        sync_folder(os.path.dirname(path))
                except BaseException:
                    os.ftruncate(fd, size)
                    if new:
                        os.unlink(path)
                    raise
                self._remember(id, os.fstat(fd))
            finally:
                os.close(fd)
            return ulid_text(id)

    def change(self, kept: Iterable[bytes], others: dict[str, bytes]) -> None:
        """Write the other files of the home and then this log with the lines kept, together or not at all.

        Only while the home's lock is held, after `load`.
        """
        last, _ = self._remembered()
        self.home.commit({**others, self.name: _joined(kept)})
        self._remember(last, os.stat(self.path))

    def new_id(self) -> str:
        """An id above all that the log gave, for an archive. Only while the home's lock is held."""
        id = next_ulid(self._ready(), now_ms())
        with contextlib.suppress(FileNotFoundError):
            self._remember(id, os.stat(self.path))
        return ulid_text(id)

    # --- what the last writer of this log left: its last id, and the file as it was then

    def _ready(self) -> int:
        """The last id given, after setting aside whatever in the log is no record."""
        last, seen = self._remembered()
        try:
            if seen == _identity(os.stat(self.path)):
                return last
        except FileNotFoundError:
            return last
        highest, good = "", True
        for line in self._scan():
            if line.record is None:
                good = False
            elif line.record["id"] > highest and is_ulid(line.record["id"]):
                highest = line.record["id"]
        last = max(last, ulid_value(highest) or 0)
        if not good or not self._ends_well():
            self._set_aside()
        self._remember(last, os.stat(self.path))
        return last

    def _set_aside(self) -> None:
        """Rewrite the log with its records alone; what is none goes to the quarantine by the same stroke."""
        bad: list[bytes] = []
        good: list[bytes] = []
        for line in self._scan():
            (bad if line.record is None else good).append(line.raw)
        files = {}
        if bad:
            try:
                with open(self.home.path(self.quarantine), "rb") as file:
                    held = file.read()
            except FileNotFoundError:
                held = b""
            if held and not held.endswith(b"\n"):
                held += b"\n"
            files[self.quarantine] = held + _joined(bad)
        self.home.commit({**files, self.name: _joined(good)})
        if bad:
            print(f"{self.name}: {len(bad)} line(s) that are no record set aside in {self.quarantine}", file=sys.stderr)

    def _ends_well(self) -> bool:
        with open(self.path, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"

    def _remembered(self) -> tuple[int, str]:
        words = self.home.note().split("\n")
        if len(words) < 3:
            return 0, ""
        return ulid_value(words[0]) or 0, words[1] if words[2] == self.name else ""

    def _remember(self, last: int, stat: os.stat_result) -> None:
        self.home.note(f"{ulid_text(last)}\n{_identity(stat)}\n{self.name}\n")


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns}"


def _lines(file: BinaryIO, size: int) -> Iterator[Line]:
    number = done = 0
    while done < size:
        raw = file.readline(size - done)
        if not raw:
            return
        number += 1
        done += len(raw)
        raw = raw.removesuffix(b"\n")
        try:
            yield Line(number, raw, parse_record(raw))
        except ValueError:
            if raw.strip():
                yield Line(number, raw, None)


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


# --- drain -------------------------------------------------------------------------------------------------------------


class Drained(NamedTuple):
    records: int  # archived
    archive: str | None  # its path
    retained: int
    kept: int  # archives in .bak
    pruned: int


def drain(log: Log, leaves: Callable[[Record], bool], keep: int) -> Drained:
    """Move the records for which `leaves` is true to a new archive; keep the newest `keep` archives, at least one."""
    home = log.home
    with home.exclusive():
        gone: list[bytes] = []
        stay: list[bytes] = []
        for raw, record in log.load():
            (gone if leaves(record) else stay).append(raw)
        if not gone:
            return Drained(0, None, len(stay), len(archives(home)), 0)
        name, data = archive(log, gone)
        log.change(stay, {name: data})
        old = archives(home)[: -max(keep, 1)]
        for path in old:
            os.unlink(path)
        return Drained(len(gone), os.path.join(home.root, name), len(stay), len(archives(home)), len(old))


def archive(log: Log, lines: list[bytes]) -> tuple[str, bytes]:
    """(name in the home, content) of a new archive that holds these lines."""
    return f".bak/EPISODIC.{log.new_id()}.jsonl", _joined(lines)


def archives(home: Home) -> list[str]:
    """The drained logs in `.bak/`, oldest first."""
    folder = home.path(".bak")
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [
        os.path.join(folder, name)
        for name in sorted(names)
        if name.startswith("EPISODIC.") and name.endswith(".jsonl") and ulid_value(name[9:-6]) is not None
    ]
