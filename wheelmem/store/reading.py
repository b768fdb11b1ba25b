"""What a question reads: the reach of a scope, the records in it, names. Every function works on one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ..contract import Reach, Record, Scope
from ..reach import is_empty_scope, resolve_reach
from .connections import ReadConnection
from .rows import clean
from .schema import CLOSES, CODES, EPISODE

__all__ = [
    "ReachedRecord",
    "ResolvedReach",
    "all_reached",
    "claimed",
    "confined",
    "intersect",
    "is_record",
    "kinds",
    "latest",
    "names",
    "reached",
    "resolve",
    "unite",
]

WHEEL = "medicine-wheel"
COMPANIONS = ("companion_ai", "integration_ai")


@dataclass(frozen=True)
class ResolvedReach:
    """A reach with the integer keys it has in this snapshot; see ``wheelmem.hookspecs.ArmReach``."""

    reach: Reach
    places: tuple[int, ...] = ()
    conclusions: frozenset[int] = frozenset()
    place_set: frozenset[int] = field(default=frozenset(), repr=False)
    ceremony_of: Mapping[int, str] = field(default_factory=dict, repr=False)

    def make_tables(self, db: sqlite3.Connection) -> None:
        """The TEMP tables ``reach_ceremonies(id)`` and ``reach_records(record_id)``."""
        db.execute("CREATE TEMP TABLE reach_ceremonies (id TEXT PRIMARY KEY) WITHOUT ROWID")
        db.executemany("INSERT OR IGNORE INTO temp.reach_ceremonies VALUES (?)", ((id,) for id in self.reach.ceremonies))
        db.execute("CREATE TEMP TABLE reach_places (place INTEGER PRIMARY KEY)")
        db.executemany("INSERT INTO temp.reach_places VALUES (?)", ((place,) for place in self.places))
        db.execute("CREATE TEMP TABLE reach_records (record_id INTEGER PRIMARY KEY)")
        db.execute(
            "INSERT INTO temp.reach_records SELECT record_id FROM records WHERE home IN (SELECT place FROM temp.reach_places) "
            "UNION SELECT record_id FROM also_in WHERE place IN (SELECT place FROM temp.reach_places)"
        )
        db.executemany("INSERT OR IGNORE INTO temp.reach_records VALUES (?)", ((id,) for id in self.conclusions))


@dataclass(frozen=True)
class ReachedRecord:
    """A record inside the reach, with its key and its instant (days, NULL as None)."""

    record_id: int
    instant: float | None
    record: Record

    @property
    def order(self) -> tuple[float, str, str]:
        """What settles a tie between equal scores: the later instant, then kind, then id."""
        return (-(self.instant if self.instant is not None else -1.0), self.record.wheel_kind, self.record.wheel_id)


def _json(values: Iterable[Any]) -> str:
    """A list for ``json_each``; what no column can hold (a lone surrogate) is told apart from all that one can."""
    return json.dumps([clean(value) if isinstance(value, str) else value for value in values])


def resolve(db: sqlite3.Connection, scope: Scope) -> ResolvedReach:
    """The reach of a scope in this snapshot. The candidates come from indexes; ``resolve_reach`` decides."""
    key = ("reach", scope)
    cache = db.cache if isinstance(db, ReadConnection) else {}
    if key not in cache:
        cache[key] = _resolve(db, scope)
    found: ResolvedReach = cache[key]
    return found


def _resolve(db: sqlite3.Connection, scope: Scope, only: frozenset[str] | None = None) -> ResolvedReach:
    """The reach, as though the wheel held no ceremonies but ``only`` (None: all there are)."""
    if is_empty_scope(scope):
        return ResolvedReach(Reach(scope))
    people = scope.named("participant")
    seats = [
        {"person_id": person, "circle_id": circle}
        for person in people
        for (circle,) in db.execute("SELECT circle_id FROM seats WHERE person_id = ?", (clean(person),))
    ]
    circles = scope.named("circle_id") + [seat["circle_id"] for seat in seats]
    # The plus takes the column's affinity away: with it, the index on what a ceremony closes could not be used.
    rows = db.execute(
        f"""
        WITH RECURSIVE candidates (position, id) AS (
            SELECT position, id FROM ceremonies WHERE id IN (SELECT value FROM json_each(:ids))
            UNION SELECT position, id FROM ceremonies WHERE subject_id IN (SELECT value FROM json_each(:subjects))
            UNION SELECT position, id FROM ceremonies WHERE circle_id IN (SELECT value FROM json_each(:circles))
            UNION SELECT position, id FROM ceremonies c WHERE {EPISODE.replace("{t}.", "c.")}
                IN (SELECT value FROM json_each(:episodes))
            UNION SELECT c.position, c.id FROM ceremony_participants p JOIN ceremonies c ON c.id = p.ceremony_id
                WHERE p.participant IN (SELECT value FROM json_each(:people))
            UNION SELECT c.position, c.id FROM candidates JOIN ceremonies c ON {CLOSES.replace("{t}.", "c.")} = +candidates.id
        )
        SELECT c.position, c.id, c.type, c.participants, c.circle_id, c.subject_id, c.episode_path, c.closes, c.research_context
        FROM candidates JOIN ceremonies c USING (position) ORDER BY c.position
        """,
        {
            "ids": _json(scope.named("ceremonies")),
            "subjects": _json(scope.named("subject_id")),
            "circles": _json(circles),
            "episodes": _json(scope.named("episode_path")),
            "people": _json(people),
        },
    ).fetchall()
    positions = {}
    ceremonies = []
    for position, id, type, participants, circle, subject, episode, closes, context in rows:
        if only is not None and id not in only:
            continue
        positions[id] = position
        ceremonies.append(
            {
                "id": id,
                "type": type,
                "participants": _listed(participants) if people else (),
                "circle_id": circle,
                "subject_id": subject,
                "episode_path": episode,
                "closes": closes,
                "research_context": context,
            }
        )
    reach = resolve_reach(scope, ceremonies, seats)
    # Arms see this one, and it is kept for the next question: nobody may write in it.
    ceremony_of = MappingProxyType(dict(_homes(db, [positions[id] for id in reach.ceremonies], reach.ceremonies)))
    chronicles = [name for path in reach.episodes for name in (path, f"chronicle:{path}")]
    places = list(ceremony_of)
    if chronicles:
        places += [
            place
            for (place,) in db.execute(
                "SELECT place FROM places WHERE kind = 'chronicle' AND id IN (SELECT value FROM json_each(?))", (_json(chronicles),)
            )
        ]
    place_set = frozenset(places)
    return ResolvedReach(reach, tuple(sorted(place_set)), _conclusions(db, place_set), place_set, ceremony_of)


def _homes(db: sqlite3.Connection, positions: Sequence[int], ids: Sequence[str]) -> Iterable[tuple[int, str]]:
    rows = db.execute(
        "SELECT record_id, home FROM records WHERE record_id IN (SELECT value * 8 FROM json_each(?))", (_json(positions),)
    )
    homes = dict(rows.fetchall())
    return ((homes[position * 8], id) for position, id in zip(positions, ids, strict=True) if position * 8 in homes)


def _listed(column: Any) -> tuple[str, ...]:
    """A list column as its texts, also when it holds one bare text or no JSON at all."""
    if not column:
        return ()
    try:
        value = json.loads(column)
    except (ValueError, RecursionError):
        return (str(column),)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return (value if isinstance(value, str) else str(column),)


def _conclusions(db: sqlite3.Connection, places: frozenset[int]) -> frozenset[int]:
    """The confirmed conclusions that name at least one source, all of whose sources are records in reach."""
    held: dict[int, dict[str, bool]] = {}
    rows = db.execute(
        "SELECT s.record_id, s.source_id, r.home, (SELECT json_group_array(place) FROM also_in WHERE record_id = r.record_id) "
        "FROM conclusion_sources s LEFT JOIN records r ON r.wheel_id = s.source_id AND r.kind <> 'conclusion'"
    )
    for record_id, source, home, others in rows:
        inside = home in places or (others not in (None, "[]") and not places.isdisjoint(json.loads(others)))
        named = held.setdefault(record_id, {})
        named[source] = named.get(source, False) or inside
    return frozenset(record_id for record_id, named in held.items() if all(named.values()))


def reached(db: sqlite3.Connection, reach: ResolvedReach, record_ids: Iterable[int]) -> dict[int, ReachedRecord]:
    """Those of the records that lie in the reach, by key. ``ceremony_id`` is the first reached one, in the record's own order."""
    wanted = [record_id for record_id in dict.fromkeys(record_ids) if isinstance(record_id, int) and abs(record_id) < 2**63]
    also: dict[int, list[int]] = {}
    found: dict[int, ReachedRecord] = {}
    for start in range(0, len(wanted), 500):
        part = _json(wanted[start : start + 500])
        for record_id, place in db.execute(
            "SELECT record_id, place FROM also_in WHERE record_id IN (SELECT value FROM json_each(?)) ORDER BY record_id, ord", (part,)
        ):
            also.setdefault(record_id, []).append(place)
        rows = db.execute(
            "SELECT record_id, kind, wheel_id, home, speaker, at, instant, text FROM records "
            "WHERE record_id IN (SELECT value FROM json_each(?))",
            (part,),
        )
        for record_id, kind, wheel_id, home, speaker, at, instant, text in rows:
            place = next((p for p in (home, *also.get(record_id, ())) if p in reach.place_set), None)
            if place is None and record_id not in reach.conclusions:
                continue
            record = Record(kind, wheel_id, reach.ceremony_of.get(place) if place is not None else None, speaker, text, at)
            found[record_id] = ReachedRecord(record_id, instant, record)
    return found


def claimed(
    db: sqlite3.Connection, reach: ResolvedReach, claims: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], ReachedRecord]:
    """What somebody claims to be records, as (kind, id): those that are, and lie in the reach."""
    claims = [(kind, id) for kind, id in dict.fromkeys(claims) if kind in CODES]
    keys: dict[int, tuple[str, str]] = {}
    for kind, id in claims:
        row = db.execute("SELECT record_id FROM records WHERE wheel_id = ? AND kind = ?", (clean(id), kind)).fetchone()
        if row and clean(id) == id:
            keys[row[0]] = (kind, id)
    return {keys[record_id]: found for record_id, found in reached(db, reach, keys).items()}


def latest(db: sqlite3.Connection, reach: ResolvedReach, speaker: str, limit: int) -> list[ReachedRecord]:
    """A speaker's latest records in the reach, the latest first; ties by kind, then id."""
    if isinstance(db, ReadConnection):
        db.offer(reach)
    rows = db.execute(
        "SELECT record_id FROM records WHERE speaker = ? AND record_id IN (SELECT record_id FROM temp.reach_records) "
        "ORDER BY instant DESC NULLS LAST, kind, wheel_id LIMIT ?",
        (clean(speaker), limit),
    ).fetchall()
    found = reached(db, reach, [record_id for (record_id,) in rows])
    return [found[record_id] for (record_id,) in rows if record_id in found]


def all_reached(db: sqlite3.Connection, reach: ResolvedReach) -> list[ReachedRecord]:
    """Every record of the reach, in the wheel's order: ceremonies, beats, diary, conclusions, each by arrival."""
    if isinstance(db, ReadConnection):
        db.offer(reach)
    ids = [record_id for (record_id,) in db.execute("SELECT record_id FROM temp.reach_records ORDER BY record_id & 7, record_id")]
    found = reached(db, reach, ids)
    return [found[record_id] for record_id in ids if record_id in found]


def names(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """The names of those nodes that the wheel holds and that have one."""
    rows = db.execute(
        "SELECT id, name FROM nodes WHERE id IN (SELECT value FROM json_each(?)) AND name <> ''", (_json(dict.fromkeys(ids)),)
    )
    return dict(rows.fetchall())


def kinds(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """Whose words a speaker's are: ``wheel``, ``agent`` or ``person``; ids that are none of these are left out."""
    wanted = list(dict.fromkeys(ids))
    found = {id: "wheel" for id in wanted if id == WHEEL}
    rows = db.execute(
        "SELECT id, type, CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.role') END FROM nodes "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (_json(wanted),),
    )
    for id, type, role in rows:
        if type == "agent" or (type == "human" and role in COMPANIONS):
            found[id] = "agent"
        elif type == "human":
            found[id] = "person"
    return found


def is_record(db: sqlite3.Connection, kind: str, id: str) -> bool:
    """Whether the wheel holds this record at all."""
    row = db.execute("SELECT 1 FROM records WHERE wheel_id = ? AND kind = ?", (clean(id), kind)).fetchone()
    return row is not None and clean(id) == id


def unite(db: sqlite3.Connection, reaches: Sequence[ResolvedReach]) -> ResolvedReach:
    """What any of the reaches reaches, under the first one's scope."""
    if len(reaches) == 1:
        return reaches[0]
    ceremonies = dict.fromkeys(id for one in reaches for id in one.reach.ceremonies)
    episodes = dict.fromkeys(path for one in reaches for path in one.reach.episodes)
    places = frozenset().union(*(one.place_set for one in reaches))
    ceremony_of = {place: id for one in reaches for place, id in one.ceremony_of.items()}
    scope = reaches[0].reach.scope if reaches else Scope()
    return _of_places(db, Reach(scope, tuple(ceremonies), tuple(episodes)), places, ceremony_of)


def intersect(db: sqlite3.Connection, reach: ResolvedReach, others: Sequence[ResolvedReach]) -> ResolvedReach:
    """What ``reach`` and any of the others both reach; what was asked keeps its order and its scope."""
    other = unite(db, others)
    if other.place_set >= reach.place_set and set(other.reach.episodes) >= set(reach.reach.episodes):
        # A conclusion's sources may have moved while the places stayed.
        return _of_places(db, reach.reach, reach.place_set, reach.ceremony_of)
    ceremonies = frozenset(other.reach.ceremonies)
    episodes = frozenset(other.reach.episodes)
    kept = Reach(
        reach.reach.scope,
        tuple(id for id in reach.reach.ceremonies if id in ceremonies),
        tuple(path for path in reach.reach.episodes if path in episodes),
    )
    places = reach.place_set & other.place_set
    return _of_places(db, kept, places, {place: id for place, id in reach.ceremony_of.items() if place in places})


def confined(db: sqlite3.Connection, scope: Scope, bounds: Iterable[Sequence[Scope]]) -> ResolvedReach:
    """What a scope reaches inside each of the bounds; a bound is what its scopes reach together.

    A ceremony outside the bounds leads nowhere, not even to a closing inside them: naming it is like naming one that the
    wheel does not hold.
    """
    found = resolve(db, scope)
    allowed: frozenset[str] | None = None
    for scopes in bounds:
        reaches = [resolve(db, one) for one in scopes]
        found = intersect(db, found, reaches)
        inside = frozenset(id for one in reaches for id in one.reach.ceremonies)
        allowed = inside if allowed is None else allowed & inside
    if allowed is None or not found.reach.ceremonies:
        return found
    held = frozenset(_resolve(db, scope, allowed).reach.ceremonies)
    if held.issuperset(found.reach.ceremonies):
        return found
    lost = {place for place, id in found.ceremony_of.items() if id not in held}
    ceremony_of = {place: id for place, id in found.ceremony_of.items() if place not in lost}
    kept = replace(found.reach, ceremonies=tuple(id for id in found.reach.ceremonies if id in held))
    return _of_places(db, kept, found.place_set - lost, ceremony_of)


def _of_places(
    db: sqlite3.Connection, reach: Reach, places: frozenset[int], ceremony_of: Mapping[int, str]
) -> ResolvedReach:
    return ResolvedReach(reach, tuple(sorted(places)), _conclusions(db, places), places, ceremony_of)
