"""What the wheel records arrives at Honcho: once, in order, in its session, said by its speaker."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from double import Double
from wheelmem_honcho.ids import candidates, fold_id, is_id
from world import ANA, BEN, World

from wheelmem.contract import ContractError, NotHeldError
from wheelmem.river import project


def plant(double: Double, path: str, **body: Any) -> None:
    """Something that others put there."""
    httpx.post(f"{double.url}/v3/workspaces/medicine-wheel/{path}", json=body).raise_for_status()


def lines(double: Double, session: str) -> list[str]:
    return [message["content"] for message in double.messages(session)]


async def test_a_ceremony_a_beat_and_a_diary_entry_land_in_one_session(world: World, double: Double) -> None:
    world.person()
    world.ceremony(participants=[ANA], intentions=["decide the lantern", "eat"], medicines_used=["cedar"], circle_id="circle:g")
    world.beat(witnesses=[BEN], learnings=["dawn suits", "so does dusk"], prose="Long ago.", relations_honored=["the river"])
    world.diary(metadata={"tags": ["lantern", "teal"]})
    done = await world.deliver()
    assert (done.sent, done.pending, done.lines()) == (3, 0, [])
    assert lines(double, "ceremony-1-a") == [
        f"Ceremony: talking_circle (east)\nParticipants: {ANA}\nIntentions: decide the lantern; eat\nMedicines: cedar\n"
        "Circle: circle:g",
        "[east] Ana speaks\nThe lantern is teal.\n\nLong ago.\nLearnings: dawn suits, so does dusk\nRelations honored: the river",
        "[nindokendaan · observation] I liked the lantern.\nTags: lantern, teal",
    ]
    messages = double.messages("ceremony-1-a")
    assert [message["peer_id"] for message in messages] == ["medicine-wheel", "node-human-1-ana", "node-human-1-ana"]
    assert messages[1]["metadata"] == {
        "wheel_kind": "beat",
        "wheel_id": "beat:1",
        "direction": "east",
        "ceremonies": ["ceremony:1:a"],
        "witnesses": [BEN],
    }
    assert messages[0]["created_at"] == "2026-03-08T18:00:00Z"
    held = double.workspaces["medicine-wheel"]
    session = held.sessions["ceremony-1-a"]
    assert set(session.peers) == {"medicine-wheel", "node-human-1-ana", "node-human-2-ben"}
    assert set(map(str, session.peers.values())) == {str({"observe_me": True, "observe_others": False})}
    assert session.metadata == {
        "wheel_kind": "ceremony",
        "wheel_id": "ceremony:1:a",
        "type": "talking_circle",
        "direction": "east",
        "circle": "circle:g",
        "wheel_uuid": world.wheel.uuid,
    }
    assert held.peers["node-human-2-ben"]["metadata"] == {"wheel_id": BEN}
    assert held.configuration == {"peer_card": {"use": False}}


async def test_where_records_without_a_ceremony_go(world: World, double: Double) -> None:
    world.beat("beat:cycle", None, cycle_id="cycle:1")
    world.beat("beat:alone", None)
    world.diary("diary:chronicle", None, chronicle="chronicle:2026-03-20-episode-12-footbridge")
    world.diary("diary:alone", None)
    await world.deliver()
    assert double.session_of("beat:cycle") == ["cycle-1"]
    assert double.session_of("beat:alone") == ["medicine-wheel"]
    assert double.session_of("diary:chronicle") == ["chronicle-2026-03-20-episode-12-footbridge"]
    assert double.session_of("diary:alone") == ["medicine-wheel"]


def test_old_shapes_are_projected_too() -> None:
    one = project("beat", {"id": "b", "ceremonies": "c:1", "learnings": "only one", "witnesses": "Ben"})
    assert (one.session, one.content, one.seats) == (("ceremony", "c:1"), "Learnings: only one", ("medicine-wheel", "Ben"))
    json = {"id": "c", "type": "opening", "research_context": '{"episodePath": "2026-03-20-episode-12-x"}'}
    two = project("ceremony", json, json)
    assert two.content == "Ceremony: opening\nEpisode: 2026-03-20-episode-12-x"
    assert two.session_metadata["episode"] == "2026-03-20-episode-12-x"
    assert "Context: we wondered" in project("ceremony", {"id": "c", "research_context": "we wondered"}).content


def test_ids() -> None:
    given = {"Éloïse Tremblay": "Eloise-Tremblay", "::": "unnamed", "a--b": "a-b", "ﬁn": "fin", "ceremony/../x": "ceremony-x"}
    assert {id: fold_id(id) for id in given} == given
    assert all(is_id(id) for name in [*given, "*", "é" * 900, ""] for id in candidates("ceremony", name, "u"))
    assert not is_id("*")
    assert not is_id("a\n")
    assert not is_id("a" * 513)


async def test_two_ceremonies_whose_ids_fold_alike_do_not_share_a_session(world: World, double: Double) -> None:
    world.ceremony("c:1")
    world.ceremony("c-1")
    world.beat("beat:1", "c-1", description="Only in the second.")
    world.beat("beat:2", None, cycle_id="c:1")
    world.diary("diary:1", None, chronicle="c:1")
    await world.deliver()
    assert double.session_of("c:1") == ["c-1"]
    (second,) = double.session_of("c-1")
    assert second.startswith("c-1-")
    assert double.session_of("beat:1") == [second]
    assert len({*double.session_of("c:1"), second, *double.session_of("beat:2"), *double.session_of("diary:1")}) == 4


async def test_two_people_whose_ids_fold_alike_are_two_peers(world: World, double: Double) -> None:
    world.beat("beat:1", speaker="a b")
    world.beat("beat:2", speaker="a-b")
    await world.deliver()
    speakers = {message["metadata"]["wheel_id"]: message["peer_id"] for message in double.messages("ceremony-1-a")}
    assert speakers["beat:1"] == "a-b"
    assert speakers["beat:2"].startswith("a-b-")
    peers = double.workspaces["medicine-wheel"].peers
    assert peers[speakers["beat:2"]]["metadata"] == {"wheel_id": "a-b"}


async def test_two_wheels_on_one_honcho_share_no_session(double: Double, make_world: Any) -> None:
    first, second = make_world(double, "one.db"), make_world(double, "two.db")
    for one in (first, second):
        one.ceremony()
        one.beat(description=f"said on {one.path.stem}")
    await first.deliver()
    await second.deliver()
    assert lines(double, "ceremony-1-a")[1].endswith("said on one")
    assert len(double.session_of("beat:1")) == 2
    answer = await second.memory.search(query="said", scope={"ceremonies": ["ceremony:1:a"]})
    asked = double.calls("POST .*/search$")[-1].body["filters"]["session_id"]["in"]
    assert answer.provider == "honcho"
    assert asked == [id for id in double.session_of("beat:1") if id != "ceremony-1-a"]


async def test_a_session_of_the_original_is_adopted(world: World, double: Double) -> None:
    plant(double, "sessions", id="ceremony-1-a", metadata={"wheel_kind": "ceremony", "wheel_id": "ceremony:1:a"})
    message = {"content": "x", "peer_id": "p", "metadata": {"wheel_kind": "ceremony", "wheel_id": "ceremony:1:a"}}
    plant(double, "sessions/ceremony-1-a/messages", messages=[message])
    world.ceremony()
    world.beat()
    world.wheel.write(lambda db: db.execute("DELETE FROM deliveries"))
    assert world.river.queue_all() == 2
    await world.deliver()
    assert [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")] == ["ceremony:1:a", "beat:1"]
    assert double.workspaces["medicine-wheel"].sessions["ceremony-1-a"].metadata["wheel_uuid"] == world.wheel.uuid


async def test_somebody_elses_session_is_left_alone(world: World, double: Double) -> None:
    plant(double, "sessions", id="ceremony-1-a", metadata={"app": "a game"})
    plant(double, "sessions/ceremony-2-a/messages", messages=[{"content": "x", "peer_id": "p"}])
    world.ceremony()
    world.ceremony("ceremony:2:a")
    await world.deliver()
    assert double.workspaces["medicine-wheel"].sessions["ceremony-1-a"].metadata == {"app": "a game"}
    assert lines(double, "ceremony-1-a") == []
    assert lines(double, "ceremony-2-a") == ["x"]
    assert world.pending() == 0


async def test_a_record_too_long_for_a_message_goes_in_parts(world: World, double: Double) -> None:
    text = "é" * 60_001
    world.beat(title="", description=text, direction="")
    world.diary(content="after\0wards")
    await world.deliver()
    messages = double.messages("ceremony-1-a")
    assert "".join(message["content"] for message in messages[:3]) == text
    assert [(m["metadata"]["part"], m["metadata"]["parts"]) for m in messages[:3]] == [(1, 3), (2, 3), (3, 3)]
    assert {m["metadata"]["wheel_id"] for m in messages[:3]} == {"beat:1"}
    assert messages[3]["content"].endswith("afterwards")


async def test_a_date_that_is_none_does_not_hold_a_record_up(world: World, double: Double) -> None:
    world.beat(timestamp="at the second moon")
    done = await world.deliver()
    assert done.sent == 1
    assert len(double.messages("ceremony-1-a")) == 1


async def test_more_than_a_batch_arrives_in_order(world: World, double: Double) -> None:
    world.ceremony()
    for n in range(1234):
        world.wheel.write(lambda db, n=n: world.wheel.store(db, "beat", {"id": f"b:{n}", "ceremonies": ["ceremony:1:a"]}))
    done = await world.deliver()
    assert done.sent == 1235
    assert [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")][1:] == [f"b:{n}" for n in range(1234)]
    assert max(len(seen.body["messages"]) for seen in double.calls("POST .*/messages$")) <= 100


async def test_a_wheel_older_than_its_honcho_is_sent_by_time(world: World, double: Double) -> None:
    world.wheel.write(lambda db: db.execute("DELETE FROM receivers"))
    world.beat("beat:late", timestamp="2026-03-09T10:00:00Z")
    world.beat("beat:early", timestamp="2026-03-07T10:00:00Z")
    world.ceremony()
    assert await world.river.deliver() == []
    assert world.river.queue_all() == 3
    await world.deliver()
    assert [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")] == ["beat:early", "ceremony:1:a", "beat:late"]
    assert world.river.queue_all() == 0


async def test_resend(world: World, double: Double) -> None:
    world.ceremony()
    world.beat()
    await world.deliver()
    world.river.resend("beat", "beat:1")
    assert (await world.deliver()).sent == 1
    assert len(double.messages("ceremony-1-a")) == 2, "what is there is not sent twice"
    double.workspaces["medicine-wheel"].sessions["ceremony-1-a"].messages.pop()
    world.river.resend("beat", "beat:1")
    await world.deliver()
    assert len(double.messages("ceremony-1-a")) == 2
    with pytest.raises(NotHeldError):
        world.river.resend("beat", "beat:none")
    with pytest.raises(ContractError):
        world.river.resend("node", ANA)


async def test_a_honcho_that_lost_everything_is_sent_everything_again(world: World, double: Double) -> None:
    world.ceremony()
    world.beat()
    await world.deliver()
    double.workspaces.clear()
    world.provider.delivery._sessions.clear()
    world.river.providers[0].delivery._sessions.clear()
    world.river.providers[0].delivery._workspace_at = float("-inf")
    world.diary()
    await world.deliver()
    assert [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")] == ["ceremony:1:a", "beat:1", "diary:1"]
    assert double.workspaces["medicine-wheel"].configuration == {"peer_card": {"use": False}}


async def test_at_another_workspace_nothing_has_been_delivered_yet(world: World, double: Double) -> None:
    from wheelmem_honcho import HonchoClient, honcho_provider

    from wheelmem.river import River, enroll

    world.ceremony()
    await world.deliver()
    moved = honcho_provider(HonchoClient(double.url, "elsewhere"))
    enroll(world.wheel, [moved])
    river = River(world.wheel, [moved])
    assert river.queue_all() == 1
    await river.deliver()
    assert len(double.messages("ceremony-1-a", "elsewhere")) == 1
