"""A wheel's folder of JSONL files, in and out.

An import reads each file once, in transactions of some 10,000 lines, parsed before the transaction begins so that other
writers get in between. How far it came is kept with what it stored: an import that was cut off goes on where it was, as
long as the file is the same. The last line for an id wins and the first gives it its place. A line that would change a
record waits until the whole file is read, since a later line may take it back; so a second import of the same folder
touches no row.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .rows import TABLES, BadRecord, Table, clean, dumps, from_row, to_row
from .schema import StoreError, derive
from .writing import put

if TYPE_CHECKING:
    from .wheel import Wheel

__all__ = ["ExportReport", "FileReport", "ImportReport", "Quarantined", "export_folder", "import_folder"]

BATCH_LINES = 10_000
BATCH_BYTES = 16_000_000
MAX_LINE = 64_000_000
# ``progress(file, bytes done, bytes in all)``
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Quarantined:
    """A line that could not be read as a record: kept in ``import_quarantine``, with why."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class FileReport:
    """One file of an import: its lines with something on them, and what became of them."""

    file: str
    lines: int = 0
    added: int = 0
    changed: int = 0
    same: int = 0
    resumed_at: int = 0
    quarantined: tuple[Quarantined, ...] = ()


@dataclass(frozen=True)
class ImportReport:
    """What an import did, file by file."""

    files: tuple[FileReport, ...] = ()

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """Every line set aside, in the order of files and lines."""
        return tuple(line for report in self.files for line in report.quarantined)


@dataclass(frozen=True)
class ExportReport:
    """What an export wrote: records by file name."""

    files: Mapping[str, int] = field(default_factory=dict)


# --- import ----------------------------------------------------------------------------------------------------------


@dataclass
class _Batch:
    """Lines read and parsed: records by key (the first of a key gives its place, the last its value), and what was no record."""

    records: dict[tuple[str, ...], tuple[Any, ...]] = field(default_factory=dict)
    bad: list[tuple[int, str, str]] = field(default_factory=list)
    lines: int = 0
    offset: int = 0
    line: int = 0


def import_folder(wheel: Wheel, folder: str | Path, *, progress: Progress | None = None) -> ImportReport:
    """Bring a folder of JSONL files onto a wheel: the five known files into their tables, every other ``*.jsonl`` as it is.

    Lines that are no record are set aside and reported, and the rest goes on. Raises StoreError for a folder that is
    missing, that holds no file of a wheel, or whose files cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise StoreError(f"no folder at {folder}")
    known = {table.file: table for table in TABLES.values()}
    others = sorted(path.name for path in folder.glob("*.jsonl") if path.name not in known and not path.name.startswith("."))
    present = [name for name in known if (folder / name).is_file()]
    if not present:
        raise StoreError(f"{folder} is no wheel: it holds none of {', '.join(known)}")
    sizes = {name: (folder / name).stat().st_size for name in [*present, *others]}
    total = sum(sizes.values())
    reports = []
    done = 0
    for name in sizes:
        target: _Known | _Other = _Known(known[name]) if name in known else _Other(name)

        def step(at: int, name: str = name, done: int = done) -> None:
            if progress is not None:
                progress(name, done + at, total)

        try:
            reports.append(_import_file(wheel, folder, name, target, step))
        except OSError as error:
            raise StoreError(f"{folder / name} cannot be read: {error.strerror or error}") from None
        done += sizes[name]
    return ImportReport(tuple(reports))


def _import_file(wheel: Wheel, folder: Path, name: str, target: _Known | _Other, step: Callable[[int], None]) -> FileReport:
    path = folder / name
    place = (str(folder.resolve()), name)
    told = bool(wheel.plugins.implementations("record_stored"))
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        stamp = f"{found.st_size}:{found.st_mtime_ns}"
        row = wheel.read(lambda db: db.execute("SELECT stamp, offset, line FROM imports WHERE folder = ? AND file = ?", place).fetchone())
        offset, line = (row[1], row[2]) if row and row[0] == stamp else (0, 0)
        report = FileReport(name, resumed_at=line)
        if row and not offset:
            wheel.write(lambda db: _forget(db, place))
        file.seek(offset)
        while True:
            batch = _read_batch(file, target, line)
            if batch is None:
                break

            def store(db: sqlite3.Connection, batch: _Batch = batch) -> tuple[int, int]:
                db.executemany(
                    "INSERT OR IGNORE INTO import_quarantine (file, line, text, reason) VALUES (?, ?, ?, ?)",
                    ((name, number, text, reason) for number, text, reason in batch.bad),
                )
                added, same = target.store(db, batch.records, place)
                if told and isinstance(target, _Known):
                    for key in added:
                        wheel.tell_stored(db, target.table.kind, " ".join(key))
                db.execute("INSERT OR REPLACE INTO imports VALUES (?, ?, ?, ?, ?)", (*place, stamp, batch.offset, batch.line))
                return len(added), same

            added, same = wheel.write(store)
            line = batch.line
            report = replace(
                report,
                lines=report.lines + batch.lines,
                added=report.added + added,
                same=report.same + same,
                quarantined=report.quarantined + tuple(Quarantined(name, number, reason) for number, _, reason in batch.bad),
            )
            step(batch.offset)
    changed = _apply_waiting(wheel, place, target, told)
    wheel.write(lambda db: _forget(db, place))
    step(found.st_size)
    return replace(report, changed=changed)


def _forget(db: sqlite3.Connection, place: tuple[str, str]) -> None:
    db.execute("DELETE FROM imports WHERE folder = ? AND file = ?", place)
    db.execute("DELETE FROM import_waiting WHERE folder = ? AND file = ?", place)


def _read_batch(file: BinaryIO, target: _Known | _Other, line: int) -> _Batch | None:
    batch = _Batch(line=line)
    start = file.tell()
    while batch.line - line < BATCH_LINES and file.tell() - start < BATCH_BYTES:
        raw = file.readline(MAX_LINE)
        if not raw:
            break
        batch.line += 1
        if len(raw) >= MAX_LINE and not raw.endswith(b"\n"):
            raise StoreError(f"{target.file}:{batch.line} is longer than {MAX_LINE:,} bytes; no record is that long")
        if batch.line == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        raw = raw.strip()
        if not raw:
            continue
        batch.lines += 1
        try:
            text = raw.decode()
            record = _DECODER.decode(text)
            key, row = target.row(record, text)
        except UnicodeDecodeError:
            batch.bad.append((batch.line, raw.decode("utf-8", "replace"), "not UTF-8"))
            continue
        except RecursionError:
            batch.bad.append((batch.line, text, "nested too deep"))
            continue
        except BadRecord as error:
            batch.bad.append((batch.line, text, str(error)))
            continue
        except ValueError as error:
            batch.bad.append((batch.line, text, f"not JSON: {error}"))
            continue
        batch.records[key] = row
    if batch.line == line:
        return None
    batch.offset = file.tell()
    return batch


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


class _Known:
    """One of the five files: its records become rows of a table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.file = table.file
        self.columns = [*table.columns, "extra"]
        self.places = [self.columns.index(name) for name in table.key]
        quoted = ", ".join(f'"{name}"' for name in self.columns)
        self._insert = f"INSERT INTO {table.name} ({quoted}) VALUES ({', '.join('?' * len(self.columns))})"
        named = ", ".join(f't."{name}"' for name in self.columns)
        keys = " AND ".join(f"t.{name} = json_extract(wanted.value, '$[{n}]')" for n, name in enumerate(table.key))
        self._held = f"SELECT {named} FROM json_each(?) wanted CROSS JOIN {table.name} t ON {keys}"

    def row(self, record: Any, text: str) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        row = to_row(self.table, record)
        return tuple(row[place] for place in self.places), row

    def held(self, db: sqlite3.Connection, keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], tuple[Any, ...]]:
        rows = db.execute(self._held, (json.dumps(list(keys), ensure_ascii=False),))
        return {tuple(row[place] for place in self.places): row for row in rows}

    def store(
        self, db: sqlite3.Connection, records: Mapping[tuple[str, ...], tuple[Any, ...]], place: tuple[str, str]
    ) -> tuple[list[tuple[str, ...]], int]:
        """Put in what is new, set aside what would change; the keys added, and how many are as they were."""
        held = self.held(db, records)
        new = {key: row for key, row in records.items() if key not in held}
        if new:
            last = db.execute(f"SELECT coalesce(max(position), 0) FROM {self.table.name}").fetchone()[0]
            db.execute("UPDATE deriving SET paused = 1")
            db.executemany(self._insert, new.values())
            derive(db, self.table.name, last)
            db.execute("UPDATE deriving SET paused = 0")
        return list(new), _set_aside(db, place, held, records)

    def change(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> str:
        record = from_row(self.table, dict(zip(self.columns, row, strict=True)))
        put(db, self.table.kind, record)
        return " ".join(self.table.keys(record))


class _Other:
    """A file that no table holds: its records are kept as their text."""

    def __init__(self, file: str) -> None:
        self.file = file

    def row(self, record: Any, text: str) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        id = record.get("id") if isinstance(record, dict) else None
        if not isinstance(id, str) or not id or clean(id) != id:
            id = "line:" + hashlib.sha256(text.encode()).hexdigest()
        return (id,), (self.file, id, text)

    def store(
        self, db: sqlite3.Connection, records: Mapping[tuple[str, ...], tuple[Any, ...]], place: tuple[str, str]
    ) -> tuple[list[tuple[str, ...]], int]:
        rows = db.execute(
            "SELECT file, id, record FROM other_records WHERE file = ? AND id IN (SELECT value FROM json_each(?))",
            (self.file, json.dumps([key[0] for key in records], ensure_ascii=False)),
        )
        held: dict[tuple[str, ...], tuple[Any, ...]] = {(row[1],): row for row in rows}
        new = {key: row for key, row in records.items() if key not in held}
        db.executemany("INSERT INTO other_records (file, id, record) VALUES (?, ?, ?)", new.values())
        return list(new), _set_aside(db, place, held, records)

    def change(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> str:
        db.execute("UPDATE other_records SET record = ? WHERE file = ? AND id = ?", (row[2], row[0], row[1]))
        return str(row[1])


def _set_aside(
    db: sqlite3.Connection,
    place: tuple[str, str],
    held: Mapping[tuple[str, ...], tuple[Any, ...]],
    records: Mapping[tuple[str, ...], tuple[Any, ...]],
) -> int:
    """Let what differs from the wheel wait for the end of the file; what is as the wheel has it takes back what waited."""
    same = [key for key, row in held.items() if tuple(row) == records[key]]
    db.executemany(
        "DELETE FROM import_waiting WHERE folder = ? AND file = ? AND key = ?", ((*place, json.dumps(key)) for key in same)
    )
    differing = ((key, records[key]) for key, row in held.items() if tuple(row) != records[key])
    db.executemany(
        "INSERT OR REPLACE INTO import_waiting VALUES (?, ?, ?, ?)",
        ((*place, json.dumps(key), json.dumps(row)) for key, row in differing),
    )
    return len(same)


def _apply_waiting(wheel: Wheel, place: tuple[str, str], target: _Known | _Other, told: bool) -> int:
    changed = 0
    while True:

        def apply(db: sqlite3.Connection) -> int:
            rows = db.execute(
                "SELECT key, record FROM import_waiting WHERE folder = ? AND file = ? ORDER BY key LIMIT ?", (*place, BATCH_LINES)
            ).fetchall()
            for key, row in rows:
                id = target.change(db, tuple(json.loads(row)))
                if told and isinstance(target, _Known):
                    wheel.tell_stored(db, target.table.kind, id)
                db.execute("DELETE FROM import_waiting WHERE folder = ? AND file = ? AND key = ?", (*place, key))
            return len(rows)

        count = wheel.write(apply)
        changed += count
        if count < BATCH_LINES:
            return changed


# --- export ----------------------------------------------------------------------------------------------------------


def export_folder(wheel: Wheel, folder: str | Path, *, progress: Progress | None = None) -> ExportReport:
    """Write a wheel as a folder of JSONL files, one record a line in the wheel's order, all of one state of the wheel.

    Each file is written beside its place and moved there when it is whole; other files of the folder are left alone.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with wheel.snapshot() as db:
            counts = {table.file: db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in TABLES.values()}
            counts.update(db.execute("SELECT file, count(*) FROM other_records GROUP BY file ORDER BY file").fetchall())
            total, done = sum(counts.values()), 0
            for table in TABLES.values():
                _write_file(folder / table.file, _lines_of(db, table))
                done += counts[table.file]
                if progress is not None:
                    progress(table.file, done, total)
            for name in [name for name in counts if name not in {table.file for table in TABLES.values()}]:
                rows = db.execute("SELECT record FROM other_records WHERE file = ? ORDER BY position", (name,))
                _write_file(folder / name, (record for (record,) in rows))
                done += counts[name]
                if progress is not None:
                    progress(name, done, total)
    except OSError as error:
        raise StoreError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from None
    return ExportReport(counts)


def _lines_of(db: sqlite3.Connection, table: Table) -> Iterator[str]:
    cursor = db.execute(f"SELECT * FROM {table.name} ORDER BY position")
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dumps(from_row(table, dict(zip(names, row, strict=True))))


def _write_file(path: Path, lines: Iterable[str]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
