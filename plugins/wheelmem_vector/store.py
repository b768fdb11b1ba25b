"""Reading and writing blocks of vectors."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from wheelmem.contract import WheelmemError
from wheelmem.text import PERSON_ID

from .schema import BLOCK_BITS, BLOCKS, CHANGED, MODEL, block_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wheelmem.hookspecs import Embedder

__all__ = [
    "FULL",
    "Missing",
    "blocks_of",
    "hash_of",
    "held_model",
    "ids_of",
    "keep",
    "members",
    "missing",
    "packed",
    "stale",
    "text_of",
    "unit",
    "vectors_of",
]

HASH = 8
# What a vector's number 1.0 is stored as, in sixteen bits.
FULL = 32_767
_BLANK = re.compile(r"\s+")


def text_of(text: str) -> str:
    """What of a record's text is embedded: all but the ids of people, which mean nothing to a model."""
    return _BLANK.sub(" ", PERSON_ID.sub(" ", text)).strip()


def hash_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH).digest()


def unit(vectors: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Vectors as rows of length one; what is no number, and zeros, as zeros."""
    import numpy as np

    rows = np.nan_to_num(np.asarray(vectors, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    made: NDArray[np.float64] = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return made


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float64]:
    """One vector of length one a text; raises WheelmemError when the embedder gives anything else."""
    import numpy as np

    given = embedder.embed([text_of(text) for text in texts])
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise WheelmemError(f"embedder {embedder.name} gave no rows of numbers of one length") from None
    if rows.ndim != 2 or len(rows) != len(texts):
        raise WheelmemError(f"embedder {embedder.name} gave an array of shape {rows.shape} for {len(texts)} text(s)")
    return unit(rows)


def packed(vector: NDArray[np.float64]) -> bytes:
    """A vector of length one as it is stored: a number in sixteen bits, in steps of 1/32,767.

    As small as half precision, twice as exact for numbers such as vectors hold, and read three times as fast.
    """
    import numpy as np

    return np.rint(np.clip(vector, -1.0, 1.0) * FULL).astype("<i2").tobytes()


def held_model(db: sqlite3.Connection) -> tuple[str, int] | None:
    """The model that made this wheel's vectors, and their dimension; None when there are none."""
    row: tuple[str, int] | None = db.execute(f"SELECT id, dimension FROM {MODEL}").fetchone()
    return row


def ids_of(block: int, ids: bytes) -> list[int]:
    """The record ids of a block's vectors, from the bytes that tell their last bits."""
    base, kind = block >> 3 << (BLOCK_BITS + 3), block & 7
    return [base | offset << 3 | kind for offset in ids]


def members(blocks: Sequence[tuple[int, bytes]]) -> NDArray[np.int64]:
    """The record ids of the vectors of several blocks, in their order: ``ids_of`` for a hundred thousand at once."""
    import numpy as np

    bases = np.asarray([block >> 3 << (BLOCK_BITS + 3) | block & 7 for block, _ in blocks], dtype=np.int64)
    offsets = np.frombuffer(b"".join(ids for _, ids in blocks), dtype=np.uint8).astype(np.int64)
    found: NDArray[np.int64] = np.repeat(bases, [len(ids) for _, ids in blocks]) | offsets << 3
    return found


def blocks_of(record_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """``block_of`` for an array of record ids."""
    found: NDArray[np.int64] = record_ids >> (BLOCK_BITS + 3) << 3 | record_ids & 7
    return found


@dataclass(frozen=True)
class Missing:
    """Records of one block that lack a vector of their text as it is."""

    block: int
    records: tuple[int, ...]


def missing(db: sqlite3.Connection, model: str, dimension: int) -> tuple[list[Missing], int]:
    """What is to be embedded, block by block, and how many records that is.

    A block without records to embed holds vectors of records that are gone, or marks of changes that left the text as it was.
    """
    import numpy as np

    held: dict[int, frozenset[int]] = {}
    wanted: dict[int, list[int]] = {}
    if held_model(db) == (model, dimension):
        changed = [id for (id,) in db.execute(f"SELECT record_id FROM {CHANGED}")]
        old = frozenset(stale(db, np.asarray(changed, dtype=np.int64)).tolist())
        for block, ids in db.execute(f"SELECT block, ids FROM {BLOCKS}"):
            held[block] = frozenset(ids_of(block, ids)) - old
        wanted = {block_of(id): [] for id in changed}
    for (record_id,) in db.execute("SELECT record_id FROM records ORDER BY record_id"):
        block = block_of(record_id)
        if record_id not in held.get(block, ()):
            wanted.setdefault(block, []).append(record_id)
    return [Missing(block, tuple(ids)) for block, ids in sorted(wanted.items())], sum(map(len, wanted.values()))


def keep(
    db: sqlite3.Connection, model: str, dimension: int, block: int, embedded: Mapping[int, tuple[bytes, Any]], first: bool
) -> int:
    """Write vectors into their block, in a transaction of the caller's; returns how many stand.

    ``embedded`` has for each record the hash of the text and the vector of length one. What was changed meanwhile is not kept.
    ``first`` says that vectors of another model may be thrown away; later they are somebody else's.
    """
    current = held_model(db)
    if current != (model, dimension):
        if current is not None and not first:
            raise WheelmemError(f"another run embeds this wheel with {current[0]}; run wheelmem embed again when it has ended")
        for table in (BLOCKS, CHANGED, MODEL):
            db.execute(f"DELETE FROM {table}")
        db.execute(f"INSERT INTO {MODEL} (id, dimension) VALUES (?, ?)", (model, dimension))
    before: dict[int, tuple[bytes, bytes]] = {}
    row = db.execute(f"SELECT ids, hashes, numbers FROM {BLOCKS} WHERE block = ?", (block,)).fetchone()
    if row is not None:
        width = 2 * dimension
        for at, id in enumerate(ids_of(block, row[0])):
            before[id] = (row[1][HASH * at : HASH * (at + 1)], row[2][width * at : width * (at + 1)])
    rows = dict(before)
    base, kind = block >> 3 << (BLOCK_BITS + 3), block & 7
    every = [base | offset << 3 | kind for offset in range(1 << BLOCK_BITS)]
    now = {
        id: hash_of(text_of(text))
        for id, text in db.execute(
            "SELECT record_id, text FROM records WHERE record_id BETWEEN ? AND ? AND record_id & 7 = ?",
            (every[0], every[-1], kind),
        )
    }
    for id, (hashed, vector) in embedded.items():
        if now.get(id) == hashed:
            rows[id] = (hashed, packed(vector))
    made = {id: rows[id] for id in sorted(rows) if now.get(id) == rows[id][0]}
    db.execute(f"DELETE FROM {CHANGED} WHERE record_id BETWEEN ? AND ? AND record_id & 7 = ?", (every[0], every[-1], kind))
    # A block that stays as it is keeps its stamp, and with it its place in the memory of whoever searches.
    if not made:
        db.execute(f"DELETE FROM {BLOCKS} WHERE block = ?", (block,))
    elif made != before:
        ids = bytes(id >> 3 & (1 << BLOCK_BITS) - 1 for id in made)
        hashes, numbers = (b"".join(parts) for parts in zip(*made.values(), strict=True))
        db.execute(
            f"INSERT OR REPLACE INTO {BLOCKS} (block, stamp, ids, hashes, numbers) VALUES (?, randomblob(8), ?, ?, ?)",
            (block, ids, hashes, numbers),
        )
    return sum(id in made for id in embedded)


def stale(db: sqlite3.Connection, record_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of some records with a vector, rising, whose text is no longer the one it came from."""
    import numpy as np

    changed = np.asarray([id for (id,) in db.execute(f"SELECT record_id FROM {CHANGED} ORDER BY record_id")], dtype=np.int64)
    # (Looking for nothing among many costs numpy as much as looking for many.)
    marked = changed[np.isin(changed, record_ids)] if len(changed) else changed
    if not len(marked):
        return marked
    held: dict[int, bytes] = {}
    rows = db.execute(
        f"SELECT block, ids, hashes FROM {BLOCKS} WHERE block IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(set(blocks_of(marked).tolist()))),),
    )
    for block, ids, hashes in rows:
        held |= {id: hashes[HASH * at : HASH * (at + 1)] for at, id in enumerate(ids_of(block, ids))}
    texts = db.execute(
        "SELECT record_id, text FROM records WHERE record_id IN (SELECT value FROM json_each(?))", (json.dumps(marked.tolist()),)
    )
    good = [id for id, text in texts if held.get(id) == hash_of(text_of(text))]
    return marked[~np.isin(marked, np.asarray(good, dtype=np.int64))]
