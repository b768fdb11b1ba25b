"""Where vectors lie in the wheel's file, and what marks them stale.

A block holds the vectors of up to 256 neighbouring positions of one kind, each number in sixteen bits: which block a record
belongs to follows from its key, so that no record can have two vectors. Each vector has the hash of the text it came from.
"""

from __future__ import annotations

import sqlite3

__all__ = ["BLOCKS", "BLOCK_BITS", "CHANGED", "MODEL", "block_of", "prepare"]

BLOCKS, CHANGED, MODEL = "vector_blocks", "vector_changed", "vector_model"
BLOCK_BITS = 8
_KIND_BITS = 3


def block_of(record_id: int) -> int:
    """The block a record belongs to: its kind, and its position without the last bits."""
    return (record_id >> (BLOCK_BITS + _KIND_BITS) << _KIND_BITS) | (record_id & 7)


def _mark(row: str) -> str:
    # No conflict clause: a statement's own would hold in its triggers too. Where there are no vectors none can be stale.
    # SQL's shifts, "and" and "or" all bind alike.
    block = f"(({row}.record_id >> {BLOCK_BITS + _KIND_BITS} << {_KIND_BITS}) | ({row}.record_id & 7))"
    return (
        f"INSERT INTO {CHANGED} (record_id) SELECT {row}.record_id WHERE EXISTS (SELECT 1 FROM {BLOCKS} WHERE block = {block}) "
        f"AND NOT EXISTS (SELECT 1 FROM {CHANGED} WHERE record_id = {row}.record_id)"
    )


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables and triggers where there are none."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (BLOCKS,)).fetchone():
        return
    # ``ids`` has a byte a vector (the last bits of its position, rising), ``hashes`` eight, ``numbers`` two a dimension.
    db.execute(
        f"CREATE TABLE {BLOCKS} (block INTEGER PRIMARY KEY, stamp BLOB NOT NULL, ids BLOB NOT NULL, hashes BLOB NOT NULL, "
        "numbers BLOB NOT NULL)"
    )
    db.execute(f"CREATE TABLE {MODEL} (id TEXT NOT NULL, dimension INTEGER NOT NULL)")
    # Records whose text may no longer be the one their vector came from.
    db.execute(f"CREATE TABLE {CHANGED} (record_id INTEGER PRIMARY KEY)")
    for event, rows in (("INSERT", ["NEW"]), ("DELETE", ["OLD"]), ("UPDATE OF record_id, text", ["OLD", "NEW"])):
        name = f"{BLOCKS}_{event.split()[0].lower()}"
        db.execute(f"CREATE TRIGGER {name} AFTER {event} ON records BEGIN {'; '.join(map(_mark, rows))}; END")
