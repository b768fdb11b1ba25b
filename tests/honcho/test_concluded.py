"""Conclusions: nodes that rest on records, are judged by people, and are found only where all they rest on is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from double import Double
from world import ANA, BEN, World

from wheelmem.conclusions import conclude, conclusions, judge, judgements, pull
from wheelmem.contract import ContractError, NotHeldError

SCOPE = {"ceremonies": ["ceremony:1:a"]}


@pytest.fixture
def circle(world: World) -> World:
    world.person()
    world.person(BEN, "Ben")
    world.ceremony()
    world.beat()
    world.ceremony("ceremony:2:b")
    world.beat("beat:2", "ceremony:2:b", speaker=BEN, description="Bread.")
    return world


def make(world: World, **more: Any) -> dict[str, Any]:
    given = {"about": ANA, "kind": "preference", "content": "Ana likes teal.\nAlways has.", "source_event_ids": ["beat:1"]}
    return conclude(world.wheel, **{**given, **more})


async def found(world: World, scope: dict[str, Any] = SCOPE) -> list[str]:
    world.double.stop()
    try:
        answer = await world.memory.search(query="likes teal", scope=scope)
    finally:
        world.double.start()
    return [source.wheel_id for source in answer.sources if source.wheel_kind == "conclusion"]


def test_a_conclusion_is_a_node(circle: World) -> None:
    node = make(circle, derived_by=BEN, provider="honcho")
    assert node == circle.wheel.get("node", node["id"])
    assert re.fullmatch(r"node:knowledge:memory_projection:node-human-1-ana:\d{13}", node["id"])
    assert (node["type"], node["direction"]) == ("knowledge", "west")
    assert (node["name"], node["description"]) == ("preference: Ana likes teal.", "Ana likes teal.\nAlways has.")
    metadata = node["metadata"]
    assert metadata.pop("generated_at") == node["created_at"]
    assert metadata == {
        "kind": "memory_projection",
        "source": "honcho",
        "source_event_ids": ["beat:1"],
        "peer_id": "node-human-1-ana",
        "projection_kind": "preference",
        "status": "inferred",
        "about": ANA,
        "derived_by": BEN,
    }


def test_two_in_one_millisecond_are_two(circle: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheelmem.conclusions.time.time_ns", lambda: 1_700_000_000_000_000_000)
    assert len({make(circle)["id"] for _ in range(5)}) == 5
    assert len(conclusions(circle.wheel)) == 5


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"kind": "fact"}, ContractError),
        ({"status": "true"}, ContractError),
        ({"content": " "}, ContractError),
        ({"about": ""}, ContractError),
        ({"source_event_ids": "beat:1"}, ContractError),
        ({"source_event_ids": ["beat:none"]}, NotHeldError),
    ],
)
def test_what_does_not_fit_is_not_kept(circle: World, wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make(circle, **wrong)
    assert conclusions(circle.wheel) == []


def test_every_judgement_is_kept(circle: World) -> None:
    id = make(circle)["id"]
    for status, by in (("confirmed", ANA), ("rejected", BEN), ("inferred", ANA)):
        node = judge(circle.wheel, id, status, by=by)
        assert (node["metadata"]["status"], node["metadata"]["judged_by"]) == (status, by)
        assert node["metadata"]["judged_at"]
    assert [(one["status"], one["judged_by"]) for one in judgements(circle.wheel, id)] == [
        ("confirmed", ANA),
        ("rejected", BEN),
        ("inferred", ANA),
    ]
    with pytest.raises(NotHeldError):
        judge(circle.wheel, ANA, "confirmed", by=ANA)
    with pytest.raises(ContractError):
        judge(circle.wheel, id, "maybe", by=ANA)
    confirmed = make(circle, status="confirmed", derived_by=BEN)["id"]
    assert [one["judged_by"] for one in judgements(circle.wheel, confirmed)] == [BEN]


async def test_only_a_confirmed_one_whose_every_source_is_in_reach_is_found(circle: World) -> None:
    id = make(circle, source_event_ids=["beat:1", "ceremony:1:a"])["id"]
    assert await found(circle) == []
    judge(circle.wheel, id, "confirmed", by=ANA)
    assert await found(circle) == [id]
    assert await found(circle, {"ceremonies": ["ceremony:2:b"]}) == []
    judge(circle.wheel, id, "rejected", by=ANA)
    assert await found(circle) == []
    both = make(circle, source_event_ids=["beat:1", "beat:2"], status="confirmed")["id"]
    assert await found(circle) == []
    assert await found(circle, {"ceremonies": ["ceremony:1:a", "ceremony:2:b"]}) == [both]
    circle.wheel.delete("beat", "beat:2")
    assert await found(circle, {"ceremonies": ["ceremony:1:a", "ceremony:2:b"]}) == []
    make(circle, source_event_ids=[], status="confirmed")
    assert await found(circle) == []


async def test_conclusions_are_not_sent(circle: World, double: Double) -> None:
    await circle.deliver()
    before = len(double.requests)
    make(circle, status="confirmed")
    await circle.deliver()
    assert len(double.requests) == before


async def test_pulling_brings_each_once_resting_on_its_sessions_records(circle: World, double: Double) -> None:
    await circle.deliver()
    workspace = double.workspaces["medicine-wheel"]
    double._conclude(workspace, "ceremony-1-a", "node-human-1-ana", "Ana dreams of boats", level="deductive")
    double._conclude(workspace, None, "node-human-1-ana", "Ana is known everywhere")
    double._conclude(workspace, "ceremony-2-b", "node-human-1-ana", "Ana was named elsewhere")
    (provider,) = circle.memory.providers
    nodes = await pull(circle.wheel, provider, person=ANA, scope=SCOPE)
    assert [node["description"] for node in nodes] == ["said: [east] Ana speaks\nThe lantern is teal."]
    metadata = nodes[0]["metadata"]
    assert (metadata["status"], metadata["source"], metadata["about"]) == ("inferred", "honcho", ANA)
    assert set(metadata["source_event_ids"]) == {"ceremony:1:a", "beat:1"}
    assert await pull(circle.wheel, provider, person=ANA, scope=SCOPE) == []
    wider = await pull(circle.wheel, provider, person=ANA, scope={"ceremonies": ["ceremony:1:a", "ceremony:2:b"]})
    assert [node["description"] for node in wider] == ["Ana was named elsewhere"]
    judge(circle.wheel, nodes[0]["id"], "confirmed", by=ANA)
    assert nodes[0]["id"] in [
        source.wheel_id for source in (await circle.memory.search(query="lantern", scope=SCOPE)).sources
    ]


async def test_nothing_is_pulled_for_nothing(circle: World, double: Double) -> None:
    await circle.deliver()
    double.requests.clear()
    (provider,) = circle.memory.providers
    assert await pull(circle.wheel, provider, person=ANA, scope={}) == []
    assert await pull(circle.wheel, provider, person=ANA, scope={"ceremonies": ["none"]}) == []
    assert double.requests == []
    assert await pull(circle.wheel, provider, person="nobody", scope=SCOPE) == []
    assert "nobody" not in double.workspaces["medicine-wheel"].peers
    circle.wheel.delete("beat", "beat:1")
    assert await pull(circle.wheel, provider, person=ANA, scope=SCOPE) == [], "a stale session is not asked"
