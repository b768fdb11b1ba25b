"""Law 5: a plugin that fails costs its own part only, and is named in the note."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wheels import Bench, Case, cases

from wheelmem import create_memory, load_settings
from wheelmem.memory import run

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def arm(arm_name: str, body: Callable[[Any], Any]) -> Any:
    class Arm:
        name = arm_name
        stage = "find"

        def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Any:
            return body(db)

    return Arm()


def good() -> Any:
    def rows(db: Any) -> Any:
        return [(id, 1.0, None) for (id,) in db.execute("SELECT record_id FROM reach_records").fetchall()]

    return arm("good", rows)


def fail(error: BaseException) -> Callable[[Any], Any]:
    def body(db: Any) -> Any:
        raise error

    return body


FAULTS: dict[str, Callable[[Any], Any]] = {
    "raises": fail(ValueError("the words of another circle")),
    "recursion": lambda db: FAULTS["recursion"](db),
    "sql": lambda db: db.execute("SELECT nothing FROM nowhere"),
    "none": lambda db: None,
    "text": lambda db: "abc",
    "nan": lambda db: [(1, float("nan"), None)],
    "infinite": lambda db: [(1, float("inf"), None)],
    "strings": lambda db: [("1", "2", 3)],
    "short": lambda db: [(1,)],
    "huge": lambda db: [(2**80, 1.0, None)],
    "endless": lambda db: ((n, 1.0, None) for n in iter(int, 1)),
    "stops": lambda db: (_ for _ in ()).throw(RuntimeError("half way")),
}


def test_a_faulty_arm_changes_nothing_but_the_note(bench: Bench) -> None:
    @given(cases(), st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=3, unique=True))
    def check(case: Case, faults: list[str]) -> None:
        with bench.wheel(case.rows) as wheel:
            plain = create_memory(wheel=wheel, providers=[], arms=[good()])
            expected = run(plain, plain.search(query=case.query, scope=case.scope)).to_json()
            broken = create_memory(wheel=wheel, providers=[], arms=[good(), *(arm(name, FAULTS[name]) for name in faults)])
            found = run(broken, broken.search(query=case.query, scope=case.scope)).to_json()
        note = found.pop("note", "")
        expected.pop("note", None)
        assert found == expected
        if found["mode"] != "empty":
            for name in faults:
                assert name in {"endless", "huge"} or f"arm {name} " in note
            assert "another circle" not in note

    check()


def test_three_arms_in_a_row_that_hang_cost_a_note_each(bench: Bench) -> None:
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening"})]
    hanging = [
        arm("sleeps", lambda db: time.sleep(600)),
        arm("counts", lambda db: db.execute(ENDLESS).fetchall()),
        arm("loops", lambda db: [1 for _ in iter(int, 1)]),
    ]
    loops = {"go on": True}

    def loop(db: Any) -> None:
        while loops["go on"]:
            pass

    hanging[2] = arm("loops", loop)
    quick = load_settings(env={"WHEELMEM_ARM_TIMEOUT": "0.2"})
    with bench.wheel(rows) as wheel:
        memory = create_memory(wheel=wheel, providers=[], arms=[*hanging, good()], settings=quick)
        try:
            first = run(memory, memory.search(query="opening", scope={"ceremonies": "ceremony:0"}))
            again = run(memory, memory.search(query="opening", scope={"ceremonies": "ceremony:0"}))
        finally:
            loops["go on"] = False
    for answer in (first, again):
        assert [source.wheel_id for source in answer.sources] == ["ceremony:0"]
        for name in ("sleeps", "counts", "loops"):
            assert (answer.note or "").count(f"arm {name} ") == 1
    assert "switched off" in (again.note or "")


@pytest.mark.parametrize("fault", ["hangs", "raises", "nonsense"])
def test_a_classifier_that_fails_costs_its_weights_only(bench: Bench, fault: str) -> None:
    class Weighs:
        name = "moody"

        def weigh(self, question: Any) -> Any:
            if fault == "hangs":
                time.sleep(600)
            if fault == "raises":
                raise ValueError("no")
            return {"good": "much"}

    rows = [("ceremony", {"id": "ceremony:0", "type": "opening"})]
    quick = load_settings(env={"WHEELMEM_ARM_TIMEOUT": "0.2"})
    with bench.wheel(rows) as wheel:
        memory = create_memory(wheel=wheel, providers=[], arms=[good()], classifiers=[Weighs()], settings=quick)
        answer = run(memory, memory.search(query="opening", scope={"ceremonies": "ceremony:0"}))
    assert [source.wheel_id for source in answer.sources] == ["ceremony:0"]
    assert "classifier moody " in (answer.note or "")


class Provider:
    name = "faulty"

    def __init__(self, body: Callable[[], Any]) -> None:
        self.body = body

    async def status(self) -> Any:
        return await self.ask(None)

    async def ask(self, question: Any) -> Any:
        made = self.body()
        return await made if asyncio.iscoroutine(made) else made

    search = about = ask


async def _deaf() -> None:
    for _ in range(2):
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass


def _raise() -> None:
    raise ConnectionError("cannot reach memory.example")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_raise, "faulty did not answer: ConnectionError: cannot reach memory.example"),
        (lambda: asyncio.sleep(600), "faulty did not answer: no answer within 0.2 s"),
        (lambda: _deaf(), "faulty did not answer: no answer within 0.2 s"),
        (lambda: None, "faulty did not answer: its answer was no answer"),
        (lambda: {"mode": "certain"}, "faulty did not answer: its answer was no answer"),
        (lambda: {"mode": "search", "sources": [{"wheel_kind": 3, "wheel_id": 4, "provider": "x"}]}, "its answer was no answer"),
        (lambda: {"mode": "search", "sources": "none"}, "its answer was no answer"),
        (lambda: {"mode": "dialectic", "answer": "  "}, "faulty did not answer: it reasoned, and said nothing"),
        (lambda: asyncio.sleep(0, {"mode": "dialectic"}), "faulty did not answer: it reasoned, and said nothing"),
    ],
)
async def test_when_a_provider_fails_the_wheel_answers_and_says_why(bench: Bench, body: Any, said: str) -> None:
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening"})]
    quick = load_settings(
        env={f"WHEELMEM_{name}_TIMEOUT": "0.2" for name in ("REASONING", "PROVIDER", "STATUS")},
    )
    with bench.wheel(rows) as wheel:
        memory = create_memory(wheel=wheel, providers=[Provider(body)], arms=[good()], settings=quick)
        scope = {"ceremonies": "ceremony:0"}
        for answer in (
            await memory.ask(question="opening", scope=scope),
            await memory.search(query="opening", scope=scope),
            await memory.about(person="medicine-wheel", scope=scope),
        ):
            assert (answer.provider, answer.mode) == ("wheel", "matched")
            assert said in (answer.note or "")
            assert [source.wheel_id for source in answer.sources] == ["ceremony:0"]
        statuses = await memory.status()
    assert statuses[-1].to_json() == {"provider": "wheel", "enabled": True, "confined": True, "detail": {"mode": "matched"}}
    if body is _raise:
        assert statuses[0].to_json() == {
            "provider": "faulty",
            "enabled": False,
            "error": "ConnectionError: cannot reach memory.example",
        }


async def test_the_second_provider_answers_when_the_first_cannot(bench: Bench) -> None:
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening"})]
    with bench.wheel(rows) as wheel:
        second = Provider(lambda: {"mode": "dialectic", "answer": "it opened"})
        second.name = "second"
        memory = create_memory(wheel=wheel, providers=[Provider(_raise), second])
        answer = await memory.ask(question="what opened?", scope={"ceremonies": "ceremony:0"})
    assert (answer.provider, answer.mode, answer.answer) == ("second", "dialectic", "it opened")
    assert "faulty did not answer" in (answer.note or "")
