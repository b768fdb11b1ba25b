"""Law 2: a scope that names nothing reaches nothing, and then nobody is asked anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wheels import CIRCLES, Bench, Case, cases

from wheelmem import ProviderStatus, create_memory

BLANK = st.sampled_from(["", "  ", "\t\n"])
EMPTY_SCOPES = st.fixed_dictionaries(
    {},
    optional={
        "ceremonies": st.one_of(BLANK, st.lists(BLANK, max_size=2)),
        "subject_id": st.one_of(BLANK, st.lists(BLANK, max_size=2)),
        "circle_id": st.one_of(BLANK, st.lists(BLANK, max_size=2)),
        "episode_path": st.one_of(BLANK, st.lists(BLANK, max_size=2)),
        "participant": BLANK,
        "exclude_ceremonies": st.lists(st.sampled_from(["ceremony:0", "", "x"]), max_size=2),
    },
)


class Counting:
    """A provider and an arm at once that counts how often anybody asks it anything."""

    name = "counting"
    stage = "find"

    def __init__(self) -> None:
        self.asked = 0

    async def status(self) -> ProviderStatus:
        return ProviderStatus(self.name, True)

    async def ask(self, question: Any) -> dict[str, Any]:
        self.asked += 1
        return {"mode": "dialectic", "answer": "something", "sources": []}

    search = about = ask

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> list[Any]:
        self.asked += 1
        return []


def ask_all(wheel: Any, scope: dict[str, Any], case: Case) -> tuple[list[Any], int]:
    counting = Counting()
    memory = create_memory(wheel=wheel, providers=[counting], arms=[counting])

    async def all_three() -> list[Any]:
        return [
            await memory.ask(question=case.query, scope=scope),
            await memory.search(query=case.query, scope=scope),
            await memory.about(person=case.person, scope=scope, question=case.query),
            await memory.about(person=case.person, scope=scope),
        ]

    return asyncio.run(all_three()), counting.asked


def test_an_empty_scope_reaches_nothing_and_asks_nobody(bench: Bench) -> None:
    @given(cases(), EMPTY_SCOPES)
    def check(case: Case, scope: dict[str, Any]) -> None:
        with bench.wheel(case.rows) as wheel:
            answers, asked = ask_all(wheel, scope, case)
        for answer in answers:
            assert answer.to_json() == {"provider": "wheel", "mode": "empty", "sources": [], "reach": answer.reach.to_json()}
            assert answer.reach.is_empty
        assert asked == 0

    check()


@pytest.mark.parametrize("scope", [{"circle_id": "circle:unknown"}, {"ceremonies": ["ceremony:gone"]}, {"participant": "nobody"}])
def test_a_scope_that_names_what_the_wheel_does_not_hold_asks_nobody(bench: Bench, scope: dict[str, Any]) -> None:
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening", "circle_id": CIRCLES[0]})]
    with bench.wheel(rows) as wheel:
        answers, asked = ask_all(wheel, scope, Case(rows, scope, "opening", "Elm"))
    assert {answer.mode for answer in answers} == {"empty"}
    assert asked == 0


def test_the_check_sees_a_memory_that_asks(bench: Bench) -> None:
    """The count above can fail: with something in reach, the same double is asked."""
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening", "circle_id": CIRCLES[0]})]
    with bench.wheel(rows) as wheel:
        _, asked = ask_all(wheel, {"circle_id": CIRCLES[0]}, Case(rows, {}, "opening", "Elm"))
    assert asked > 0
