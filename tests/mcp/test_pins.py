"""A pinned scope cannot be widened: whatever a tool or a resource is asked, nothing beyond what it reaches is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError
from served import served

from wheelmem import Scope
from wheelmem.mcp import FileHouse, ServedHouse, create_server, uri
from wheelmem.reach import resolve_reach
from wheelmem.settings import Settings
from wheelmem.testing.cases import PEOPLE, Bench, Case, generate


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


def broad(case: Case) -> list[dict[str, Any] | None]:
    """Scopes that reach further than the pinned one, and the pinned one itself."""
    ceremonies = [row["id"] for kind, row in case.rows if kind == "ceremony"]
    everything = {
        "ceremonies": ceremonies,
        "circle_id": ["circle:garden", "circle:harbour", "circle:archive"],
        "episode_path": ["2026-01-01-episode-001-river", "2026-01-02-episode-002-hill"],
        "subject_id": ["review:1", "review:2"],
    }
    unrestricted = {**case.scope, "exclude_ceremonies": []}
    return [None, case.scope, unrestricted, everything, {"participant": next(iter(PEOPLE))}, generate(case.seed + 1).scope]


def chained(case: Case) -> bool:
    """Whether a closing is reached only by way of another one: over HTTP such a one counts as beyond."""
    ceremonies = [row for kind, row in case.rows if kind == "ceremony"]
    seats = [
        {"person_id": row["from_id"], "circle_id": row["to_id"]}
        for kind, row in case.rows
        if kind == "edge" and row["relationship_type"] == "member_of"
    ]
    last_first = resolve_reach(case.scope, ceremonies[::-1], seats)
    return set(last_first.ceremonies) != {id for kind, id in case.reached if kind == "ceremony"}


async def shown(client: Client, case: Case, exact: bool = True) -> set[tuple[str, str]]:
    """Every record that tools and resources show, checking each answer's reach on the way."""
    inside = {id for kind, id in case.reached if kind == "ceremony"}
    found: set[tuple[str, str]] = set()
    for scope in broad(case):
        for name, arguments in (
            ("memory_search", {"query": case.query}),
            ("memory_ask", {"question": case.query}),
            ("memory_about", {"person": case.person}),
            ("memory_about", {"person": case.person, "question": case.query}),
        ):
            more = {} if scope is None else {"scope": scope}
            result = await client.call_tool(name, {**arguments, **more, "limit": 50})
            assert not result.is_error, result.content
            answer = result.structured_content
            assert set(answer["reach"]["ceremonies"]) <= inside
            found |= {(source["wheel_kind"], source["wheel_id"]) for source in answer["sources"]}
        if scope is not None:
            read = await client.read_resource(uri("reach", json.dumps(scope)))
            assert set(json.loads(read.contents[0].text)["ceremonies"]) <= inside
    for resource in (await client.list_resources()).resources:
        if resource.uri.startswith("wheelmem://ceremony/"):
            found.add(("ceremony", resource.name))
    for kind, row in case.rows:
        if kind == "ceremony":
            if row["id"] not in inside:
                with pytest.raises(MCPError, match=f"the wheel holds no ceremony {row['id']}"):
                    await client.read_resource(uri("ceremony", row["id"]))
                continue
            try:
                read = await client.read_resource(uri("ceremony", row["id"]))
            except MCPError:
                if exact:
                    raise
                continue
            found.add(("ceremony", row["id"]))
            one = json.loads(read.contents[0].text)
            named = {id for beat in one["beats"] for id in beat["ceremonies"]} | {one["ceremony"].get("closes")}
            assert named - {None} <= set(inside), "a record names a ceremony beyond the pin"
            found |= {("beat", beat["id"]) for beat in one["beats"]} | {("diary", entry["id"]) for entry in one["diary"]}
    for person in (*PEOPLE, "Elm"):
        try:
            read = await client.read_resource(uri("person", person))
        except MCPError:
            continue
        found |= {(source["wheel_kind"], source["wheel_id"]) for source in json.loads(read.contents[0].text)["latest"]}
    return found


async def changed(client: Client, case: Case, exact: bool) -> None:
    """Whatever is beyond the pinned scope can be neither sent again, nor rested on, nor judged."""

    async def said(name: str, **arguments: Any) -> str:
        result = await client.call_tool(name, arguments)
        return result.content[0].text if result.is_error else ""

    for kind, id in case.outside:
        if kind != "conclusion":
            assert await said("memory_resend", kind=kind, id=id) == f"the wheel holds no {kind} {id}"
            made = {"about": "Elm", "content": "x", "kind": "pattern", "source_event_ids": [id]}
            assert f"the wheel holds no record {id}" in await said("memory_conclude", **made)
    inside = {id for _, id in case.reached}
    for kind, row in case.rows:
        if kind == "node" and row["type"] == "knowledge":
            sources = set(row["metadata"]["source_event_ids"])
            answer = await said("memory_conclude", id=row["id"], status="rejected", by="Elm")
            refused = f"the wheel holds no conclusion {row['id']}"
            if not (sources and sources <= inside):
                assert answer == refused
            else:
                assert answer == "" or (not exact and answer == refused)


def check(bench: Bench, seed: int, over_http: bool) -> None:
    case = generate(seed)

    async def run(wheel: Any) -> None:
        async with AsyncExitStack() as stack:
            pin = Scope.from_json(case.scope)
            if over_http:
                house: Any = ServedHouse(await stack.enter_async_context(served(wheel.path)), pin)
            else:
                house = FileHouse(wheel, Settings(), pin)
            client = await stack.enter_async_context(Client(create_server(house)))
            exact = not (over_http and chained(case))
            found = await shown(client, case, exact)
            assert found <= case.reached, found - case.reached
            # Not by showing nothing: what the pinned scope reaches is there.
            ceremonies = {key for key in case.reached if key[0] == "ceremony"}
            assert not exact or ceremonies <= found
            await changed(client, case, exact)

    with bench.wheel(case.rows) as wheel:
        asyncio.run(run(wheel))


@given(seed=st.integers(0, 100_000))
def test_a_pinned_scope_cannot_be_widened(bench: Bench, seed: int) -> None:
    check(bench, seed, over_http=False)


@given(seed=st.integers(0, 100_000))
def test_nor_over_a_served_wheel(bench: Bench, seed: int) -> None:
    check(bench, seed, over_http=True)


def test_a_pin_that_names_nothing_reaches_nothing(bench: Bench) -> None:
    case = generate(0)

    async def run(wheel: Any) -> None:
        async with Client(create_server(FileHouse(wheel, Settings(), Scope()))) as client:
            result = await client.call_tool("memory_search", {"query": case.query, "scope": case.scope})
            assert result.structured_content["mode"] == "empty"
            assert [one.name for one in (await client.list_resources()).resources] == ["The pinned scope"]

    with bench.wheel(case.rows) as wheel:
        asyncio.run(run(wheel))


def test_a_house_without_its_pin_would_be_caught(bench: Bench) -> None:
    case = generate(0)

    async def run(wheel: Any) -> None:
        house = FileHouse(wheel, Settings(), Scope.from_json(case.scope))
        house.memory = FileHouse(wheel, Settings()).memory
        async with Client(create_server(house)) as client:
            with pytest.raises(AssertionError):
                await shown(client, case)

    with bench.wheel(case.rows) as wheel:
        asyncio.run(run(wheel))
