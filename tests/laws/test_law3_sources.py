"""Law 3: every source is a record in reach, or says that it is none; a provider is believed about words, never about reach."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from wheels import Bench, Case, cases

from wheelmem import Answer, ProviderStatus, create_memory
from wheelmem import memory as memory_module

RECORDS = ("beat", "diary", "ceremony", "conclusion")


class Claiming:
    """A provider that answers with whatever sources it was made with, words of its own invention in each."""

    name = "claiming"

    def __init__(self, sources: list[dict[str, Any]], mode: str = "dialectic") -> None:
        self.sources = sources
        self.mode = mode

    async def status(self) -> ProviderStatus:
        return ProviderStatus(self.name, True)

    async def ask(self, question: Any) -> dict[str, Any]:
        return {"mode": self.mode, "answer": "an answer", "sources": self.sources}

    search = about = ask


def claims_of(case: Case) -> st.SearchStrategy[list[dict[str, Any]]]:
    held = [(kind, row["id"]) for kind, row in case.rows if kind in RECORDS]
    held += [("conclusion", row["id"]) for kind, row in case.rows if kind == "node" and row["type"] == "knowledge"]
    one = st.one_of(
        st.sampled_from(held or [("beat", "beat:none")]),
        st.sampled_from(
            [("beat", "beat:none"), ("ceremony", ""), ("nonsense", "beat:0"), ("diary", "\ud800"), ("message", "m1")]
        ),
    )
    outside = st.sampled_from([None, True, False])
    return st.lists(
        st.tuples(one, outside).map(
            lambda made: {
                "provider": "claiming",
                "wheel_kind": made[0][0],
                "wheel_id": made[0][1],
                "excerpt": "INVENTED",
                "speaker": "INVENTED",
                **({} if made[1] is None else {"outside_wheel": made[1]}),
            }
        ),
        max_size=6,
    )


def check_sources(case: Case, answer: Answer, in_reach: set[tuple[str, str]]) -> None:
    for source in answer.sources:
        if source.wheel_kind == "message":
            assert source.outside_wheel is True
            continue
        assert source.outside_wheel is None
        assert (source.wheel_kind, source.wheel_id) in in_reach
        assert "INVENTED" not in source.excerpt
        assert source.speaker != "INVENTED"
    keys = [(source.wheel_kind, source.wheel_id) for source in answer.sources]
    assert len(keys) == len(set(keys))


def law(bench: Bench, phases: Sequence[Phase] = tuple(Phase)) -> None:
    @settings(phases=phases)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(cases())
        claims = data.draw(claims_of(case))
        with bench.wheel(case.rows) as wheel:
            memory = create_memory(wheel=wheel, providers=[Claiming(claims)])

            async def everything() -> tuple[list[Answer], set[tuple[str, str]]]:
                reach = await memory.reach(scope=case.scope)
                records = await wheel.records(reach)
                asked = [
                    await memory.ask(question=case.query, scope=case.scope, limit=50),
                    await memory.search(query=case.query, scope=case.scope, limit=5),
                    await memory.about(person=case.person, scope=case.scope, question=case.query),
                ]
                return asked, {(record.wheel_kind, record.wheel_id) for record in records}

            answers, in_reach = asyncio.run(everything())
        false_claims = {
            (claim["wheel_kind"], claim["wheel_id"]) for claim in claims if claim["wheel_kind"] != "message"
        } - in_reach
        for answer in answers:
            check_sources(case, answer, in_reach)
            if answer.mode != "empty":
                assert ("left out: not a record within this scope" in (answer.note or "")) == bool(false_claims)

    check()


def test_every_source_is_a_record_in_reach_or_says_it_is_not(bench: Bench) -> None:
    law(bench)


def test_a_memory_that_believes_its_provider_is_caught(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def believe(self: Any, asked: Any, provider: str, answer: Any, look: Any) -> tuple[list[Any], int]:
        return [replace(source, provider=provider) for source in answer.sources], 0

    monkeypatch.setattr(memory_module.Memory, "_believed", believe)
    with pytest.raises((AssertionError, ExceptionGroup)):
        law(bench, phases=[Phase.generate])


def test_held_elsewhere_and_not_held_at_all_look_the_same(bench: Bench) -> None:
    rows = [("ceremony", {"id": f"ceremony:{n}", "type": "opening"}) for n in range(2)]
    answers = []
    for claimed in ("ceremony:1", "ceremony:never"):
        claim = {"provider": "claiming", "wheel_kind": "ceremony", "wheel_id": claimed, "excerpt": "x"}
        with bench.wheel(rows) as wheel:
            memory = create_memory(wheel=wheel, providers=[Claiming([claim])])
            answers.append(asyncio.run(memory.ask(question="opening", scope={"ceremonies": "ceremony:0"})).to_json())
    assert answers[0] == answers[1]
    assert answers[0]["note"] == "1 source(s) of claiming left out: not a record within this scope"


def test_a_record_that_leaves_the_reach_while_a_provider_thinks_is_not_shown(bench: Bench) -> None:
    rows: list[tuple[str, dict[str, Any]]] = [("ceremony", {"id": f"ceremony:{n}", "type": "opening"}) for n in range(2)]
    rows += [("beat", {"id": f"beat:{n}", "title": "lantern", "ceremonies": ["ceremony:0"]}) for n in range(2)]
    with bench.wheel(rows) as wheel:

        class Slow(Claiming):
            async def ask(self, question: Any) -> dict[str, Any]:
                wheel.put("beat", {"id": "beat:0", "title": "lantern", "ceremonies": ["ceremony:1"]})
                return await super().ask(question)

        claims = [{"provider": "x", "wheel_kind": "beat", "wheel_id": f"beat:{n}", "excerpt": "x"} for n in range(2)]
        memory = create_memory(wheel=wheel, providers=[Slow(claims)])
        answer = asyncio.run(memory.ask(question="lantern", scope={"ceremonies": "ceremony:0"}))
    assert [source.wheel_id for source in answer.sources if source.wheel_kind == "beat"] == ["beat:1"]
