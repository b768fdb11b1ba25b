"""Connections to a wheel's file: readers that see one snapshot, and the one that writes."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from .schema import StoreError

__all__ = ["ReadConnection", "Turnstile", "open_reader", "open_writer", "transaction", "use_wal"]


class Recent(OrderedDict[Any, Any]):
    """A dict of the ``most`` entries that were looked at last: each scope that is asked has some, and there is no end of scopes."""

    most = 64

    def __getitem__(self, key: Any) -> Any:
        self.move_to_end(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.most:
            del self[next(iter(self))]


class ReadConnection(sqlite3.Connection):
    """A read-only connection on which the TEMP tables of a reach appear when a statement first mentions them.

    ``cache`` holds whatever may be kept for as long as the file does not change; it is emptied when the file has changed, and
    what was not looked at for long goes.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cache: dict[Any, Any] = Recent()
        self._version: int | None = None
        self._wanted: Any = None
        self._made = False
        self._as_begun: tuple[Any, Any, Any] = (None, None, None)

    def begin(self) -> None:
        """Start the read transaction, and forget what was cached of an older state of the file."""
        self._as_begun = self._reads_as()
        super().execute("BEGIN")
        super().execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        version = super().execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self.cache.clear()
            self._version = version

    def _reads_as(self) -> tuple[Any, Any, Any]:
        return self.row_factory, self.text_factory, self.isolation_level

    def end(self) -> None:
        """End the read transaction; the tables of the reach go with it."""
        if self.in_transaction:
            self.rollback()
            self._made = False
        self.offer(None)

    def spoiled(self) -> str | None:
        """What somebody who was lent the connection did to it that the next one would feel; None when it is as it was."""
        try:
            if not self.idle():
                import gc

                # A cursor nobody holds any more but a cycle of objects is no fault of theirs.
                gc.collect()
                if not self.idle():
                    return "left a statement half-read"
            self.offer(None)
            if not self.in_transaction:
                return "ended the transaction it was lent"
            if self._reads_as() != self._as_begun:
                return "changed how the connection reads rows"
            # A TEMP table hides the wheel's own of the same name, and one named reach_… would pass for the reach.
            hiding = super().execute(
                "SELECT count(*) FROM temp.sqlite_master WHERE lower(name) IN (SELECT lower(name) FROM main.sqlite_master) "
                "OR name LIKE 'reach\\_%' ESCAPE '\\'"
            )
            if hiding.fetchone()[0]:
                return "made TEMP tables that hide others"
            return "made the connection read-only" if super().execute("PRAGMA query_only").fetchone()[0] else None
        except Exception as error:
            return f"left the connection unusable ({type(error).__name__})"

    def idle(self) -> bool:
        """Whether no statement is left half-read: one would keep the connection at the state of the file it was begun on."""
        try:
            self.interrupt()  # stops every new statement for as long as an old one is under way; of no effect when none is
            super().execute("SELECT 1").fetchone()
        except sqlite3.OperationalError:
            return False
        return True

    def let_go(self) -> None:
        """Close; while a statement is under way (a cursor somebody kept, a thread's query) it goes with the last of these."""
        with suppress(sqlite3.Error):
            if self.idle():
                self.close()

    def offer(self, reach: Any) -> None:
        """Let statements see this reach (an object with ``make_tables(db)``), or none."""
        self._wanted = reach
        if self._made:
            self._made = False
            for table in ("reach_records", "reach_ceremonies", "reach_places"):
                super().execute(f"DROP TABLE IF EXISTS temp.{table}")

    def _look(self, sql: str) -> None:
        if not self._made and self._wanted is not None and "reach_" in sql:
            self._made = True
            self._wanted.make_tables(self)

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self._look(sql)
        return super().execute(sql, *arguments)

    def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self._look(sql)
        return super().executemany(sql, *arguments)

    def executescript(self, sql: str) -> sqlite3.Cursor:
        self._look(sql)
        return super().executescript(sql)

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _ReachCursor)


class _ReachCursor(sqlite3.Cursor):
    connection: ReadConnection

    def execute(self, sql: str, *arguments: Any) -> Self:
        self.connection._look(sql)
        return super().execute(sql, *arguments)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        self.connection._look(sql)
        return super().executemany(sql, parameters)


def open_reader(path: Path, busy_timeout: float) -> ReadConnection:
    """A read-only connection; a file in a folder that cannot be written is read as it lies."""
    if not path.exists():
        raise StoreError(f"no wheel at {path}; make one with: wheelmem init")
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    wal = Path(f"{path}-wal")
    if not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size):
        address += "&immutable=1"
    connection = sqlite3.connect(
        address, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False, factory=ReadConnection
    )
    connection.text_factory = _text
    return connection


def _text(value: bytes) -> str:
    """Text as it is read: other tools may have written what is no UTF-8, and one such row must not hide the others."""
    return str(value, "utf-8", "replace")


def open_writer(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """A connection that writes, in WAL mode, each commit on disk before it returns."""
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot open {path}: {error}") from None
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -32000")
    connection.text_factory = _text
    return connection


def use_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Put the file in WAL mode, once nobody else is at it."""
    end = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.005)


class Turnstile:
    """Where processes that want to write a wheel stand in line, so that none is passed over until it gives up.

    SQLite has who finds the wheel locked look again every tenth of a second; a writer that begins anew as soon as it has
    ended is never seen to be away. Here whoever waits next holds a lock on the folder until its transaction has begun, and
    everybody else waits for that first. Nobody depends on it: where a folder cannot be locked, or not within ``timeout``
    seconds, SQLite's own lock still decides.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout
        self._handle: int | None = None

    def __enter__(self) -> None:
        try:
            import fcntl

            if self._handle is None:
                self._handle = os.open(self._folder, os.O_RDONLY)
            end = time.monotonic() + self._timeout
            while time.monotonic() < end:
                try:
                    fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    time.sleep(0.005)
        except (ImportError, OSError):
            return

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            import fcntl

            try:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
            except OSError:
                pass

    def close(self) -> None:
        """Give the handle on the folder back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextmanager
def transaction(
    connection: sqlite3.Connection, turn: AbstractContextManager[None] | None = None
) -> Iterator[sqlite3.Connection]:
    """Everything inside happens, or nothing does. Inside another transaction it is a savepoint.

    ``turn`` is entered for as long as it takes to begin: see ``Turnstile``.
    """
    nested = connection.in_transaction
    if nested:
        connection.execute("SAVEPOINT part")
    else:
        with turn or nullcontext():
            connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("RELEASE part" if nested else "COMMIT")
    except BaseException:
        # A full disk rolls back by itself; then there is nothing left to undo.
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part" if nested else "ROLLBACK")
            if nested:
                connection.execute("RELEASE part")
        raise
