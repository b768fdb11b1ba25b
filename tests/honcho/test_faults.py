"""When Honcho is away, unwell or refuses: nothing is lost, nothing arrives twice, and the wheel answers by itself."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest
from double import Double
from world import ANA, KEY, World

SCOPE = {"ceremonies": ["ceremony:1:a"]}
AWAY: list[tuple[str, dict[str, Any]]] = [
    ("close", {}),
    ("half", {}),
    ("html", {}),
    ("hang", {}),
    ("status", {"status": 500}),
    ("status", {"status": 503}),
    ("status", {"status": 408}),
    ("status", {"status": 429}),
]


@pytest.fixture
def quick(double: Double, make_world: Any) -> World:
    world: World = make_world(double)
    world.person()
    world.ceremony()
    world.beat()
    return world


def ids(double: Double, session: str = "ceremony-1-a") -> list[str]:
    return [message["metadata"]["wheel_id"] for message in double.messages(session)]


@pytest.mark.parametrize(("kind", "more"), AWAY)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("match", ["", "POST .*/messages$", "POST .*/sessions$", "POST .*/peers$"])
async def test_what_should_wait_waits_and_arrives_once(
    quick: World, double: Double, kind: str, more: dict[str, Any], after: bool, match: str
) -> None:
    patient, quick.client.timeout = quick.client.timeout, 0.4 if kind == "hang" else quick.client.timeout
    with double.fault(kind, match, after=after, **more):
        done = await quick.deliver()
        assert done.away
        assert (done.sent, done.refused, done.pending) == (0, 0, 2)
        (line,) = done.lines()
        assert line.startswith("2 record(s) wait for honcho: honcho")
        (standing,) = quick.river.status()["providers"]
        assert standing["pending"] == 2
        assert standing["error"]
        assert standing["since"]
    quick.client.timeout = patient
    assert (await quick.deliver()).pending == 0
    assert ids(double) == ["ceremony:1:a", "beat:1"]
    assert "error" not in quick.river.status()["providers"][0]


async def test_an_answer_that_never_came_whole_is_looked_for_first(quick: World, double: Double) -> None:
    for _ in range(3):
        with double.fault("close", "POST .*/messages$", after=True):
            await quick.deliver()
    await quick.deliver()
    assert ids(double) == ["ceremony:1:a", "beat:1"]
    assert len(double.calls("POST .*/messages$")) == 1


async def test_a_long_record_that_half_arrived_is_completed(quick: World, double: Double) -> None:
    await quick.deliver()
    text = "".join(chr(97 + n % 26) for n in range(25_000 * 130))
    quick.beat("beat:long", title="", direction="", description=text)
    with double.fault("close", "POST .*/messages$", times=1, after=True):
        assert (await quick.deliver()).pending == 1
    await quick.deliver()
    assert "".join(m["content"] for m in double.messages("ceremony-1-a") if m["metadata"]["wheel_id"] == "beat:long") == text


async def test_what_is_refused_is_reported_once_and_holds_nothing_up(quick: World, double: Double) -> None:
    quick.diary("diary:bad", content="the word that offends")
    quick.diary("diary:good", content="a word")
    original = double.message_create

    def choosy(call: Any) -> Any:
        from double import invalid

        if any("offends" in message["content"] for message in call.body["messages"]):
            raise invalid(["messages", 2, "content"], "not to my taste", call.body)
        return original(call)

    for route in double.app.routes:
        if route.path.endswith("/messages"):  # type: ignore[attr-defined]
            route.app = _with(double, choosy)  # type: ignore[attr-defined]
    done = await quick.deliver()
    assert (done.sent, done.refused, done.pending) == (3, 1, 0)
    assert done.lines() == ["honcho refused diary diary:bad: honcho answered 422: body/messages/2/content: not to my taste"]
    assert "offends" not in " ".join(done.lines()), "what was refused is not repeated"
    assert ids(double) == ["ceremony:1:a", "beat:1", "diary:good"]
    again = await quick.deliver()
    assert (again.sent, again.refused, again.lines()) == (0, 0, [])
    assert quick.river.status()["providers"][0]["refused"] == 1


def _with(double: Double, work: Any) -> Any:
    from starlette.routing import request_response

    return request_response(double._endpoint("/v3/workspaces/{workspace_id}/sessions/{session_id}/messages", work))


@pytest.mark.parametrize("status", [400, 401, 403, 422])
async def test_any_other_refusal_is_not_repeated(quick: World, double: Double, status: int) -> None:
    with double.fault("status", "POST .*/messages$", status=status):
        done = await quick.deliver()
        assert (done.refused, done.pending) == (2, 0)
        assert len(done.lines()) == 1, "one reason is said once"
    assert (await quick.deliver()).sent == 0
    assert quick.river.queue_all() == 2, "but can be asked for again"
    assert (await quick.deliver()).sent == 2


async def test_a_pass_ends_at_the_first_sign(quick: World, double: Double) -> None:
    for n in range(1200):
        quick.wheel.write(lambda db, n=n: quick.wheel.store(db, "beat", {"id": f"b:{n}", "ceremonies": ["ceremony:1:a"]}))
    double.stop()
    done = await quick.deliver()
    assert (done.pending, done.sent) == (1202, 0)
    double.start()
    with double.fault("status", "POST .*/messages$", status=503):
        await quick.deliver()
        assert len(double.calls("POST .*/messages$")) == 1
    await quick.deliver()
    assert ids(double) == ["ceremony:1:a", "beat:1", *(f"b:{n}" for n in range(1200))]


async def test_down_and_back(quick: World, double: Double) -> None:
    double.stop()
    assert (await quick.deliver()).pending == 2
    quick.diary()
    answer = await quick.memory.ask(question="which lantern", scope=SCOPE)
    assert (answer.provider, answer.mode) == ("wheel", "matched")
    double.start()
    assert (await quick.deliver()).sent == 3
    assert ids(double) == ["ceremony:1:a", "beat:1", "diary:1"]


@pytest.mark.parametrize(("kind", "more"), [*AWAY, ("status", {"status": 422}), ("status", {"status": 401})])
@pytest.mark.parametrize("verb", ["ask", "search", "about"])
async def test_an_ask_falls_back_to_the_wheel_and_says_why(
    quick: World, double: Double, kind: str, more: dict[str, Any], verb: str
) -> None:
    await quick.deliver()
    calls: dict[str, dict[str, Any]] = {
        "ask": {"question": "the lantern"},
        "search": {"query": "the lantern"},
        "about": {"person": ANA, "question": "the lantern"},
    }
    quick.provider.client._confined = None
    patient, quick.client.timeout = quick.client.timeout, 0.4 if kind == "hang" else quick.client.timeout
    with double.fault(kind, **more):
        answer = await getattr(quick.memory, verb)(scope=SCOPE, **calls[verb])
    assert (answer.provider, answer.mode) == ("wheel", "matched")
    assert [source.wheel_id for source in answer.sources] == ["beat:1"]
    assert answer.note is not None
    assert answer.note.startswith("honcho did not answer: honcho")
    quick.client.timeout = patient
    assert (await getattr(quick.memory, verb)(scope=SCOPE, **calls[verb])).provider == "honcho"


async def test_when_only_reasoning_fails_honcho_is_searched(quick: World, double: Double) -> None:
    await quick.deliver()
    with double.fault("status", "/chat$", status=500):
        answer = await quick.memory.ask(question="the lantern", scope=SCOPE)
    assert (answer.provider, answer.mode) == ("honcho", "search")
    assert "did not reason" in (answer.note or "")
    with double.fault("status", "/search$", status=500):
        answer = await quick.memory.ask(question="the lantern", scope=SCOPE)
    assert answer.mode == "dialectic"
    assert "not searched for sources" in (answer.note or "")


async def test_with_the_model_down_an_about_is_not_empty_talk(quick: World, double: Double) -> None:
    await quick.deliver()
    double.model_down = True
    answer = await quick.memory.about(person=ANA, scope=SCOPE)
    assert answer.mode in ("search", "matched")
    assert [source.wheel_id for source in answer.sources] == ["beat:1"]
    assert answer.note


async def test_what_waited_and_is_held_no_longer_is_dropped_with_a_line(quick: World, double: Double) -> None:
    quick.wheel.delete("beat", "beat:1")
    done = await quick.deliver()
    assert done.lines() == ["1 record(s) waiting for honcho are no longer held, and were dropped"]
    assert ids(double) == ["ceremony:1:a"]


async def test_one_pass_at_a_time(quick: World, double: Double) -> None:
    from wheelmem.river import River

    other = River(quick.wheel, [quick.provider])
    with double.fault("slow", seconds=0.1):
        first = asyncio.create_task(quick.river.deliver())
        await asyncio.sleep(0.05)
        assert await other.deliver() == []
        await first
    assert ids(double) == ["ceremony:1:a", "beat:1"]


async def test_a_pass_that_is_given_two_seconds_takes_no_more(quick: World, double: Double) -> None:
    started = time.monotonic()
    with double.fault("slow", seconds=0.35):
        (done,) = await quick.river.deliver(seconds=0.5)
    assert time.monotonic() - started < 2
    assert done.pending == 2
    assert "not done within" in done.lines()[0]
    await quick.deliver()
    assert ids(double) == ["ceremony:1:a", "beat:1"]


async def test_the_river_runs_in_the_background(quick: World, double: Double) -> None:
    said: list[str] = []
    double.stop()
    quick.river.interval = 0.2
    running = asyncio.create_task(quick.river.run(report=said.append))
    try:
        for _ in range(50):
            await asyncio.sleep(0.05)
            if said:
                break
        await asyncio.sleep(0.6)
        assert len(said) == 1, "the same trouble is said once, not on every pass"
        double.start()
        quick.diary()
        quick.river.wake()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if quick.pending() == 0:
                break
        assert ids(double) == ["ceremony:1:a", "beat:1", "diary:1"]
    finally:
        running.cancel()


async def test_the_key_is_seen_nowhere_but_in_the_header(
    quick: World, double: Double, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    double.api_key = "another"
    shown: list[str] = [repr(quick.client), repr(quick.provider), str(vars(quick.wheel))]
    shown += (await quick.deliver()).lines()
    shown += [str(quick.river.status()), str(await quick.memory.status())]
    with double.fault("status", status=401):
        shown.append(str(await quick.memory.ask(question="lantern", scope=SCOPE)))
    double.api_key = KEY
    quick.river.queue_all()
    await quick.deliver()
    assert double.calls("messages$")[-1].headers["authorization"] == f"Bearer {KEY}"
    shown += [str(await quick.memory.ask(question="lantern", scope=SCOPE)), caplog.text]
    assert KEY not in "\n".join(shown)


def test_a_key_that_no_header_can_carry_is_refused_unseen() -> None:
    from wheelmem_honcho import HonchoClient

    from wheelmem.contract import WheelmemError

    for key in ("secret\nkey", "secrét", "two words"):
        with pytest.raises(WheelmemError) as error:
            HonchoClient("http://localhost:1", api_key=key)
        assert key not in str(error.value)
    client = HonchoClient("http://me:pass-word@localhost:1/base/")
    assert repr(client) == "HonchoClient('http://localhost:1/base', workspace='medicine-wheel')"
