"""Both transports, as a host starts them: a process of its own, spoken to by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from wheelmem.demo import FERRY, ORCHARD, QUESTION
from wheelmem.store import Wheel


def command(wheel: Wheel, *more: str) -> list[str]:
    return [sys.executable, "-m", "wheelmem", "mcp", "--db", str(wheel.path), *more]


def over_stdio(wheel: Wheel, *more: str) -> StdioServerParameters:
    program, *arguments = command(wheel, *more)
    return StdioServerParameters(command=program, args=arguments)


@contextmanager
def over_http(wheel: Wheel, *more: str) -> Iterator[str]:
    """The address of a served memory; the server is ended as a person would, with Ctrl-C."""
    process = subprocess.Popen(command(wheel, "--http", "--port", "0", *more), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
        assert found, line + process.stderr.read()
        yield found.group()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()


async def look_around(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["memory_status", "memory_ask"]
    result = await client.call_tool("memory_ask", {"question": QUESTION, "scope": {"circle_id": ORCHARD}})
    assert not result.is_error
    assert result.structured_content["sources"]
    refused = await client.call_tool("memory_ask", {"question": QUESTION, "scope": {"nowhere": "x"}})
    assert refused.is_error
    assert "scope does not know nowhere" in refused.content[0].text
    listed = (await client.list_resources()).resources
    read = await client.read_resource(listed[0].uri)
    assert json.loads(read.contents[0].text)["ceremony"]["id"]


async def test_stdio(demo_wheel: Wheel) -> None:
    async with Client(over_stdio(demo_wheel)) as client:
        await look_around(client)


async def test_stdio_for_a_host_of_the_older_protocol(demo_wheel: Wheel) -> None:
    async with Client(over_stdio(demo_wheel), mode="legacy") as client:
        await look_around(client)


async def test_streamable_http(demo_wheel: Wheel) -> None:
    with over_http(demo_wheel) as address:
        async with Client(address) as client:
            await look_around(client)
        async with Client(address, mode="legacy") as client:
            await look_around(client)


async def test_a_page_of_a_browser_from_elsewhere_gets_no_answer(demo_wheel: Wheel) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    with over_http(demo_wheel) as address:
        async with httpx.AsyncClient() as browser:
            for headers in ({"host": "wheel.attacker.example"}, {"origin": "https://attacker.example"}):
                answer = await browser.post(address, json=body, headers={**accept, **headers})
                assert answer.status_code in (403, 421)
                assert "memory_ask" not in answer.text


async def test_several_agents_at_once(demo_wheel: Wheel) -> None:
    async def one(address: str, circle: str) -> set[str]:
        async with Client(address) as client:
            calls = [client.call_tool("memory_search", {"query": "lantern", "scope": {"circle_id": circle}}) for _ in range(5)]
            answers = [result.structured_content for result in await asyncio.gather(*calls)]
            assert all(answer == answers[0] for answer in answers)
            return {source["wheel_id"] for source in answers[0]["sources"]}

    with over_http(demo_wheel) as address:
        orchard, ferry = await asyncio.gather(one(address, ORCHARD), one(address, FERRY))
    assert orchard
    assert ferry
    assert not orchard & ferry


async def test_a_pinned_scope_holds_over_a_transport(demo_wheel: Wheel) -> None:
    async with Client(over_stdio(demo_wheel, "--scope", json.dumps({"circle_id": ORCHARD}))) as client:
        mine = await client.call_tool("memory_search", {"query": "lantern"})
        assert mine.structured_content["sources"]
        theirs = await client.call_tool("memory_search", {"query": "lantern", "scope": {"circle_id": FERRY}})
        assert theirs.structured_content["mode"] == "empty"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wheelmem", "mcp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--scope", "{"], 2, "--scope is no JSON"),
        (["--scope", '{"circle": "x"}'], 2, "scope does not know circle"),
        (["--http", "--host", "0.0.0.0"], 2, "for this machine alone"),
        (["--url", "memory.example"], 2, "begins with http:// or https://"),
        (["--url", "http://127.0.0.1:1", "--db", "x.db"], 2, "give one of them"),
    ],
)
def test_wrong_use_is_one_line(demo_wheel: Wheel, arguments: list[str], code: int, said: str) -> None:
    db = [] if "--url" in arguments else ["--db", str(demo_wheel.path)]
    done = run(*db, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")


def test_a_wheel_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = run("--db", str(tmp_path / "no.db"))
    assert done.returncode == 1
    assert "no wheel at" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_taken_port_is_one_line(demo_wheel: Wheel) -> None:
    with over_http(demo_wheel) as address:
        port = address.partition("127.0.0.1:")[2].partition("/")[0]
        done = run("--db", str(demo_wheel.path), "--http", "--port", port)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_input_that_ends_ends_the_server(demo_wheel: Wheel) -> None:
    done = run("--db", str(demo_wheel.path))
    assert (done.returncode, done.stdout) == (0, "")
