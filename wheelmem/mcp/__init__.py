"""The door for agents: a wheel's memory over the Model Context Protocol (extra ``mcp``).

``create_server`` gives the SDK's server over a ``FileHouse`` or a ``ServedHouse``; ``serve_stdio`` and ``serve_http`` run it.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from .. import __version__
from ..contract import ContractError, NotHeldError, Scope, WheelmemError
from .house import FileHouse, House, ServedHouse
from .tools import TOOLS

__all__ = ["FileHouse", "House", "ServedHouse", "create_server", "serve_http", "serve_stdio", "uri"]

SCHEME = "wheelmem://"
PAGE = 100
JSON = "application/json"
Context = ServerRequestContext[Any]

_INSTRUCTIONS = """\
The memory of people and agents who sit in circles. Every question is asked within a scope, and every source of an answer is a \
record of the wheel within that scope, or says that it is not. Name the narrowest scope that fits: a circle, a ceremony, a \
subject, an episode, a person. Never widen a scope to get an answer that somebody's circle did not share."""
_PINNED = """ Here the scope is pinned: whatever scope you name, only what the pinned one reaches as well is answered, and \
without one the pinned scope is meant. Anything beyond it counts as not held."""


def uri(kind: str, value: str) -> str:
    """The address of a resource: a ``ceremony`` or ``person`` by id, the ``reach`` of a scope by its JSON."""
    return f"{SCHEME}{kind}/{quote(value, safe='')}"


def create_server(house: House) -> Server[Any]:
    """The MCP server over a house."""
    pinned = house.pin is not None
    by_name = {tool.name: tool for tool in TOOLS}

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.input(pinned),
                    output_schema=dict(tool.output),
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.reads_only, destructive_hint=False, open_world_hint=False
                    ),
                )
                for tool in TOOLS
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool is named {params.name!r}; there are: {', '.join(by_name)}")
        try:
            found = await _CALLS[tool.name](house, tool.arguments(params.arguments, pinned))
        except Exception as error:
            return types.CallToolResult(content=[types.TextContent(text=_said(error))], is_error=True)
        text = json.dumps(found, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=found)

    async def list_resources(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        start = _start(params)
        with_errors = await _or_error(house.ceremonies())
        resources = []
        if house.pin is not None and start == 0:
            scope = json.dumps(house.pin.to_json(), ensure_ascii=False)
            described = "Which ceremonies and episodes the pinned scope reaches."
            resources.append(
                types.Resource(uri=uri("reach", scope), name="The pinned scope", description=described, mime_type=JSON)
            )
        part = with_errors[start : start + PAGE]
        resources += [
            types.Resource(uri=uri("ceremony", one["id"]), name=one["id"], title=_title(one), mime_type=JSON) for one in part
        ]
        more = str(start + PAGE) if len(with_errors) > start + PAGE else None
        return types.ListResourcesResult(resources=resources, next_cursor=more)

    async def list_templates(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=f"{SCHEME}{kind}/{{{variable}}}", name=name, description=description, mime_type=JSON
                )
                for kind, variable, name, description in _TEMPLATES
            ]
        )

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        kind, _, rest = str(params.uri).removeprefix(SCHEME).partition("/")
        if not str(params.uri).startswith(SCHEME) or kind not in _READS or not rest:
            known = ", ".join(f"{SCHEME}{kind}/{{{variable}}}" for kind, variable, *_ in _TEMPLATES)
            raise MCPError(types.INVALID_PARAMS, f"no resource is at {params.uri}; there are: {known}")
        found = await _or_error(_READS[kind](house, unquote(rest)))
        text = json.dumps(found, ensure_ascii=False, indent=2)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, mime_type=JSON, text=text)])

    return Server(
        "wheelmem",
        version=__version__,
        title="wheelmem",
        instructions=_INSTRUCTIONS + (_PINNED if pinned else ""),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _title(ceremony: Mapping[str, Any]) -> str:
    parts = [str(ceremony.get("type") or "ceremony").replace("_", " "), str(ceremony.get("timestamp") or "")[:10]]
    return " ".join(part for part in parts if part)


def _start(params: types.PaginatedRequestParams | None) -> int:
    cursor = None if params is None else params.cursor
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 12):
        raise MCPError(types.INVALID_PARAMS, "that cursor is not one of this server's")
    return int(cursor)


def _said(error: Exception) -> str:
    """What an agent is told of an error, in one line."""
    if isinstance(error, WheelmemError):
        return " ".join(str(error).split())
    logging.getLogger("wheelmem").error("a tool failed", exc_info=error)
    return f"{type(error).__name__} (a fault of wheelmem's own; its log says more)"


async def _or_error(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except Exception as error:
        wrong = isinstance(error, ContractError | NotHeldError)
        raise MCPError(types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR, _said(error)) from None


# --- what each tool and resource does --------------------------------------------------------------------------------


def _ask(verb: str) -> Callable[[House, dict[str, Any]], Awaitable[Any]]:
    async def call(house: House, given: dict[str, Any]) -> Any:
        scope = given.pop("scope", None)
        return (await house.ask(verb, scope, given)).to_json()

    return call


async def _status(house: House, given: dict[str, Any]) -> Any:
    return await house.status()


async def _conclude(house: House, given: dict[str, Any]) -> Any:
    if "id" in given:
        needed, made = ("id", "status", "by"), [name for name in ("about", "content", "kind") if name in given]
        if made:
            raise ContractError(f"either judge a conclusion by id, or make one: leave out {', '.join(made)}, or id")
    else:
        needed = ("about", "content", "kind")
    missing = [name for name in needed if name not in given]
    if missing:
        raise ContractError(f"to {'judge' if 'id' in given else 'make'} a conclusion, give {', '.join(missing)} as well")
    if "id" in given:
        return {"node": await house.judge(given["id"], given["status"], given["by"])}
    given.pop("by", None)
    return {"node": await house.conclude(given)}


async def _resend(house: House, given: dict[str, Any]) -> Any:
    return await house.resend(given["kind"], given["id"])


_CALLS: dict[str, Callable[[House, dict[str, Any]], Awaitable[Any]]] = {
    "memory_status": _status,
    "memory_ask": _ask("ask"),
    "memory_search": _ask("search"),
    "memory_about": _ask("about"),
    "memory_conclude": _conclude,
    "memory_resend": _resend,
}


async def _read_reach(house: House, text: str) -> Any:
    try:
        scope = json.loads(text)
    except ValueError:
        raise ContractError(f'a scope is a JSON object, such as {{"circle_id": "…"}}; not {text[:60]!r}') from None
    return (await house.reach(Scope.from_json(scope))).to_json()


_TEMPLATES = (
    ("ceremony", "id", "A ceremony", "A ceremony with its turns (beats) and diary entries."),
    ("person", "id", "A person", "A person or agent: name, kind, and what they said last."),
    ("reach", "scope", "The reach of a scope", "Which ceremonies and episodes a scope (as JSON, percent-encoded) reaches."),
)
_READS: dict[str, Callable[[House, str], Awaitable[Any]]] = {
    "ceremony": lambda house, id: house.ceremony(id),
    "person": lambda house, id: house.person(id),
    "reach": _read_reach,
}


# --- transports ------------------------------------------------------------------------------------------------------


async def serve_stdio(server: Server[Any]) -> None:
    """Serve on standard input and output until the input ends."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(server: Server[Any], host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve over streamable HTTP on a loopback address until interrupted; ``ready`` is told the address.

    Port 0 takes a free one. Raises WheelmemError for an address that is not loopback, or that is taken: whoever reaches the
    port reaches the wheel, so it is for this machine alone.
    """
    import uvicorn

    if host not in ("127.0.0.1", "localhost", "::1"):
        raise ContractError(f"MCP over HTTP is for this machine alone: 127.0.0.1, localhost or ::1, not {host}")
    bound = socket.socket(socket.AF_INET6 if host == "::1" else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            raise WheelmemError(f"cannot listen on {host}:{port}: {error.strerror}; name another with --port") from None
        shown = f"[{host}]" if ":" in host else host
        app = server.streamable_http_app(host=host)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        ready(f"http://{shown}:{bound.getsockname()[1]}/mcp")
        await uvicorn.Server(config).serve(sockets=[bound])
    finally:
        bound.close()
