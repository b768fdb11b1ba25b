"""Law 5: a plugin that fails costs its own part only, and is named in the note."""

from __future__ import annotations

import asyncio
import sqlite3
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


def change(attribute: str, value: Any) -> Callable[[Any], Any]:
    return lambda db: setattr(db, attribute, value) or []


def leave_open(db: Any) -> Any:
    _kept.append(db.execute("SELECT * FROM records, records other"))
    _kept[-1].fetchone()
    return []


_kept: list[Any] = []
# Everything looks as if it lay in one place; hides the wheel's own table of that name.
HIDING = (
    "CREATE TEMP TABLE records AS SELECT record_id, kind, wheel_id, (SELECT min(place) FROM places) AS home, speaker, at, "
    "instant, 'hidden' AS text FROM main.records"
)


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
    "ends": fail(SystemExit(3)),
    "Ctrl-C": fail(KeyboardInterrupt()),
    "generator": fail(GeneratorExit()),
    "cancelled": fail(asyncio.CancelledError()),
    "beyond": lambda db: [(8, 10**400, None)],
    "row": lambda db: [map(fail(RuntimeError("in a row")), "abc")],
    "closes": lambda db: db.close() or [],
    "commits": lambda db: db.commit() or [],
    "hides": lambda db: db.execute(HIDING) and [],
    "hides for good": lambda db: db.executescript(f"{HIDING}; COMMIT") and [],
    "reach": lambda db: sqlite3.Connection.execute(db, "CREATE TEMP TABLE reach_records AS SELECT record_id FROM records") and [],
    "rows": change("row_factory", lambda cursor, row: {"row": row}),
    "bytes": change("text_factory", bytes),
    "read-only": lambda db: db.execute("PRAGMA query_only = 1") and [],
    "leaves open": leave_open,
    "endless": lambda db: ((n, 1.0, None) for n in iter(int, 1)),
    "stops": lambda db: (_ for _ in ()).throw(RuntimeError("half way")),
}


def test_a_faulty_arm_changes_nothing_but_the_note(bench: Bench) -> None:
    @given(cases(), st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=3, unique=True))
    def check(case: Case, faults: list[str]) -> None:
        with bench.wheel(case.rows) as wheel:
            plain = create_memory(wheel=wheel, providers=[], arms=[good()])
            expected = run(plain, plain.search(query=case.query, scope=case.scope)).to_json()
            # On both sides of the one that works, and of the connection that is used again.
            arms = [*(arm(name, FAULTS[name]) for name in faults[:1]), good(), *(arm(name, FAULTS[name]) for name in faults[1:])]
            broken = create_memory(wheel=wheel, providers=[], arms=arms)
            found = run(broken, broken.search(query=case.query, scope=case.scope)).to_json()
            assert run(plain, plain.search(query=case.query, scope=case.scope)).to_json() == expected
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


def test_a_statement_left_open_does_not_hold_later_questions_to_an_older_wheel(bench: Bench) -> None:
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening"}), ("ceremony", {"id": "ceremony:1", "type": "opening"})]
    scope = {"ceremonies": ["ceremony:0", "ceremony:1", "ceremony:2"]}
    with bench.wheel(rows) as wheel:
        careless = create_memory(wheel=wheel, providers=[], arms=[good(), arm("leaves open", leave_open)])
        run(careless, careless.search(query="opening", scope=scope))
        wheel.put("ceremony", {"id": "ceremony:2", "type": "opening"})
        memory = create_memory(wheel=wheel, providers=[], arms=[good()])
        assert len(run(memory, memory.search(query="opening", scope=scope)).sources) == 3
    _kept.clear()


async def test_questions_given_up_while_arms_hang_leave_room_for_the_next(bench: Bench) -> None:
    quick = load_settings(env={"WHEELMEM_ARM_TIMEOUT": "0.2"})
    scope = {"ceremonies": "ceremony:0"}
    with bench.wheel([("ceremony", {"id": "ceremony:0", "type": "opening"})]) as wheel:
        for number in range(6):
            arms = [arm(f"sleeps {number}", lambda db: time.sleep(600))]
            memory = create_memory(wheel=wheel, providers=[], arms=arms, settings=quick)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(memory.search(query="opening", scope=scope), 0.05)
        memory = create_memory(wheel=wheel, providers=[], arms=[good()], settings=quick)
        answer = await asyncio.wait_for(memory.search(query="opening", scope=scope), 60)
    assert [source.wheel_id for source in answer.sources] == ["ceremony:0"]


def test_what_an_arm_writes_in_the_reach_it_is_shown_is_not_kept(bench: Bench) -> None:
    class Scribbles:
        name = "scribbles"
        stage = "find"

        def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Any:
            for place in list(reach.ceremony_of):
                reach.ceremony_of[place] = "ceremony:elsewhere"

    with bench.wheel([("ceremony", {"id": "ceremony:0", "type": "opening"})]) as wheel:
        for arms in ([Scribbles(), good()], [good()]):
            memory = create_memory(wheel=wheel, providers=[], arms=arms)
            answer = run(memory, memory.search(query="opening", scope={"ceremonies": "ceremony:0"}))
            assert [source.ceremony_id for source in answer.sources] == ["ceremony:0"]


@pytest.mark.parametrize("fault", ["hangs", "raises", "ends", "nonsense"])
def test_a_classifier_that_fails_costs_its_weights_only(bench: Bench, fault: str) -> None:
    class Weighs:
        name = "moody"

        def weigh(self, question: Any) -> Any:
            if fault == "hangs":
                time.sleep(600)
            if fault == "raises":
                raise ValueError("no")
            if fault == "ends":
                raise SystemExit(3)
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


def _throw(error: BaseException) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


def _cites(**fields: Any) -> Callable[[], Any]:
    message = {"provider": "x", "wheel_kind": "message", "wheel_id": "1", "excerpt": "words", **fields}
    return lambda: {"mode": "search", "sources": [message]}


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
        (_throw(SystemExit(3)), "faulty did not answer: "),
        (_throw(GeneratorExit()), "faulty did not answer: "),
        (_throw(asyncio.CancelledError()), "faulty did not answer: "),
        (_cites(speaker=["a"]), "faulty did not answer: its answer was no answer"),
        (_cites(speaker_name=b"a"), "faulty did not answer: its answer was no answer"),
        (_cites(at=2026), "faulty did not answer: its answer was no answer"),
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


async def test_text_that_nothing_can_be_written_with_is_shown_all_the_same(bench: Bench) -> None:
    odd = {"mode": "dialectic", "answer": "a\ud800b", "note": "n\udfff", **{"sources": _cites(excerpt="e\ud800")()["sources"]}}
    with bench.wheel([("ceremony", {"id": "ceremony:0", "type": "opening"})]) as wheel:
        memory = create_memory(wheel=wheel, providers=[Provider(lambda: odd)], arms=[good()])
        answer = await memory.ask(question="what opened?", scope={"ceremonies": "ceremony:0"})
    assert (answer.answer, answer.sources[0].excerpt) == ("a\ufffdb", "e\ufffd")
    assert "n\ufffd" in str(answer.note)


async def test_a_status_that_cannot_be_written_is_a_provider_that_fails(bench: Bench) -> None:
    with bench.wheel([]) as wheel:
        status = {"provider": "faulty", "enabled": True, "detail": {"what": object()}}
        memory = create_memory(wheel=wheel, providers=[Provider(lambda: status)], arms=[])
        assert [status.enabled for status in await memory.status()] == [False, True]


async def test_the_second_provider_answers_when_the_first_cannot(bench: Bench) -> None:
    rows = [("ceremony", {"id": "ceremony:0", "type": "opening"})]
    with bench.wheel(rows) as wheel:
        second = Provider(lambda: {"mode": "dialectic", "answer": "it opened"})
        second.name = "second"
        memory = create_memory(wheel=wheel, providers=[Provider(_raise), second])
        answer = await memory.ask(question="what opened?", scope={"ceremonies": "ceremony:0"})
    assert (answer.provider, answer.mode, answer.answer) == ("second", "dialectic", "it opened")
    assert "faulty did not answer" in (answer.note or "")
