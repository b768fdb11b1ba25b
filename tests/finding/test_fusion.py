"""Fusing what the arms say, and words that were recorded twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import ceremony, turn

from wheelmem import create_memory
from wheelmem.contract import Record
from wheelmem.memory import run
from wheelmem.retrieval import DEPTH, fuse
from wheelmem.settings import Settings
from wheelmem.store.reading import ReachedRecord

SCOPE = {"ceremonies": "ceremony:1"}


def ranking(*scores: tuple[int, float]) -> list[Any]:
    made = [(ReachedRecord(id, None, Record("beat", f"beat:{id}")), score, None) for id, score in scores]
    return sorted(made, key=lambda item: (-item[1], item[0].order))


def order(matches: Any) -> list[int]:
    return [match.found.record_id for match in matches]


def test_scales_do_not_matter_and_weights_do() -> None:
    arms = {"one": ranking((1, 1.0), (2, 0.9)), "two": ranking((2, 5000.0), (3, 4999.0))}
    assert order(fuse(arms, {})) == [2, 1, 3]
    assert order(fuse(arms, {"one": 3.0, "two": 0.1})) == [1, 2, 3]


def test_a_record_that_was_nearly_cut_off_counts_for_next_to_nothing() -> None:
    full = ranking(*((id, 1.0 - id / 10_000) for id in range(DEPTH)))
    short = ranking((DEPTH - 1, 1.0), (5_000, 0.99))
    scores = {match.found.record_id: match.score for match in fuse({"full": full, "short": short}, {})}
    assert scores[0] == 1.0
    assert scores[DEPTH - 1] == 1.0
    assert scores[DEPTH - 2] < 0.02


def test_what_an_arm_favours_is_added_as_it_is_and_adds_no_record() -> None:
    arms = {"words": ranking((1, 10.0), (2, 9.5))}
    favours = {"likes": ranking((2, 0.95), (7, 99.0))}
    assert order(fuse(arms, {"likes": 0.2}, favours)) == [2, 1]
    assert order(fuse(arms, {"likes": 0.01}, favours)) == [1, 2]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.tuples(st.integers(1, 30), st.floats(-5, 5)), max_size=12, unique_by=lambda pair: pair[0]),
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_arms_answer_does_not_show(lists: dict[str, list[tuple[int, float]]], random: Any) -> None:
    arms = {name: ranking(*scores) for name, scores in lists.items()}
    shuffled = list(arms.items())
    random.shuffle(shuffled)
    assert fuse(arms, {}) == fuse(dict(shuffled), {})
    assert sorted(order(fuse(arms, {}))) == sorted({id for scores in lists.values() for id, _ in scores})


class Favours:
    """Favours everything it is handed, by as much as it was found."""

    name = "favours"
    stage = "favour"
    weight: Any = 1.0

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Iterator[tuple[int, float, str]]:
        for one in found:
            yield one.record_id, one.score, f"found by {one.arm}"


class Finds:
    """Finds every record of the reach."""

    name = "finds"
    stage = "find"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Iterator[tuple[int, float, None]]:
        assert not found
        for (id,) in db.execute("SELECT record_id FROM temp.reach_records"):
            yield id, 1.0, None


class Follows(Finds):
    name = "follows"
    stage = "follow"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Iterator[tuple[int, float, None]]:
        assert {one.arm for one in found} == {"finds"}
        yield found[0].record_id, 2.0, None


def test_each_stage_is_handed_what_those_before_it_found(finder: Any) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "A lantern."))
    memory = create_memory(
        wheel=finder.wheel, providers=(), arms=[Favours(), Follows(), Finds()], classifiers=(), settings=Settings()
    )
    answer = run(memory, memory.search(query="x", scope=SCOPE, explain=True))
    assert answer.note == "no provider is configured; the wheel matched its own records"
    first = {report.arm: report.path for report in answer.sources[0].explain.arms}  # type: ignore[union-attr]
    assert first == {"finds": None, "follows": None, "favours": "found by finds"}


@pytest.mark.parametrize("weight", ["much", float("nan"), -1, None])
def test_a_weight_that_is_none_counts_as_one(finder: Any, weight: Any) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "A lantern."))
    arm = Finds()
    arm.weight = weight  # type: ignore[attr-defined]
    memory = create_memory(wheel=finder.wheel, providers=(), arms=[arm], classifiers=(), settings=Settings())
    assert len(run(memory, memory.search(query="x", scope=SCOPE)).sources) == 2


# --- the same words twice --------------------------------------------------------------------------------------------

WORDS = "The lantern is painted teal, and we meet at dawn."


def entry(id: str, content: str) -> tuple[str, dict[str, Any]]:
    return "diary", {"id": id, "content": content, "phase": "migwech", "metadata": {"ceremony_id": "ceremony:1"}}


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        (turn("beat:1", WORDS), entry("diary:1", WORDS), True),
        (turn("beat:1", WORDS), entry("diary:1", f"She said: “{WORDS.lower()}”"), True),
        (turn("beat:1", WORDS, title="Ana speaks"), turn("beat:2", WORDS, title="Ana again", minute=9), True),
        (turn("beat:1", "Good, teal!"), turn("beat:2", "Good, teal!", minute=9), False),
        (turn("beat:1", WORDS), turn("beat:2", WORDS.replace("teal", "green"), minute=9), False),
        (turn("beat:1", WORDS), entry("diary:1", f"{WORDS} I wrote this down, since nobody else would."), False),
    ],
)
def test_the_same_words_stand_once(finder: Any, first: Any, second: Any, one: bool) -> None:
    finder.put(ceremony("ceremony:1"), first, second)
    found = finder.search("teal dawn", SCOPE, arms=["keyword"]).sources
    ids = {first[1]["id"], second[1]["id"]}
    if one:
        assert len(found) == 1
        assert {found[0].wheel_id, *found[0].explain.duplicates} == ids
    else:
        assert {source.wheel_id for source in found} == ids
        assert all(source.explain.duplicates is None for source in found)


def test_a_repeat_outside_the_reach_is_not_named(finder: Any) -> None:
    finder.put(ceremony("ceremony:1"), ceremony("ceremony:2"), turn("beat:1", WORDS), turn("beat:2", WORDS, "ceremony:2"))
    answer = finder.search("teal", SCOPE, arms=["keyword"])
    assert [source.wheel_id for source in answer.sources] == ["beat:1"]
    assert "beat:2" not in json.dumps(answer.to_json())
