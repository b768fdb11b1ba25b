"""Where each record has its home and how many words it holds, in arrays, so that ranking reads no row of a record.

The arrays are kept as blobs (a block for every 4,096 positions of a kind), and the sums for every place beside them: the
seal. Triggers note which records have changed since; whoever reads patches those into a copy, so that a row changed with
any SQLite tool counts at once. Writers of the wheel seal again when the list of changes grows long.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from array import array
from threading import Lock

from .schema import INDEX

__all__ = ["Measures", "measures", "seal", "seal_if_long"]

KINDS = 8
BLOCK = 4096
# Positions are small and dense unless somebody chose them; those outside are held one by one.
DENSE = range(0, 1 << 24)
LONG = 4096
# The arrays of a seal are shared by every reader of the process that sees this seal.
KEPT = 2


class Measures:
    """Home and length of every record, and for every place how many records have their home there and their lengths' sum.

    ``homes[record_id & 7][record_id >> 3]`` is a record's home place, 0 when it has none; ``lengths`` likewise its number of
    words. Records whose position lies outside ``DENSE`` are in ``far`` instead: record id → (home, length).
    """

    __slots__ = ("counts", "far", "homes", "lengths", "totals")

    def __init__(self) -> None:
        self.homes = [array("I") for _ in range(KINDS)]
        self.lengths = [array("I") for _ in range(KINDS)]
        self.far: dict[int, tuple[int, int]] = {}
        self.counts = array("q")
        self.totals = array("q")

    def copy(self) -> Measures:
        made = Measures()
        made.homes = [column[:] for column in self.homes]
        made.lengths = [column[:] for column in self.lengths]
        made.counts, made.totals = self.counts[:], self.totals[:]
        return made

    def get(self, record_id: int) -> tuple[int, int]:
        """Home and length of a record; (0, 0) for one that is not held."""
        kind, position = record_id & 7, record_id >> 3
        if position not in DENSE:
            return self.far.get(record_id, (0, 0))
        column = self.homes[kind]
        return (column[position], self.lengths[kind][position]) if position < len(column) else (0, 0)

    def put(self, record_id: int, home: int, length: int) -> None:
        """What now holds of a record of the arrays: 0 and 0 when it is gone."""
        old_home, old_length = self.get(record_id)
        kind, position = record_id & 7, record_id >> 3
        for columns in (self.homes, self.lengths):
            if position >= len(columns[kind]):
                columns[kind].frombytes(bytes(4 * (BLOCK * (position // BLOCK + 1) - len(columns[kind]))))
        self.homes[kind][position], self.lengths[kind][position] = home, length
        self._sum(old_home, -1, -old_length)
        self._sum(home, 1, length)

    def put_far(self, record_id: int, home: int, length: int) -> None:
        """A record that the arrays do not hold."""
        self.far[record_id] = (home, length)
        self._sum(home, 1, length)

    def _sum(self, place: int, records: int, words: int) -> None:
        # Place 0 is nowhere; what lies there is never summed.
        if place:
            if place >= len(self.counts):
                for sums in (self.counts, self.totals):
                    sums.extend([0] * (place + 1 + place // 8 - len(sums)))
            self.counts[place] += records
            self.totals[place] += words


def _patch(db: sqlite3.Connection, made: Measures) -> None:
    """Bring measures as they were sealed up to what this snapshot holds."""
    for record_id, home, size in db.execute(
        "SELECT c.record_id, coalesce(r.home, 0), d.sz "
        "FROM (SELECT DISTINCT record_id FROM records_fts_changed WHERE record_id >= ? AND record_id < ?) c "
        f"LEFT JOIN records r ON r.record_id = c.record_id LEFT JOIN {INDEX}_docsize d ON d.id = r.record_id",
        (DENSE.start * 8, DENSE.stop * 8),
    ):
        made.put(record_id, home, _length(size))


def _add_far(db: sqlite3.Connection, made: Measures) -> None:
    """Records outside the arrays are few, if any: they are read as they are, and never sealed."""
    for record_id, home, size in db.execute(
        f"SELECT r.record_id, coalesce(r.home, 0), d.sz FROM records r LEFT JOIN {INDEX}_docsize d ON d.id = r.record_id "
        "WHERE r.record_id < ? OR r.record_id >= ?",
        (DENSE.start * 8, DENSE.stop * 8),
    ):
        made.put_far(record_id, home, _length(size))


def _length(size: bytes | None) -> int:
    """The first varint of a row of FTS5's docsize table: the number of words of a record."""
    length = 0
    for byte in size or b"":
        length = length << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return length


def measures(db: sqlite3.Connection) -> Measures:
    """The measures as this snapshot has them."""
    made = _patched(db)
    _add_far(db, made)
    return made


def _patched(db: sqlite3.Connection) -> Measures:
    row = db.execute("SELECT stamp FROM records_fts_seal").fetchone()
    made = (_sealed(db, row[0]) if row else Measures()).copy()
    _patch(db, made)
    return made


_shared: dict[bytes, Measures] = {}
_sharing = Lock()


def _sealed(db: sqlite3.Connection, stamp: bytes) -> Measures:
    with _sharing:
        found = _shared.get(stamp)
    return found or _share(stamp, _read(db))


def _share(stamp: bytes, made: Measures) -> Measures:
    with _sharing:
        while len(_shared) >= KEPT:
            del _shared[next(iter(_shared))]
        _shared[stamp] = made
    return made


def _read(db: sqlite3.Connection) -> Measures:
    made = Measures()
    for kind, block, homes, lengths in db.execute(
        "SELECT kind, block, homes, lengths FROM records_fts_blocks ORDER BY kind, block"
    ):
        for columns, blob in ((made.homes, homes), (made.lengths, lengths)):
            column = columns[kind]
            gap = block * BLOCK - len(column)
            if gap:
                column.frombytes(bytes(4 * gap))
            column.extend(_array("I", blob))
    counts, totals = db.execute("SELECT counts, totals FROM records_fts_seal").fetchone()
    made.counts, made.totals = _array("q", counts), _array("q", totals)
    return made


def _array(code: str, blob: bytes) -> array[int]:
    """A blob as numbers; blobs are little-endian, so that a file may travel."""
    numbers = array(code, blob)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _blob(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def seal_if_long(db: sqlite3.Connection) -> None:
    """Seal when the list of changes has grown long. For connections inside a transaction that writes."""
    last = db.execute("SELECT max(seq) FROM records_fts_changed").fetchone()[0]
    if last is not None and last >= LONG:
        seal(db)


def seal(db: sqlite3.Connection) -> None:
    """Bring the blobs up to date: only blocks with a changed record are written."""
    made = _patched(db)
    touched = db.execute(
        "SELECT DISTINCT record_id & 7, (record_id >> 3) / ? FROM records_fts_changed WHERE record_id >= ? AND record_id < ?",
        (BLOCK, DENSE.start * 8, DENSE.stop * 8),
    ).fetchall()
    db.executemany(
        "INSERT OR REPLACE INTO records_fts_blocks (kind, block, homes, lengths) VALUES (?, ?, ?, ?)",
        (
            (
                kind,
                block,
                *(_blob(column[block * BLOCK : (block + 1) * BLOCK]) for column in (made.homes[kind], made.lengths[kind])),
            )
            for kind, block in touched
        ),
    )
    db.execute("DELETE FROM records_fts_changed")
    db.execute("DELETE FROM records_fts_seal")
    stamp = os.urandom(16)
    db.execute("INSERT INTO records_fts_seal VALUES (?, ?, ?)", (stamp, _blob(made.counts), _blob(made.totals)))
    # Should this transaction be rolled back, nobody will ever ask for the stamp.
    _share(stamp, made)
