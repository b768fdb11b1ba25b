"""The wheel's own doors: nodes, edges, ceremonies, turns (beats) and diary entries, to read and to write.

Reading needs ``memory-read``, writing ``memory-write``. A caller whom the policy confines writes turns and diary entries
into the ceremonies within reach, and nothing else: a node, a seat, a ceremony or an id of one's own choosing could widen
what one reaches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from wheelmem.contract import ContractError, NotHeldError
from wheelmem.drafts import draft, draft_warnings
from wheelmem.store import KINDS, listing, writing

from .callers import Caller, caller
from .web import Refusal, answer, door, path_id, read_json

__all__ = ["ROUTES"]

PROVIDER = {"provider": "sqlite"}
DEFAULT_LIMIT = 100
NAMES = {"node": "nodes", "edge": "edges", "ceremony": "ceremonies", "beat": "beats", "diary": "entries"}
ONE = {"node": "node", "edge": "edge", "ceremony": "ceremony", "beat": "beat", "diary": "entry"}


# --- reading -------------------------------------------------------------------------------------------------------


def _page(request: Any, unlimited: bool = False) -> tuple[int, int]:
    """How many, from where: a limit that is no positive whole number counts as not given; ``all`` is everything (-1)."""
    limit, offset = request.args.get("limit", ""), request.args.get("offset", "")
    number = int(limit) if limit.isascii() and limit.isdigit() and len(limit) < 18 else 0
    start = int(offset) if offset.isascii() and offset.isdigit() and len(offset) < 18 else 0
    if limit == "all" or (number == 0 and unlimited):
        return -1, start
    return number or DEFAULT_LIMIT, start


def _filters(kind: str, request: Any) -> dict[str, list[str]]:
    filters = {}
    for name in listing.FILTERS[kind]:
        values = [value for value in request.args.getlist(name) if value]
        if values:
            # A filter that stands for one value takes the first, as every other argument does.
            filters[name] = values if name == "tag" else values[:1]
    return filters


def _list(kind: str, bare: bool = False, unlimited: bool = False) -> Callable[[Any, Any], Any]:
    async def get(datasette: Any, request: Any) -> Any:
        who = await caller(datasette, request)
        await who.need("memory-read")
        filters = _filters(kind, request)
        limit, offset = _page(request, unlimited)
        rows, matched, total = await who.house.read(lambda db: listing.listed(db, kind, filters, limit, offset))
        if bare:
            return answer(rows)
        counts = {"count": len(rows), "total": total, **({"matched": matched} if filters else {})}
        return answer({NAMES[kind]: rows, **PROVIDER, **counts, "truncated": len(rows) < matched})

    return get


def _get_one(kind: str) -> Callable[[Any, Any], Any]:
    async def get(datasette: Any, request: Any) -> Any:
        who = await caller(datasette, request)
        await who.need("memory-read")
        record = await who.house.read(lambda db: _held(db, kind, path_id(request)))
        return answer(record if kind == "beat" else {ONE[kind]: record})

    return get


def _held(db: sqlite3.Connection, kind: str, id: str) -> dict[str, Any]:
    record = writing.get(db, kind, id)
    if record is None:
        raise NotHeldError(f"the wheel holds no {kind} {id}")
    return record


# --- recording -----------------------------------------------------------------------------------------------------


def _post(kind: str) -> Callable[[Any, Any], Any]:
    async def post(datasette: Any, request: Any) -> Any:
        who = await _writer(datasette, request, free=kind in ("beat", "diary"))
        given = await read_json(request)

        def record(db: sqlite3.Connection) -> tuple[dict[str, Any], bool, list[str]]:
            if who.confined:
                _only_within(who, db, kind, given)
            made = draft(kind, given, db)
            held = writing.get(db, kind, *(made[name] for name in KINDS[kind].key)) is not None
            warnings = [] if who.confined else draft_warnings(kind, made, db)
            who.house.wheel.store(db, kind, made)
            return made, held, warnings

        made, held, warnings = await who.house.write(record)
        if kind == "beat":
            return answer({**made, **({"warnings": warnings} if warnings else {})}, 201)
        replaced = {"replaced": held} if kind == "edge" else {}
        return answer({"success": True, ONE[kind]: made, **replaced, **PROVIDER}, 201)

    return post


async def _writer(datasette: Any, request: Any, free: bool = False) -> Caller:
    """A caller who may write; one whom the policy confines only where that is ``free`` to them."""
    who = await caller(datasette, request)
    await who.need("memory-write")
    if who.confined and not free:
        policy = who.house.settings["policy"]
        raise Refusal(403, f"under the policy {policy} you may record turns and diary entries in your ceremonies, nothing else")
    return who


def _only_within(who: Caller, db: sqlite3.Connection, kind: str, given: Mapping[str, Any]) -> None:
    """Refuse whatever would land outside a confined caller's reach."""
    if given.get("id") is not None:
        raise Refusal(403, "leave out the id: the wheel gives one")
    if kind == "beat":
        named = given.get("ceremonies")
        ceremonies = [named] if isinstance(named, str) else named
        if not isinstance(ceremonies, list) or not ceremonies:
            raise ContractError("name in ceremonies which of your ceremonies this turn belongs to")
        for ceremony in ceremonies:
            who.need_ceremony(db, ceremony)
        return
    metadata = given.get("metadata")
    inside = metadata.get("ceremony_id") if isinstance(metadata, Mapping) else None
    named = [id for id in (inside, given.get("ceremony_id")) if id is not None]
    for ceremony in named:
        who.need_ceremony(db, ceremony)
    if not named and (who.wheel_id is None or given.get("participant") != who.wheel_id):
        raise Refusal(403, "a diary entry without a ceremony can only be your own: participant must be you")


# --- changing and taking out ---------------------------------------------------------------------------------------


async def _patch_node(datasette: Any, request: Any) -> Any:
    who = await _writer(datasette, request)
    changes, id = await read_json(request), path_id(request)
    if changes.get("id", id) != id:
        raise ContractError("a node keeps its id; leave it out")

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        # A null clears a field; draft() takes it for one that is absent.
        merged = {**_held(db, "node", id), **changes, "updated_at": None}
        made = draft("node", merged, db)
        who.house.wheel.store(db, "node", made)
        return made

    return answer({"node": await who.house.write(change)})


async def _patch_beat(datasette: Any, request: Any) -> Any:
    who = await _writer(datasette, request, free=True)
    changes, id = await read_json(request), path_id(request)
    unknown = [name for name in changes if name not in ("witnesses", "speaker")]
    if unknown:
        raise ContractError(f"of a beat only witnesses and speaker can be changed, not {', '.join(unknown)}")
    given = changes.get("witnesses") or []
    witnesses = [given] if isinstance(given, str) else given
    if not isinstance(witnesses, list) or not all(isinstance(item, str) and item.strip() for item in witnesses):
        raise ContractError("witnesses must be a list of strings")
    speaker = changes.get("speaker")
    if speaker is not None and (not isinstance(speaker, str) or not speaker.strip()):
        raise ContractError("speaker must be a string")
    if speaker is None and not witnesses:
        raise ContractError("name witnesses to add, or the speaker")

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        who.need_record(db, "beat", id)
        beat = _held(db, "beat", id)
        if witnesses:
            there = beat.get("witnesses") or []
            beat["witnesses"] = list(dict.fromkeys([*([there] if isinstance(there, str) else there), *witnesses]))
        if speaker is not None:
            beat["speaker"] = speaker
        who.house.wheel.store(db, "beat", beat)
        allowed = who.allowed(db)
        if allowed is not None:
            named = beat.get("ceremonies") or []
            beat["ceremonies"] = [
                one for one in ([named] if isinstance(named, str) else named) if one in allowed.reach.ceremonies
            ]
        return beat

    return answer(await who.house.write(change))


def _delete(kind: str) -> Callable[[Any, Any], Any]:
    async def delete(datasette: Any, request: Any) -> Any:
        who = await _writer(datasette, request)
        id = path_id(request)

        def take(db: sqlite3.Connection) -> None:
            try:
                listing.take_out(db, kind, id)
            except ContractError as error:
                raise Refusal(409, str(error)) from None

        await who.house.write(take)
        return answer({"success": True, "deleted": id, **PROVIDER})

    return delete


def _ends(request: Any) -> tuple[str, str, str | None]:
    source, target = request.args.get("from", ""), request.args.get("to", "")
    if not source or not target:
        raise ContractError("name the edge's two ends: ?from=…&to=…")
    return source, target, request.args.get("relationship_type") or None


def _between(db: sqlite3.Connection, ends: tuple[str, str, str | None]) -> list[dict[str, Any]]:
    found = listing.edges_between(db, *ends)
    if not found:
        kind = f" of type {ends[2]}" if ends[2] else ""
        raise NotHeldError(f"the wheel holds no edge{kind} from {ends[0]} to {ends[1]}")
    return found


async def _patch_edge(datasette: Any, request: Any) -> Any:
    who = await _writer(datasette, request)
    changes, ends = await read_json(request), _ends(request)
    for name in ("from_id", "to_id", "relationship_type"):
        if name in changes:
            raise ContractError(f"an edge keeps its {name}; take it out and record another")

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        found = _between(db, ends)
        for edge in found:
            made = draft("edge", {**edge, **changes}, db)
            who.house.wheel.store(db, "edge", made)
        return made

    return answer({"success": True, "edge": await who.house.write(change), **PROVIDER})


async def _delete_edge(datasette: Any, request: Any) -> Any:
    who = await _writer(datasette, request)
    ends = _ends(request)

    def take(db: sqlite3.Connection) -> int:
        found = _between(db, ends)
        for edge in found:
            writing.delete(db, "edge", edge["from_id"], edge["to_id"], edge["relationship_type"])
        return len(found)

    return answer({"success": True, "deleted": await who.house.write(take), **PROVIDER})


ID = "(?P<id>[^/]+)"
ROUTES = [
    (r"^/api/nodes$", door(GET=_list("node"), POST=_post("node"))),
    (rf"^/api/nodes/{ID}$", door(GET=_get_one("node"), PATCH=_patch_node, DELETE=_delete("node"))),
    (r"^/api/edges$", door(GET=_list("edge", bare=True), POST=_post("edge"), PATCH=_patch_edge, DELETE=_delete_edge)),
    (r"^/api/ceremonies$", door(GET=_list("ceremony"), POST=_post("ceremony"))),
    (rf"^/api/ceremonies/{ID}$", door(GET=_get_one("ceremony"), DELETE=_delete("ceremony"))),
    (r"^/api/narrative/beats$", door(GET=_list("beat", bare=True, unlimited=True), POST=_post("beat"))),
    (rf"^/api/narrative/beats/{ID}$", door(GET=_get_one("beat"), PATCH=_patch_beat)),
    (r"^/api/diary$", door(GET=_list("diary"), POST=_post("diary"))),
    (rf"^/api/diary/{ID}$", door(GET=_get_one("diary"), DELETE=_delete("diary"))),
]
