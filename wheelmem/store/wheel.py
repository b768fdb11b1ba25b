"""A wheel: one SQLite file, opened, read and written."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..contract import Reach, Record
from . import reading, writing
from .connections import ReadConnection, Turnstile, open_reader, open_writer, transaction, use_wal
from .rows import KINDS
from .schema import StoreError, check, migrate

if TYPE_CHECKING:
    from ..plugins import PluginHost

__all__ = ["Wheel", "open_wheel"]

T = TypeVar("T")
IDLE_READERS = 4


class Wheel:
    """The wheel in one SQLite file.

    Reads run on read-only connections of the wheel's own, each inside one transaction (``snapshot``). Writes go through one
    connection, one at a time, each a transaction that is on disk when it returns (``write``). Safe to share between threads.
    """

    def __init__(self, path: Path, plugins: PluginHost, busy_timeout: float) -> None:
        self.path = path
        self.plugins = plugins
        self._busy_timeout = busy_timeout
        self._readers: list[ReadConnection] = []
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._turn = Turnstile(path.absolute().parent, busy_timeout)
        self._closed = False

    # --- opening ---------------------------------------------------------------------------------------------------

    def _open(self, create: bool) -> None:
        exists = self.path.exists() and self.path.stat().st_size > 0
        if not exists and not create:
            raise StoreError(f"no wheel at {self.path}; make one with: wheelmem init")
        with _said_plainly(self.path):
            if exists:
                reader = open_reader(self.path, self._busy_timeout)
                try:
                    ready = check(reader, self.path)
                    unprepared = self._unprepared(reader) if ready else []
                finally:
                    reader.close()
                if ready and not unprepared:
                    return
            try:
                with self._writing:
                    self._prepare(self._writer_connection())
            except (sqlite3.OperationalError, StoreError):
                if not exists or not ready:
                    raise
                # A wheel that cannot be written is read all the same; an arm that lacks its tables says so.

    def _writer_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"the wheel {self.path} is closed")
        if self._writer is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"cannot make the folder of {self.path}: {error.strerror}") from None
            connection = open_writer(self.path, self._busy_timeout)
            try:
                # In line, as for a write: SQLite lets nobody wait for the change of a file's journal mode.
                with self._turn:
                    if not check(connection, self.path):
                        use_wal(connection, self._busy_timeout)
                        with transaction(connection):
                            if not check(connection, self.path):
                                migrate(connection)
            except BaseException:
                connection.close()
                raise
            self._writer = connection
        return self._writer

    def _unprepared(self, db: sqlite3.Connection) -> list[str]:
        row = db.execute("SELECT value FROM wheel WHERE name = 'prepared'").fetchone()
        done = set(json.loads(row[0])) if row else set()
        return [text for text in self.plugins.fingerprints() if text not in done]

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Let each plugin that has not yet seen this wheel make its tables; each in a savepoint of its own."""
        with transaction(db):
            missing = self._unprepared(db)
            if not missing:
                return
            failed = set()
            for name, prepare in self.plugins.implementations("prepare_store"):
                try:
                    with transaction(db):
                        prepare(db=db)
                except Exception as error:
                    failed.add(name)
                    self.plugins.fail(name, "prepare_store", error)
            row = db.execute("SELECT value FROM wheel WHERE name = 'prepared'").fetchone()
            done = json.loads(row[0]) if row else []
            fresh = [text for text in missing if text.partition("=")[0] not in failed]
            kept = [text for text in done if text.partition("=")[0] not in {text.partition("=")[0] for text in fresh}]
            db.execute("INSERT OR REPLACE INTO wheel VALUES ('prepared', ?)", (json.dumps(sorted(kept + fresh)),))

    # --- reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[ReadConnection]:
        """A connection inside one read transaction: everything read in it is of one state of the wheel."""
        with self._lock:
            if self._closed:
                raise StoreError(f"the wheel {self.path} is closed")
            connection = self._readers.pop() if self._readers else None
        with _said_plainly(self.path):
            if connection is None:
                connection = open_reader(self.path, self._busy_timeout)
                connection.execute("PRAGMA cache_size = -16000")
            try:
                connection.begin()
                yield connection
                connection.end()
                reusable = connection.idle()
            except BaseException:
                connection.let_go()
                raise
        with self._lock:
            if reusable and len(self._readers) < IDLE_READERS and not self._closed:
                self._readers.append(connection)
                return
        connection.let_go()

    def read(self, fn: Callable[[ReadConnection], T]) -> T:
        """``fn(db)`` inside one snapshot."""
        with self.snapshot() as db:
            return fn(db)

    def get(self, kind: str, *key: str) -> dict[str, Any] | None:
        """A record by kind (``node``, ``edge``, ``ceremony``, ``beat``, ``diary``) and id, as JSON; None when not held."""
        return self.read(lambda db: writing.get(db, kind, *key))

    def count(self) -> dict[str, int]:
        """How many rows each table holds."""
        with self.snapshot() as db:
            return {
                table.name: db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in KINDS.values()
            }

    @property
    def uuid(self) -> str:
        """What tells this wheel from every other."""
        return str(self.read(lambda db: db.execute("SELECT value FROM wheel WHERE name = 'uuid'").fetchone()[0]))

    # --- what any wheel answers, in whatever it is kept -------------------------------------------------------------

    async def ceremonies(self) -> list[dict[str, Any]]:
        """Every ceremony, in the wheel's order."""
        return await _in_thread(self.read, lambda db: writing.select(db, "ceremony"))

    async def seats(self) -> list[dict[str, str]]:
        """Who sits in which circle: ``{person_id, circle_id}``."""

        def rows(db: ReadConnection) -> list[dict[str, str]]:
            return [{"person_id": person, "circle_id": circle} for person, circle in db.execute("SELECT * FROM seats")]

        return await _in_thread(self.read, rows)

    async def records(self, reach: Reach) -> list[Record]:
        """Every record that the scope of this reach reaches."""
        return await _in_thread(
            self.read, lambda db: [found.record for found in reading.all_reached(db, reading.resolve(db, reach.scope))]
        )

    async def names(self, ids: list[str]) -> dict[str, str]:
        """Names by id, for those the wheel knows."""
        return await _in_thread(self.read, lambda db: reading.names(db, ids))

    async def kinds(self, ids: list[str]) -> dict[str, str]:
        """``person``, ``agent`` or ``wheel`` by id, for those that are one."""
        return await _in_thread(self.read, lambda db: reading.kinds(db, ids))

    # --- writing ---------------------------------------------------------------------------------------------------

    def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """``fn(db)`` in one transaction, on disk when this returns; waits its turn behind other writers."""
        with _said_plainly(self.path), self._writing:
            db = self._writer_connection()
            with transaction(db, self._turn):
                return fn(db)

    def put(self, kind: str, record: Mapping[str, Any]) -> str:
        """Store one record: ``added``, ``changed`` or ``same``."""
        return self.write(lambda db: self.store(db, kind, record))

    def store(self, db: sqlite3.Connection, kind: str, record: Mapping[str, Any]) -> str:
        """Store one record inside the transaction of ``db`` (any connection to this wheel that may write), and tell plugins."""
        outcome = writing.put(db, kind, record)
        if outcome != "same":
            self.tell_stored(db, kind, " ".join(KINDS[kind].keys(record)))
        return outcome

    def tell_stored(self, db: sqlite3.Connection, kind: str, id: str) -> None:
        """Call ``record_stored`` of each plugin, each in a savepoint of its own."""
        for name, stored in self.plugins.implementations("record_stored"):
            try:
                with transaction(db):
                    stored(db=db, kind=kind, id=id)
            except Exception as error:
                self.plugins.fail(name, "record_stored", error)

    def tell_all_stored(self, db: sqlite3.Connection, kind: str, ids: Sequence[str]) -> None:
        """``tell_stored`` for many records: a plugin shares one savepoint for all of them, unless it fails."""
        for name, stored in self.plugins.implementations("record_stored") if ids else ():
            each = ids if self.plugins.wants(name, "record_stored") & {"kind", "id"} else ids[-1:]
            try:
                with transaction(db):
                    for id in each:
                        stored(db=db, kind=kind, id=id)
            except Exception:
                # What it raises at one record costs that record only.
                for id in each:
                    try:
                        with transaction(db):
                            stored(db=db, kind=kind, id=id)
                    except Exception as error:
                        self.plugins.fail(name, "record_stored", error)

    def delete(self, kind: str, *key: str) -> None:
        """Take a record out; raises NotHeldError when the wheel does not hold it."""
        self.write(lambda db: writing.delete(db, kind, *key))

    def close(self) -> None:
        """Close every connection that is not in use. The wheel cannot be used afterwards."""
        with self._lock:
            self._closed = True
            readers, self._readers = self._readers, []
        for reader in readers:
            reader.close()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._turn.close()

    def __enter__(self) -> Wheel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Wheel({str(self.path)!r})"


@contextmanager
def _said_plainly(path: Path) -> Iterator[None]:
    """SQLite's errors about the file itself, as a caller can act on them."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "disk is full" in text:
            raise StoreError(f"no room left on the disk of {path}; nothing was written") from None
        if "readonly" in text or "read-only" in text:
            raise StoreError(f"{path} cannot be written: it is read-only; nothing was written") from None
        if "locked" in text or "busy" in text:
            raise StoreError(f"{path} is being written by another process that does not finish; nothing was written") from None
        if "disk I/O" in text or "unable to open" in text:
            raise StoreError(f"{path}: {text}; look at the disk and at who may read and write it") from None
        if "not a database" in text or "malformed" in text:
            raise StoreError(f"{path} is no SQLite database, or a damaged one: {text}") from None
        raise


async def _in_thread(fn: Callable[..., T], *arguments: Any) -> T:
    import asyncio

    return await asyncio.to_thread(fn, *arguments)


def open_wheel(path: str | Path, *, plugins: PluginHost | None = None, create: bool = True, busy_timeout: float = 60.0) -> Wheel:
    """Open the wheel at ``path``, made when it is not there (unless ``create`` is false), brought up to date when it is older.

    ``plugins`` is the host whose plugins prepare the store (every installed plugin by default); ``busy_timeout`` the
    seconds a write waits for another writer. Raises StoreError for a file that is something else, that was written by a
    newer wheelmem, or that cannot be opened.
    """
    if plugins is None:
        from ..plugins import load_plugins

        plugins = load_plugins()
    wheel = Wheel(Path(path), plugins, busy_timeout)
    try:
        wheel._open(create)
    except BaseException:
        wheel.close()
        raise
    return wheel
