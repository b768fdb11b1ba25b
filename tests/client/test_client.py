"""The Python client against the real doors: typed answers, pages that say when they are not all, errors in the server's words."""

from __future__ import annotations

import inspect
from typing import Any

import httpx
import pytest

from wheelmem import Answer, ContractError, NotHeldError, Scope, WheelmemError, create_memory, open_wheel
from wheelmem import client as module
from wheelmem.client import AsyncWheelClient, NotHeldThere, Page, ServedError, WheelClient
from wheelmem.demo import EPISODE, FERRY, MIRA, ORCHARD, QUESTION

Json = dict[str, Any]


async def test_answers_are_those_of_the_wheel_itself(client: AsyncWheelClient, wheel_file: Any) -> None:
    with open_wheel(wheel_file) as wheel:
        memory = create_memory(wheel=wheel)
        scope = Scope(circle_id=ORCHARD)
        assert await client.memory.ask(QUESTION, scope=scope) == await memory.ask(question=QUESTION, scope=scope)
        explained = await client.memory.search("lantern", scope=scope.to_json(), explain=True, limit=2, arms=("keyword",))
        assert explained == await memory.search(query="lantern", scope=scope, explain=True, limit=2, arms=["keyword"])
        assert explained.sources[0].explain is not None
        about = await client.memory.about(MIRA, scope=scope, question="lantern")
        assert about == await memory.about(person=MIRA, scope=scope, question="lantern")
    assert isinstance(about, Answer)


async def test_status_and_health(client: AsyncWheelClient) -> None:
    status = await client.memory.status()
    assert status.providers[-1].to_json() == {
        "provider": "wheel",
        "enabled": True,
        "confined": True,
        "detail": {"mode": "matched"},
    }
    assert "pending" in status.river
    assert (await client.health())["counts"]["ceremonies"] > 5


async def test_a_page_says_when_it_is_not_all(client: AsyncWheelClient) -> None:
    for index, kind in enumerate((client.nodes, client.ceremonies, client.diary, client.edges, client.beats)):
        everything = await kind.list(limit="all")  # type: ignore[attr-defined]
        assert not everything.truncated
        assert everything.next_offset is None
        collected: list[Json] = []
        offset: int | None = 0
        while offset is not None:
            page: Page[Json] = await kind.list(limit=2, offset=offset)  # type: ignore[attr-defined]
            assert 0 < len(page) <= 2
            assert page.truncated is (offset + len(page) < len(everything))
            if index < 3:
                assert page.total == page.matched == len(everything)
            collected += page
            offset = page.next_offset
        assert collected == list(everything)
    some = await client.ceremonies.list(circle_id=ORCHARD, limit=1)
    assert some.truncated
    assert some.matched is not None
    assert some.total is not None
    assert 1 < some.matched < some.total


async def test_nodes_and_edges(client: AsyncWheelClient) -> None:
    made = await client.nodes.create({"type": "human", "name": "Åsa / the river?", "direction": "east", "id": "node:å/1?#%"})
    assert await client.nodes.get("node:å/1?#%") == made
    assert (await client.nodes.update(made["id"], {"direction": None})).get("direction") is None
    edge = await client.edges.create({"from_id": made["id"], "to_id": ORCHARD, "relationship_type": "member_of"})
    assert edge["strength"] == 0.5
    assert (await client.edges.list(from_id=made["id"])).items == (edge,)
    changed = await client.edges.update(made["id"], ORCHARD, {"strength": 1})
    assert changed["strength"] == 1
    with pytest.raises(ServedError) as held:
        await client.nodes.delete(made["id"])
    assert held.value.status == 409
    await client.edges.delete(made["id"], ORCHARD)
    await client.nodes.delete(made["id"])
    with pytest.raises(NotHeldThere):
        await client.nodes.get(made["id"])


async def test_ceremonies_beats_and_diary(client: AsyncWheelClient) -> None:
    ceremony = await client.ceremonies.create({"type": "talking_circle", "direction": "south", "circle_id": ORCHARD})
    assert await client.ceremonies.get(ceremony["id"]) == ceremony
    beat = await client.beats.create(
        {"direction": "east", "title": "A turn", "description": "Said aloud.", "ceremonies": [ceremony["id"]]}
    )
    assert (await client.beats.get(beat["id"]))["title"] == "A turn"
    assert [one["id"] for one in await client.beats.list(ceremony=ceremony["id"])] == [beat["id"]]
    assert (await client.beats.witness(beat["id"], [MIRA]))["witnesses"] == [MIRA]
    entry = await client.diary.create(
        {
            "participant": MIRA,
            "phase": "nindokendaan",
            "entryType": "observation",
            "content": "Seen.",
            "metadata": {"ceremony_id": ceremony["id"], "tags": ["a", "b"]},
        }
    )
    assert await client.diary.get(entry["id"]) == entry
    assert (await client.diary.list(ceremony_id=ceremony["id"], tags=["a", "b"])).items == (entry,)
    assert (await client.diary.list(tags=["a", "c"])).items == ()
    with pytest.raises(ServedError, match="409"):
        await client.ceremonies.delete(ceremony["id"])
    await client.diary.delete(entry["id"])
    with pytest.raises(NotHeldThere):
        await client.diary.delete(entry["id"])


async def test_an_episode_is_its_node_and_its_ceremonies(client: AsyncWheelClient) -> None:
    episode = await client.episodes.get(EPISODE)
    assert episode.ceremonies
    assert {one["episode_path"] for one in episode.ceremonies} == {EPISODE}
    assert episode.node is not None
    assert episode.node["id"] == f"chronicle:{EPISODE}"
    nothing = await client.episodes.get("2026-01-01-episode-001-none")
    assert (nothing.node, nothing.ceremonies) == (None, ())


async def test_conclusions(client: AsyncWheelClient) -> None:
    found = await client.memory.search("lantern", scope={"circle_id": ORCHARD})
    source = found.sources[0].wheel_id
    node = await client.memory.conclude(about=MIRA, content="Low.", kind="pattern", source_event_ids=[source], derived_by=MIRA)
    assert node["metadata"]["source_event_ids"] == [source]
    judged = await client.memory.judge(node["id"], "confirmed", by=MIRA)
    assert judged["metadata"]["status"] == "confirmed"
    with pytest.raises(NotHeldThere, match="404"):
        await client.memory.judge(MIRA, "confirmed", by=MIRA)
    with pytest.raises(ServedError) as none:
        await client.memory.resend("beat", source)
    assert none.value.status == 409


async def test_errors_say_status_address_and_the_servers_words(client: AsyncWheelClient) -> None:
    with pytest.raises(ServedError) as caught:
        await client.memory.ask(" ", scope={"circle_id": FERRY})
    error = caught.value
    assert (error.status, error.url, error.said) == (
        400,
        "http://wheel.test/api/memory/ask",
        "question must be some words",
    )
    assert str(error) == "POST http://wheel.test/api/memory/ask answered 400: question must be some words"
    assert isinstance(error, WheelmemError)
    with pytest.raises(NotHeldError, match=r"GET http://wheel.test/api/ceremonies/no%20such answered 404: .*no such"):
        await client.ceremonies.get("no such")


async def test_what_cannot_be_sent_is_refused_before_it_is(client: AsyncWheelClient) -> None:
    for call in (
        lambda: client.memory.ask("who?", scope={"circle": "x"}),
        lambda: client.memory.ask("who?", scope=None),  # type: ignore[arg-type]
        lambda: client.nodes.get(""),
        lambda: client.nodes.get("\ud800"),
        lambda: client.nodes.create({"id": object()}),
        lambda: client.nodes.create({"strength": float("nan")}),
    ):
        with pytest.raises(ContractError):
            await call()


def broken(answer: Any) -> AsyncWheelClient:
    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        found: httpx.Response = answer
        return found

    return AsyncWheelClient("http://wheel.test/", transport=httpx.MockTransport(handle))


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (httpx.ConnectError("refused"), None, "cannot be reached (refused)"),
        (httpx.ReadTimeout(""), None, "no answer in time"),
        (httpx.RemoteProtocolError("cut\noff"), None, "cut off"),
        (httpx.Response(502, html="<h1>Bad</h1>"), 502, "Bad Gateway"),
        (httpx.Response(500, text="the disk\nis full"), 500, "the disk is full"),
        (httpx.Response(403, json={"ok": False, "error": "Forbidden", "status": 403}), 403, "Forbidden"),
        (httpx.Response(302, headers={"location": "/-/login"}), 302, "it sends to /-/login"),
        (httpx.Response(200, html="<h1>A page</h1>"), 200, "not what a wheel answers there (text/html"),
        (httpx.Response(200, json=[]), 200, "not what a wheel answers there"),
        (httpx.Response(200, json={"provider": "wheel"}), 200, "not what a wheel answers there"),
        (httpx.Response(200, json={"provider": "wheel", "mode": "matched", "sources": 3}), 200, "not what a wheel answers"),
    ],
    ids=str,
)
async def test_whatever_comes_back_is_one_error_in_one_line(answer: Any, status: int | None, said: str) -> None:
    async with broken(answer) as client:
        with pytest.raises(ServedError) as caught:
            await client.memory.ask("who?", scope={"circle_id": "x"})
    assert caught.value.status == status
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_nothing_is_tried_twice() -> None:
    requests = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(503, json={"error": "away"})

    async with AsyncWheelClient("http://wheel.test", token="t0ken", transport=httpx.MockTransport(handle)) as client:
        with pytest.raises(ServedError, match="away"):
            await client.memory.status()
    assert [request.headers["authorization"] for request in requests] == ["Bearer t0ken"]


def test_the_synchronous_client_over_a_real_socket(sync_client: WheelClient) -> None:
    answer = sync_client.memory.ask(QUESTION, scope={"circle_id": ORCHARD})
    assert answer.sources
    assert sync_client.memory.search("lantern", scope={"circle_id": ORCHARD}, limit=1).sources[0] in answer.sources
    assert sync_client.memory.about(MIRA, scope={"circle_id": ORCHARD}).sources
    assert sync_client.memory.status().providers
    node = sync_client.nodes.create({"type": "human", "name": "Ö", "id": "node:ö/1"})
    assert sync_client.nodes.get("node:ö/1") == node
    assert sync_client.episodes.get(EPISODE).ceremonies
    page = sync_client.beats.list(limit=1)
    assert page.truncated
    with pytest.raises(NotHeldThere):
        sync_client.diary.get("diary:none")


def test_an_address_must_be_one() -> None:
    with pytest.raises(ContractError, match="begins with http:// or https://, not 'localhost:8001'"):
        WheelClient("localhost:8001")


def test_both_clients_do_the_same() -> None:
    for name in ("Memory", "Nodes", "Edges", "Ceremonies", "Beats", "Diary", "Episodes"):
        sync, other = getattr(module, f"_{name}"), getattr(module, f"_Async{name}")
        methods = {key: value for key, value in vars(sync).items() if inspect.isfunction(value)}
        assert methods.keys() == {key for key, value in vars(other).items() if inspect.isfunction(value)}
        for key, value in methods.items():
            assert inspect.signature(value) == inspect.signature(getattr(other, key))
            assert value.__doc__ == getattr(other, key).__doc__
            assert inspect.iscoroutinefunction(getattr(other, key))
