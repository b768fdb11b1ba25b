"""The hops arm: each relation, with a record that nothing else leads to; what is lent between turns; what stays outside."""

from __future__ import annotations

from typing import Any

import pytest
from rows import ceremony, turn

ANA, BEN, CORA = "node:human:1:ana", "node:human:2:ben", "node:human:3:cora"
PEOPLE = [("node", {"id": id, "type": "human", "name": name}) for id, name in ((ANA, "Ana"), (BEN, "Ben"), (CORA, "Cora"))]
SCOPE = {"ceremonies": ["ceremony:1", "ceremony:2", "ceremony:3"]}
RELATIONS = ("before", "after", "answer", "closing", "diary", "witness", "part", "honoured", "named", "edge")

START = turn("beat:start", "The lantern is teal.", speaker=ANA)
# relation → (rows beside the start, the record that only the relation leads to, the path that is told)
CASES: dict[str, tuple[list[Any], str, str]] = {
    "before": (
        [turn("beat:2", "Mhm.", minute=1), turn("beat:3", "I like that one.", minute=2)],
        "beat:3",
        "two turns after beat:start in ceremony:1",
    ),
    "after": (
        [turn("beat:0", "I like that one.", minute=0), turn("beat:start", "The lantern is teal.", minute=1)],
        "beat:0",
        "one turn before beat:start in ceremony:1",
    ),
    "answer": (
        [turn("beat:start", "Which lantern is it?"), turn("beat:2", "The one by the door.", minute=1)],
        "beat:2",
        "one turn after beat:start in ceremony:1",
    ),
    "closing": (
        [
            ceremony("ceremony:2", intentions=["choose the lantern"]),
            ceremony("ceremony:3", type="closing", closes="ceremony:2", intentions=["it stays as it was"]),
        ],
        "ceremony:3",
        "closing ceremony:2",
    ),
    "diary": (
        [
            (
                "diary",
                {
                    "id": "diary:1",
                    "content": "I was not sure.",
                    "participant": BEN,
                    "timestamp": "2026-03-08T21:00:00Z",
                    "metadata": {"ceremony_id": "ceremony:1"},
                },
            )
        ],
        "diary:1",
        "written the same day and in the same ceremony as beat:start",
    ),
    "witness": (
        [turn("beat:start", "The lantern is teal.", speaker=ANA, witnesses=[BEN])]
        + [turn(f"beat:{n}", "Mhm.", minute=n, speaker=CORA) for n in range(2, 10)]
        + [turn("beat:answer", "I would have said green.", minute=20, speaker=BEN)],
        "beat:answer",
        "by a witness of beat:start, answering it",
    ),
    "part": (
        [turn("beat:part", "First the frame was cut.", "ceremony:2", parent_beat_id="beat:start")],
        "beat:part",
        "a part of beat:start",
    ),
    "honoured": (
        [
            turn("beat:start", "The lantern is teal.", relations_honored=["the river"]),
            turn("beat:far", "We thank the water.", "ceremony:2", relations_honored=["the river"]),
        ],
        "beat:far",
        "honouring the river, as beat:start does",
    ),
    "named": (
        [
            ("node", {"id": "node:land:1", "type": "land", "name": "The Old Mill"}),
            turn("beat:start", "The lantern hangs at the old mill."),
            turn("beat:far", "Nobody has been to the old mill since spring.", "ceremony:2"),
        ],
        "beat:far",
        "by or about The Old Mill, named in beat:start",
    ),
    "edge": (
        [
            ("edge", {"from_id": ANA, "to_id": CORA, "relationship_type": "mentors", "ceremony_id": "ceremony:3"}),
            turn("beat:far", "Clay moves every year.", "ceremony:2", speaker=CORA),
        ],
        "beat:far",
        f"by way of {ANA} mentors {CORA} in ceremony:3, from beat:start",
    ),
}


def only(relation: str) -> dict[str, Any]:
    """Settings under which no other relation is followed."""
    others = {f"hops.{name}": 0.0 for name in RELATIONS if name != relation}
    return others | ({"hops.before": 0.5} if relation == "answer" else {})


def fill(finder: Any, relation: str) -> str:
    rows, wanted, _ = CASES[relation]
    ceremonies = [ceremony(f"ceremony:{n}") for n in (1, 2, 3)]
    finder.put(*PEOPLE, *ceremonies, START, *rows)
    return wanted


@pytest.mark.parametrize("relation", CASES)
def test_a_relation_leads_to_a_record_that_nothing_else_finds(finder: Any, relation: str) -> None:
    wanted = fill(finder, relation)
    without = finder.search("lantern", SCOPE, block={f"hops.{name}": 0.0 for name in RELATIONS})
    assert wanted not in {source.wheel_id for source in without.sources}
    found = {source.wheel_id: source for source in finder.search("lantern", SCOPE, block=only(relation)).sources}
    assert wanted in found
    paths = {report.arm: report.path for report in found[wanted].explain.arms}
    assert paths["hops"] == CASES[relation][2]


@pytest.mark.parametrize("relation", ["diary", "part", "witness", "closing"])
def test_it_leads_back_as_well(finder: Any, relation: str) -> None:
    rows: dict[str, list[Any]] = {
        "diary": [
            turn("beat:start", "I was not sure."),
            (
                "diary",
                {
                    "id": "diary:1",
                    "content": "About the lantern.",
                    "timestamp": "2026-03-08T21:00:00Z",
                    "metadata": {"ceremony_id": "ceremony:1"},
                },
            ),
        ],
        "part": [
            turn("beat:start", "Said in one go.", sub_beats=["beat:p"]),
            turn("beat:p", "The lantern.", "ceremony:2"),
        ],
        "witness": [
            turn("beat:start", "Blue is best.", speaker=ANA, witnesses=[BEN]),
            *(turn(f"beat:{n}", "Mhm.", minute=n, speaker=CORA) for n in range(2, 10)),
            turn("beat:answer", "Not for a lantern.", minute=20, speaker=BEN),
        ],
        "closing": [
            ceremony("ceremony:2", type="closing", closes="ceremony:1", intentions=["the lantern stays"]),
        ],
    }
    finder.put(*PEOPLE, *(ceremony(f"ceremony:{n}") for n in (1, 2, 3)), *rows[relation])
    found = finder.search("lantern", SCOPE, block=only(relation)).sources
    assert ("ceremony:1" if relation == "closing" else "beat:start") in {source.wheel_id for source in found}


def test_relations_are_followed_one_after_another_as_deep_as_set(finder: Any) -> None:
    finder.put(
        *PEOPLE,
        *(ceremony(f"ceremony:{n}") for n in (1, 2, 3)),
        turn("beat:1", "The lantern.", relations_honored=["the river"]),
        turn("beat:2", "Water.", "ceremony:2", relations_honored=["the river", "the hill"]),
        turn("beat:3", "Grass.", "ceremony:3", relations_honored=["the hill"]),
    )
    found = {source.wheel_id: source for source in finder.search("lantern", SCOPE, block=only("honoured")).sources}
    (report,) = found["beat:3"].explain.arms
    assert report.path == "honouring the hill, as beat:2 does, itself honouring the river, as beat:1 does"
    shallow = finder.search("lantern", SCOPE, block=only("honoured") | {"hops.depth": 1})
    assert "beat:3" not in {source.wheel_id for source in shallow.sources}


def test_two_turns_that_share_the_words_of_a_question_stand_before_one_that_has_half(finder: Any) -> None:
    finder.put(
        ceremony("ceremony:1"),
        ceremony("ceremony:2"),
        turn("beat:half", "A lantern, a lantern, only a lantern.", "ceremony:2", 59),
        turn("beat:1", "Did you buy the lantern?", minute=1),
        turn("beat:2", "Yes, at the harbour.", minute=2),
    )
    found = [source.wheel_id for source in finder.search("lantern harbour", {"ceremonies": ["ceremony:1", "ceremony:2"]}).sources]
    assert found.index("beat:2") < found.index("beat:half")


def test_irregular_forms_are_one_word(finder: Any) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "We bought a boat."), turn("beat:2", "A boat is a boat.", minute=40))
    found = [source.wheel_id for source in finder.search("buy a boat", {"ceremonies": "ceremony:1"}).sources]
    assert found[0] == "beat:1"


def test_no_path_goes_through_what_the_scope_does_not_reach(finder: Any) -> None:
    finder.put(
        ceremony("ceremony:1"),
        ceremony("ceremony:2"),
        ceremony("ceremony:hidden"),
        turn("beat:1", "The lantern.", relations_honored=["the river"]),
        turn("beat:hidden", "Water.", "ceremony:hidden", relations_honored=["the river", "the hill"]),
        turn("beat:3", "Grass.", "ceremony:2", relations_honored=["the hill"]),
        ("edge", {"from_id": "beat:1", "to_id": "beat:3", "relationship_type": "echoes", "ceremony_id": "ceremony:hidden"}),
    )
    found = {source.wheel_id for source in finder.search("lantern", {"ceremonies": ["ceremony:1", "ceremony:2"]}).sources}
    assert found == {"beat:1"}


def test_about_a_person_gives_only_theirs_also_when_another_asked(finder: Any) -> None:
    finder.put(
        *PEOPLE,
        ceremony("ceremony:1"),
        turn("beat:1", "Where is the lantern?", speaker=ANA),
        turn("beat:2", "By the door.", minute=1, speaker=BEN),
    )
    from wheelmem import create_memory
    from wheelmem.memory import run

    memory = create_memory(wheel=finder.wheel, providers=())
    answer = run(memory, memory.about(person=BEN, scope={"ceremonies": "ceremony:1"}, question="lantern"))
    assert [source.wheel_id for source in answer.sources] == ["beat:2"]


def test_a_changed_turn_changes_where_it_leads(finder: Any) -> None:
    fill(finder, "part")
    finder.put(turn("beat:part", "First the frame was cut.", "ceremony:2"))
    found = finder.search("lantern", SCOPE, block=only("part"))
    assert "beat:part" not in {source.wheel_id for source in found.sources}


def test_alone_it_starts_from_the_words_itself(finder: Any) -> None:
    wanted = fill(finder, "before")
    found = {source.wheel_id for source in finder.search("lantern", SCOPE, arms=["hops"]).sources}
    assert {"beat:start", wanted} <= found
