"""The relations a wheel's records stand in, one function each: from some records to those they lead to, within a reach.

Each gives hops, in an order that depends on nothing but the reach: (from, to, how the target stands to the source).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wheelmem_fts5.within import Within
from wheelmem_fts5.words import quoted

from wheelmem.store.schema import CLOSES
from wheelmem.text import PERSON_ID, fold

from .schema import LINKS
from .turns import Ceremony

__all__ = ["FOLLOWED", "Hop", "Look"]

# A name, a relation or a day that more records share than this tells nothing about any of them.
MOST_TARGETS = 50
# Of how many records the names in the text are looked up, and how many names at the most.
MOST_READ, MOST_NAMES = 8, 12
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

Hop = tuple[int, int, str]


@dataclass
class Look:
    """What a relation is followed with: the snapshot, the reach, the records in hand (with id, speaker, text) and their turns."""

    db: sqlite3.Connection
    inside: Within
    places: frozenset[int]
    records: Mapping[int, tuple[str, str, str | None, str]]
    ceremonies: Sequence[Ceremony]
    names_found: list[tuple[int, str, str]] | None = None

    @property
    def ids(self) -> str:
        return json.dumps(list(self.records))

    def name(self, record_id: int) -> str:
        return self.records[record_id][1]


def closing(look: Look) -> Iterator[Hop]:
    """A ceremony and its closing."""
    closes = CLOSES.replace("{t}", "k")
    rows = look.db.execute(
        f"SELECT c.position * 8, k.position * 8, c.id, k.id FROM ceremonies c JOIN ceremonies k ON {closes} = +c.id "
        "WHERE c.position IN (SELECT value / 8 FROM json_each(:ids) WHERE value % 8 = 0) "
        "UNION SELECT c.position * 8, k.position * 8, c.id, k.id FROM ceremonies k JOIN ceremonies c "
        f"ON c.id = {closes} WHERE k.position IN (SELECT value / 8 FROM json_each(:ids) WHERE value % 8 = 0) ORDER BY 1, 2",
        {"ids": look.ids},
    )
    for opened, closed, opened_id, closed_id in rows:
        if opened in look.records:
            yield opened, closed, f"closing {opened_id}"
        if closed in look.records:
            yield closed, opened, f"closed by {closed_id}"


def diary(look: Look) -> Iterator[Hop]:
    """A turn, and a diary entry written in the same ceremony on the same day."""
    day = "CAST({}.instant + 0.5 AS INTEGER)"
    same = f"{day.format('o')} = {day.format('r')}"
    mine = "r.record_id IN (SELECT value FROM json_each(:ids))"
    rows = look.db.execute(
        f"SELECT r.record_id, o.record_id, o.home FROM records r JOIN records o ON o.home = r.home AND {same} "
        f"AND o.kind = CASE r.kind WHEN 'diary' THEN 'beat' ELSE 'diary' END WHERE {mine} AND r.kind IN ('diary', 'beat') "
        # A turn may have more ceremonies than its first; a diary entry has one.
        "UNION SELECT r.record_id, o.record_id, a.place FROM records r JOIN also_in a ON a.record_id = r.record_id "
        f"JOIN records o ON o.home = a.place AND o.kind = 'diary' AND {same} WHERE {mine} AND r.kind = 'beat' "
        "UNION SELECT r.record_id, o.record_id, a.place FROM records r JOIN also_in a ON a.place = r.home "
        f"JOIN records o ON o.record_id = a.record_id AND {same} WHERE {mine} AND r.kind = 'diary' ORDER BY 1, 2, 3",
        {"ids": look.ids},
    )
    for record_id, other, place in rows:
        if place in look.places:
            said = "said" if look.records[record_id][0] == "diary" else "written"
            yield record_id, other, f"{said} the same day and in the same ceremony as {look.name(record_id)}"


def witness(look: Look) -> Iterator[Hop]:
    """A turn, and the next one in its ceremony by somebody who witnessed it."""
    turns = json.dumps([id for ceremony in look.ceremonies for id in ceremony.ids])
    witnesses: dict[int, set[str]] = {}
    for record_id, who in look.db.execute(
        "SELECT r.record_id, w.witness FROM records r JOIN beat_witnesses w ON w.beat_id = r.wheel_id "
        "WHERE r.record_id IN (SELECT value FROM json_each(?)) AND r.kind = 'beat'",
        (turns,),
    ):
        witnesses.setdefault(record_id, set()).add(who)
    for ceremony in look.ceremonies:
        # Turns by whose speaker and witness an answer still waits.
        waiting: dict[str, list[int]] = {}
        for record_id, speaker in zip(ceremony.ids, ceremony.speakers, strict=True):
            for asked in waiting.pop(speaker, ()) if speaker else ():
                if asked in look.records:
                    yield asked, record_id, f"by a witness of {look.name(asked)}, answering it"
                if record_id in look.records:
                    yield record_id, asked, f"witnessed by the speaker of {look.name(record_id)}, who answers it"
            for who in sorted(witnesses.get(record_id, ())):
                if who != speaker:
                    waiting.setdefault(who, []).append(record_id)


def part(look: Look) -> Iterator[Hop]:
    """A turn and the turns it is made up of, whichever of them says so."""
    rows = look.db.execute(
        f"SELECT r.record_id, o.record_id, l.link FROM json_each(:ids) i JOIN {LINKS} l ON l.record_id = i.value "
        "JOIN records r ON r.record_id = i.value JOIN records o ON o.wheel_id = l.target AND o.kind = 'beat' "
        "WHERE l.link IN ('part of', 'whole of') "
        "UNION SELECT r.record_id, o.record_id, CASE l.link WHEN 'part of' THEN 'whole of' ELSE 'part of' END "
        f"FROM json_each(:ids) i JOIN records r ON r.record_id = i.value JOIN {LINKS} l ON l.target = r.wheel_id "
        "AND l.link IN ('part of', 'whole of') JOIN records o ON o.record_id = l.record_id WHERE r.kind = 'beat' ORDER BY 1, 2",
        {"ids": look.ids},
    )
    for record_id, other, link in rows:
        # The link says what the record in hand is; the path says what the other one is.
        yield record_id, other, f"{'a part' if link == 'whole of' else 'the whole'} of {look.name(record_id)}"


def honoured(look: Look) -> Iterator[Hop]:
    """Turns that honour the same relation."""
    rows = look.db.execute(
        f"SELECT DISTINCT i.value, o.record_id, l.target FROM json_each(:ids) i JOIN {LINKS} l "
        f"ON l.record_id = i.value AND l.link = 'honours' JOIN {LINKS} o ON o.target = l.target AND o.link = 'honours' "
        "WHERE o.record_id <> i.value ORDER BY 1, 2, 3",
        {"ids": look.ids},
    )
    for record_id, other, relation in rows:
        yield record_id, other, f"honouring {relation}, as {look.name(record_id)} does"


def named(look: Look) -> Iterator[Hop]:
    """A record, and those by or about somebody, or something, that its text names."""
    for record_id, node, name in _named(look):
        for other in _by_or_about(look, node, name):
            yield record_id, other, f"by or about {name}, named in {look.name(record_id)}"


def edge(look: Look) -> Iterator[Hop]:
    """Along an edge laid down in a ceremony of the reach: from who or what a record is by, names or is, to its other end."""
    ends: dict[str, dict[int, None]] = {}
    for record_id, (_, wheel_id, speaker, _) in look.records.items():
        for end in (wheel_id, speaker):
            if end:
                ends.setdefault(end, {})[record_id] = None
    for record_id, node, _ in _named(look):
        ends.setdefault(node, {})[record_id] = None
    rows = look.db.execute(
        "SELECT e.position, e.from_id, e.to_id, e.relationship_type, e.ceremony_id, c.record_id FROM edges e "
        "JOIN records c ON c.wheel_id = e.ceremony_id AND c.kind = 'ceremony' "
        "WHERE e.from_id IN (SELECT value FROM json_each(:ends)) OR e.to_id IN (SELECT value FROM json_each(:ends)) "
        "ORDER BY e.position",
        {"ends": json.dumps(list(ends))},
    ).fetchall()
    for _, one, two, kind, ceremony_id, ceremony in rows:
        if ceremony not in look.inside:
            continue
        for here, there in ((one, two), (two, one)):
            if here not in ends or here == there:
                continue
            targets = _ends(look, there)
            for record_id in ends[here]:
                for other in targets:
                    yield record_id, other, f"by way of {one} {kind} {two} in {ceremony_id}, from {look.name(record_id)}"


def _ends(look: Look, id: str) -> list[int]:
    """The record with this id, or those by or about the node with it."""
    itself = [
        record_id
        for (record_id,) in look.db.execute("SELECT record_id FROM records WHERE wheel_id = ? ORDER BY kind", (id,))
        if record_id in look.inside
    ]
    if itself:
        return itself
    row = look.db.execute("SELECT name FROM nodes WHERE id = ?", (id,)).fetchone()
    return _by_or_about(look, id, row[0] if row else None)


def _named(look: Look) -> list[tuple[int, str, str]]:
    """(record, node, its name) for the people and things that the texts name, by id or by name."""
    if look.names_found is not None:
        return look.names_found
    nodes = _nodes(look.db)
    found: dict[tuple[int, str], str] = {}
    for record_id, (_, _, speaker, text) in list(look.records.items())[:MOST_READ] if nodes.by_name else ():
        words = _WORD.findall(fold(PERSON_ID.sub(" ", text)))[:200]
        grams = (" ".join(words[at : at + size]) for size in (1, 2, 3) for at in range(len(words) - size + 1))
        ids = [id for id in PERSON_ID.findall(text) if id in nodes.names]
        ids += [id for gram in grams if gram in nodes.by_name for id in nodes.by_name[gram]]
        for id in ids:
            if id != speaker:
                found[record_id, id] = nodes.names[id]
    # Those with the smallest ids, since there is no better reason to leave out one name rather than another.
    kept = sorted({id for _, id in found})[:MOST_NAMES]
    look.names_found = [(record_id, id, name) for (record_id, id), name in found.items() if id in kept]
    return look.names_found


class _Nodes:
    """The people and things that have a name. A conclusion's node is a record, with a reach of its own, and not among them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.names: dict[str, str] = {}
        self.by_name: dict[str, list[str]] = {}
        for id, name in db.execute(
            "SELECT id, name FROM nodes WHERE name <> '' AND coalesce(type, '') NOT IN ('knowledge', 'circle') ORDER BY position"
        ):
            self.names[id] = name
            gram = " ".join(_WORD.findall(fold(name)))
            if len(gram) > 2:
                self.by_name.setdefault(gram, []).append(id)


def _nodes(db: sqlite3.Connection) -> _Nodes:
    """Read once for as long as the file does not change."""
    cache: dict[Any, Any] = getattr(db, "cache", {})
    found: _Nodes | None = cache.get("hops.nodes")
    if found is None:
        found = cache["hops.nodes"] = _Nodes(db)
    return found


def _by_or_about(look: Look, node: str, name: str | None) -> list[int]:
    """The records of the reach that a node spoke, or in whose text its id or name stands; none when that is every other one."""
    spoken = [id for (id,) in look.db.execute("SELECT record_id FROM records WHERE speaker = ?", (node,))]
    told = look.inside.matching(" OR ".join(quoted(text) for text in (node, name) if text and _WORD.search(text)))
    found = sorted(set(look.inside.inside([*spoken, *told])))
    return found if len(found) <= MOST_TARGETS else []


FOLLOWED: dict[str, Any] = {
    "closing": closing,
    "diary": diary,
    "witness": witness,
    "part": part,
    "honoured": honoured,
    "named": named,
    "edge": edge,
}
