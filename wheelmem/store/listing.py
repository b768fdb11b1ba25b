"""Lists of the wheel's rows as the HTTP doors give them (filtered, ordered, then cut), and what pages show of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..contract import ContractError, NotHeldError, Reach, Scope
from .connections import ReadConnection
from .reading import WHEEL, ResolvedReach
from .rows import KINDS
from .schema import CLOSES, EPISODE
from .writing import delete, get, select

__all__ = [
    "FILTERS",
    "Extent",
    "Mark",
    "concluded_about",
    "edges_between",
    "everything",
    "extent",
    "holders",
    "listed",
    "marks",
    "named_within",
    "own_pages",
    "rows_of",
    "sat_in",
    "take_out",
]

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
        "ceremony": "position IN (SELECT record_id >> 3 FROM (SELECT record_id, home AS place FROM records WHERE kind = 'beat' "
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


# --- what pages show -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extent:
    """How much a reach holds: ceremonies, records, and voices other than the wheel's own."""

    ceremonies: int
    records: int
    voices: int


def extent(db: ReadConnection, reach: ResolvedReach) -> Extent:
    """How much a reach holds."""
    db.offer(reach)
    records, voices = db.execute(
        "SELECT count(*), count(DISTINCT CASE WHEN speaker <> ? THEN speaker END) FROM records "
        "WHERE record_id IN (SELECT record_id FROM temp.reach_records)",
        (WHEEL,),
    ).fetchone()
    return Extent(len(reach.reach.ceremonies), records, voices)


def everything(db: sqlite3.Connection) -> ResolvedReach:
    """What the scopes there are reach together: every ceremony held, and every chronicle."""
    ids = [id for (id,) in db.execute("SELECT id FROM ceremonies ORDER BY position")]
    places = db.execute(
        "SELECT place, id, kind FROM places WHERE kind = 'chronicle' OR id IN (SELECT id FROM ceremonies)"
    ).fetchall()
    ceremony_of = {place: id for place, id, kind in places if kind == "ceremony"}
    held = frozenset(place for place, _, _ in places)
    return ResolvedReach(Reach(Scope(), tuple(ids)), tuple(sorted(held)), frozenset(), held, ceremony_of)


@dataclass(frozen=True)
class Mark:
    """A ceremony as it is drawn: ``instant`` in days; ``name`` what it is called in one line."""

    id: str
    direction: str | None
    instant: float | None
    name: str


def marks(db: sqlite3.Connection, ids: Sequence[str] | None, limit: int) -> list[Mark]:
    """The ceremonies of these ids (None: of the whole wheel), the latest first, at most ``limit``."""
    where = "1" if ids is None else "c.id IN (SELECT value FROM json_each(:ids))"
    rows = db.execute(
        "SELECT c.id, c.direction, r.instant, trim(coalesce(replace(c.type, '_', ' '), 'ceremony') || "
        "coalesce(' · ' || substr(c.timestamp, 1, 10), '') || coalesce(' · ' || nodes.name, '')) "
        "FROM ceremonies c LEFT JOIN records r ON r.record_id = c.position * 8 LEFT JOIN nodes ON nodes.id = c.circle_id "
        f"WHERE {where} ORDER BY r.instant DESC NULLS LAST, c.position DESC LIMIT :limit",
        {"ids": json.dumps(list(ids or ())), "limit": limit},
    )
    return [Mark(*row) for row in rows]


# What the ceremonies of a reach name, by field of a scope.
_WITHIN = {
    "circle_id": "SELECT DISTINCT circle_id FROM ceremonies WHERE id IN ({ids}) AND circle_id <> ''",
    "participant": "SELECT DISTINCT participant FROM ceremony_participants WHERE ceremony_id IN ({ids})",
    "subject_id": "SELECT DISTINCT subject_id FROM ceremonies WHERE id IN ({ids}) AND subject_id <> ''",
    "episode_path": f"SELECT DISTINCT {EPISODE.replace('{t}.', '')} FROM ceremonies WHERE id IN ({{ids}})",
    "ceremonies": "SELECT value FROM json_each(:ids)",
}


def named_within(db: sqlite3.Connection, ceremonies: Sequence[str], field: str) -> set[str]:
    """The ids that these ceremonies give for a field of a scope."""
    sql = _WITHIN[field].format(ids="SELECT value FROM json_each(:ids)")
    return {id for (id,) in db.execute(sql, {"ids": json.dumps(list(ceremonies))}) if isinstance(id, str) and id}


def rows_of(db: sqlite3.Connection, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int]]:
    """The table and position of records, given as (kind, id)."""
    found = {}
    for kind, id in keys:
        table = KINDS["node" if kind == "conclusion" else kind].name if kind in (*KINDS, "conclusion") else None
        row = db.execute(f"SELECT position FROM {table} WHERE id = ?", (id,)).fetchone() if table else None
        if table and row:
            found[kind, id] = (table, row[0])
    return found


def sat_in(db: sqlite3.Connection, person: str) -> list[str]:
    """The ceremonies a person is named a participant of, the latest first."""
    rows = db.execute(
        "SELECT c.id FROM ceremony_participants p JOIN ceremonies c ON c.id = p.ceremony_id "
        "LEFT JOIN records r ON r.record_id = c.position * 8 WHERE p.participant = ? ORDER BY r.instant DESC NULLS LAST, c.position DESC",
        (person,),
    )
    return [id for (id,) in rows]


def concluded_about(db: sqlite3.Connection, person: str) -> list[dict[str, Any]]:
    """The conclusions about a person, the latest first."""
    return select(db, "node", "id IN (SELECT id FROM conclusions WHERE about = ?)", (person,), "position DESC")


def own_pages(db: sqlite3.Connection, person: str, limit: int) -> list[dict[str, Any]]:
    """A person's diary entries that belong to no ceremony, the latest first."""
    inside = "CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.ceremony_id') END"
    return select(db, "diary", f"participant = ? AND {inside} IS NULL", (person,), _NEWEST.format("timestamp"), limit)
