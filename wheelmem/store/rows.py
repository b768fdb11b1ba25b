"""The shape of the five tables, and how a record's JSON becomes a row and a row the same JSON again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from ..contract import WheelmemError

__all__ = ["KINDS", "TABLES", "BadRecord", "Table", "from_row", "to_row"]

# A context is text, or the JSON object that older records have in its place.
TEXT, CONTEXT, LIST, OBJECT, NUMBER, FLAG = "text", "context", "list", "object", "number", "flag"
SQLITE_INTEGERS = range(-(2**63), 2**63)


class BadRecord(WheelmemError, ValueError):
    """A record that cannot be kept as it is: it is no object, or what tells it apart is missing."""


@dataclass(frozen=True)
class Table:
    """One table: the kind of its records, the file that holds them in a JSONL folder, its key, its columns by type."""

    name: str
    kind: str
    file: str
    key: tuple[str, ...]
    columns: dict[str, str]

    @cached_property
    def places(self) -> dict[str, tuple[int, str]]:
        """For each column its place in a row and its type."""
        return {name: (place, kind) for place, (name, kind) in enumerate(self.columns.items())}

    def keys(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """What tells a record apart; raises BadRecord when it is missing, blank or no text."""
        values = tuple(record.get(name) for name in self.key)
        for name, value in zip(self.key, values, strict=True):
            if not isinstance(value, str) or not value.strip():
                raise BadRecord(f"a {self.kind} needs {name}, as text")
            if "\x00" in value or not _encodable(value):
                raise BadRecord(f"{name} of this {self.kind} holds a character that no id can hold")
        return values  # type: ignore[return-value]


def _columns(text: str) -> dict[str, str]:
    pairs = (word.partition(":") for word in text.split())
    return {name: kind or TEXT for name, _, kind in pairs}


TABLES = {
    table.name: table
    for table in (
        Table(
            "nodes",
            "node",
            "nodes.jsonl",
            ("id",),
            _columns("id type name description direction metadata:object created_at updated_at"),
        ),
        Table(
            "edges",
            "edge",
            "edges.jsonl",
            ("from_id", "to_id", "relationship_type"),
            _columns(
                "from_id to_id relationship_type strength:number ceremony_honored:flag obligations:list ceremony_id created_at"
            ),
        ),
        Table(
            "ceremonies",
            "ceremony",
            "ceremonies.jsonl",
            ("id",),
            _columns(
                "id type direction participants:list medicines_used:list intentions:list timestamp research_context:context "
                "relations_honored:list circle_id closes subject_id episode_path"
            ),
        ),
        Table(
            "beats",
            "beat",
            "beats.jsonl",
            ("id",),
            _columns(
                "id direction title description prose ceremonies:list learnings:list timestamp act:number "
                "relations_honored:list speaker witnesses:list cycle_id"
            ),
        ),
        Table(
            "diary",
            "diary",
            "diary-entries.jsonl",
            ("id",),
            _columns("id timestamp participant phase entryType content metadata:object chronicle"),
        ),
    )
}
KINDS = {table.kind: table for table in TABLES.values()}


def dumps(value: Any) -> str:
    """Compact JSON, readable where it can be; a lone surrogate stays escaped, since no text column can hold it."""
    text = _WRITE(value)
    return text if _encodable(text) else json.dumps(value, separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Any:
    """What strict JSON says: raises ValueError for NaN, infinities and numbers beyond what a float can hold."""
    return _DECODER.decode(text)


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is no number that JSON can write again")
    return value


_DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)
_WRITE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean(text: str) -> str:
    """``text`` as a column can hold it: each lone surrogate becomes U+FFFD."""
    return text if _encodable(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_NOTHING = object()


def _column(kind: str, value: Any) -> Any:
    """What the column holds of a value; ``_NOTHING`` when no column can hold it.

    Triggers read what is inside lists and objects, so there as well a lone surrogate becomes U+FFFD.
    """
    if kind == TEXT:
        return clean(value) if isinstance(value, str) else _NOTHING
    if kind == CONTEXT:
        return clean(value if isinstance(value, str) else _WRITE(value)) if isinstance(value, dict | str) else _NOTHING
    if kind == LIST:
        return "[]" if value == [] else clean(_WRITE(value)) if isinstance(value, list | str) else _NOTHING
    if kind == OBJECT:
        return "{}" if value == {} else clean(_WRITE(value)) if isinstance(value, dict) else _NOTHING
    if isinstance(value, bool):
        return int(value) if kind == FLAG else _NOTHING
    if kind == FLAG:
        return _NOTHING
    fits = isfinite(value) if isinstance(value, float) else isinstance(value, int) and value in SQLITE_INTEGERS
    return value if fits else _NOTHING


def to_row(table: Table, record: Any) -> tuple[Any, ...]:
    """The values of the table's columns, then ``extra``: whatever no column can give back just as it came."""
    if not isinstance(record, dict | Mapping):
        raise BadRecord(f"a {table.kind} must be a JSON object, not {type(record).__name__}")
    table.keys(record)
    places = table.places
    values: list[Any] = [None] * (len(places) + 1)
    extra: dict[str, Any] = {}
    try:
        for name, value in record.items():
            place = places.get(name)
            if place is None:
                extra[name] = value
                continue
            index, kind = place
            if kind == TEXT and isinstance(value, str) and value.isascii():
                values[index] = value
                continue
            column = _column(kind, value)
            if column is not _NOTHING:
                values[index] = column
            changed = isinstance(column, str) and (kind == CONTEXT or "\ufffd" in column) and _column_value(kind, column) != value
            if column is _NOTHING or changed:
                extra[name] = value
        if extra:
            # In one order, however the record had them, so that it is told to be the same when it comes again.
            values[-1] = dumps({name: extra[name] for name in (*places, *extra) if name in extra} if len(extra) > 1 else extra)
    except (TypeError, ValueError, RecursionError):
        raise BadRecord(f"this {table.kind} holds something that JSON cannot write, or is nested too deep") from None
    return tuple(values)


def from_row(table: Table, row: Any) -> dict[str, Any]:
    """A record from a row (a mapping of columns), with its fields in the order of the columns, then the unlisted ones."""
    extra = _read(row["extra"])
    if not isinstance(extra, dict):
        extra = {}
    record: dict[str, Any] = {}
    for name, kind in table.columns.items():
        value = row[name]
        if name in extra:
            kept = extra.pop(name)
            # A column that somebody has set since holds; else what came in, which no column could hold.
            if value is None or _column(kind, kept) == value:
                record[name] = kept
                continue
        if value is not None:
            record[name] = _column_value(kind, value)
    return {**record, **extra}


def _read(column: Any) -> Any:
    """A JSON column's value, None for what is no JSON: any SQLite tool may have written it."""
    try:
        return loads(column) if isinstance(column, str) else None
    except (ValueError, RecursionError):
        return None


def _column_value(kind: str, value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if kind == LIST and isinstance(value, str):
        # A text that is no list stands for itself, as the triggers read it.
        read = _read(value)
        return read if isinstance(read, list | str) or value == "null" else value
    if kind == OBJECT and isinstance(value, str):
        read = _read(value)
        return value if read is None and value != "null" else read
    if kind == FLAG and value in (0, 1):
        return bool(value)
    return value
