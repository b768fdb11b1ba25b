"""What a scope could name: ids the wheel holds with a label for people, for completion in a shell and for pickers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..text import fold
from .schema import EPISODE

__all__ = ["choices"]

_EPISODE = EPISODE.replace("{t}.", "")
# For each field of a scope: (id, label) of all there is, the likeliest first.
_QUERIES = {
    "circle_id": (
        "SELECT id, coalesce(name, '') FROM nodes WHERE type = 'circle' UNION ALL "
        "SELECT DISTINCT circle_id, '' FROM ceremonies WHERE circle_id IS NOT NULL "
        "AND circle_id NOT IN (SELECT id FROM nodes WHERE type = 'circle')"
    ),
    "participant": (
        "SELECT id, coalesce(name, '') FROM nodes WHERE type IN ('human', 'agent') UNION ALL "
        "SELECT DISTINCT participant, '' FROM ceremony_participants WHERE participant NOT IN (SELECT id FROM nodes)"
    ),
    "subject_id": (
        "SELECT named.id, coalesce(nodes.name, '') FROM "
        "(SELECT DISTINCT subject_id AS id FROM ceremonies WHERE subject_id IS NOT NULL) named LEFT JOIN nodes ON nodes.id = named.id"
    ),
    "episode_path": (
        "SELECT path, coalesce(nodes.name, '') FROM "
        f"(SELECT DISTINCT {_EPISODE} AS path FROM ceremonies WHERE {_EPISODE} IS NOT NULL "
        "UNION SELECT DISTINCT replace(chronicle, 'chronicle:', '') FROM diary WHERE chronicle <> '') "
        "LEFT JOIN nodes ON nodes.id = 'chronicle:' || path ORDER BY path DESC"
    ),
    "ceremonies": (
        "SELECT c.id, substr(coalesce(c.timestamp, ''), 1, 10) || ' ' || coalesce(c.type, '') || "
        "coalesce(' in ' || coalesce(nodes.name, c.circle_id), '') "
        "FROM ceremonies c LEFT JOIN nodes ON nodes.id = c.circle_id ORDER BY c.position DESC"
    ),
}


def choices(db: sqlite3.Connection, field: str, text: str = "", limit: int = 50) -> list[tuple[str, str]]:
    """At most ``limit`` pairs of an id and its label ('' when it has none) that ``field`` of a scope could name.

    ``field`` is circle_id, participant, subject_id, episode_path or ceremonies. Ids that begin with ``text`` come
    first, then those whose label holds it (compared folded); ceremonies the latest first.
    """
    wanted = fold(text)
    begins: list[tuple[str, str]] = []
    holds: list[tuple[str, str]] = []
    rows: Iterable[tuple[str, str]] = db.execute(_QUERIES[field])
    for id, label in rows:
        if not isinstance(id, str) or not id.strip():
            continue
        if id.startswith(text):
            begins.append((id, label.strip()))
            if len(begins) >= limit:
                break
        elif wanted in fold(label) and len(holds) < limit:
            holds.append((id, label.strip()))
    return [*begins, *holds][:limit]
