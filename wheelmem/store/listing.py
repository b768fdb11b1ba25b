"""Lists of the wheel's rows as the HTTP doors give them: filtered over the whole collection, ordered, then cut."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ..contract import ContractError, NotHeldError
from .rows import KINDS
from .schema import CLOSES, EPISODE
from .writing import delete, get, select

__all__ = ["FILTERS", "edges_between", "holders", "listed", "take_out"]

_TAG = (
    "EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(metadata) THEN metadata ELSE '{}' END, '$.tags') WHERE value = ?)"
)
# For each kind: a filter's name and its condition, with one placeholder.
FILTERS: dict[str, dict[str, str]] = {
    "node": {
        "type": "type = ?",
        "direction": "direction = ?",
        "kind": "CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.kind') END = ?",
    },
    "edge": {"from": "from_id = ?", "to": "to_id = ?"},
    "ceremony": {
        "direction": "direction = ?",
        "type": "type = ?",
        "episode_path": f"{EPISODE.replace('{t}.', '')} = ?",
        "circle_id": "circle_id = ?",
        "closes": f"{CLOSES.replace('{t}.', '')} = ?",
        "subject_id": "subject_id = ?",
    },
    "beat": {
        "direction": "direction = ?",
        "ceremony": "position IN (SELECT record_id / 8 FROM (SELECT record_id, home AS place FROM records WHERE kind = 'beat' "
        "UNION ALL SELECT record_id, place FROM also_in) JOIN places USING (place) WHERE places.kind = 'ceremony' AND places.id = ?)",
    },
    "diary": {
        "participant": "participant = ?",
        "phase": "phase = ?",
        "entryType": '"entryType" = ?',
        "chronicle": "chronicle = ?",
        "ceremony_id": "CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.ceremony_id') END = ?",
        "tag": _TAG,
    },
}
_INSTANT = "CASE WHEN {0} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' THEN julianday({0}) END"
_NEWEST = f"{_INSTANT} DESC NULLS LAST, position DESC"
_ORDER = {
    "node": _NEWEST.format("created_at"),
    "edge": _NEWEST.format("created_at"),
    "ceremony": _NEWEST.format("timestamp"),
    "beat": _NEWEST.format("timestamp"),
    "diary": f"{_INSTANT.format('timestamp')} NULLS LAST, position",
}


def listed(
    db: sqlite3.Connection, kind: str, filters: Mapping[str, Sequence[str]], limit: int, offset: int
) -> tuple[list[dict[str, Any]], int, int]:
    """One page of a kind's records, how many the filters selected, and how many there are in all.

    ``filters`` has the values of each filter; all of them must hold. ``limit`` -1 is everything. The newest come first, a
    diary's oldest.
    """
    conditions = [(FILTERS[kind][name], value) for name, values in filters.items() for value in values]
    where = " AND ".join(condition for condition, _ in conditions) or "1"
    parameters = [value for _, value in conditions]
    table = KINDS[kind].name
    total = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    try:
        matched = db.execute(f"SELECT count(*) FROM {table} WHERE {where}", parameters).fetchone()[0] if conditions else total
        return select(db, kind, where, parameters, _ORDER[kind], limit, offset), matched, total
    except UnicodeEncodeError:
        return [], 0, total


def holders(db: sqlite3.Connection, kind: str, id: str) -> list[str]:
    """What still holds a record, in a few words each: it cannot be taken out before they are."""
    counts: dict[str, tuple[str, str]] = {}
    if kind == "node":
        counts = {"edge": ("edges", "from_id = ?1 OR to_id = ?1")}
    elif kind == "ceremony":
        place = "(SELECT place FROM places WHERE kind = 'ceremony' AND id = ?1)"
        within = f"(home = {place} OR record_id IN (SELECT record_id FROM also_in WHERE place = {place}))"
        counts = {
            "closing": ("ceremonies", f"{CLOSES.replace('{t}.', '')} = ?1"),
            "turn": ("records", f"kind = 'beat' AND {within}"),
            "diary entry": ("records", f"kind = 'diary' AND {within}"),
        }
    found = []
    for what, (table, where) in counts.items():
        number = db.execute(f"SELECT count(*) FROM {table} WHERE {where}", (id,)).fetchone()[0]
        if number:
            found.append(f"{number} {what if number == 1 else {'diary entry': 'diary entries'}.get(what, what + 's')}")
    return found


def take_out(db: sqlite3.Connection, kind: str, id: str) -> None:
    """Delete a record that nothing holds; raises NotHeldError when there is none, ContractError naming what holds it."""
    if get(db, kind, id) is None:
        raise NotHeldError(f"the wheel holds no {kind} {id}")
    held = holders(db, kind, id)
    if held:
        raise ContractError(f"{kind} {id} is held by {', '.join(held)}; take these out first")
    delete(db, kind, id)


def edges_between(db: sqlite3.Connection, source: str, target: str, type: str | None = None) -> list[dict[str, Any]]:
    """The edges from one node to another, of one relationship type when it is given."""
    where, parameters = "from_id = ? AND to_id = ?", [source, target]
    if type is not None:
        where, parameters = f"{where} AND relationship_type = ?", [*parameters, type]
    try:
        return select(db, "edge", where, parameters)
    except UnicodeEncodeError:
        return []
