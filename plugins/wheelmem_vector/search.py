"""Exact search over the vectors of a reach: what lies in memory, and the product with a question's vector.

Which records are near is told by one product in single precision. How near exactly is told in whole numbers, which no order
of summing changes: a stored vector is whole numbers up to 32,767, a question's is rounded to whole 2⁻³²nds, and all their
partial sums are below 2⁵³. So a score is the same, to the last bit, whatever other rows lie in memory and whoever adds up.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from wheelmem.hookspecs import ArmReach

from .schema import BLOCK_BITS, BLOCKS
from .store import FULL, blocks_of, held_model, members, stale

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DIGITS", "Held", "held"]

# The documented digit: scores are rounded to it.
DIGITS = 6
_FINE = 2.0**32
# What is in memory, by what it is made of, for all connections of the process; a search in the same reach finds it again.
KEPT = 2


class Held:
    """The vectors of a reach: ``ids`` are record ids, and each has a row of whole numbers.

    The rows are read by the first product, which converts them on the way in pieces that fit the processor's cache; whoever
    asks again is worth a matrix in single precision.
    """

    def __init__(self, ids: NDArray[np.int64], blocks: Sequence[tuple[int, NDArray[np.bool_]]], dimension: int) -> None:
        self.ids = ids
        self.dimension = dimension
        self._blocks = blocks
        self._rows: NDArray[np.int16] | None = None
        self._matrix: NDArray[np.float32] | None = None
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def slack(self) -> float:
        """What ``near`` is off at the most, for vectors of length one, and what rounding to the digit adds."""
        return self.dimension * 2.0**-23 + 10.0**-DIGITS

    def near(self, db: sqlite3.Connection, asked: NDArray[np.float64]) -> NDArray[np.float32]:
        """Each row's cosine with a vector of length one, in single precision. ``db`` is a snapshot that has these vectors."""
        question = (asked / FULL).astype(np.float32)
        with self._lock:
            if self._rows is None:
                return self._read(db, question)
            if self._matrix is None:
                self._matrix = self._rows.astype(np.float32)
        return self._matrix @ question

    def _read(self, db: sqlite3.Connection, question: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = np.empty((len(self), self.dimension), dtype=np.int16)
        found = np.empty(len(self), dtype=np.float32)
        buffer = np.empty((1 << BLOCK_BITS, self.dimension), dtype=np.float32)
        start = 0
        (pages,) = db.execute("PRAGMA cache_size").fetchone()
        try:
            # Every page is read once: keeping them for a second time is half the work.
            db.execute("PRAGMA cache_size = 0")
            for block, chosen in self._blocks:
                (blob,) = db.execute(f"SELECT numbers FROM {BLOCKS} WHERE block = ?", (block,)).fetchone()
                whole = np.frombuffer(blob, dtype="<i2").reshape(-1, self.dimension)
                part = whole if chosen.all() else whole[chosen]
                end = start + len(part)
                rows[start:end] = part
                converted = buffer[: len(part)]
                converted[...] = part
                np.dot(converted, question, out=found[start:end])
                start = end
        finally:
            db.execute(f"PRAGMA cache_size = {pages}")
        self._rows = rows
        return found

    def scores(self, places: NDArray[np.int64], asked: NDArray[np.float64]) -> list[float]:
        """The cosines of some rows, to the documented digit. Only after ``near``."""
        assert self._rows is not None
        exact = self._rows[places].astype(np.float64) @ np.rint(asked * _FINE)
        return [round(one, DIGITS) for one in (exact / (FULL * _FINE)).tolist()]


_kept: OrderedDict[bytes, Held] = OrderedDict()
_keeping = Lock()


def held(db: sqlite3.Connection, reach: ArmReach) -> tuple[Held, NDArray[np.bool_]]:
    """The vectors of a reach in this snapshot, and which of them are of the text as it is."""
    cache: dict[Any, Any] = getattr(db, "cache", {})
    key = ("vector.held", tuple(reach.places), reach.conclusions)
    if key not in cache:
        for old in [old for old in cache if isinstance(old, tuple) and old[0] == "vector.held"]:
            del cache[old]
        found = _find(db, reach)
        old_ids = stale(db, found.ids)
        cache[key] = found, ~np.isin(found.ids, old_ids) if len(old_ids) else np.ones(len(found), dtype=bool)
    made: tuple[Held, NDArray[np.bool_]] = cache[key]
    return made


def numbers(array: str | None) -> NDArray[np.int64]:
    """A JSON array of whole numbers. A hundred thousand are read faster as one text than as rows."""
    inner = (array or "[]")[1:-1]
    return np.fromstring(inner, dtype=np.int64, sep=",") if inner else np.empty(0, dtype=np.int64)


def _inside(db: sqlite3.Connection, reach: ArmReach) -> NDArray[np.int64]:
    """The ids of the records in reach, rising."""
    places = json.dumps(list(reach.places))
    found = [np.asarray(sorted(reach.conclusions), dtype=np.int64)]
    for table, column in (("records", "home"), ("also_in", "place")):
        sql = f"SELECT json_group_array(record_id) FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
        found.append(numbers(db.execute(sql, (places,)).fetchone()[0]))
    return _rising(np.concatenate(found))


def _rising(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, sorted; ``numpy.unique`` would hash, which takes longer than all the rest of a search."""
    made = np.sort(array)
    return made[np.concatenate(([True], made[1:] != made[:-1]))] if len(made) else made


def _find(db: sqlite3.Connection, reach: ArmReach) -> Held:
    """From the process's own, when every block it is made of is as it was, else new."""
    inside = _inside(db, reach)
    wanted = json.dumps(_rising(blocks_of(inside)).tolist())
    rows = db.execute(
        f"SELECT block, stamp, ids FROM {BLOCKS} WHERE block IN (SELECT value FROM json_each(?)) ORDER BY block", (wanted,)
    ).fetchall()
    ids = members([(block, ids) for block, _, ids in rows])
    chosen = np.isin(ids, inside)
    made_of = blake2b(b"".join(stamp for _, stamp, _ in rows), digest_size=16)
    made_of.update(chosen.tobytes())
    name = made_of.digest()
    with _keeping:
        if name in _kept:
            _kept.move_to_end(name)
            return _kept[name]
    model = held_model(db)
    dimension = model[1] if model else 0
    blocks = []
    start = 0
    for block, _, of_block in rows:
        mine = chosen[start : start + len(of_block)]
        start += len(of_block)
        if mine.any():
            blocks.append((block, mine))
    found = Held(ids[chosen], blocks, dimension)
    with _keeping:
        _kept[name] = found
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found
