"""Nothing from outside the reach is ever sent to Honcho, asked of it, or shown from it."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from double import Double, Seen, Session, now
from hypothesis import given
from hypothesis import strategies as st
from wheelmem_honcho import HonchoClient, HonchoError
from world import ANA, BEN, World

from wheelmem.contract import Scope
from wheelmem.river import session_keys
from wheelmem.store import outbox

SCOPE = {"ceremonies": ["ceremony:1:a"]}
CARD = ["Ana keeps a secret: the mill owner agreed"]


async def two_circles(world: World) -> None:
    world.person()
    world.ceremony("ceremony:1:a", participants=[ANA])
    world.beat("beat:in", "ceremony:1:a", description="The lantern is teal.")
    world.ceremony("ceremony:2:b", participants=[ANA])
    world.beat("beat:out", "ceremony:2:b", description="The lantern is a secret.")
    await world.deliver()
    for peer in ("node-human-1-ana", "medicine-wheel"):
        world.double.workspaces["medicine-wheel"].cards[peer] = CARD


def verbs(world: World) -> list[Any]:
    m = world.memory
    return [
        m.ask(question="which lantern", scope=SCOPE),
        m.ask(question="which lantern", scope=SCOPE, peer=ANA, reasoning_level="max"),
        m.search(query="lantern", scope=SCOPE),
        m.about(person=ANA, scope=SCOPE),
        m.about(person=ANA, question="which lantern", scope=SCOPE),
    ]


def asked_sessions(seen: Seen) -> set[str]:
    """Every session a request names: in its filters, in its body, in its path."""
    named: set[str] = set()
    body = seen.body if isinstance(seen.body, dict) else {}
    filters = body.get("filters") or {}
    wanted = filters.get("session_id", {})
    named.update(wanted["in"] if isinstance(wanted, dict) and "in" in wanted else [])
    if "sessions/list" in seen.path:
        named.update(filters.get("id", {}).get("in", []))
    if "session_id" in body:
        named.add(body["session_id"])
    if "/sessions/" in seen.path and "/sessions/list" not in seen.path:
        named.add(seen.path.split("/sessions/")[1].split("/")[0])
    return named


async def test_asking_reasons_within_the_reach_and_cites_records(world: World, double: Double) -> None:
    await two_circles(world)
    answer = await world.memory.ask(question="which lantern", scope=SCOPE)
    assert (answer.provider, answer.mode) == ("honcho", "dialectic")
    assert "teal" in (answer.answer or "")
    assert {source.wheel_id for source in answer.sources} == {"ceremony:1:a", "beat:in"}
    (beat,) = [source for source in answer.sources if source.wheel_id == "beat:in"]
    assert (beat.speaker, beat.speaker_name, beat.ceremony_id) == (ANA, "Ana", "ceremony:1:a")
    for call in verbs(world):
        assert "secret" not in str((await call).to_json())
    assert not any("secret" in prompt for prompt in double.prompts)
    assert [seen.body["reasoning_level"] for seen in double.calls("/chat$")] == ["low", "low", "max", "low"]
    asked = [seen.path.split("/")[-2] for seen in double.calls("/chat$")]
    assert asked == ["medicine-wheel", "medicine-wheel", "node-human-1-ana", "node-human-1-ana"]


async def test_an_older_server_is_never_asked_to_reason(make_double: Any, make_world: Any) -> None:
    double = make_double(filters=False)
    world = make_world(double, confine=True)
    await two_circles(world)
    for call in verbs(world):
        answer = await call
        assert (answer.provider, answer.mode, answer.answer) == ("honcho", "search", None)
        assert "secret" not in str(answer.to_json())
        if "lantern" in str(double.requests[-1].body):
            assert answer.note is None or "cannot keep its reasoning" in answer.note
    assert double.calls("/(chat|representation|context|card)$") == []
    (status, _) = await world.memory.status()
    assert status.confined is False


async def test_an_upgraded_server_is_noticed_after_five_minutes(make_double: Any, make_world: Any) -> None:
    double = make_double(filters=False)
    world = make_world(double)
    await two_circles(world)
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "search"
    double.filters = True
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "search"
    assert len(double.calls("GET /openapi.json")) == 1
    asked_at, found = world.client._confined
    world.client._confined = (asked_at - 301, found)
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "dialectic"


BEFORE: list[dict[str, Any]] = [{}, *({"peer_card": card} for card in ({"use": True}, {"create": False}, None, {"use": None}))]


@pytest.mark.parametrize("before", BEFORE)
async def test_no_answer_shows_a_peer_card(double: Double, make_world: Any, before: dict[str, Any]) -> None:
    world = make_world(double)
    await two_circles(world)
    held = double.workspaces["medicine-wheel"]
    held.configuration = {"reasoning": {"enabled": True}, **before}
    for call in verbs(world):
        assert "mill owner" not in str((await call).to_json())
    assert double.calls("/chat$") == []
    answer = await world.memory.ask(question="which lantern", scope=SCOPE)
    assert (answer.provider, answer.mode) == ("honcho", "search")
    assert "wheelmem honcho confine" in (answer.note or "")
    (status, _) = await world.memory.status()
    assert status.confined is False
    assert held.configuration == {"reasoning": {"enabled": True}, **before}, "nothing is changed unasked"
    confined = make_world(double, "other.db", confine=True)
    assert (await confined.memory.status())[0].confined is True
    kept = {**(before.get("peer_card") or {}), "use": False}
    assert held.configuration == {"reasoning": {"enabled": True}, "peer_card": kept}
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "dialectic"
    assert not any("mill owner" in prompt for prompt in double.prompts)


async def test_a_card_switched_on_again_is_noticed_at_once(world: World, double: Double) -> None:
    await two_circles(world)
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "dialectic"
    double.workspaces["medicine-wheel"].configuration = {}
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "search"


async def test_asking_about_somebody_unknown_makes_no_peer(world: World, double: Double) -> None:
    await two_circles(world)
    before = set(double.workspaces["medicine-wheel"].peers)
    for person in (BEN, "nobody", "*"):
        answer = await world.memory.about(person=person, question="lantern", scope=SCOPE)
        assert answer.provider == "wheel"
        assert (await world.memory.ask(question="lantern", scope=SCOPE, peer=person)).mode == "search"
    assert set(double.workspaces["medicine-wheel"].peers) == before


async def test_a_message_that_claims_no_record_is_outside_the_wheel(world: World, double: Double) -> None:
    await two_circles(world)
    messages = double.workspaces["medicine-wheel"].sessions["ceremony-1-a"].messages
    stranger = {**messages[0], "id": "m-1", "content": "the lantern, by the way", "metadata": {}, "peer_id": "node-human-1-ana"}
    liar = {**messages[0], "id": "m-2", "content": "lantern", "metadata": {"wheel_kind": "beat", "wheel_id": "beat:out"}}
    messages += [stranger, liar]
    answer = await world.memory.search(query="lantern", scope=SCOPE)
    (outside,) = [source for source in answer.sources if source.outside_wheel]
    assert (outside.wheel_kind, outside.wheel_id, outside.speaker, outside.speaker_name) == ("message", "m-1", ANA, "Ana")
    assert "beat:out" not in str(answer.to_json()["sources"])
    assert "1 source(s) of honcho left out" in (answer.note or "")


async def test_an_empty_reach_sends_nothing(world: World, double: Double) -> None:
    await two_circles(world)
    double.requests.clear()
    for scope in ({}, {"ceremonies": ["ceremony:none"]}, {"exclude_ceremonies": ["ceremony:1:a"]}, {"circle_id": " "}):
        for call in (
            world.memory.ask(question="lantern", scope=scope),
            world.memory.search(query="lantern", scope=scope),
            world.memory.about(person=ANA, scope=scope),
        ):
            assert (await call).mode == "empty"
    assert double.requests == []


async def test_a_reach_over_a_thousand_sessions_is_searched_in_slices(world: World, double: Double) -> None:
    await two_circles(world)
    held = double.workspaces["medicine-wheel"].sessions

    def many(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM receivers")  # what is delivered here is not the matter
        for n in range(2300):
            word = "lantern" if n in (1500, 2299) else "bread"
            record = {"id": f"c:{n}", "type": "opening", "subject_id": "s", "intentions": [word]}
            world.wheel.store(db, "ceremony", record)
            outbox.adopt(db, "honcho", "session", "ceremony", f"c:{n}", f"c-{n}")
            held[f"c-{n}"] = Session(f"c-{n}", {}, {}, now())
            marks = {"wheel_kind": "ceremony", "wheel_id": f"c:{n}"}
            message = {"id": str(n), "content": word, "peer_id": "medicine-wheel", "session_id": f"c-{n}", "metadata": marks}
            held[f"c-{n}"].messages.append({**message, "created_at": now(), "workspace_id": "w", "token_count": 1})

    world.wheel.write(many)
    double.requests.clear()
    answer = await world.memory.ask(question="lantern", scope={"subject_id": "s"})
    assert (answer.provider, answer.mode) == ("honcho", "search")
    assert "1,000 sessions at the most" in (answer.note or "")
    assert {"c:1500", "c:2299"} <= {source.wheel_id for source in answer.sources[:2]}
    sizes = [len(seen.body["filters"]["session_id"]["in"]) for seen in double.calls("/search$")]
    assert sizes == [1000, 1000, 300]
    assert double.calls("/(chat|representation)$") == []


async def test_a_star_is_never_a_session() -> None:
    client = HonchoClient("http://127.0.0.1:9")
    for sessions in (["*"], ["a", "*"], ["a b"], []):
        with pytest.raises(HonchoError) as error:
            await client.search("x", sessions, 5)
        assert not error.value.away
        with pytest.raises(HonchoError):
            await client.chat("p", "x", sessions)


# --- taken back on the wheel, with whatever tool

CHANGES = {
    "deleted": "DELETE FROM beats WHERE id = 'beat:in'",
    "moved": "UPDATE beats SET ceremonies = '[\"ceremony:2:b\"]' WHERE id = 'beat:in'",
    "replaced": "INSERT OR REPLACE INTO beats (id, title, ceremonies) VALUES ('beat:in', 'gone', '[\"ceremony:2:b\"]')",
    "changed": "UPDATE beats SET description = 'no colour yet' WHERE id = 'beat:in'",
    "renamed": "UPDATE beats SET id = 'beat:other', ceremonies = '[\"ceremony:2:b\"]' WHERE id = 'beat:in'",
    "overwritten": "UPDATE OR REPLACE beats SET position = (SELECT position FROM beats WHERE id = 'beat:in') "
    "WHERE id = 'beat:out'",
    "upserted": "INSERT INTO beats (id, title) VALUES ('beat:in', 'x') ON CONFLICT (id) DO UPDATE "
    "SET ceremonies = NULL, description = ''",
}


@pytest.mark.parametrize("how", CHANGES)
async def test_what_is_taken_back_with_any_tool_is_in_no_answer(world: World, double: Double, how: str) -> None:
    await two_circles(world)
    world.diary("diary:in", content="Bread, too.")
    await world.deliver()
    assert "teal" in str(await world.memory.ask(question="which lantern", scope=SCOPE))
    plain = sqlite3.connect(world.path)
    plain.execute(CHANGES[how])
    plain.commit()
    plain.close()
    double.requests.clear()
    for call in verbs(world):
        assert "teal" not in str((await call).to_json())
    assert not any("ceremony-1-a" in asked_sessions(seen) for seen in double.requests)
    assert world.river.status()["providers"][0]["rebuilding"] >= 1
    done = await world.deliver()
    assert (done.pending, done.lines()) == (0, [])
    assert "teal" not in str([m["content"] for m in double.messages("ceremony-1-a")])
    there = [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")]
    assert there == ["ceremony:1:a", *(["beat:in"] if how == "changed" else []), "diary:in"]
    expected = ["ceremony-2-b"] if how in ("moved", "replaced") else ["ceremony-1-a"] if how == "changed" else []
    if how != "upserted":
        assert double.session_of("beat:in") == expected
    for call in verbs(world):
        answer = await call
        assert "teal" not in str(answer.to_json())
        assert answer.provider == "honcho"


async def test_a_deleted_session_is_rebuilt_when_honcho_has_let_it_go(make_double: Any, make_world: Any) -> None:
    double = make_double(deletion=0.4)
    world = make_world(double)
    await two_circles(world)
    world.wheel.delete("beat", "beat:in")
    done = await world.deliver()
    assert done.pending == 1
    assert done.lines() == ["1 record(s) wait for honcho: its session is still being deleted"]
    answer = await world.memory.ask(question="which lantern", scope=SCOPE)
    assert (answer.provider, answer.mode) == ("wheel", "matched")
    import asyncio

    await asyncio.sleep(0.5)
    assert (await world.deliver()).pending == 0
    assert [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")] == ["ceremony:1:a"]
    assert (await world.memory.ask(question="which lantern", scope=SCOPE)).mode == "dialectic"


async def test_what_is_taken_back_while_honcho_reasons_is_not_heard(world: World, double: Double) -> None:
    import asyncio

    await two_circles(world)
    with double.fault("slow", "/chat$", seconds=0.5, after=False):
        asking = asyncio.create_task(world.memory.ask(question="which lantern", scope=SCOPE))
        await asyncio.sleep(0.25)
        plain = sqlite3.connect(world.path)
        plain.execute(CHANGES["moved"])
        plain.commit()
        plain.close()
        answer = await asking
    assert "teal" not in str(answer.to_json())
    assert answer.mode == "search"
    assert "changed meanwhile" in (answer.note or "")


# --- the wire, watched

NAMES = ["c:1", "c-1", "c/1", "c:1:", "ceremony:2", "é:1", "e-1", "*", "::", "unnamed"]


@given(
    held=st.lists(st.sampled_from(NAMES), min_size=2, max_size=6, unique=True),
    reached=st.lists(st.sampled_from(NAMES), max_size=4, unique=True),
    episodes=st.lists(st.sampled_from(["c:1", "c-1", "x"]), max_size=2),
    delivered=st.booleans(),
)
async def test_no_session_outside_the_reach_is_ever_named(
    held: list[str], reached: list[str], episodes: list[str], delivered: bool, tmp_path_factory: Any
) -> None:
    with Double() as double:
        world = World(tmp_path_factory.mktemp("wire") / "wheel.db", double)
        for name in held:
            world.ceremony(name, intentions=[f"lantern <{name}>"])
            world.beat(f"beat of {name}", name, description=f"The lantern <{name}>")
            world.diary(f"diary of {name}", None, chronicle=name, content=f"lantern <chronicle {name}>")
        if delivered:
            await world.deliver()
        scope = Scope(ceremonies=tuple(reached), episode_path=tuple(episodes))
        reach = await world.memory.reach(scope=scope)
        with world.wheel.snapshot() as db:
            owned = {
                outbox.ids_of(db, "honcho", "session", [key]).get(key, ("", ""))[0] for key in session_keys(reach)
            }
        double.requests.clear()
        answers = [
            await world.memory.ask(question="lantern", scope=scope),
            await world.memory.search(query="lantern", scope=scope),
            await world.memory.about(person=ANA, question="lantern", scope=scope),
            await world.memory.about(person=ANA, scope=scope),
        ]
        for seen in double.requests:
            assert asked_sessions(seen) <= owned
            assert not ("search" in seen.path and not asked_sessions(seen))
        if reach.is_empty or not delivered:
            assert not double.calls("/(search|chat|representation)$")
        if reach.is_empty:
            assert double.requests == []
        chronicles = {name for key, name in session_keys(reach) if key == "chronicle"}
        for answer in answers:
            text = str(answer.to_json())
            for name in held:
                assert name in reach.ceremonies or f"<{name}>" not in text
                assert name in chronicles or f"<chronicle {name}>" not in text
        world.wheel.close()
        assert double.violations == []
