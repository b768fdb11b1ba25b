"""What a record says, whose words it is, when it was and where it belongs, also in the older and odder shapes."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from storeworld import plain_wheel

from wheelmem.contract import Scope
from wheelmem.store import Wheel, reading
from wheelmem.store.connections import ReadConnection


@pytest.fixture
def wheel(tmp_path: Path) -> Any:
    with plain_wheel(tmp_path / "w.db") as made:
        yield made


def text(wheel: Wheel, id: str) -> str | None:
    row = wheel.read(lambda db: db.execute("SELECT text FROM records WHERE wheel_id = ?", (id,)).fetchone())
    return None if row is None else str(row[0])


CEREMONIES = [
    ({"type": "talking_circle", "direction": "east", "participants": ["a", "b"], "intentions": ["x", "y"]},
     "Ceremony: talking_circle (east)\nParticipants: a, b\nIntentions: x; y"),
    ({"type": "opening"}, "Ceremony: opening"),
    ({"direction": "west"}, "Ceremony: (west)"),
    ({}, "Ceremony:"),
    ({"type": "opening", "participants": [], "intentions": ""}, "Ceremony: opening"),
    ({"type": "opening", "participants": "Ana", "intentions": "begin again"},
     "Ceremony: opening\nParticipants: Ana\nIntentions: begin again"),
    ({"type": "opening", "research_context": "How do we cross?"}, "Ceremony: opening\nContext: How do we cross?"),
    ({"type": "opening", "research_context": '{"episodePath":"e"}'}, "Ceremony: opening"),
    ({"type": "opening", "research_context": {"episodePath": "e"}}, "Ceremony: opening"),
    ({"type": "opening", "research_context": "ceremony:1:x"}, "Ceremony: opening"),
    ({"type": "opening", "research_context": "ceremony: prose"}, "Ceremony: opening\nContext: ceremony: prose"),
]  # fmt: skip
BEATS = [
    ({"direction": "east", "title": "Ana speaks", "description": "The lantern.", "prose": "More.", "learnings": ["one", "two"]},
     "[east] Ana speaks\nThe lantern.\nMore.\none\ntwo"),
    ({"title": "t", "description": "same", "prose": "same"}, "t\nsame"),
    ({"direction": "west", "title": "t"}, "[west] t"),
    ({"description": "only this"}, "only this"),
    ({"learnings": "one bare string"}, "one bare string"),
    ({"prose": "only prose", "learnings": []}, "only prose"),
    ({}, ""),
]  # fmt: skip
DIARY = [
    ({"phase": "nindokendaan", "entryType": "observation", "content": "I asked."}, "[nindokendaan · observation] I asked."),
    ({"phase": "migwech", "content": "x"}, "[migwech] x"),
    ({"entryType": "data", "content": "x"}, "[data] x"),
    ({"content": "Éloïse"}, "Éloïse"),
    ({"phase": "migwech"}, "[migwech] "),
]


@pytest.mark.parametrize(("kind", "fields", "expected"), [
    *(("ceremony", *case) for case in CEREMONIES), *(("beat", *case) for case in BEATS), *(("diary", *case) for case in DIARY),
])  # fmt: skip
def test_the_text_of_a_record(wheel: Wheel, kind: str, fields: dict[str, Any], expected: str) -> None:
    wheel.put(kind, {"id": "x", **fields})
    assert (text(wheel, "x") or "").rstrip() == expected.rstrip()


def test_a_closing_that_names_what_it_closes_says_so_only_while_nothing_of_that_name_is_held(wheel: Wheel) -> None:
    wheel.put("ceremony", {"id": "end", "type": "closing", "research_context": "first"})
    wheel.put("ceremony", {"id": "talk", "type": "opening", "research_context": "first"})
    assert text(wheel, "end") == "Ceremony: closing\nContext: first"
    wheel.put("ceremony", {"id": "first", "type": "opening"})
    assert text(wheel, "end") == "Ceremony: closing"
    wheel.delete("ceremony", "first")
    assert text(wheel, "end") == "Ceremony: closing\nContext: first"


def test_speakers_and_times(wheel: Wheel) -> None:
    wheel.put("ceremony", {"id": "c", "timestamp": "2026-03-08T18:00:00.000Z"})
    wheel.put("beat", {"id": "b", "speaker": "Ana", "timestamp": "2026-03-08T20:00:00+02:00"})
    wheel.put("beat", {"id": "silent", "speaker": "", "timestamp": "now"})
    wheel.put("diary", {"id": "d", "participant": "node:human:1:a", "timestamp": "soon"})
    rows = wheel.read(lambda db: db.execute("SELECT wheel_id, speaker, at, instant FROM records").fetchall())
    found = {id: rest for id, *rest in rows}
    assert found["c"][:2] == ["medicine-wheel", "2026-03-08T18:00:00.000Z"]
    assert found["b"][:2] == ["Ana", "2026-03-08T20:00:00+02:00"]
    # The same moment, though one says it in another zone.
    assert found["c"][2] == found["b"][2]
    assert found["silent"] == [None, "now", None]
    assert found["d"] == ["node:human:1:a", "soon", None]


def ids(wheel: Wheel, **scope: Any) -> list[tuple[str, str | None]]:
    def read(db: ReadConnection) -> list[tuple[str, str | None]]:
        found = reading.all_reached(db, reading.resolve(db, Scope.from_json(scope)))
        return [(one.record.wheel_id, one.record.ceremony_id) for one in found]

    return wheel.read(read)


def test_a_turns_ceremony_is_the_first_of_its_own_that_is_reached(wheel: Wheel) -> None:
    for id in ("c1", "c2", "c3"):
        wheel.put("ceremony", {"id": id})
    wheel.put("beat", {"id": "b", "ceremonies": ["gone", "c3", "c1", "c3"]})
    assert ("b", "c3") in ids(wheel, ceremonies=["c1", "c2", "c3"])
    assert ("b", "c1") in ids(wheel, ceremonies=["c1", "c2"])
    assert ids(wheel, ceremonies=["c2"]) == [("c2", "c2")]
    assert ids(wheel, ceremonies=["gone"]) == []
    # A turn may come before its ceremony does.
    wheel.put("ceremony", {"id": "gone"})
    assert ("b", "gone") in ids(wheel, ceremonies=["gone", "c3"])


def test_a_diary_entry_belongs_to_its_ceremony_else_to_its_chronicle(wheel: Wheel) -> None:
    wheel.put("ceremony", {"id": "c1", "episode_path": "e1"})
    wheel.put("diary", {"id": "of a ceremony", "metadata": {"ceremony_id": "c1"}, "chronicle": "chronicle:e2"})
    wheel.put("diary", {"id": "of an episode", "chronicle": "chronicle:e2"})
    wheel.put("diary", {"id": "bare path", "chronicle": "e2", "metadata": {"ceremony_id": ""}})
    wheel.put("diary", {"id": "private"})
    assert ids(wheel, episode_path="e1") == [("c1", "c1"), ("of a ceremony", "c1")]
    assert ids(wheel, episode_path="e2") == [("of an episode", None), ("bare path", None)]
    assert ids(wheel, ceremonies="c1", exclude_ceremonies=["c1"]) == []


SOURCES: list[tuple[list[str] | str | None, dict[str, str], bool]] = [
    (["b1"], {"ceremonies": "c1"}, True),
    (["b1", "c1"], {"ceremonies": "c1"}, True),
    (["b1", "b2"], {"ceremonies": "c1"}, False),
    (["b1", "gone"], {"ceremonies": "c1"}, False),
    (["b2"], {"ceremonies": "c1"}, False),
    ("b1", {"ceremonies": "c1"}, True),
    ([], {"ceremonies": "c1"}, False),
    (None, {"ceremonies": "c1"}, False),
    (["k0"], {"ceremonies": "c1"}, False),
]


@pytest.mark.parametrize(("sources", "scope", "expected"), SOURCES)
def test_a_confirmed_conclusion_is_in_reach_when_all_it_names_is(
    wheel: Wheel, sources: Any, scope: dict[str, str], expected: bool
) -> None:
    for number in (1, 2):
        wheel.put("ceremony", {"id": f"c{number}"})
        wheel.put("beat", {"id": f"b{number}", "title": "t", "ceremonies": [f"c{number}"]})
    made = {
        "kind": "memory_projection",
        "projection_kind": "pattern",
        "status": "confirmed",
        "generated_at": "2026-03-01T00:00:00Z",
    }
    wheel.put("node", {"id": "k0", "type": "knowledge", "description": "first", "metadata": {**made, "source_event_ids": ["b1"]}})
    wheel.put(
        "node", {"id": "k", "type": "knowledge", "description": "they meet", "metadata": {**made, "source_event_ids": sources}}
    )
    assert (("k", None) in ids(wheel, **scope)) == expected
    assert text(wheel, "k") == "pattern: they meet"
    # It goes when it is confirmed no longer, or when what it rests on leaves the wheel.
    wheel.put("node", {"id": "k0", "type": "knowledge", "metadata": {**made, "status": "inferred", "source_event_ids": ["b1"]}})
    wheel.delete("beat", "b1")
    assert {id for id, _ in ids(wheel, ceremonies=["c1", "c2"])} & {"k", "k0"} <= ({"k"} if sources == ["b2"] else set())


def test_a_conclusions_speaker_is_who_derived_it_while_that_is_a_node(wheel: Wheel) -> None:
    meta = {"kind": "memory_projection", "status": "confirmed", "derived_by": "node:agent:1:w", "source_event_ids": ["b1"]}
    wheel.put("node", {"id": "k", "type": "knowledge", "description": "x", "metadata": meta})

    def speaker() -> Any:
        return wheel.read(lambda db: db.execute("SELECT speaker FROM records WHERE wheel_id = 'k'").fetchone()[0])

    assert speaker() is None
    wheel.put("node", {"id": "node:agent:1:w", "type": "agent"})
    assert speaker() == "node:agent:1:w"
    wheel.delete("node", "node:agent:1:w")
    assert speaker() is None


NODE_TYPES = ["agent", "knowledge", None]


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(NODE_TYPES, 2)))
def test_whatever_the_node_is_that_derived_a_conclusion_its_arrival_in_any_order_comes_to_the_same(
    tmp_path: Path, before: str | None, after: str | None
) -> None:
    meta = {"kind": "memory_projection", "status": "confirmed", "derived_by": "w", "source_event_ids": ["b1"]}
    rows = [{"id": "k", "type": "knowledge", "metadata": meta}, {"id": "w", "type": before}]
    speakers = []
    for number, order in enumerate((rows, rows[::-1])):
        with plain_wheel(tmp_path / f"{number}.db") as wheel:
            for row in order:
                wheel.put("node", row)
            wheel.put("node", {"id": "w", "type": after})
            speakers.append(wheel.read(lambda db: db.execute("SELECT speaker FROM records WHERE wheel_id = 'k'").fetchone()[0]))
    assert speakers == ["w", "w"]


def test_a_record_before_the_first_position_is_read_as_any_other(wheel: Wheel) -> None:
    wheel.put("ceremony", {"id": "c1"})
    db = sqlite3.connect(wheel.path)
    with db:
        db.execute("INSERT INTO ceremonies (position, id) VALUES (-2, 'c0')")
        db.execute("INSERT INTO beats (position, id, ceremonies) VALUES (-3, 'b0', 'c0')")
        db.execute("INSERT INTO beats (position, id, ceremonies) VALUES (0, 'b1', 'c1')")
        db.execute("INSERT INTO diary (position, id, metadata) VALUES (-1, 'd0', '{\"ceremony_id\":\"c0\"}')")
    db.close()
    assert ids(wheel, ceremonies=["c0", "c1"]) == [("c0", "c0"), ("c1", "c1"), ("b0", "c0"), ("b1", "c1"), ("d0", "c0")]
