"""Generated wheels whose circles share words, and the part of each that a scope reaches, as a wheel of its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from wheelmem import open_wheel
from wheelmem.reach import closes, resolve_reach
from wheelmem.store import Wheel, writing

PEOPLE = [f"node:human:{n}:p{n}" for n in range(1, 5)] + ["node:agent:9:weaver"]
NAMES = ["Ana", "Ben", "Cora", "Lantern Bearer", "Weaver"]
CIRCLES = ["circle:a", "circle:b", "circle:c"]
SUBJECTS = ["review:1", "pde:2"]
EPISODES = ["2026-01-01-episode-1-river", "2026-01-02-episode-2-hill"]
WORDS = ["lantern", "lanterns", "river", "teal", "dawn", "stone", "bridge", "colour", "élargit", "pont", "the", "ana"]
TIMES = [f"2026-03-{day:02}T18:00:00.000Z" for day in range(1, 6)] + ["2026-03-02T20:00:00+02:00", "no date"]

Rows = list[tuple[str, dict[str, Any]]]


@dataclass
class Case:
    """A generated wheel's rows in their order of arrival, a scope, and a question."""

    rows: Rows
    scope: dict[str, Any]
    query: str
    person: str
    inside: Rows = field(default_factory=list)
    reached: tuple[str, ...] = ()
    outside_ids: set[tuple[str, str]] = field(default_factory=set)


def _text() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows: Rows = [
        ("node", {"id": id, "type": "agent" if "agent" in id else "human", "name": name})
        for id, name in zip(PEOPLE, NAMES, strict=True)
    ]
    rows += [
        ("node", {"id": id, "type": "circle", "name": id, "metadata": {"facilitator_id": draw(st.sampled_from(PEOPLE))}})
        for id in CIRCLES
    ]
    for person, circle in draw(st.sets(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(CIRCLES)), max_size=4)):
        rows.append(("edge", {"from_id": person, "to_id": circle, "relationship_type": "member_of"}))
    count = draw(st.integers(3, 7))
    ids = [f"ceremony:{n}" for n in range(count)]
    for n, id in enumerate(ids):
        ceremony: dict[str, Any] = {"id": id, "type": draw(st.sampled_from(["talking_circle", "opening", "closing"]))}
        ceremony["timestamp"] = draw(st.sampled_from(TIMES))
        ceremony["participants"] = draw(st.lists(st.sampled_from([*PEOPLE, "Elm"]), max_size=3))
        ceremony["intentions"] = [draw(_text())]
        if draw(st.integers(0, 3)):
            ceremony["circle_id"] = draw(st.sampled_from(CIRCLES))
        if draw(st.booleans()):
            ceremony["subject_id"] = draw(st.sampled_from(SUBJECTS))
        if draw(st.integers(0, 3)) == 0:
            ceremony["episode_path"] = draw(st.sampled_from(EPISODES))
        if n and draw(st.booleans()) and ceremony["type"] == "closing":
            ceremony[draw(st.sampled_from(["closes", "research_context"]))] = draw(st.sampled_from(ids))
        rows.append(("ceremony", ceremony))
    records: Rows = []
    for n in range(draw(st.integers(5, 14))):
        records.append(
            (
                "beat",
                {
                    "id": f"beat:{n}",
                    "direction": draw(st.sampled_from(["east", "west"])),
                    "title": draw(_text()),
                    "description": draw(_text()),
                    "ceremonies": draw(st.lists(st.sampled_from([*ids, "ceremony:gone"]), min_size=1, max_size=2, unique=True)),
                    "speaker": draw(st.sampled_from([*PEOPLE, "Elm"])),
                    "witnesses": draw(st.lists(st.sampled_from(PEOPLE), max_size=2, unique=True)),
                    "relations_honored": draw(st.lists(st.sampled_from(["the river", "stone"]), max_size=1)),
                    "timestamp": draw(st.sampled_from(TIMES)),
                },
            )
        )
    for n in range(draw(st.integers(0, 5))):
        entry: dict[str, Any] = {"id": f"diary:{n}", "content": draw(_text()), "participant": draw(st.sampled_from(PEOPLE))}
        entry["timestamp"] = draw(st.sampled_from(TIMES))
        entry["metadata"] = {"ceremony_id": draw(st.sampled_from(ids))} if draw(st.booleans()) else {}
        if draw(st.booleans()):
            entry["chronicle"] = draw(st.sampled_from(["", "chronicle:"])) + draw(st.sampled_from(EPISODES))
        records.append(("diary", entry))
    rows += draw(st.permutations(records))
    for n in range(draw(st.integers(0, 2))):
        metadata = {
            "kind": "memory_projection",
            "status": draw(st.sampled_from(["confirmed", "confirmed", "inferred"])),
            "projection_kind": "pattern",
            "source_event_ids": draw(st.lists(st.sampled_from([row["id"] for _, row in records]), max_size=2, unique=True)),
            "derived_by": draw(st.sampled_from(PEOPLE)),
            "generated_at": draw(st.sampled_from(TIMES)),
        }
        rows.append(
            ("node", {"id": f"node:knowledge:{n}", "type": "knowledge", "description": draw(_text()), "metadata": metadata})
        )
    for _ in range(draw(st.integers(0, 3))):
        pair = draw(st.lists(st.sampled_from(PEOPLE), min_size=2, max_size=2, unique=True))
        rows.append(
            (
                "edge",
                {
                    "from_id": pair[0],
                    "to_id": pair[1],
                    "relationship_type": draw(st.sampled_from(["mentors", "kin"])),
                    "ceremony_id": draw(st.sampled_from(ids)),
                },
            )
        )
    # Mostly one field, so that there is an outside as often as an inside.
    scope: dict[str, Any] = {}
    values: dict[str, list[str]] = {"ceremonies": ids, "circle_id": CIRCLES, "subject_id": SUBJECTS, "episode_path": EPISODES}
    for name in draw(st.lists(st.sampled_from([*values, "participant", "ceremonies"]), min_size=1, max_size=2)):
        if name == "participant":
            scope[name] = draw(st.sampled_from([*PEOPLE, "Elm"]))
        else:
            scope[name] = draw(st.lists(st.sampled_from(values[name]), min_size=1, max_size=2))
    if draw(st.integers(0, 2)) == 0:
        scope["exclude_ceremonies"] = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=2))
    query = draw(st.one_of(_text(), st.sampled_from(['"teal lantern" river', "what did Ana say", "quand le pont", "ben"])))
    case = Case(rows, scope, query, draw(st.sampled_from([*PEOPLE, "Elm"])))
    _part(case)
    return case


def _part(case: Case) -> None:
    """What the scope reaches: nodes, seats, the bare ceremonies that resolving consults, and the records in reach."""
    ceremonies = [row for kind, row in case.rows if kind == "ceremony"]
    seats = [
        {"person_id": row["from_id"], "circle_id": row["to_id"]}
        for kind, row in case.rows
        if kind == "edge" and row["relationship_type"] == "member_of"
    ]
    seats += [
        {"person_id": row["metadata"]["facilitator_id"], "circle_id": row["id"]}
        for kind, row in case.rows
        if kind == "node" and row["type"] == "circle"
    ]
    reach = resolve_reach(case.scope, ceremonies, seats)
    case.reached = reach.ceremonies
    held = {row["id"] for row in ceremonies}
    consulted = set(case.scope.get("exclude_ceremonies", ()))
    chain = True
    while chain:
        # What a reached closing closes, and what that closes in turn when it is a closing that resolving went through.
        more = {closes(row, held) for row in ceremonies if row["id"] in reach.ceremonies or row["id"] in consulted}
        chain = bool(more - consulted - {None})
        consulted |= more - {None}  # type: ignore[arg-type]
    inside: set[str] = set()
    for kind, row in case.rows:
        if kind == "beat" and set(row["ceremonies"]) & set(reach.ceremonies):
            inside.add(row["id"])
        if kind == "diary":
            ceremony = row["metadata"].get("ceremony_id")
            episode = row.get("chronicle", "").removeprefix("chronicle:")
            if ceremony in reach.ceremonies or (ceremony is None and episode in reach.episodes):
                inside.add(row["id"])
    for kind, row in case.rows:
        if kind == "ceremony":
            if row["id"] in reach.ceremonies:
                case.inside.append((kind, row))
                continue
            if row["id"] in consulted:
                case.inside.append((kind, {key: value for key, value in row.items() if key != "intentions"}))
            case.outside_ids.add((kind, row["id"]))
        elif kind in ("beat", "diary"):
            if row["id"] in inside:
                case.inside.append((kind, row))
            else:
                case.outside_ids.add((kind, row["id"]))
        elif kind == "edge":
            if row["relationship_type"] == "member_of" or row.get("ceremony_id") in reach.ceremonies:
                case.inside.append((kind, row))
        elif row["type"] == "knowledge" and not (set(row["metadata"]["source_event_ids"]) <= inside):
            case.outside_ids.add(("node", row["id"]))
        else:
            case.inside.append((kind, row))


class Bench:
    """Wheels made from one prepared template, so that each costs a copy and one transaction."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wheelmem-laws-"))
        self.template = self.folder / "template.db"
        wheel = open_wheel(self.template)
        self.plugins = wheel.plugins
        wheel.close()
        self.made = 0

    @contextmanager
    def wheel(self, rows: Rows) -> Iterator[Wheel]:
        self.made += 1
        path = self.folder / f"{self.made}.db"
        shutil.copy(self.template, path)
        wheel = open_wheel(path, plugins=self.plugins)
        try:
            wheel.write(lambda db: [writing.put(db, kind, row) for kind, row in rows])
            yield wheel
        finally:
            wheel.close()
            for left in self.folder.glob(f"{self.made}.db*"):
                left.unlink()

    def close(self) -> None:
        shutil.rmtree(self.folder)


def take_out(path: Path, outside: set[tuple[str, str]], vacuum: bool) -> None:
    """Delete rows from outside with plain sqlite3, as any tool would; bare ceremonies go too unless resolving needs them."""
    tables = {"beat": "beats", "diary": "diary", "node": "nodes"}
    db = sqlite3.connect(path, isolation_level=None)
    for kind, id in sorted(outside):
        if kind in tables:
            db.execute(f"DELETE FROM {tables[kind]} WHERE id = ?", (id,))
    if vacuum:
        db.execute("VACUUM")
    db.close()


def change(path: Path, outside: set[tuple[str, str]]) -> None:
    """Rewrite the words of rows outside, and add more of them, with plain sqlite3."""
    db = sqlite3.connect(path, isolation_level=None)
    for kind, id in sorted(outside):
        if kind == "beat":
            db.execute(
                "UPDATE beats SET description = description || ' lantern lantern river', speaker = ? WHERE id = ?",
                (PEOPLE[0], id),
            )
        if kind == "diary":
            db.execute("UPDATE diary SET content = 'teal lantern ' || content WHERE id = ?", (id,))
    for n in range(30):
        db.execute(
            "INSERT INTO beats (id, title, description, ceremonies, speaker) "
            "VALUES (?, 'lantern river', 'teal dawn stone ana', ?, ?)",
            (f"beat:more{n}", json.dumps(["ceremony:nobody"]), PEOPLE[n % 5]),
        )
    db.close()
