"""What the tools and resources work on: a wheel in a file, or one that is served; pinned to a scope or not.

Both kinds answer alike: a pinned one works on what is asked *and* what the pinned scope reaches, and of anything beyond it
says that the wheel does not hold it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from ..client import AsyncWheelClient, NotHeldThere
from ..contract import Answer, ContractError, NotHeldError, Reach, Scope, WheelmemError
from ..memory import create_memory
from ..reach import closes, is_empty_scope, resolve_reach
from ..settings import Settings
from ..store import Wheel, writing

__all__ = ["FileHouse", "House", "ServedHouse"]

Json = dict[str, Any]
KINDS = ("ceremony", "beat", "diary")
RESEND_SECONDS = 60.0
ATTEMPTS = 3


class House(Protocol):
    """What the tools call. ``scope`` may be None: then the pinned one is meant."""

    pin: Scope | None

    async def status(self) -> Json: ...

    async def ask(self, verb: str, scope: Any, arguments: Mapping[str, Any]) -> Answer: ...

    async def reach(self, scope: Any) -> Reach: ...

    async def conclude(self, arguments: Mapping[str, Any]) -> Json: ...

    async def judge(self, id: str, status: str, by: str) -> Json: ...

    async def resend(self, kind: str, id: str) -> Json: ...

    async def ceremony(self, id: str) -> Json: ...

    async def person(self, id: str) -> Json: ...

    async def ceremonies(self) -> list[Json]: ...


def _not_held(kind: str, id: str) -> NotHeldError:
    return NotHeldError(f"the wheel holds no {kind} {id}")


def _scope(asked: Any, pin: Scope | None) -> Scope:
    if asked is not None:
        return Scope.from_json(asked)
    if pin is None:
        raise ContractError('name a scope, such as {"circle_id": "…"}: without one nothing is reached')
    return pin


def _sources(node: Mapping[str, Any] | None) -> list[str] | None:
    """The ids a conclusion rests on; None for what is no conclusion."""
    metadata = (node or {}).get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("kind") != "memory_projection":
        return None
    named = metadata.get("source_event_ids")
    return [id for id in named if isinstance(id, str)] if isinstance(named, list) else []


def _person(id: str, name: str | None, kind: str | None, answer: Answer) -> Json:
    known = {"id": id, "name": name, "kind": kind}
    return {**{key: value for key, value in known.items() if value}, "latest": answer.to_json()["sources"]}


class FileHouse:
    """A wheel in a file."""

    def __init__(self, wheel: Wheel, settings: Settings, pin: Scope | None = None) -> None:
        self.wheel = wheel
        self.settings = settings
        self.pin = pin
        whole = create_memory(wheel=wheel, settings=settings)
        self.providers = whole.providers
        self.memory = whole if pin is None else whole.within(pin)

    async def status(self) -> Json:
        from ..river import River

        statuses = [status.to_json() for status in await self.memory.status()]
        if self.pin is not None:
            # What waits speaks of the whole wheel.
            return {"providers": statuses, "river": {}}
        return {"providers": statuses, "river": await asyncio.to_thread(River(self.wheel, self.providers).status)}

    async def ask(self, verb: str, scope: Any, arguments: Mapping[str, Any]) -> Answer:
        answer: Answer = await getattr(self.memory, verb)(scope=_scope(scope, self.pin), **arguments)
        return answer

    async def reach(self, scope: Any) -> Reach:
        return await self.memory.reach(scope=_scope(scope, self.pin))

    async def conclude(self, arguments: Mapping[str, Any]) -> Json:
        from ..conclusions import conclude

        if self.pin is not None:
            await self._need(arguments.get("source_event_ids") or ())
        return await asyncio.to_thread(conclude, self.wheel, **arguments)

    async def judge(self, id: str, status: str, by: str) -> Json:
        from ..conclusions import judge

        if self.pin is not None:
            named = _sources(await asyncio.to_thread(self.wheel.get, "node", id))
            if not named or not await self._within(named):
                raise _not_held("conclusion", id)
        return await asyncio.to_thread(judge, self.wheel, id, status, by=by)

    async def resend(self, kind: str, id: str) -> Json:
        from ..river import River

        if self.pin is not None and not await self.memory.holds(kind, id):
            raise _not_held(kind, id)
        river = River(self.wheel, self.providers)
        await asyncio.to_thread(river.resend, kind, id)
        passes = await river.deliver(seconds=RESEND_SECONDS)
        totals = {name: sum(getattr(done, name) for done in passes) for name in ("sent", "dropped", "pending")}
        return {"resent": {"kind": kind, "id": id}, **totals}

    async def _within(self, ids: Iterable[str]) -> bool:
        for id in ids:
            if not any([await self.memory.holds(kind, id) for kind in KINDS]):
                return False
        return True

    async def _need(self, ids: Iterable[str]) -> None:
        for id in ids:
            if not await self._within([id]):
                raise _not_held("record", id)

    async def ceremony(self, id: str) -> Json:
        from ..store.listing import listed

        if id not in (await self.memory.reach(scope={"ceremonies": id})).ceremonies:
            raise _not_held("ceremony", id)
        inside = await self._inside()

        def read(db: Any) -> Json:
            beats, *_ = listed(db, "beat", {"ceremony": [id]}, -1, 0)
            entries, *_ = listed(db, "diary", {"ceremony_id": [id]}, -1, 0)
            held = writing.get(db, "ceremony", id)
            return {"ceremony": inside(held or {}), "beats": [inside(beat) for beat in beats[::-1]], "diary": entries}

        return await asyncio.to_thread(self.wheel.read, read)

    async def person(self, id: str) -> Json:
        sat = {"participant": id}
        scope = sat if self.pin is None else self.pin
        answer = await self._latest(id, scope)
        if self.pin is None:
            node = await asyncio.to_thread(self.wheel.get, "node", id)
            known = node is not None and node.get("type") in ("human", "agent")
        else:
            known = False
        if not (known or answer.sources or (await self.memory.reach(scope=sat)).ceremonies):
            raise _not_held("person", id)
        names = await self.wheel.names([id])
        kinds = await self.wheel.kinds([id])
        return _person(id, names.get(id), kinds.get(id), answer)

    async def _latest(self, id: str, scope: Any) -> Answer:
        """What a person said last, by the wheel alone: a resource that is read asks no provider."""
        alone = create_memory(wheel=self.wheel, providers=[], settings=self.settings)
        confined = alone if self.pin is None else alone.within(self.pin)
        return await confined.about(person=id, scope=scope)

    async def ceremonies(self) -> list[Json]:
        if self.pin is not None:
            ids = (await self.memory.reach(scope=self.pin)).ceremonies
            found = await asyncio.to_thread(self.wheel.read, lambda db: [writing.get(db, "ceremony", id) for id in ids])
            inside = _naming(set(ids))
            return [inside(one) for one in found if one is not None]
        return await self.wheel.ceremonies()

    async def _inside(self) -> Callable[[Json], Json]:
        return _as_it_is if self.pin is None else _naming(set((await self.memory.reach(scope=self.pin)).ceremonies))


class ServedHouse:
    """A wheel that is served at an address.

    Its doors know nothing of a pinned scope, so what is asked is narrowed here: to the ceremonies and episodes that both
    scopes reach, named one by one. What the server then says it reached is checked against that before it is shown.
    """

    def __init__(self, client: AsyncWheelClient, pin: Scope | None = None) -> None:
        self.client = client
        self.pin = pin

    async def status(self) -> Json:
        found = await self.client.memory.status()
        river = {} if self.pin is not None else dict(found.river)
        return {"providers": [status.to_json() for status in found.providers], "river": river}

    async def ask(self, verb: str, scope: Any, arguments: Mapping[str, Any]) -> Answer:
        asked = _scope(scope, self.pin)
        if self.pin is None:
            return await self._ask(verb, asked, arguments)
        for _ in range(ATTEMPTS):
            both, narrowed = await self._both(asked)
            if both.is_empty:
                return Answer("wheel", "empty", reach=both)
            answer = await self._ask(verb, narrowed, arguments)
            # A ceremony that came in between may close one of these, and so be reached though nobody pinned it.
            if set(answer.reach.ceremonies) <= set(both.ceremonies):
                return replace(answer, reach=replace(answer.reach, scope=asked))
        raise WheelmemError("the served wheel keeps changing while it is asked; ask again")

    async def _ask(self, verb: str, scope: Scope, arguments: Mapping[str, Any]) -> Answer:
        given = dict(arguments)
        first = given.pop({"ask": "question", "search": "query", "about": "person"}[verb])
        answer: Answer = await getattr(self.client.memory, verb)(first, scope=scope, **given)
        return answer

    async def reach(self, scope: Any) -> Reach:
        return (await self._both(_scope(scope, self.pin)))[0]

    async def _both(self, asked: Scope) -> tuple[Reach, Scope]:
        """What the asked and the pinned scope both reach, and the scope to ask with."""
        ceremonies = (await self.client.ceremonies.list(limit="all")).items
        seats = [] if not _names_people(asked, self.pin) else await self._seats()
        reach = resolve_reach(asked, ceremonies, seats) if self.pin is None else _certain(asked, ceremonies, seats)
        if self.pin is not None:
            pinned = _certain(self.pin, ceremonies, seats)
            reach = replace(
                reach,
                ceremonies=tuple(id for id in reach.ceremonies if id in set(pinned.ceremonies)),
                episodes=tuple(path for path in reach.episodes if path in set(pinned.episodes)),
            )
        named = Scope(ceremonies=reach.ceremonies or None, episode_path=reach.episodes or None)
        more = set(resolve_reach(named, ceremonies, ()).ceremonies) | _closings(reach.ceremonies, ceremonies)
        beyond = tuple(sorted(more - set(reach.ceremonies)))
        return reach, replace(named, exclude_ceremonies=beyond or None)

    async def _seats(self) -> list[dict[str, str]]:
        edges = (await self.client.edges.list(limit="all")).items
        circles = (await self.client.nodes.list(type="circle", limit="all")).items
        seats = [
            {"person_id": edge["from_id"], "circle_id": edge["to_id"]}
            for edge in edges
            if edge.get("relationship_type") == "member_of"
        ]
        for circle in circles:
            metadata = circle.get("metadata")
            if isinstance(metadata, Mapping) and isinstance(metadata.get("facilitator_id"), str):
                seats.append({"person_id": metadata["facilitator_id"], "circle_id": circle["id"]})
        return seats

    async def conclude(self, arguments: Mapping[str, Any]) -> Json:
        if self.pin is not None:
            for id in arguments.get("source_event_ids") or ():
                if not await self._within([id]):
                    raise _not_held("record", id)
        return await self.client.memory.conclude(**arguments)

    async def judge(self, id: str, status: str, by: str) -> Json:
        if self.pin is not None:
            named = None
            with suppress(NotHeldThere):
                named = _sources(await self.client.nodes.get(id))
            if not named or not await self._within(named):
                raise _not_held("conclusion", id)
        return await self.client.memory.judge(id, status, by=by)

    async def resend(self, kind: str, id: str) -> Json:
        if self.pin is not None and (kind not in KINDS or not await self._within([id], (kind,))):
            raise _not_held(kind, id)
        return await self.client.memory.resend(kind, id)

    async def _within(self, ids: Iterable[str], kinds: Sequence[str] = KINDS) -> bool:
        """Whether each of these is a record inside what is pinned."""
        assert self.pin is not None
        reach, _ = await self._both(self.pin)
        for id in ids:
            if not any([await self._is_within(kind, id, reach) for kind in kinds]):
                return False
        return True

    async def _is_within(self, kind: str, id: str, reach: Reach) -> bool:
        reached = set(reach.ceremonies)
        if kind == "ceremony":
            return id in reached
        try:
            if kind == "beat":
                named = (await self.client.beats.get(id)).get("ceremonies")
                return not reached.isdisjoint([named] if isinstance(named, str) else named or ())
            entry = await self.client.diary.get(id)
        except NotHeldThere:
            return False
        metadata = entry.get("metadata")
        ceremony = metadata.get("ceremony_id") if isinstance(metadata, Mapping) else None
        if ceremony:
            return ceremony in reached
        return str(entry.get("chronicle") or "").removeprefix("chronicle:") in reach.episodes

    async def ceremony(self, id: str) -> Json:
        if self.pin is not None and id not in (await self.reach(None)).ceremonies:
            raise _not_held("ceremony", id)
        inside = await self._inside()
        held = await self.client.ceremonies.get(id)
        beats = (await self.client.beats.list(ceremony=id, limit="all")).items
        entries = (await self.client.diary.list(ceremony_id=id, limit="all")).items
        return {"ceremony": inside(held), "beats": [inside(beat) for beat in reversed(beats)], "diary": list(entries)}

    async def person(self, id: str) -> Json:
        node: Json | None = None
        with suppress(NotHeldThere):
            node = await self.client.nodes.get(id)
        sat = Scope(participant=id)
        reach = await self.reach(sat)
        answer = await self.ask("about", sat if self.pin is None else None, {"person": id})
        known = self.pin is None and node is not None and node.get("type") in ("human", "agent")
        if not (known or answer.sources or reach.ceremonies):
            raise _not_held("person", id)
        kind = {"human": "person", "agent": "agent"}.get(str((node or {}).get("type")))
        return _person(id, (node or {}).get("name"), kind, answer)

    async def ceremonies(self) -> list[Json]:
        if self.pin is None:
            return list((await self.client.ceremonies.list()).items)
        inside = await self._inside()
        reached = set((await self.reach(None)).ceremonies)
        return [inside(one) for one in (await self.client.ceremonies.list(limit="all")).items if one["id"] in reached]

    async def _inside(self) -> Callable[[Json], Json]:
        return _as_it_is if self.pin is None else _naming(set((await self.reach(None)).ceremonies))


def _names_people(*scopes: Scope | None) -> bool:
    return any(scope is not None and scope.participant for scope in scopes)


def _as_it_is(record: Json) -> Json:
    return record


def _naming(reached: set[str]) -> Callable[[Json], Json]:
    """A record of the pinned reach without the ids of ceremonies beyond it, where its fields name some."""

    def inside(record: Json) -> Json:
        made = dict(record)
        if isinstance(made.get("ceremonies"), list):
            made["ceremonies"] = [id for id in made["ceremonies"] if id in reached]
        named = ["closes"] if made.get("type") != "closing" else ["closes", "research_context"]
        for field in named:
            value = made.get(field)
            if isinstance(value, str) and value not in reached and not any(char.isspace() or char == "{" for char in value):
                del made[field]
        return made

    return inside


def _certain(scope: Scope, ceremonies: Sequence[Mapping[str, Any]], seats: Sequence[Mapping[str, Any]]) -> Reach:
    """What a scope reaches whatever the wheel's order is, which a list of the doors does not show.

    A closing of a reached ceremony is reached always; a closing of a closing only when it came later, so it is left out.
    """
    if is_empty_scope(scope):
        return Reach(scope)
    held = {one["id"] for one in ceremonies}
    no_closings = [{**one, "closes": None, "type": None} for one in ceremonies]
    direct = set(resolve_reach(replace(scope, exclude_ceremonies=None), no_closings, seats).ceremonies)
    excluded = set(scope.named("exclude_ceremonies"))
    reached = (one["id"] for one in ceremonies if one["id"] in direct or closes(one, held) in direct)
    return Reach(scope, tuple(id for id in reached if id not in excluded), tuple(scope.named("episode_path")))


def _closings(ids: Iterable[str], ceremonies: Sequence[Mapping[str, Any]]) -> set[str]:
    """Whatever closes these, closes what closes these, and so on: all that naming them could bring along."""
    held = {one["id"] for one in ceremonies}
    found = set(ids)
    while True:
        more = {one["id"] for one in ceremonies if closes(one, held) in found} - found
        if not more:
            return found
        found |= more
