"""The wheel's JSONL folder: one record a line, brought in and written out.

Bringing in reads every ``*.jsonl`` file of a folder: the five that ``rows`` knows into their tables, the records of every
other one into ``other_records`` as the text they are. What cannot be kept goes to ``import_quarantine``. Each transaction
takes some 10,000 lines, parsed before it begins so that other writers get in, and notes in ``imports`` how far it came: an
import that was interrupted goes on from there, as long as the file is the same.

The last line for an id wins, wherever in the file it stands. A line that would change a row that is held is therefore only
noted (``import_changes``), and read again once the file has been seen to its end: else a file that says something twice
would change its row, and change it back, each time it comes in.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from . import writing
from .rows import TABLES, BadRecord, Table, clean, dumps, loads, to_row
from .schema import StoreError, derive
from .wheel import Wheel

__all__ = ["BadLine", "ExportReport", "ExportedFile", "ImportReport", "ImportedFile", "export_folder", "import_folder"]

Progress = Callable[[str, int, int], None]

BATCH_LINES = 10_000
BATCH_BYTES = 16 << 20
LONGEST_LINE = 64 << 20
# So many bad lines of a file are listed in a report; every one is in import_quarantine.
LISTED = 1000
# Each transaction touches most pages of the indexes; they are carried into the file less often meanwhile.
CHECKPOINT_PAGES = 16_000
BOM = b"\xef\xbb\xbf"
KNOWN = {table.file: table for table in TABLES.values()}


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be kept as a record: where it stands (lines count from 1), and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What came of one file's lines, blank ones aside: ``lines`` is the sum of the other counts.

    ``added`` brought a record, ``changed`` gave one its new value, ``same`` had nothing new to say (held just so, or a later
    line says otherwise), ``bad`` were quarantined; the first 1,000 of these are listed in ``quarantined``. An import that was
    interrupted goes on after line ``resumed_after``, and counts from there.
    """

    file: str
    lines: int
    added: int
    changed: int
    same: int
    bad: int
    quarantined: tuple[BadLine, ...] = ()
    resumed_after: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, file by file."""

    folder: Path
    files: tuple[ImportedFile, ...]

    @property
    def quarantined(self) -> tuple[BadLine, ...]:
        """The bad lines of all files, in order."""
        return tuple(bad for file in self.files for bad in file.quarantined)


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file that was written, and how many records it holds."""

    file: str
    lines: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, file by file."""

    folder: Path
    files: tuple[ExportedFile, ...]


# --- what a file's records become ----------------------------------------------------------------------------------


class _Records:
    """A file that ``rows`` knows: its records are the rows of a table."""

    def __init__(self, table: Table) -> None:
        self.kind = table.kind
        self.name = table.name
        self.columns = (*table.columns, "extra")
        self.key_columns = table.key
        self.table = table
        self._places = [self.columns.index(name) for name in table.key]

    def row(self, text: str) -> tuple[Any, ...]:
        return to_row(self.table, loads(text))

    def key(self, row: Sequence[Any]) -> tuple[str, ...]:
        return tuple(row[place] for place in self._places)


class _Others:
    """A file the wheel has no table for: its records are kept as they are written."""

    kind = None
    name = "other_records"
    columns = ("file", "id", "record")
    key_columns = ("file", "id")

    def __init__(self, file: str) -> None:
        self.file = file

    def row(self, text: str) -> tuple[Any, ...]:
        record = loads(text)
        if not isinstance(record, dict):
            raise BadRecord(f"a record must be a JSON object, not {type(record).__name__}")
        id = record.get("id")
        if id is None or id == "":
            return self.file, text, text
        # The number 5 is not the text "5"; what no column can hold stays escaped.
        plain = isinstance(id, str) and "\x00" not in id and clean(id) == id
        return self.file, id if plain else dumps({"id": id}), text

    def key(self, row: Sequence[Any]) -> tuple[str, ...]:
        return row[0], row[1]


_Target = _Records | _Others


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _where(target: _Target) -> str:
    return " AND ".join(f'"{name}" = ?' for name in target.key_columns)


def _held(db: sqlite3.Connection, target: _Target, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """The rows that are held under these keys."""
    wanted = [f"json_extract(wanted.value, '$[{place}]')" for place in range(len(target.key_columns))]
    condition = " AND ".join(f'held."{name}" = {value}' for name, value in zip(target.key_columns, wanted, strict=True))
    columns = ", ".join(f'held."{name}"' for name in target.columns)
    rows = db.execute(f"SELECT {columns} FROM json_each(?) wanted CROSS JOIN {target.name} held ON {condition}", (dumps(keys),))
    return {target.key(row): row for row in rows}


# --- bringing in ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """A file as it was when the import began. Lines that are added to it meanwhile wait for the next import."""

    folder: str
    name: str
    path: Path
    size: int
    stamp: str


@dataclass(slots=True)
class _Line:
    """A key's lines within a batch: what the last says and where it begins, what the first says, and how many follow it."""

    row: tuple[Any, ...]
    offset: int
    first: tuple[Any, ...]
    repeats: int = 0


@dataclass(slots=True)
class _Batch:
    lines: dict[tuple[str, ...], _Line] = field(default_factory=dict)
    bad: list[tuple[int, str | bytes, str]] = field(default_factory=list)
    end: int = 0
    last: int = 0


def import_folder(wheel: Wheel, folder: str | Path, *, progress: Progress | None = None) -> ImportReport:
    """Bring in every ``*.jsonl`` file of a folder; a second time changes nothing.

    ``progress(file, done, total)`` is called with bytes as each file goes on. Raises StoreError for a folder that is
    missing or no wheel, a file that cannot be read, and a wheel that cannot be written; what had come in by then is kept,
    and the same import goes on from there.
    """
    folder = Path(folder)
    sources = _sources(folder)
    wheel.write(lambda db: db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"))
    try:
        files = tuple(_Import(wheel, source, progress).run() for source in sources)
    finally:
        wheel.write(lambda db: db.execute("PRAGMA wal_autocheckpoint = 1000"))
    wheel.write(lambda db: db.execute("DELETE FROM imports WHERE folder = ?", (str(folder.resolve()),)))
    return ImportReport(folder, files)


def _sources(folder: Path) -> list[_Source]:
    """The folder's files, the known ones first; each is opened once, so that one that cannot be read stops it all."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".jsonl") and not name.startswith("."))
    except FileNotFoundError:
        raise StoreError(f"no folder at {folder}") from None
    except NotADirectoryError:
        raise StoreError(f"{folder} is a file; name the folder that holds {', '.join(KNOWN)}") from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror}") from None
    names = [name for name in names if not (folder / name).is_dir()]
    if KNOWN.keys().isdisjoint(names):
        raise StoreError(f"{folder} is no wheel: it holds none of {', '.join(KNOWN)}")
    sources = []
    for name in [*(name for name in KNOWN if name in names), *(name for name in names if name not in KNOWN)]:
        path = folder / name
        if clean(name) != name:
            raise StoreError(f"{os.fsencode(name)!r} in {folder} is no name that can be kept: rename that file to UTF-8")
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise StoreError(f"{path} is no regular file")
            path.open("rb").close()
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from None
        stamp = f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
        sources.append(_Source(str(folder.resolve()), name, path, found.st_size, stamp))
    return sources


class _Import:
    """One file coming in."""

    def __init__(self, wheel: Wheel, source: _Source, progress: Progress | None) -> None:
        self.wheel = wheel
        self.source = source
        self.target: _Target = _Records(KNOWN[source.name]) if source.name in KNOWN else _Others(source.name)
        self.progress = progress or (lambda file, done, total: None)
        self.counts = dict.fromkeys(("added", "changed", "same", "bad"), 0)
        self.quarantined: list[BadLine] = []

    @property
    def _of(self) -> tuple[str, str]:
        return self.source.folder, self.source.name

    def run(self) -> ImportedFile:
        offset, line = self._resume()
        resumed_after = line
        try:
            with self.source.path.open("rb") as file:
                self.progress(self.source.name, offset, self.source.size)
                for batch in self._batches(file, offset, line):
                    self._count(self.wheel.write(partial(self._store, batch)))
                    self._list(batch)
                    line = batch.last
                    self.progress(self.source.name, batch.end, self.source.size)
                self._change(file)
        except OSError as error:
            raise StoreError(f"{self.source.path} cannot be read: {error.strerror}") from None
        except StoreError as error:
            came = f"{self.source.name} came in up to line {line}"
            raise StoreError(f"{error} ({came}; import again and it goes on from there)") from None
        return ImportedFile(
            self.source.name,
            lines=sum(self.counts.values()),
            **self.counts,
            quarantined=tuple(self.quarantined),
            resumed_after=resumed_after,
        )

    def _resume(self) -> tuple[int, int]:
        """The offset and the line up to which an interrupted import brought this very file in; else 0 and 0."""

        def look(db: sqlite3.Connection) -> tuple[int, int]:
            row = db.execute("SELECT stamp, offset, line FROM imports WHERE folder = ? AND file = ?", self._of).fetchone()
            if row is not None and row[0] == self.source.stamp:
                return row[1], row[2]
            db.execute("DELETE FROM import_changes WHERE folder = ? AND file = ?", self._of)
            return 0, 0

        return self.wheel.write(look)

    # Reading: outside of any transaction.

    def _batches(self, file: BinaryIO, offset: int, line: int) -> Iterator[_Batch]:
        batch, first, begin = _Batch(), line, offset
        for number, start, end, raw in _lines(file, offset, line, self.source.size):
            self._take(batch, number, start, raw)
            batch.end, batch.last = end, number
            if number - first >= BATCH_LINES or end - begin >= BATCH_BYTES:
                yield batch
                batch, first, begin = _Batch(), number, end
        if batch.end:
            yield batch

    def _take(self, batch: _Batch, number: int, start: int, raw: bytes) -> None:
        if len(raw) > LONGEST_LINE:
            reason = f"longer than {LONGEST_LINE >> 20} MB; only its beginning is kept here"
            batch.bad.append((number, raw[:1000].decode(errors="replace"), reason))
            return
        raw = raw.strip()
        if not raw:
            return
        text: str | bytes = raw
        try:
            text = raw.decode()
            row = self.target.row(text)
        except UnicodeDecodeError as error:
            batch.bad.append((number, text, f"no UTF-8: {error.reason} at byte {error.start + 1}"))
        except (ValueError, RecursionError) as error:
            batch.bad.append((number, text, _reason(error)))
        else:
            key = self.target.key(row)
            known = batch.lines.get(key)
            if known is None:
                batch.lines[key] = _Line(row, start, row)
            else:
                known.row, known.offset, known.repeats = row, start, known.repeats + 1

    def _list(self, batch: _Batch) -> None:
        for number, _, reason in batch.bad[: LISTED - len(self.quarantined)]:
            self.quarantined.append(BadLine(self.source.name, number, reason))

    def _count(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            self.counts[name] += count

    # Writing: each of these is one transaction.

    def _store(self, batch: _Batch, db: sqlite3.Connection) -> dict[str, int]:
        """Put the new rows of a batch in, and note the lines that would change a row."""
        held = _held(db, self.target, list(batch.lines))
        new = {key: line for key, line in batch.lines.items() if key not in held}
        self._insert(db, new)
        differing = {key: line for key, line in batch.lines.items() if key in held and held[key] != line.row}
        noted = "FROM import_changes WHERE folder = ? AND file = ?"
        if db.execute(f"SELECT 1 {noted} LIMIT 1", self._of).fetchone():
            db.executemany(
                f"DELETE {noted} AND key = ?", ((*self._of, dumps(key)) for key in batch.lines if key not in differing)
            )
        db.executemany(
            "INSERT OR REPLACE INTO import_changes (folder, file, key, offset) VALUES (?, ?, ?, ?)",
            ((*self._of, dumps(key), line.offset) for key, line in differing.items()),
        )
        db.executemany(
            "INSERT OR IGNORE INTO import_quarantine (file, line, text, reason) VALUES (?, ?, ?, ?)",
            ((self.source.name, *bad) for bad in batch.bad),
        )
        db.execute(
            "INSERT OR REPLACE INTO imports (folder, file, stamp, offset, line) VALUES (?, ?, ?, ?, ?)",
            (*self._of, self.source.stamp, batch.end, batch.last),
        )
        # Of a new record's lines the first adds it, and the last changes it when it says something else.
        changed = sum(line.row != line.first for line in new.values())
        lines = sum(1 + line.repeats for line in batch.lines.values())
        return {"added": len(new), "changed": changed, "same": lines - len(new) - changed, "bad": len(batch.bad)}

    def _insert(self, db: sqlite3.Connection, new: Mapping[tuple[str, ...], _Line]) -> None:
        if not new:
            return
        target = self.target
        after = db.execute(f"SELECT coalesce(max(position), 0) FROM {target.name}").fetchone()[0]
        db.execute("UPDATE deriving SET paused = 1")
        db.executemany(
            f"INSERT INTO {target.name} ({_quoted(target.columns)}) VALUES ({', '.join('?' * len(target.columns))})",
            (line.row for line in new.values()),
        )
        derive(db, target.name, after)
        db.execute("UPDATE deriving SET paused = 0")
        if target.kind:
            self.wheel.tell_all_stored(db, target.kind, [" ".join(key) for key in new])

    def _change(self, file: BinaryIO) -> None:
        """Give the rows that differ the value of the last line that names them."""
        while noted := self.wheel.read(self._noted):
            batch: list[tuple[int, tuple[Any, ...]]] = []
            size = 0
            for offset in noted:
                file.seek(offset)
                raw = file.readline()
                try:
                    batch.append((offset, self.target.row(raw.removeprefix(BOM).strip().decode())))
                except (ValueError, RecursionError):
                    raise StoreError(f"{self.source.path} was changed while it was read: nothing more was taken") from None
                size += len(raw)
                if size >= BATCH_BYTES:
                    break
            self._count(self.wheel.write(partial(self._apply, batch)))

    def _noted(self, db: sqlite3.Connection) -> list[int]:
        rows = db.execute(
            "SELECT offset FROM import_changes WHERE folder = ? AND file = ? ORDER BY offset LIMIT ?", (*self._of, BATCH_LINES)
        )
        return [offset for (offset,) in rows]

    def _apply(self, batch: Sequence[tuple[int, tuple[Any, ...]]], db: sqlite3.Connection) -> dict[str, int]:
        target = self.target
        held = _held(db, target, [target.key(row) for _, row in batch])
        changed = []
        settings = ", ".join(f'"{name}" = ?' for name in target.columns)
        for _, row in batch:
            key = target.key(row)
            if key not in held:
                # Somebody took it out since its line was read.
                self._insert(db, {key: _Line(row, 0, row)})
            elif held[key] != row:
                db.execute(f"UPDATE {target.name} SET {settings} WHERE {_where(target)}", (*row, *key))
                changed.append(" ".join(key))
        if target.kind:
            self.wheel.tell_all_stored(db, target.kind, changed)
        db.executemany(
            "DELETE FROM import_changes WHERE folder = ? AND file = ? AND offset = ?",
            ((*self._of, offset) for offset, _ in batch),
        )
        # Their lines were counted as saying nothing new when they were read.
        return {"changed": len(changed), "same": -len(changed)}


def _lines(file: BinaryIO, offset: int, line: int, size: int) -> Iterator[tuple[int, int, int, bytes]]:
    """Each line up to ``size`` bytes: its number, where it begins and ends, and the line, cut when it is too long."""
    file.seek(offset)
    while offset < size:
        raw = file.readline(min(LONGEST_LINE + 1, size - offset))
        if not raw:
            return
        end = offset + len(raw)
        if len(raw) > LONGEST_LINE:
            rest = raw
            while rest and not rest.endswith(b"\n") and end < size:
                rest = file.readline(min(1 << 20, size - end))
                end += len(rest)
        line += 1
        yield line, offset, end, raw.removeprefix(BOM) if offset == 0 else raw
        offset = end


def _reason(error: Exception) -> str:
    if isinstance(error, BadRecord):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON, or half of it: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
    return "nested too deep" if isinstance(error, RecursionError) else f"no JSON: {str(error).partition(';')[0]}"


# --- writing out ---------------------------------------------------------------------------------------------------


def export_folder(wheel: Wheel, folder: str | Path, *, progress: Progress | None = None) -> ExportReport:
    """Write every record into ``*.jsonl`` files of a folder, made when it is not there, in the wheel's order.

    All of it is of one state of the wheel. Each file is replaced as a whole, once all are written; other files are left
    alone. ``progress(file, done, total)`` is called with records. Raises StoreError when a file cannot be written; then no
    file has changed.
    """
    folder = Path(folder)
    told = progress or (lambda file, done, total: None)
    made: list[tuple[Path, Path, ExportedFile]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with wheel.snapshot() as db:
            for name, total, lines in _contents(db):
                draft = folder / f".{name}.{secrets.token_hex(6)}.tmp"
                made.append((draft, folder / name, ExportedFile(name, total)))
                told(name, 0, total)
                with draft.open("x", encoding="utf-8", newline="\n") as file:
                    for done, line in enumerate(lines, 1):
                        file.write(line + "\n")
                        if done % BATCH_LINES == 0 or done == total:
                            told(name, done, total)
                    file.flush()
                    os.fsync(file.fileno())
        for draft, path, _ in made:
            os.replace(draft, path)
        _sync(folder)
    except OSError as error:
        room = "no room left on its disk" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else error.strerror
        raise StoreError(f"cannot export to {folder}: {room}") from None
    finally:
        for draft, _, _ in made:
            draft.unlink(missing_ok=True)
    return ExportReport(folder, tuple(file for _, _, file in made))


def _contents(db: sqlite3.Connection) -> Iterator[tuple[str, int, Iterator[str]]]:
    """Each file to write: its name, how many records it gets, and their lines."""
    for table in TABLES.values():
        total = db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
        yield table.file, total, (dumps(record) for record in writing.each(db, table.kind))
    for name, total in db.execute("SELECT file, count(*) FROM other_records GROUP BY file ORDER BY file").fetchall():
        if Path(name).name != name or not name.endswith(".jsonl") or name in KNOWN:
            raise StoreError(f"other_records names the file {name!r}, which an export cannot write; give its rows another name")
        rows = db.execute("SELECT record FROM other_records WHERE file = ? ORDER BY position", (name,))
        yield name, total, (" ".join(record.splitlines()) for (record,) in rows)


def _sync(folder: Path) -> None:
    """Have the new names on disk, where the system can do that for a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
