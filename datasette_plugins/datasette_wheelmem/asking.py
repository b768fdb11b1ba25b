"""The memory's doors: ask, search, about, how it stands; conclusions, and sending a record again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from wheelmem.conclusions import MARK, conclude, judge
from wheelmem.contract import Answer, ContractError, NotHeldError
from wheelmem.river import River
from wheelmem.store import Wheel, reading, writing
from wheelmem.store.outbox import LEAVING

from .callers import Caller, caller
from .web import Refusal, answer, door, path_id, read_json

__all__ = ["ROUTES", "judge_conclusion", "may_see_conclusion"]

T = TypeVar("T")

_TYPES: dict[str, tuple[type, str]] = {
    "peer": (str, "a string"),
    "reasoning_level": (str, "a string"),
    "explain": (bool, "true or false"),
    "question": (str, "a string"),
    "query": (str, "a string"),
    "person": (str, "a string"),
}
_FIELDS = {
    "ask": ("question", "peer", "reasoning_level", "limit", "explain", "arms"),
    "search": ("query", "limit", "explain", "arms"),
    "about": ("person", "question", "limit", "explain", "arms"),
}


def _arguments(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of the memory; nulls count as absent."""
    first = _FIELDS[verb][0]
    if not isinstance(given.get("scope"), Mapping):
        raise ContractError('scope must be an object, such as {"circle_id": "…"}')
    found: dict[str, Any] = {first: given.get(first), "scope": given["scope"]}
    for name in _FIELDS[verb]:
        value = given.get(name)
        if value is None:
            continue
        wanted, named = _TYPES.get(name, (object, ""))
        if not isinstance(value, wanted):
            raise ContractError(f"{name} must be {named}")
        if name == "arms" and not (isinstance(value, list) and all(isinstance(arm, str) for arm in value)):
            raise ContractError("arms must be a list of strings")
        found[name] = value
    return found


def _ask(verb: str) -> Callable[[Any, Any], Any]:
    async def post(datasette: Any, request: Any) -> Any:
        who = await caller(datasette, request)
        await who.need("memory-ask")
        found: Answer = await getattr(who.memory, verb)(**_arguments(verb, await read_json(request)))
        return answer(found.to_json())

    return post


async def _status(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    if await who.may("memory-read"):
        statuses = [status.to_json() for status in await who.house.memory.status()]
        return answer({"providers": statuses, "river": await asyncio.to_thread(who.house.river.status)})
    await who.need("memory-ask")
    # What waits, and what a provider says of itself, speaks of the whole wheel.
    short = [{"provider": one.provider, "enabled": one.enabled} for one in await who.house.memory.status()]
    return answer({"providers": short, "river": {}})


async def _health(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-read")
    counts = await asyncio.to_thread(who.house.wheel.count)
    body: dict[str, Any] = {"status": "healthy", "provider": "sqlite", "counts": counts}
    for status in await who.house.memory.status():
        if status.provider != "wheel":
            body[status.provider] = {name: value for name, value in status.to_json().items() if name != "provider"}
    body.setdefault("honcho", {"enabled": False})
    return answer(body)


# --- conclusions and the river -------------------------------------------------------------------------------------


class _Inside:
    """The wheel, inside a transaction that is under way on Datasette's write thread."""

    def __init__(self, wheel: Wheel, db: sqlite3.Connection) -> None:
        self.store = wheel.store
        self._db = db

    def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        return fn(self._db)


def may_see_conclusion(who: Caller, db: sqlite3.Connection, node: Mapping[str, Any] | None) -> bool:
    """Whether a node is a conclusion that this caller may see: one that rests on records, all of them within reach."""
    metadata = (node or {}).get("metadata")
    if node is None or node.get("type") != "knowledge" or not isinstance(metadata, Mapping) or metadata.get("kind") != MARK:
        return False
    allowed = who.allowed(db)
    if allowed is None:
        return True
    named = metadata.get("source_event_ids")
    sources = [id for id in ([named] if isinstance(named, str) else named or []) if isinstance(id, str)]
    held = reading.claimed(db, allowed, [(kind, id) for id in sources for kind in LEAVING])
    return bool(sources) and {id for _, id in held} >= set(sources)


async def judge_conclusion(who: Caller, id: str, status: Any) -> dict[str, Any]:
    """Judge a conclusion in the caller's name. One beyond the caller's reach is like one that the wheel does not hold."""

    def write(db: sqlite3.Connection) -> dict[str, Any]:
        if not may_see_conclusion(who, db, writing.get(db, "node", id)):
            raise NotHeldError(f"the wheel holds no conclusion {id}")
        return judge(cast(Wheel, _Inside(who.house.wheel, db)), id, status, by=who.name)

    return await who.house.write(write)


async def _judge(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-judge")
    given = await read_json(request)
    return answer({"node": await judge_conclusion(who, path_id(request), given.get("status"))})


async def _conclude(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-write")
    given = await read_json(request)
    known = {name: given[name] for name in _CONCLUSION if given.get(name) is not None}
    if known.get("status", "inferred") != "inferred":
        # Anything else is a judgement, and that is the caller's.
        await who.need("memory-judge")

    def write(db: sqlite3.Connection) -> dict[str, Any]:
        sources = known.get("source_event_ids") or []
        if who.confined:
            if not sources or not isinstance(sources, list):
                raise ContractError("name in source_event_ids the records that this rests on")
            for id in sources:
                if not any(reading.claimed(db, who.needed(db), [(kind, id)]) for kind in LEAVING if isinstance(id, str)):
                    raise NotHeldError(f"the wheel holds no record {id}")
        for name in ("about", "content", "kind"):
            known.setdefault(name, None)
        inside = cast(Wheel, _Inside(who.house.wheel, db))
        node = conclude(inside, **{**known, "status": "inferred"})
        return judge(inside, node["id"], known["status"], by=who.name) if known.get("status", "inferred") != "inferred" else node

    return answer({"node": await who.house.write(write)}, 201)


_CONCLUSION = ("about", "content", "kind", "status", "source_event_ids", "derived_by", "provider")


async def _resend(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-write", "memory-read")
    given = await read_json(request)
    kind, id = given.get("kind"), given.get("id")
    if not isinstance(kind, str) or not isinstance(id, str) or not id.strip():
        raise ContractError("name what to send again: kind (beat, ceremony or diary) and id")
    river: River = who.house.river
    if not river.providers:
        raise Refusal(409, "no provider that receives is configured (for Honcho, set HONCHO_URL)")

    await asyncio.to_thread(river.resend, kind, id)
    passes = await river.deliver(seconds=RESEND_SECONDS)
    total = {name: sum(getattr(one, name) for one in passes) for name in ("sent", "dropped", "pending")}
    return answer({"resent": {"kind": kind, "id": id}, **total})


RESEND_SECONDS = 60.0


ROUTES = [
    (r"^/api/memory$", door(GET=_status)),
    (r"^/api/memory/ask$", door(POST=_ask("ask"))),
    (r"^/api/memory/search$", door(POST=_ask("search"))),
    (r"^/api/memory/about$", door(POST=_ask("about"))),
    (r"^/api/memory/conclusions$", door(POST=_conclude)),
    (r"^/api/memory/conclusions/(?P<id>[^/]+)$", door(PATCH=_judge)),
    (r"^/api/memory/resend$", door(POST=_resend)),
    (r"^/api/health$", door(GET=_health)),
]
