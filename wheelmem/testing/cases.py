"""Generated wheels whose circles share words, and the part of each that a scope reaches.

Everything is drawn from one seed, so that a failure can be run again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from ..plugins import PluginHost, load_plugins
from ..reach import closes, resolve_reach
from ..store import Wheel, open_wheel

__all__ = ["Bench", "Case", "generate"]

PEOPLE = {
    "node:human:1:ana": "Ana",
    "node:human:2:ben": "Ben",
    "node:human:3:cora": "Cora",
    "node:agent:9:weaver": "Weaver",
}
CIRCLES = ("circle:garden", "circle:harbour", "circle:archive")
SUBJECTS = ("review:1", "review:2")
EPISODES = ("2026-01-01-episode-001-river", "2026-01-02-episode-002-hill")
WORDS = ("lantern", "lanterns", "river", "teal", "dawn", "stone", "bridge", "colour", "élargit", "pont", "harbour", "yesterday")
TIMES = (*(f"2026-03-0{day}T18:00:00.000Z" for day in range(1, 7)), "2026-03-02T20:00:00+02:00", "no date")
MOST_TRIES = 200

Row = tuple[str, dict[str, Any]]


@dataclass
class Case:
    """A generated wheel and a question of it.

    ``rows`` are ``(kind, record)`` in their order of arrival; ``inside`` those that the scope reaches, with the nodes, the
    seats and the bare ceremonies that resolving the scope consults; ``reached`` and ``outside`` the records as
    ``(wheel_kind, wheel_id)``. Words of the question stand in records on both sides.
    """

    seed: int
    rows: list[Row]
    scope: dict[str, Any]
    query: str
    person: str
    inside: list[Row] = field(default_factory=list)
    reached: set[tuple[str, str]] = field(default_factory=set)
    outside: set[tuple[str, str]] = field(default_factory=set)

    def __str__(self) -> str:
        return f"seed {self.seed}, scope {json.dumps(self.scope)}, question {self.query!r}"


def generate(seed: int) -> Case:
    """The case of a seed: always the same one, and always one in which records outside share the question's words."""
    random = Random(seed)
    for _ in range(MOST_TRIES):
        rows = _rows(random)
        case = Case(seed, rows, _scope(random, rows), "", random.choice([*PEOPLE, "Elm"]))
        _part(case)
        words = {key: _words(record) for key, record in _records(rows)}
        inside = set().union(*(words.get(key, ()) for key in case.reached)) - {"the"}
        outside = set().union(*(words.get(key, ()) for key in case.outside)) - {"the"}
        shared = sorted(inside & outside & set(WORDS))
        if not shared:
            continue
        wanted = random.sample(shared, min(len(shared), random.randint(1, 3)))
        if random.random() < 0.2:
            wanted.append(random.choice(list(PEOPLE.values())).lower())
        case.query = f'"{" ".join(wanted)}"' if random.random() < 0.1 else " ".join(wanted)
        return case
    raise AssertionError(f"no case came of seed {seed}")  # 200 tries have never been needed


def _text(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(1, 8)))


def _some(random: Random, values: Any, most: int) -> list[Any]:
    return random.sample(list(values), random.randint(0, most))


def _rows(random: Random) -> list[Row]:
    rows: list[Row] = []
    for id, name in PEOPLE.items():
        rows.append(("node", {"id": id, "type": "agent" if "agent" in id else "human", "name": name}))
    for id in CIRCLES:
        rows.append(("node", {"id": id, "type": "circle", "name": id.removeprefix("circle:")}))
    for person in PEOPLE:
        for circle in _some(random, CIRCLES, 1):
            rows.append(("edge", {"from_id": person, "to_id": circle, "relationship_type": "member_of"}))
    ids = [f"ceremony:{n}" for n in range(random.randint(3, 7))]
    for n, id in enumerate(ids):
        ceremony: dict[str, Any] = {
            "id": id,
            "type": random.choice(["talking_circle", "opening", "closing"]),
            "timestamp": random.choice(TIMES),
            "participants": _some(random, [*PEOPLE, "Elm"], 3),
            "intentions": [_text(random)],
        }
        if random.random() < 0.8:
            ceremony["circle_id"] = random.choice(CIRCLES)
        if random.random() < 0.4:
            ceremony["subject_id"] = random.choice(SUBJECTS)
        if random.random() < 0.3:
            ceremony["episode_path"] = random.choice(EPISODES)
        if n and ceremony["type"] == "closing":
            ceremony[random.choice(["closes", "research_context"])] = random.choice(ids[:n])
        rows.append(("ceremony", ceremony))
    records = [_beat(random, n, ids) for n in range(random.randint(5, 16))]
    records += [_entry(random, n, ids) for n in range(random.randint(0, 5))]
    random.shuffle(records)
    rows += records
    for n in range(random.randint(0, 2)):
        rows.append(_conclusion(random, n, [row["id"] for _, row in records]))
    # Two people have one such edge, or none: a second one would stand in the place of the first.
    pairs = [(one, other) for one in PEOPLE for other in PEOPLE if one != other]
    for one, other in random.sample(pairs, random.randint(0, 3)):
        kin = {"from_id": one, "to_id": other, "relationship_type": "kin", "ceremony_id": random.choice(ids)}
        rows.append(("edge", kin))
    return rows


def _beat(random: Random, n: int, ceremonies: list[str]) -> Row:
    return (
        "beat",
        {
            "id": f"beat:{n}",
            "direction": random.choice(["east", "south", "west", "north"]),
            "title": _text(random),
            "description": _text(random),
            "ceremonies": random.sample([*ceremonies, "ceremony:gone"], random.randint(1, 2)),
            "speaker": random.choice([*PEOPLE, "Elm"]),
            "witnesses": _some(random, PEOPLE, 2),
            "relations_honored": _some(random, ["the river", "stone"], 1),
            "timestamp": random.choice(TIMES),
        },
    )


def _entry(random: Random, n: int, ceremonies: list[str]) -> Row:
    entry: dict[str, Any] = {
        "id": f"diary:{n}",
        "content": _text(random),
        "participant": random.choice(list(PEOPLE)),
        "phase": "nindokendaan",
        "entryType": "observation",
        "timestamp": random.choice(TIMES),
        "metadata": {"ceremony_id": random.choice(ceremonies)} if random.random() < 0.6 else {},
    }
    if random.random() < 0.5:
        entry["chronicle"] = random.choice(["", "chronicle:"]) + random.choice(EPISODES)
    return "diary", entry


def _conclusion(random: Random, n: int, sources: list[str]) -> Row:
    metadata = {
        "kind": "memory_projection",
        "status": random.choice(["confirmed", "confirmed", "inferred"]),
        "projection_kind": "pattern",
        "source_event_ids": random.sample(sources, random.randint(0, 2)),
        "derived_by": random.choice(list(PEOPLE)),
        "generated_at": random.choice(TIMES),
    }
    return "node", {"id": f"node:knowledge:{n}", "type": "knowledge", "description": _text(random), "metadata": metadata}


def _scope(random: Random, rows: list[Row]) -> dict[str, Any]:
    ceremonies = [row["id"] for kind, row in rows if kind == "ceremony"]
    scope: dict[str, Any] = {}
    fields = {"ceremonies": ceremonies, "subject_id": SUBJECTS, "circle_id": CIRCLES, "episode_path": EPISODES}
    for name, values in fields.items():
        if random.random() < 0.3:
            scope[name] = random.sample(list(values), random.randint(1, 2))
    if not scope or random.random() < 0.3:
        scope["participant"] = random.choice([*PEOPLE, "Elm"])
    if random.random() < 0.4:
        scope["exclude_ceremonies"] = random.sample(ceremonies, random.randint(1, 2))
    return scope


def _records(rows: list[Row]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for kind, row in rows:
        if kind in ("ceremony", "beat", "diary"):
            yield (kind, row["id"]), row
        elif kind == "node" and row["type"] == "knowledge":
            yield ("conclusion", row["id"]), row


def _words(row: dict[str, Any]) -> set[str]:
    texts = [row.get(name, "") for name in ("title", "description", "content")] + row.get("intentions", [])
    return set(" ".join(texts).split())


def _part(case: Case) -> None:
    """Sort the rows into what the scope reaches and what lies outside; written apart from the store's own way on purpose."""
    ceremonies = [row for kind, row in case.rows if kind == "ceremony"]
    edges = [row for kind, row in case.rows if kind == "edge"]
    seats = [{"person_id": row["from_id"], "circle_id": row["to_id"]} for row in edges if row["relationship_type"] == "member_of"]
    reach = resolve_reach(case.scope, ceremonies, seats)
    reached = set(reach.ceremonies)
    held = {row["id"] for row in ceremonies}
    consulted = reached | set(case.scope.get("exclude_ceremonies", ()))
    while True:
        # What a closing closes decides whether it is reached, so resolving looks at that row as well.
        more = {closes(row, held) for row in ceremonies if row["id"] in consulted} - {None}
        if more <= consulted:
            break
        consulted |= more
    for key, row in _records(case.rows):
        kind, id = key
        if kind == "ceremony":
            found = id in reached
        elif kind == "beat":
            found = not reached.isdisjoint(row["ceremonies"])
        elif kind == "diary":
            ceremony = row["metadata"].get("ceremony_id")
            episode = row.get("chronicle", "").removeprefix("chronicle:")
            found = ceremony in reached or (ceremony is None and episode in reach.episodes)
        else:
            continue
        (case.reached if found else case.outside).add(key)
    in_reach = {id for _, id in case.reached}
    for key, row in _records(case.rows):
        if key[0] == "conclusion":
            sources = set(row["metadata"]["source_event_ids"])
            found = row["metadata"]["status"] == "confirmed" and bool(sources) and sources <= in_reach
            (case.reached if found else case.outside).add(key)
    for kind, row in case.rows:
        key = ("conclusion" if kind == "node" and row["type"] == "knowledge" else kind, row.get("id", ""))
        if key in case.reached or (kind == "node" and key not in case.outside):
            case.inside.append((kind, row))
        elif kind == "ceremony" and row["id"] in consulted:
            case.inside.append((kind, {name: value for name, value in row.items() if name != "intentions"}))
        elif kind == "edge" and (row["relationship_type"] == "member_of" or row.get("ceremony_id") in reached):
            case.inside.append((kind, row))


class Bench:
    """Makes wheels from rows, each a copy of one that the plugins have prepared already."""

    def __init__(self, plugin: object | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="wheelmem-testing-"))
        self._made = 0
        self.plugins: PluginHost = load_plugins()
        if plugin is not None and not self.plugins.manager.is_registered(plugin):
            self.plugins.add(plugin, _name(plugin))
        self._template = self._folder / "template.db"
        open_wheel(self._template, plugins=self.plugins).close()
        # Another plugin of this environment that fails is not what is tested here.
        ours = {self.plugins.manager.get_name(plugin), _name(plugin)} if plugin is not None else set()
        failed = [str(failure) for failure in self.plugins.failures if failure.name in ours]
        if failed:
            raise AssertionError("; ".join(failed))

    @contextmanager
    def wheel(self, rows: list[Row]) -> Iterator[Wheel]:
        """A wheel that holds these rows, gone afterwards."""
        self._made += 1
        path = self._folder / f"{self._made}.db"
        shutil.copy(self._template, path)
        wheel = open_wheel(path, plugins=self.plugins)
        try:
            wheel.write(lambda db: [wheel.store(db, kind, row) for kind, row in rows])
            yield wheel
        finally:
            wheel.close()
            for left in self._folder.glob(f"{self._made}.db*"):
                left.unlink()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _name(plugin: object) -> str:
    return str(getattr(plugin, "__name__", type(plugin).__name__))


def disturb(path: Path, case: Case) -> None:
    """Change, add and delete what lies outside the reach, as any SQLite tool would."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("BEGIN")
        for n, (kind, id) in enumerate(sorted(case.outside)):
            if kind == "beat" and n % 2:
                db.execute("DELETE FROM beats WHERE id = ?", (id,))
            elif kind == "beat":
                db.execute("UPDATE beats SET description = description || ' lantern teal', speaker = 'Elm' WHERE id = ?", (id,))
            elif kind == "diary":
                db.execute("UPDATE diary SET content = 'stone dawn ' || content WHERE id = ?", (id,))
        insert = "INSERT INTO beats (id, title, description, ceremonies, speaker) VALUES (?, ?, ?, '[\"ceremony:nobody\"]', ?)"
        for n in range(20):
            db.execute(insert, (f"beat:other{n}", WORDS[n % len(WORDS)], " ".join(WORDS[n % 5 :]), [*PEOPLE][n % len(PEOPLE)]))
        db.execute("COMMIT")
        db.execute("VACUUM")
    finally:
        db.close()
