"""The turns of a ceremony, in the order in which they were said."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Ceremony", "ceremonies", "places_of"]

# A question mark at the end, but for what stands in brackets behind it (a caption, a stage direction).
_ASKS = re.compile(r"[?？؟⁇]\s*[\"'”»)]*\s*(?:\[[^\]]*\]\s*)*$")
# Ceremonies kept for the questions that come, while the file does not change.
KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Ceremony:
    """A ceremony's turns: their record ids, which of them ask something, and who spoke, in order."""

    place: int
    ids: tuple[int, ...]
    asks: tuple[bool, ...]
    speakers: tuple[str | None, ...]


def places_of(db: sqlite3.Connection, record_ids: Iterable[int], reached: frozenset[int] | set[int]) -> dict[int, list[int]]:
    """For each record the places of the reach it is in, in the record's own order."""
    wanted = json.dumps(list(record_ids))
    found: dict[int, list[int]] = {}
    rows = db.execute(
        "SELECT record_id, home AS place, -1 AS ord FROM records WHERE record_id IN (SELECT value FROM json_each(:ids)) "
        "UNION ALL SELECT record_id, place, ord FROM also_in WHERE record_id IN (SELECT value FROM json_each(:ids)) "
        "ORDER BY 1, 3",
        {"ids": wanted},
    )
    for record_id, place, _ in rows:
        if place in reached:
            found.setdefault(record_id, []).append(place)
    return found


def ceremonies(db: sqlite3.Connection, places: Iterable[int]) -> list[Ceremony]:
    """The turns of each of these places, in the order given; kept for as long as the file does not change."""
    cache: dict[Any, Any] = getattr(db, "cache", {})
    kept: dict[int, Ceremony] = cache.setdefault("hops.turns", {})
    places = list(dict.fromkeys(places))
    missing = [place for place in places if place not in kept]
    if missing:
        if len(kept) + len(missing) > KEPT:
            kept.clear()
            missing = places
        kept.update((made.place, made) for made in _read(db, missing))
    return [kept[place] for place in places]


_READ = """
SELECT place, record_id, instant, speaker, CASE WHEN instr(text, '?') OR instr(text, '？') OR instr(text, '؟') THEN text END
FROM (
    SELECT home AS place, record_id, instant, speaker, text FROM records
    WHERE home IN (SELECT value FROM json_each(:places)) AND kind = 'beat'
    UNION ALL
    SELECT a.place, r.record_id, r.instant, r.speaker, r.text FROM also_in a JOIN records r ON r.record_id = a.record_id
    WHERE a.place IN (SELECT value FROM json_each(:places)) AND r.kind = 'beat'
)
"""


def _read(db: sqlite3.Connection, places: Sequence[int]) -> Iterable[Ceremony]:
    turns: dict[int, list[tuple[Any, ...]]] = {place: [] for place in places}
    for place, *turn in db.execute(_READ, {"places": json.dumps(places)}):
        turns[place].append(tuple(turn))
    for place, said in turns.items():
        # By time where every turn has one; else in the order in which they arrived.
        timed = all(instant is not None for _, instant, _, _ in said)
        said.sort(key=lambda turn: (turn[1], turn[0]) if timed else (0.0, turn[0]))
        yield Ceremony(
            place,
            tuple(turn[0] for turn in said),
            tuple(turn[3] is not None and _ASKS.search(turn[3]) is not None for turn in said),
            tuple(turn[2] for turn in said),
        )
