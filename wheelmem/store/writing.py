"""Putting records in and taking them out. Every function works on a connection inside a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..contract import NotHeldError
from .rows import KINDS, Table, from_row, to_row

__all__ = ["delete", "each", "get", "put", "select"]


def _row(cursor: sqlite3.Cursor, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((column[0] for column in cursor.description), values, strict=True))


def _where(table: Table) -> str:
    return " AND ".join(f"{name} = ?" for name in table.key)


def get(db: sqlite3.Connection, kind: str, *key: str) -> dict[str, Any] | None:
    """A record by kind and id (an edge by from_id, to_id and relationship_type), or None."""
    table = KINDS[kind]
    try:
        cursor = db.execute(f"SELECT * FROM {table.name} WHERE {_where(table)}", key)
    except UnicodeEncodeError:
        return None
    values = cursor.fetchone()
    return None if values is None else from_row(table, _row(cursor, values))


def select(
    db: sqlite3.Connection,
    kind: str,
    where: str = "1",
    parameters: Sequence[Any] = (),
    order: str = "position",
    limit: int = -1,
    offset: int = 0,
) -> list[dict[str, Any]]:
    """Records of a kind; ``where`` and ``order`` are SQL over its columns, never a caller's words."""
    table = KINDS[kind]
    cursor = db.execute(f"SELECT * FROM {table.name} WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?", (*parameters, limit, offset))
    return [from_row(table, _row(cursor, values)) for values in cursor]


def each(db: sqlite3.Connection, kind: str) -> Iterator[dict[str, Any]]:
    """Every record of a kind, in the wheel's order, one after the other."""
    table = KINDS[kind]
    cursor = db.execute(f"SELECT * FROM {table.name} ORDER BY position")
    return (from_row(table, _row(cursor, values)) for values in cursor)


def put(db: sqlite3.Connection, kind: str, record: Mapping[str, Any]) -> str:
    """Store a record: ``added``, ``changed`` (a record of that id keeps its place and takes the new value), or ``same``."""
    table = KINDS[kind]
    row = to_row(table, record)
    columns = [*table.columns, "extra"]
    quoted = ", ".join(f'"{name}"' for name in columns)
    current = db.execute(f"SELECT {quoted} FROM {table.name} WHERE {_where(table)}", table.keys(record)).fetchone()
    if current is None:
        db.execute(f"INSERT INTO {table.name} ({quoted}) VALUES ({', '.join('?' * len(columns))})", row)
        return "added"
    if tuple(current) == row:
        return "same"
    settings = ", ".join(f'"{name}" = ?' for name in columns)
    db.execute(f"UPDATE {table.name} SET {settings} WHERE {_where(table)}", (*row, *table.keys(record)))
    return "changed"


def delete(db: sqlite3.Connection, kind: str, *key: str) -> None:
    """Take a record out; raises NotHeldError when there is none."""
    table = KINDS[kind]
    if db.execute(f"DELETE FROM {table.name} WHERE {_where(table)}", key).rowcount == 0:
        raise NotHeldError(f"the wheel holds no {kind} {' '.join(key)}")
