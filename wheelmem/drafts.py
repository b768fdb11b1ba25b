"""What somebody asks the wheel to keep, made into a record: checked, named and dated. For the doors that create records.

A store that is imported is kept as it is, whatever it holds; here, unknown values are refused with the list of what is
allowed. Fields that nobody listed are kept as they come.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from .contract import ContractError, NotHeldError
from .reach import episode_of
from .store.rows import KINDS, BadRecord, to_row
from .store.writing import get

__all__ = [
    "CEREMONY_TYPES",
    "DIRECTIONS",
    "ENTRY_TYPES",
    "EPISODE_PATH",
    "NODE_TYPES",
    "PHASES",
    "draft",
    "draft_warnings",
]

DIRECTIONS = ("east", "south", "west", "north")
NODE_TYPES = ("human", "agent", "circle", "land", "spirit", "ancestor", "future", "knowledge")
CEREMONY_TYPES = ("smudging", "talking_circle", "spirit_feeding", "opening", "closing")
PHASES = ("miigwechiwendam", "nindokendaan", "ningwaab", "nindoodam", "migwech")
ENTRY_TYPES = ("intention", "observation", "hypothesis", "data", "synthesis", "action", "reflection", "learning")
EPISODE_PATH = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])-episode-\d+-[^\W_]+([-_][^\W_]+)*")

_ALLOWED: dict[str, dict[str, tuple[str, ...]]] = {
    "node": {"type": NODE_TYPES, "direction": DIRECTIONS},
    "ceremony": {"type": CEREMONY_TYPES, "direction": DIRECTIONS},
    "beat": {"direction": DIRECTIONS},
    "diary": {"phase": PHASES, "entryType": ENTRY_TYPES},
    "edge": {},
}
_NEEDED = {
    "node": ("type", "name"),
    "edge": ("from_id", "to_id", "relationship_type"),
    "ceremony": ("type",),
    "beat": ("direction", "title"),
    "diary": ("participant", "content"),
}
# The lists that a reader of such a record counts on.
_LISTS = {
    "edge": ("obligations",),
    "ceremony": ("participants", "medicines_used", "intentions"),
    "beat": ("ceremonies", "learnings", "relations_honored"),
}
_STAMPS = {
    "node": ("created_at", "updated_at"),
    "edge": ("created_at",),
    "ceremony": ("timestamp",),
    "beat": ("timestamp",),
    "diary": ("timestamp",),
}
# What both Python and SQLite read as a date.
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_SUFFIX = "0123456789abcdefghijklmnopqrstuvwxyz"


def draft(kind: str, given: Any, db: sqlite3.Connection) -> dict[str, Any]:
    """The record to store for what was ``given`` (a JSON object) as a ``kind``: node, edge, ceremony, beat or diary.

    ``db`` is a connection to the wheel, inside the transaction that will store the record. An id is minted and a time
    stamped when absent; given ones are kept. Null fields count as absent. Raises ContractError for what does not fit,
    NotHeldError when something that must be held is not: an edge's two nodes, the ceremony that is closed, a ceremony's
    circle, the ceremony of a diary entry. A beat may name ceremonies that are still to come; see ``draft_warnings``.
    """
    if kind not in KINDS:
        raise ContractError(f"no kind of record is called {kind!r}; there are {_either(KINDS)}")
    if not isinstance(given, Mapping):
        raise ContractError(f"a {kind} must be a JSON object, not {_named(given)}")
    record = {name: value for name, value in given.items() if value is not None}
    _check_needed(kind, record)
    _check_types(kind, record)
    for name, allowed in _ALLOWED[kind].items():
        if name in record and record[name] not in allowed:
            raise ContractError(f"{name} of a {kind} cannot be {record[name]!r}; it is one of {_either(allowed)}")
    {"edge": _edge, "ceremony": _ceremony, "beat": _beat, "diary": _diary, "node": _node}[kind](record, db)
    now = time.time_ns() // 1_000_000
    for name in _LISTS.get(kind, ()):
        record.setdefault(name, [])
    for name in _STAMPS[kind]:
        record.setdefault(name, _iso(now))
    if kind != "edge":
        record.setdefault("id", _mint(kind, record, now, db))
        record = {"id": record["id"], **record}
    try:
        to_row(KINDS[kind], record)
    except BadRecord as error:
        raise ContractError(str(error)) from None
    return record


def draft_warnings(kind: str, record: Mapping[str, Any], db: sqlite3.Connection) -> list[str]:
    """What a keeper should know of a record that is kept all the same, each in one line."""
    if kind != "beat":
        return []
    found = []
    if not record["ceremonies"]:
        found.append("names no ceremony, so no scope reaches it")
    found += [
        f"the wheel does not hold {id} yet; the beat is reached with it once it does"
        for id in record["ceremonies"]
        if get(db, "ceremony", id) is None
    ]
    if not record.get("description") and not record.get("prose"):
        found.append("says nothing beyond its title")
    people = [record.get("speaker"), *record.get("witnesses", ())]
    found += [
        f"the wheel does not know {id}, whom it names"
        for id in dict.fromkeys(people)
        if id and id.startswith("node:") and get(db, "node", id) is None
    ]
    act = DIRECTIONS.index(record["direction"]) + 1
    if record["act"] != act:
        found.append(f"{record['direction']} is act {act}, not {record['act']}")
    return found


# --- the rules of all kinds ----------------------------------------------------------------------------------------


def _check_needed(kind: str, record: Mapping[str, Any]) -> None:
    for name in _NEEDED[kind]:
        value = record.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            allowed = _ALLOWED[kind].get(name)
            raise ContractError(f"a {kind} needs {name}" + (f", one of {_either(allowed)}" if allowed else ""))


def _check_types(kind: str, record: dict[str, Any]) -> None:
    if kind == "ceremony" and isinstance(record.get("research_context"), Mapping):
        import json

        record["research_context"] = json.dumps(record["research_context"], ensure_ascii=False)
    for name, type in KINDS[kind].columns.items():
        value = record.get(name)
        if value is None:
            continue
        if type == "list":
            items = [value] if isinstance(value, str) else value
            if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
                raise ContractError(f"{name} of a {kind} must be a list of strings")
            record[name] = items
        elif type == "text" and not isinstance(value, str):
            raise ContractError(f"{name} of a {kind} must be a string, not {_named(value)}")
        elif type == "object" and not isinstance(value, Mapping):
            raise ContractError(f"{name} of a {kind} must be an object, not {_named(value)}")
        elif type == "flag" and not isinstance(value, bool):
            raise ContractError(f"{name} of a {kind} must be true or false, not {_named(value)}")
        elif type == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ContractError(f"{name} of a {kind} must be a number, not {_named(value)}")
    for name in _STAMPS[kind]:
        if name in record and not _is_time(record[name]):
            raise ContractError(f"{name} of a {kind} cannot be {record[name]!r}; write it as 2026-03-08T18:00:00Z")


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _mint(kind: str, record: Mapping[str, Any], now: int, db: sqlite3.Connection) -> str:
    """An id in the wheel's shapes that nothing holds. A beat's has no suffix, so it takes the next free millisecond."""
    if kind == "beat":
        while get(db, kind, f"beat:{record['direction']}:{now}") is not None:
            now += 1
        return f"beat:{record['direction']}:{now}"
    from secrets import choice

    stem = {"ceremony": "ceremony", "diary": "diary"}.get(kind) or f"node:{record['type']}"
    if stem == "node:circle":
        stem = "circle"
    while True:
        id = f"{stem}:{now}:{''.join(choice(_SUFFIX) for _ in range(6))}"
        if get(db, kind, id) is None:
            return id


def _either(names: Iterable[str]) -> str:
    return ", ".join(names)


def _named(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


# --- the rules of each kind ----------------------------------------------------------------------------------------


def _node(record: dict[str, Any], db: sqlite3.Connection) -> None:
    record.setdefault("metadata", {})


def _edge(record: dict[str, Any], db: sqlite3.Connection) -> None:
    if record["from_id"] == record["to_id"]:
        raise ContractError(f"an edge joins two; from_id and to_id are both {record['from_id']}")
    strength = record.setdefault("strength", 0.5)
    if not 0 <= strength <= 1:
        raise ContractError(f"strength of an edge must be from 0 to 1, not {strength}")
    for name in ("from_id", "to_id"):
        if get(db, "node", record[name]) is None:
            raise NotHeldError(f"the wheel holds no node {record[name]} ({name} of the edge)")
    record.setdefault("ceremony_honored", False)


def _ceremony(record: dict[str, Any], db: sqlite3.Connection) -> None:
    episode = episode_of(record)
    if episode is not None:
        if not EPISODE_PATH.fullmatch(episode):
            raise ContractError(f"episode_path cannot be {episode!r}; write it as YYYY-MM-DD-episode-NNN-slug")
        record["episode_path"] = episode
    closed = record.get("closes")
    if closed is None and record["type"] == "closing":
        # Closings used to name what they close as their whole context.
        context = record.get("research_context", "").strip()
        closed = context if context.startswith("ceremony:") and not re.search(r"\s", context) else None
    if closed is not None:
        if closed == record.get("id"):
            raise ContractError(f"a ceremony cannot close itself ({closed})")
        if get(db, "ceremony", closed) is None:
            raise NotHeldError(f"the wheel holds no ceremony {closed}, which this one would close")
    circle = record.get("circle_id")
    if circle is not None and (get(db, "node", circle) or {}).get("type") != "circle":
        raise NotHeldError(f"the wheel holds no circle {circle} (circle_id of the ceremony)")


def _beat(record: dict[str, Any], db: sqlite3.Connection) -> None:
    act = record.setdefault("act", DIRECTIONS.index(record["direction"]) + 1)
    if isinstance(act, float) and not act.is_integer():
        raise ContractError("act of a beat must be a whole number")


def _diary(record: dict[str, Any], db: sqlite3.Connection) -> None:
    metadata = dict(record.get("metadata", {}))
    # Named beside the metadata it would be kept and never found.
    beside = record.pop("ceremony_id", None)
    if beside is not None:
        metadata.setdefault("ceremony_id", beside)
    record["metadata"] = metadata
    ceremony = metadata.get("ceremony_id")
    if ceremony is None:
        return
    if not isinstance(ceremony, str):
        raise ContractError(f"metadata.ceremony_id of a diary must be a string, not {_named(ceremony)}")
    if get(db, "ceremony", ceremony) is None:
        raise NotHeldError(f"the wheel holds no ceremony {ceremony} (metadata.ceremony_id of the diary entry)")
