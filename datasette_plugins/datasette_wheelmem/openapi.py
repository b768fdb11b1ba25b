"""The doors as an OpenAPI 3.1 description, at ``/api/openapi.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from wheelmem import __version__
from wheelmem.conclusions import KINDS, STATUSES
from wheelmem.contract import LEVELS, MAX_QUESTION, MODES
from wheelmem.drafts import CEREMONY_TYPES, DIRECTIONS, ENTRY_TYPES, NODE_TYPES, PHASES

from .web import answer, door

__all__ = ["ROUTES", "describe"]

Json = dict[str, Any]
TEXT: Json = {"type": "string"}
WORDS: Json = {"type": "string", "minLength": 1, "pattern": r"\S"}
TIME: Json = {"type": "string", "examples": ["2026-03-08T18:00:00Z"]}
TEXTS: Json = {"type": "array", "items": TEXT}
ONE_OR_MORE: Json = {"anyOf": [TEXT, TEXTS]}
OBJECT: Json = {"type": "object"}


def _object(required: Iterable[str] = (), **properties: Json) -> Json:
    made: Json = {"type": "object", "properties": properties}
    if required:
        made["required"] = list(required)
    return made


def _closed(**properties: Json) -> Json:
    """An object that may have no other fields."""
    return _object(**properties) | {"additionalProperties": False}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _one_of(values: Iterable[str]) -> Json:
    return {"type": "string", "enum": list(values)}


# --- what is said --------------------------------------------------------------------------------------------------

_ASKED: Json = {
    "scope": _ref("Scope"),
    "limit": {
        "description": "How many sources: 12 unless given, at most 50; what is no positive whole number counts as not given."
    },
    "explain": {"type": "boolean"},
    "arms": TEXTS,
}
_QUESTION: Json = {**WORDS, "maxLength": MAX_QUESTION}

SCHEMAS: Json = {
    "Error": _object(["error"], error={**TEXT, "description": "What was wrong and what to do, in one line."}),
    "Scope": _closed(
        ceremonies=ONE_OR_MORE,
        subject_id=ONE_OR_MORE,
        circle_id=ONE_OR_MORE,
        episode_path=ONE_OR_MORE,
        participant=TEXT,
        exclude_ceremonies=TEXTS,
    )
    | {"description": "What a question may draw on: the union of what its fields name, less what is excluded."},
    "Reach": _object(["scope"], scope=_ref("Scope"), ceremonies=TEXTS, episodes=TEXTS),
    "Source": _object(
        ["provider", "wheel_kind", "wheel_id", "excerpt"],
        provider=TEXT,
        wheel_kind=TEXT,
        wheel_id=TEXT,
        ceremony_id=TEXT,
        speaker=TEXT,
        speaker_name=TEXT,
        speaker_kind=_one_of(("person", "agent", "wheel")),
        excerpt=TEXT,
        at=TEXT,
        outside_wheel={"const": True},
        explain=OBJECT,
    ),
    "Answer": _object(
        ["provider", "mode", "sources", "reach"],
        provider=TEXT,
        mode=_one_of(MODES),
        answer=TEXT,
        sources={"type": "array", "items": _ref("Source")},
        reach=_ref("Reach"),
        note=TEXT,
    ),
    "Ask": _object(["question", "scope"], question=_QUESTION, peer=TEXT, reasoning_level=_one_of(LEVELS), **_ASKED),
    "Search": _object(["query", "scope"], query=_QUESTION, **_ASKED),
    "About": _object(["person", "scope"], person=_QUESTION, question={**TEXT, "maxLength": MAX_QUESTION}, **_ASKED),
    "Conclusion": _object(
        ["about", "content", "kind"],
        about=WORDS,
        content=WORDS,
        kind=_one_of(KINDS),
        status=_one_of(STATUSES),
        source_event_ids=TEXTS,
        derived_by=TEXT,
        provider=TEXT,
    ),
    "Judgement": _object(
        ["status"],
        status=_one_of(STATUSES),
        by={**TEXT, "description": "Passed over: a judgement is by whoever makes the request."},
    ),
    "Resend": _object(["kind", "id"], kind=_one_of(("beat", "ceremony", "diary")), id=WORDS),
    "Node": _object(
        ["type", "name"],
        id=TEXT,
        type=_one_of(NODE_TYPES),
        name=WORDS,
        description=TEXT,
        direction={"anyOf": [_one_of(DIRECTIONS), {"type": "null"}]},
        metadata=OBJECT,
        created_at=TIME,
        updated_at=TIME,
    ),
    "Edge": _object(
        ["from_id", "to_id", "relationship_type"],
        from_id=WORDS,
        to_id=WORDS,
        relationship_type=WORDS,
        strength={"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        ceremony_honored={"type": "boolean"},
        obligations=TEXTS,
        ceremony_id=TEXT,
        created_at=TIME,
    ),
    "Ceremony": _object(
        ["type"],
        id=TEXT,
        type=_one_of(CEREMONY_TYPES),
        direction=_one_of(DIRECTIONS),
        participants=TEXTS,
        medicines_used=TEXTS,
        intentions=TEXTS,
        timestamp=TIME,
        research_context={"anyOf": [TEXT, OBJECT]},
        circle_id=TEXT,
        closes=TEXT,
        subject_id=TEXT,
        episode_path={**TEXT, "examples": ["2026-03-14-episode-003-landing"]},
    ),
    "Beat": _object(
        ["direction", "title"],
        id=TEXT,
        direction=_one_of(DIRECTIONS),
        title=WORDS,
        description=TEXT,
        prose=TEXT,
        ceremonies=TEXTS,
        learnings=TEXTS,
        timestamp=TIME,
        act={"type": "integer"},
        speaker=TEXT,
        witnesses=TEXTS,
    ),
    "BeatChange": _closed(speaker=WORDS, witnesses=TEXTS),
    "DiaryEntry": _object(
        ["participant", "content"],
        id=TEXT,
        participant=WORDS,
        content=WORDS,
        phase=_one_of(PHASES),
        entryType=_one_of(ENTRY_TYPES),
        timestamp=TIME,
        chronicle=TEXT,
        metadata=OBJECT,
    ),
    "Change": {"type": "object", "description": "The fields to change; null clears one."},
    "Providers": _object(["providers", "river"], providers={"type": "array", "items": OBJECT}, river=OBJECT),
    "Health": _object(
        ["status", "provider", "counts"],
        status={"const": "healthy"},
        provider=TEXT,
        counts={"type": "object", "additionalProperties": {"type": "integer"}},
    ),
}

# --- how it is asked -----------------------------------------------------------------------------------------------


def _json(schema: Json, description: str) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_ERRORS = {
    400: "What was sent does not fit",
    403: "The caller may not",
    404: "The wheel holds no such thing",
    405: "Not for this address",
    409: "Something stands in the way",
    413: "The body is longer than 1 MB",
    415: "With cookies, JSON must say that it is",
    503: "The wheel cannot be reached or written now",
}


def _operation(
    summary: str, given: Json, status: int = 200, errors: Iterable[int] = (), body: str | None = None, **more: Any
) -> Json:
    codes = {403, 503, *errors, *((400, 413, 415) if body else ())}
    responses = {str(status): _json(given, summary)}
    responses |= {str(code): _json(_ref("Error"), _ERRORS[code]) for code in sorted(codes)}
    made: Json = {"summary": summary, "responses": responses, **more}
    if body:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(body)}}}
    return made


def _query(name: str, description: str = "", schema: Json = TEXT, required: bool = False) -> Json:
    return {
        "name": name,
        "in": "query",
        "schema": schema,
        "required": required,
        **({"description": description} if description else {}),
    }


_ID: Json = {"name": "id", "in": "path", "required": True, "schema": WORDS}
_PAGE = [
    _query("limit", "A number, or all; 100 unless given."),
    _query("offset", "How many to pass over.", {"type": "integer", "minimum": 0}),
]


def _page(key: str, schema: str) -> Json:
    number: Json = {"type": "integer", "minimum": 0}
    return _object(
        [key, "provider", "count", "total", "truncated"],
        **{key: {"type": "array", "items": OBJECT | {"description": schema}}},
        provider=TEXT,
        count=number,
        total=number,
        matched=number,
        truncated={"type": "boolean"},
    )


def _kept(key: str) -> Json:
    return _object(["success", key, "provider"], success={"const": True}, provider=TEXT, **{key: OBJECT})


_TAKEN = _object(["success", "provider"], success={"const": True}, provider=TEXT)


def _paths() -> Mapping[str, Json]:
    def asking(verb: str, summary: str, body: str) -> Json:
        return {"post": _operation(summary, _ref("Answer"), body=body, operationId=verb)}

    ends = [_query("from", "from_id of the edge", WORDS, True), _query("to", "to_id of the edge", WORDS, True)]
    ends.append(_query("relationship_type", "Only the edge of this type"))
    return {
        "/api/memory": {"get": _operation("How the providers and the river stand", _ref("Providers"), operationId="status")},
        "/api/memory/ask": asking("ask", "Answer a question within a scope", "Ask"),
        "/api/memory/search": asking("search", "The records of a scope closest to some words", "Search"),
        "/api/memory/about": asking("about", "What a person said, as far as a scope reaches", "About"),
        "/api/memory/conclusions": {
            "post": _operation(
                "Keep a conclusion", _object(["node"], node=OBJECT), 201, [404], "Conclusion", operationId="conclude"
            )
        },
        "/api/memory/conclusions/{id}": {
            "patch": _operation(
                "Judge a conclusion",
                _object(["node"], node=OBJECT),
                200,
                [404],
                "Judgement",
                operationId="judge",
                parameters=[_ID],
            )
        },
        "/api/memory/resend": {
            "post": _operation(
                "Send a record to the providers again",
                _object(["resent", "sent", "dropped", "pending"], resent=OBJECT),
                200,
                [404, 409],
                "Resend",
                operationId="resend",
            )
        },
        "/api/health": {
            "get": _operation("How much the wheel holds, and how its providers are", _ref("Health"), operationId="health")
        },
        "/api/nodes": {
            "get": _operation(
                "Nodes, the newest first",
                _page("nodes", "a node"),
                operationId="nodes",
                parameters=[_query("type"), _query("direction"), _query("kind", "metadata.kind"), *_PAGE],
            ),
            "post": _operation("Record a node", _kept("node"), 201, [], "Node", operationId="record_node"),
        },
        "/api/nodes/{id}": {
            "get": _operation("A node", _object(["node"], node=OBJECT), 200, [404], operationId="node", parameters=[_ID]),
            "patch": _operation(
                "Change a node", _object(["node"], node=OBJECT), 200, [404], "Change", operationId="change_node", parameters=[_ID]
            ),
            "delete": _operation("Take a node out", _TAKEN, 200, [404, 409], operationId="take_out_node", parameters=[_ID]),
        },
        "/api/edges": {
            "get": _operation(
                "Edges, the newest first",
                {"type": "array", "items": OBJECT},
                operationId="edges",
                parameters=[_query("from"), _query("to"), *_PAGE],
            ),
            "post": _operation("Record an edge", _kept("edge"), 201, [404], "Edge", operationId="record_edge"),
            "patch": _operation(
                "Change an edge", _kept("edge"), 200, [404], "Change", operationId="change_edge", parameters=ends
            ),
            "delete": _operation("Take an edge out", _TAKEN, 200, [400, 404], operationId="take_out_edge", parameters=ends),
        },
        "/api/ceremonies": {
            "get": _operation(
                "Ceremonies, the newest first",
                _page("ceremonies", "a ceremony"),
                operationId="ceremonies",
                parameters=[
                    *(_query(name) for name in ("direction", "type", "episode_path", "circle_id", "closes", "subject_id")),
                    *_PAGE,
                ],
            ),
            "post": _operation("Record a ceremony", _kept("ceremony"), 201, [404], "Ceremony", operationId="record_ceremony"),
        },
        "/api/ceremonies/{id}": {
            "get": _operation(
                "A ceremony", _object(["ceremony"], ceremony=OBJECT), 200, [404], operationId="ceremony", parameters=[_ID]
            ),
            "delete": _operation(
                "Take a ceremony out", _TAKEN, 200, [404, 409], operationId="take_out_ceremony", parameters=[_ID]
            ),
        },
        "/api/narrative/beats": {
            "get": _operation(
                "Turns, the newest first",
                {"type": "array", "items": OBJECT},
                operationId="beats",
                parameters=[_query("direction"), _query("ceremony"), _query("limit", "All unless given."), _PAGE[1]],
            ),
            "post": _operation("Record a turn", OBJECT, 201, [404], "Beat", operationId="record_beat"),
        },
        "/api/narrative/beats/{id}": {
            "get": _operation("A turn", OBJECT, 200, [404], operationId="beat", parameters=[_ID]),
            "patch": _operation(
                "Name more witnesses, or the speaker",
                OBJECT,
                200,
                [404],
                "BeatChange",
                operationId="change_beat",
                parameters=[_ID],
            ),
        },
        "/api/diary": {
            "get": _operation(
                "Diary entries, the oldest first",
                _page("entries", "a diary entry"),
                operationId="diary",
                parameters=[
                    *(_query(name) for name in ("participant", "phase", "entryType", "chronicle", "ceremony_id")),
                    _query("tag", "May be given several times; all must be there.", TEXTS),
                    *_PAGE,
                ],
            ),
            "post": _operation("Record a diary entry", _kept("entry"), 201, [404], "DiaryEntry", operationId="record_diary"),
        },
        "/api/diary/{id}": {
            "get": _operation(
                "A diary entry", _object(["entry"], entry=OBJECT), 200, [404], operationId="diary_entry", parameters=[_ID]
            ),
            "delete": _operation("Take a diary entry out", _TAKEN, 200, [404], operationId="take_out_diary", parameters=[_ID]),
        },
    }


@cache
def describe(base_url: str = "/") -> Json:
    """The whole description, for a server below ``base_url``."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wheelmem",
            "version": __version__,
            "description": "A wheel's memory over HTTP. Send a bearer token, or a signed-in browser's cookie.",
        },
        "servers": [{"url": base_url.rstrip("/") or "/"}],
        "paths": _paths(),
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


async def _get(datasette: Any, request: Any) -> Any:
    return answer(describe(datasette.setting("base_url")))


ROUTES = [(r"^/api/openapi\.json$", door(GET=_get))]
