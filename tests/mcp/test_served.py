"""``--url``: the tools over a wheel that somebody serves."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from served import served

from wheelmem import Scope, open_wheel
from wheelmem.client import AsyncWheelClient
from wheelmem.demo import FERRY, MIRA, ORCHARD, QUESTION
from wheelmem.mcp import FileHouse, ServedHouse, create_server, uri
from wheelmem.settings import Settings
from wheelmem.store import Wheel

RESOURCES = [
    uri("reach", json.dumps({"circle_id": ORCHARD})),
    uri("person", MIRA),
]


@pytest.mark.parametrize("pin", [None, {"circle_id": ORCHARD}, {"participant": MIRA}])
async def test_a_served_wheel_answers_as_its_file_does(demo_wheel: Wheel, pin: Any) -> None:
    scope = None if pin is None else Scope.from_json(pin)
    file = create_server(FileHouse(demo_wheel, Settings(), scope))
    async with served(demo_wheel.path) as client, Client(file) as here:  # noqa: SIM117
        async with Client(create_server(ServedHouse(client, scope))) as there:
            for circle in (ORCHARD, FERRY):
                for name, arguments in (
                    ("memory_ask", {"question": QUESTION}),
                    ("memory_search", {"query": "lantern", "explain": True, "limit": 3}),
                    ("memory_about", {"person": MIRA}),
                ):
                    both = [await one.call_tool(name, {**arguments, "scope": {"circle_id": circle}}) for one in (here, there)]
                    assert not both[1].is_error, both[1].content
                    assert both[0].structured_content == both[1].structured_content
            reach = json.loads((await here.read_resource(RESOURCES[0])).contents[0].text)
            for address in (*RESOURCES, *(uri("ceremony", id) for id in reach["ceremonies"])):
                both = [json.loads((await one.read_resource(address)).contents[0].text) for one in (here, there)]
                if "ceremonies" in both[0]:
                    assert sorted(both[0].pop("ceremonies")) == sorted(both[1].pop("ceremonies"))
                assert both[0] == both[1]


async def test_concluding_and_judging(demo_wheel: Wheel) -> None:
    async with served(demo_wheel.path) as client, Client(create_server(ServedHouse(client))) as agent:
        found = await agent.call_tool("memory_search", {"query": "lantern", "scope": {"circle_id": ORCHARD}})
        source = found.structured_content["sources"][0]["wheel_id"]
        made = {"about": MIRA, "content": "x", "kind": "pattern", "source_event_ids": [source]}
        node = (await agent.call_tool("memory_conclude", made)).structured_content["node"]
        judged = await agent.call_tool("memory_conclude", {"id": node["id"], "status": "rejected", "by": MIRA})
        assert judged.structured_content["node"]["metadata"]["status"] == "rejected"
        resent = await agent.call_tool("memory_resend", {"kind": "beat", "id": source})
        assert resent.is_error
        assert "answered 409: no provider" in resent.content[0].text


async def test_who_may_not_ask_is_told_so(demo_wheel: Wheel) -> None:
    async with served(demo_wheel.path, accept="application/json") as client:  # noqa: SIM117
        async with Client(create_server(ServedHouse(client))) as agent:
            result = await agent.call_tool("memory_ask", {"question": QUESTION, "scope": {"circle_id": ORCHARD}})
    assert result.is_error
    assert "http://wheel.test/api/memory/ask answered 40" in result.content[0].text


@asynccontextmanager
async def listening(answer: bytes, seconds: float = 0.0) -> AsyncIterator[str]:
    """A server that reads a request, answers these bytes, and goes away."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(seconds)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "Server disconnected without sending a response"),
        (
            b'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"provider"',
            "peer closed connection",
        ),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine", "its answer is not what a wheel answers there"),
        (b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n", "answered 500: Oh"),
    ],
)
async def test_a_server_that_goes_away_mid_call_is_a_clear_error(answer: bytes, said: str) -> None:
    async with listening(answer, 0.05) as address, AsyncWheelClient(address) as client:  # noqa: SIM117
        async with Client(create_server(ServedHouse(client))) as agent:
            result = await agent.call_tool("memory_ask", {"question": "who?", "scope": {"circle_id": "x"}})
            with pytest.raises(MCPError, match=r"POST|GET"):
                await agent.read_resource(uri("ceremony", "ceremony:1"))
    assert result.is_error
    text = result.content[0].text
    assert text.startswith(f"POST {address}/api/memory/ask")
    assert said in text
    assert "\n" not in text


async def test_the_address_comes_from_the_environment_too() -> None:
    async with listening(b"HTTP/1.1 503 Away\r\ncontent-length: 0\r\n\r\n") as address:
        agent = StdioServerParameters(command=sys.executable, args=["-m", "wheelmem", "mcp"], env={"MW_API_URL": address})
        async with Client(agent) as client:
            result = await client.call_tool("memory_status", {})
    assert result.content[0].text == f"GET {address}/api/memory answered 503: Away"


async def test_nobody_there_is_a_clear_error() -> None:
    async with listening(b"") as address:
        pass
    async with AsyncWheelClient(address) as client, Client(create_server(ServedHouse(client))) as agent:
        result = await agent.call_tool("memory_status", {})
    assert result.is_error
    assert f"GET {address}/api/memory: cannot be reached" in result.content[0].text


async def test_a_closing_of_a_closing_is_reached_only_where_the_wheels_order_says_so(tmp_path: Path) -> None:
    # The wheel's order is that of arrival; a list from a served wheel has the newest first, and does not show it.
    def ceremony(id: str, day: int, **more: str) -> dict[str, Any]:
        return {"id": id, "type": "closing", "timestamp": f"2026-03-0{day}T18:00:00Z", "intentions": ["lantern"], **more}

    with open_wheel(tmp_path / "wheel.db") as wheel:
        wheel.put("ceremony", ceremony("late", 2, closes="early"))
        wheel.put("ceremony", ceremony("early", 3, closes="first"))
        wheel.put("ceremony", ceremony("first", 1))
        pin = Scope(ceremonies="first")
        here = await FileHouse(wheel, Settings(), pin).ask("search", None, {"query": "lantern"})
        async with served(wheel.path) as client:
            there = await ServedHouse(client, pin).ask("search", None, {"query": "lantern"})
    assert set(there.reach.ceremonies) == set(here.reach.ceremonies) == {"first", "early"}
    assert {source.wheel_id for source in there.sources} == {source.wheel_id for source in here.sources}
