"""What an agent host sees: the tools, their schemas, and what they answer."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from wheelmem import Answer, Scope
from wheelmem.demo import FERRY, MIRA, ORCHARD, QUESTION
from wheelmem.mcp import FileHouse, create_server, uri
from wheelmem.settings import Settings
from wheelmem.store import Wheel


def server(wheel: Wheel, pin: dict[str, Any] | None = None) -> Any:
    return create_server(FileHouse(wheel, Settings(), None if pin is None else Scope.from_json(pin)))


async def call(client: Client, name: str, **arguments: Any) -> Any:
    """A tool's structured answer, checked against its own schema and its text."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    tool = next(tool for tool in (await client.list_tools()).tools if tool.name == name)
    jsonschema.validate(result.structured_content, tool.output_schema)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    text: str = result.content[0].text
    assert "\n" not in text
    return text


async def test_the_tools_say_what_goes_in_and_what_comes_out(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "memory_status",
            "memory_ask",
            "memory_search",
            "memory_about",
            "memory_conclude",
            "memory_resend",
        ]
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.description
            assert tool.annotations is not None
        assert tools["memory_ask"].input_schema["required"] == ["question", "scope"]
        assert tools["memory_ask"].annotations.read_only_hint
        assert not tools["memory_conclude"].annotations.read_only_hint
        assert set(tools["memory_ask"].output_schema["properties"]) == set(Answer.__dataclass_fields__)
    async with Client(server(demo_wheel, {"circle_id": ORCHARD})) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["memory_ask"].input_schema["required"] == ["question"]


async def test_ask_gives_an_answer_with_sources(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        orchard = await call(client, "memory_ask", question=QUESTION, scope={"circle_id": ORCHARD})
        ferry = await call(client, "memory_ask", question=QUESTION, scope={"circle_id": FERRY}, explain=True, limit=2)
    assert orchard["mode"] == "matched"
    assert orchard["sources"]
    assert not {source["wheel_id"] for source in orchard["sources"]} & {source["wheel_id"] for source in ferry["sources"]}
    assert len(ferry["sources"]) == 2
    assert ferry["sources"][0]["explain"]["arms"]


async def test_search_and_about(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        found = await call(client, "memory_search", query="lantern", scope={"circle_id": ORCHARD})
        said = await call(client, "memory_about", person=MIRA, scope={"circle_id": ORCHARD})
        empty = await call(client, "memory_search", query="lantern", scope={})
    assert found["sources"]
    assert {source["speaker"] for source in said["sources"]} == {MIRA}
    assert (empty["mode"], empty["sources"]) == ("empty", [])


async def test_status(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        status = await call(client, "memory_status")
    assert status["providers"][-1]["provider"] == "wheel"


async def test_a_conclusion_is_made_and_judged(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        beat = (await call(client, "memory_search", query="lantern", scope={"circle_id": ORCHARD}))["sources"][0]["wheel_id"]
        made = {"about": MIRA, "content": "Mira hangs the lantern low.", "kind": "pattern", "source_event_ids": [beat]}
        node = (await call(client, "memory_conclude", **made))["node"]
        assert node["metadata"]["status"] == "inferred"
        judged = (await call(client, "memory_conclude", id=node["id"], status="confirmed", by=MIRA))["node"]
        assert judged["metadata"]["status"] == "confirmed"
        assert judged["metadata"]["judged_by"] == MIRA
        found = await call(client, "memory_search", query="hangs low", scope={"circle_id": ORCHARD})
        assert node["id"] in {source["wheel_id"] for source in found["sources"]}
        assert "leave out about" in await refused(client, "memory_conclude", id=node["id"], status="rejected", by="x", about="y")
        assert "give content, kind as well" in await refused(client, "memory_conclude", about=MIRA)
        assert "holds no conclusion" in await refused(client, "memory_conclude", id="node:no", status="rejected", by="x")
        wrong = {**made, "source_event_ids": ["beat:no"]}
        assert "holds no record beat:no" in await refused(client, "memory_conclude", **wrong)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("memory_ask", {"question": "who?"}, "memory_ask needs scope"),
        ("memory_ask", {"question": "who?", "scope": []}, "scope must be an object, not list"),
        ("memory_ask", {"question": "who?", "scope": {"circle": "a"}}, "scope does not know circle"),
        ("memory_ask", {"question": " ", "scope": {"circle_id": "a"}}, "question must be some words"),
        ("memory_ask", {"question": "x" * 10_001, "scope": {"circle_id": "a"}}, "at most 10,000"),
        ("memory_ask", {"question": "who?", "scope": {"circle_id": 3}}, "scope.circle_id must be a string or a list of strings"),
        ("memory_ask", {"question": "who?", "scope": {}, "depth": 1}, "memory_ask does not know depth"),
        ("memory_ask", {"question": "who?", "scope": {}, "limit": True}, "limit must be a whole number"),
        ("memory_ask", {"question": "who?", "scope": {}, "reasoning_level": "wild"}, "reasoning_level must be one of"),
        ("memory_search", {"query": "x", "scope": {}, "arms": ["nobody"]}, "no arm is named 'nobody'"),
        ("memory_search", {"query": "x", "scope": {}, "arms": [1]}, "arms must be a list of strings"),
        ("memory_resend", {"kind": "beat", "id": "beat:1"}, "no provider that receives is configured"),
        ("memory_conclude", {}, "to make a conclusion, give about, content, kind as well"),
    ],
)
async def test_what_does_not_fit_is_refused_in_one_line(demo_wheel: Wheel, name: str, arguments: Any, said: str) -> None:
    async with Client(server(demo_wheel)) as client:
        assert said in await refused(client, name, **arguments)


async def test_the_resources(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        listed = (await client.list_resources()).resources
        templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
        assert templates == ["wheelmem://ceremony/{id}", "wheelmem://person/{id}", "wheelmem://reach/{scope}"]
        assert len(listed) == demo_wheel.count()["ceremonies"]
        for resource in listed:
            read = json.loads((await client.read_resource(resource.uri)).contents[0].text)
            assert read["ceremony"]["id"] == resource.name
        reach = json.loads((await client.read_resource(uri("reach", json.dumps({"circle_id": ORCHARD})))).contents[0].text)
        assert reach["ceremonies"]
        one = json.loads((await client.read_resource(uri("ceremony", reach["ceremonies"][1]))).contents[0].text)
        assert one["beats"]
        person = json.loads((await client.read_resource(uri("person", MIRA))).contents[0].text)
        assert (person["name"], person["kind"]) == ("Mira Oyelaran", "person")
        assert person["latest"]
        for address in (
            uri("ceremony", "ceremony:no"),
            uri("person", "nobody"),
            uri("reach", "{"),
            "wheelmem://tree/1",
            "http://x/",
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(address)
            assert "Traceback" not in str(caught.value)


async def test_an_unknown_tool_is_an_error_of_the_protocol(demo_wheel: Wheel) -> None:
    async with Client(server(demo_wheel)) as client:
        with pytest.raises(MCPError, match="no tool is named"):
            await client.call_tool("memory_forget", {})
