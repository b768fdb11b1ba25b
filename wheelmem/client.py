"""A client for a wheel that is served over HTTP, in two kinds that do the same: ``WheelClient`` and ``AsyncWheelClient``.

::

    from wheelmem.client import WheelClient

    with WheelClient("http://127.0.0.1:8001") as client:
        answer = client.memory.ask("What colour is the lantern?", scope={"circle_id": "circle:garden"})
        print(answer.note, [source.wheel_id for source in answer.sources])
        page = client.ceremonies.list(circle_id="circle:garden")
        print(page.truncated, page.matched)

Answers are the contract's own classes; records are JSON objects as the wheel holds them. What goes wrong is a ``ServedError``
with status, address and the server's words. Nothing is tried twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar
from urllib.parse import quote, urlencode

import httpx

from .contract import Answer, ContractError, NotHeldError, ProviderStatus, Scope, WheelmemError

__all__ = [
    "AsyncWheelClient",
    "Episode",
    "MemoryStatus",
    "NotHeldThere",
    "Page",
    "ServedError",
    "WheelClient",
]

T = TypeVar("T")
Json = dict[str, Any]
Limit = int | Literal["all"] | None
ScopeLike = Scope | Mapping[str, Any]

# A provider may reason for 90 seconds; the server says so itself when that is over.
TIMEOUT = httpx.Timeout(120.0, connect=10.0)
PAGE = 100


class ServedError(WheelmemError):
    """A served wheel refused, or could not be reached.

    ``status`` is the HTTP status, None when there was no answer; ``url`` what was asked; ``said`` the server's words, or what
    the network said.
    """

    def __init__(self, method: str, url: str, status: int | None, said: str) -> None:
        self.method = method
        self.url = url
        self.status = status
        self.said = said
        super().__init__(f"{method} {url}: {said}" if status is None else f"{method} {url} answered {status}: {said}")


class NotHeldThere(ServedError, NotHeldError):
    """The served wheel does not hold what was named (status 404)."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what a list holds. ``truncated`` says that there is more than these; ``next_offset`` where it goes on.

    ``matched`` is how many the filters selected and ``total`` how many there are at all, None where the server does not count.
    """

    items: tuple[T, ...]
    offset: int = 0
    matched: int | None = None
    total: int | None = None
    truncated: bool = False

    @property
    def next_offset(self) -> int | None:
        """The offset of the next page; None when this one is the last."""
        return self.offset + len(self.items) if self.truncated and self.items else None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """How a served memory is: its providers, the wheel last, and the river (what waits for providers that receive)."""

    providers: tuple[ProviderStatus, ...]
    river: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode by its path: its node (None when the wheel has none) and its ceremonies, the newest first."""

    path: str
    node: Json | None
    ceremonies: tuple[Json, ...]


# --- one call, apart from how it travels -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Call(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None


def _key(id: str) -> str:
    if not isinstance(id, str) or not id:
        raise ContractError(f"an id must be some text, not {id!r}")
    try:
        return quote(id, safe="")
    except UnicodeEncodeError:
        raise ContractError("this id holds half a character (a lone surrogate), which no id can hold") from None


def _query(path: str, **filters: Any) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in filters.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                pairs.append((name, str(one)))
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _body(**given: Any) -> Json:
    """What was given, absent rather than null."""
    out = {}
    for name, value in given.items():
        if value is None or value is False:
            continue
        out[name] = value.to_json() if isinstance(value, Scope) else dict(value) if isinstance(value, Mapping) else value
        if isinstance(out[name], tuple | set | frozenset):
            out[name] = list(out[name])
    return out


def _field(name: str) -> Callable[[Any], Json]:
    def read(answer: Any) -> Json:
        found = answer[name]
        if not isinstance(found, dict):
            raise TypeError(name)
        return found

    return read


def _object(answer: Any) -> Json:
    if not isinstance(answer, dict):
        raise TypeError("no object")
    return answer


def _nothing(answer: Any) -> None:
    return None


def _ask(verb: str, **given: Any) -> _Call[Answer]:
    # A scope that does not fit is refused here already, in the contract's words.
    given["scope"] = Scope.from_json(given["scope"])
    return _Call("POST", f"/api/memory/{verb}", Answer.from_json, _body(**given))


def _status() -> _Call[MemoryStatus]:
    def read(answer: Any) -> MemoryStatus:
        return MemoryStatus(tuple(map(ProviderStatus.from_json, answer["providers"])), answer.get("river") or {})

    return _Call("GET", "/api/memory", read)


def _conclude(**given: Any) -> _Call[Json]:
    return _Call("POST", "/api/memory/conclusions", _field("node"), _body(**given))


def _judge(id: str, status: str, by: str) -> _Call[Json]:
    return _Call("PATCH", f"/api/memory/conclusions/{_key(id)}", _field("node"), {"status": status, "by": by})


def _resend(kind: str, id: str) -> _Call[Json]:
    return _Call("POST", "/api/memory/resend", _object, {"kind": kind, "id": id})


def _counted(path: str, name: str, limit: Limit, offset: int, **filters: Any) -> _Call[Page[Json]]:
    """A list that the server counts."""

    def read(answer: Any) -> Page[Json]:
        items = tuple(answer[name])
        total = answer.get("total")
        matched = answer.get("matched", total)
        more = matched is not None and offset + len(items) < matched and len(items) > 0
        return Page(items, offset, matched, total, more)

    return _Call("GET", _query(path, limit=limit, offset=offset or None, **filters), read)


def _bare(path: str, limit: Limit, offset: int, **filters: Any) -> _Call[Page[Json]]:
    """A list that comes as a bare array: one more is asked for, to know whether there is more."""

    def read(answer: Any) -> Page[Json]:
        if not isinstance(answer, list):
            raise TypeError("no list")
        more = isinstance(limit, int) and len(answer) > limit
        return Page(tuple(answer[:limit] if isinstance(limit, int) else answer), offset, None, None, more)

    asked = limit + 1 if isinstance(limit, int) else limit
    return _Call("GET", _query(path, limit=asked, offset=offset or None, **filters), read)


def _list_nodes(type: str | None, direction: str | None, kind: str | None, limit: Limit, offset: int) -> _Call[Page[Json]]:
    return _counted("/api/nodes", "nodes", limit, offset, type=type, direction=direction, kind=kind)


def _list_edges(from_id: str | None, to_id: str | None, limit: Limit, offset: int) -> _Call[Page[Json]]:
    return _bare("/api/edges", PAGE if limit is None else limit, offset, **{"from": from_id, "to": to_id})


def _list_ceremonies(limit: Limit, offset: int, filters: Mapping[str, str | None]) -> _Call[Page[Json]]:
    return _counted("/api/ceremonies", "ceremonies", limit, offset, **filters)


def _list_beats(direction: str | None, ceremony: str | None, limit: Limit, offset: int) -> _Call[Page[Json]]:
    path = "/api/narrative/beats"
    return _bare(path, PAGE if limit is None else limit, offset, direction=direction, ceremony=ceremony)


def _list_diary(limit: Limit, offset: int, filters: Mapping[str, Any]) -> _Call[Page[Json]]:
    return _counted("/api/diary", "entries", limit, offset, **filters)


def _get(path: str, id: str, name: str | None) -> _Call[Json]:
    return _Call("GET", f"{path}/{_key(id)}", _object if name is None else _field(name))


def _create(path: str, record: Mapping[str, Any], name: str | None) -> _Call[Json]:
    return _Call("POST", path, _object if name is None else _field(name), dict(record))


def _update(path: str, changes: Mapping[str, Any], name: str | None) -> _Call[Json]:
    return _Call("PATCH", path, _object if name is None else _field(name), dict(changes))


def _delete(path: str) -> _Call[None]:
    return _Call("DELETE", path, _nothing)


def _edge(from_id: str, to_id: str) -> str:
    return _query("/api/edges", **{"from": from_id, "to": to_id})


def _witnesses(witnesses: Sequence[str] | None, speaker: str | None) -> Json:
    return _body(witnesses=None if witnesses is None else list(witnesses), speaker=speaker)


def _request(call: _Call[Any], http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
    try:
        return http.build_request(call.method, call.path.lstrip("/"), json=call.body)
    except (ValueError, TypeError, UnicodeError) as error:
        raise ContractError(f"what was given cannot be sent as JSON: {error}") from None


def _failed(call: _Call[Any], request: httpx.Request, error: Exception) -> ServedError:
    if isinstance(error, httpx.TimeoutException):
        said = "no answer in time"
    elif isinstance(error, httpx.ConnectError):
        said = f"cannot be reached ({error})" if str(error) else "cannot be reached"
    else:
        said = str(error) or type(error).__name__
    return ServedError(call.method, str(request.url), None, " ".join(said.split()))


def _read(call: _Call[T], response: httpx.Response) -> T:
    url = str(response.request.url)
    if not response.is_success:
        kind = NotHeldThere if response.status_code == 404 else ServedError
        raise kind(call.method, url, response.status_code, _words(response))
    try:
        return call.read(response.json() if response.content else None)
    except (ValueError, TypeError, KeyError, AttributeError, WheelmemError):
        said = f"its answer is not what a wheel answers there ({response.headers.get('content-type', 'no content type')})"
        raise ServedError(call.method, url, response.status_code, said) from None


def _words(response: httpx.Response) -> str:
    """The server's own words: its ``error``, else the text, else the name of the status."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        for name in ("error", "message", "title", "detail"):
            if isinstance(body.get(name), str) and body[name]:
                return str(body[name])
    text = "" if "html" in response.headers.get("content-type", "") else " ".join(response.text.split())[:300]
    if response.is_redirect:
        text = f"it sends to {response.headers.get('location', 'elsewhere')}"
    return text or response.reason_phrase or "no reason given"


def _settings_of(url: str, token: str | None, headers: Mapping[str, str] | None, timeout: Any) -> dict[str, Any]:
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise ContractError(f"the address of a served wheel begins with http:// or https://, not {url!r}")
    sent = {"accept": "application/json", **({"authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
    return {"base_url": url.rstrip("/") + "/", "headers": sent, "timeout": timeout}


# --- synchronous -----------------------------------------------------------------------------------------------------


class _Door:
    def __init__(self, client: WheelClient) -> None:
        self._send = client._send


class _Memory(_Door):
    """Asking, concluding, sending again."""

    def ask(
        self,
        question: str,
        *,
        scope: ScopeLike,
        peer: str | None = None,
        reasoning_level: str | None = None,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """An answer within a scope, as ``Memory.ask`` gives it."""
        more = {"peer": peer, "reasoning_level": reasoning_level, "limit": limit, "explain": explain, "arms": _names(arms)}
        return self._send(_ask("ask", question=question, scope=scope, **more))

    def search(
        self,
        query: str,
        *,
        scope: ScopeLike,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """The records of a scope closest to some words."""
        return self._send(_ask("search", query=query, scope=scope, limit=limit, explain=explain, arms=_names(arms)))

    def about(
        self,
        person: str,
        *,
        scope: ScopeLike,
        question: str | None = None,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """What a person said within a scope: closest to a question, else the latest."""
        more = {"limit": limit, "explain": explain, "arms": _names(arms)}
        return self._send(_ask("about", person=person, scope=scope, question=question, **more))

    def status(self) -> MemoryStatus:
        """How the providers, the wheel and the river are."""
        return self._send(_status())

    def conclude(
        self,
        *,
        about: str,
        content: str,
        kind: str,
        status: str | None = None,
        source_event_ids: Sequence[str] | None = None,
        derived_by: str | None = None,
        provider: str | None = None,
    ) -> Json:
        """Store a conclusion about a person; its node."""
        more = {"source_event_ids": source_event_ids, "derived_by": derived_by, "provider": provider}
        return self._send(_conclude(about=about, content=content, kind=kind, status=status, **more))

    def judge(self, id: str, status: str, *, by: str) -> Json:
        """Confirm or reject a conclusion; its node as it stands now."""
        return self._send(_judge(id, status, by))

    def resend(self, kind: str, id: str) -> Json:
        """Send a record to the providers again: ``{resent, sent, dropped, pending}``."""
        return self._send(_resend(kind, id))


class _Nodes(_Door):
    """People, circles and whatever else is on the wheel."""

    def list(
        self,
        *,
        type: str | None = None,
        direction: str | None = None,
        kind: str | None = None,
        limit: Limit = None,
        offset: int = 0,
    ) -> Page[Json]:
        """Nodes, the newest first; ``kind`` is that of their metadata."""
        return self._send(_list_nodes(type, direction, kind, limit, offset))

    def get(self, id: str) -> Json:
        """One node; raises NotHeldThere."""
        return self._send(_get("/api/nodes", id, "node"))

    def create(self, node: Mapping[str, Any]) -> Json:
        """Store a node; as it is held, with the id and time it was given."""
        return self._send(_create("/api/nodes", node, "node"))

    def update(self, id: str, changes: Mapping[str, Any]) -> Json:
        """Change fields of a node; a null direction clears it."""
        return self._send(_update(f"/api/nodes/{_key(id)}", changes, "node"))

    def delete(self, id: str) -> None:
        """Take a node out; refused (409) while an edge holds it."""
        self._send(_delete(f"/api/nodes/{_key(id)}"))


class _Edges(_Door):
    """Relations between nodes."""

    def list(self, *, from_id: str | None = None, to_id: str | None = None, limit: Limit = None, offset: int = 0) -> Page[Json]:
        """Edges, the newest first."""
        return self._send(_list_edges(from_id, to_id, limit, offset))

    def create(self, edge: Mapping[str, Any]) -> Json:
        """Store an edge between two nodes that are held; replaces one of the same ends and type."""
        return self._send(_create("/api/edges", edge, "edge"))

    def update(self, from_id: str, to_id: str, changes: Mapping[str, Any]) -> Json:
        """Change fields of an edge."""
        return self._send(_update(_edge(from_id, to_id), changes, "edge"))

    def delete(self, from_id: str, to_id: str) -> None:
        """Take an edge out."""
        self._send(_delete(_edge(from_id, to_id)))


class _Ceremonies(_Door):
    """Ceremonies."""

    def list(
        self,
        *,
        direction: str | None = None,
        type: str | None = None,
        episode_path: str | None = None,
        circle_id: str | None = None,
        closes: str | None = None,
        subject_id: str | None = None,
        limit: Limit = None,
        offset: int = 0,
    ) -> Page[Json]:
        """Ceremonies, the newest first."""
        filters = {"direction": direction, "type": type, "episode_path": episode_path, "circle_id": circle_id}
        return self._send(_list_ceremonies(limit, offset, {**filters, "closes": closes, "subject_id": subject_id}))

    def get(self, id: str) -> Json:
        """One ceremony; raises NotHeldThere."""
        return self._send(_get("/api/ceremonies", id, "ceremony"))

    def create(self, ceremony: Mapping[str, Any]) -> Json:
        """Store a ceremony."""
        return self._send(_create("/api/ceremonies", ceremony, "ceremony"))

    def delete(self, id: str) -> None:
        """Take a ceremony out; refused (409) while a closing, turn or diary entry holds it."""
        self._send(_delete(f"/api/ceremonies/{_key(id)}"))


class _Beats(_Door):
    """Turns."""

    def list(
        self, *, direction: str | None = None, ceremony: str | None = None, limit: Limit = None, offset: int = 0
    ) -> Page[Json]:
        """Turns, the newest first."""
        return self._send(_list_beats(direction, ceremony, limit, offset))

    def get(self, id: str) -> Json:
        """One turn; raises NotHeldThere."""
        return self._send(_get("/api/narrative/beats", id, None))

    def create(self, beat: Mapping[str, Any]) -> Json:
        """Store a turn; with ``warnings`` when there are some."""
        return self._send(_create("/api/narrative/beats", beat, None))

    def witness(self, id: str, witnesses: Sequence[str] | None = None, *, speaker: str | None = None) -> Json:
        """Add witnesses to a turn, or name its speaker."""
        return self._send(_update(f"/api/narrative/beats/{_key(id)}", _witnesses(witnesses, speaker), None))


class _Diary(_Door):
    """Diary entries."""

    def list(
        self,
        *,
        participant: str | None = None,
        phase: str | None = None,
        entry_type: str | None = None,
        chronicle: str | None = None,
        ceremony_id: str | None = None,
        tags: Sequence[str] = (),
        limit: Limit = None,
        offset: int = 0,
    ) -> Page[Json]:
        """Diary entries, the oldest first."""
        filters = {"participant": participant, "phase": phase, "entryType": entry_type, "chronicle": chronicle}
        return self._send(_list_diary(limit, offset, {**filters, "ceremony_id": ceremony_id, "tag": tuple(tags)}))

    def get(self, id: str) -> Json:
        """One entry; raises NotHeldThere."""
        return self._send(_get("/api/diary", id, "entry"))

    def create(self, entry: Mapping[str, Any]) -> Json:
        """Store an entry."""
        return self._send(_create("/api/diary", entry, "entry"))

    def delete(self, id: str) -> None:
        """Take an entry out."""
        self._send(_delete(f"/api/diary/{_key(id)}"))


class _Episodes(_Door):
    """Episodes: what several ceremonies belong to."""

    def get(self, path: str) -> Episode:
        """An episode by its path, such as ``2026-03-20-episode-012-footbridge``."""
        try:
            node = self._send(_get("/api/nodes", f"chronicle:{path}", "node"))
        except NotHeldThere:
            node = None
        found = self._send(_list_ceremonies("all", 0, {"episode_path": path}))
        return Episode(path, node, found.items)


class WheelClient:
    """A served wheel, called from synchronous code.

    ``url`` is its address; ``token`` is sent as a bearer token, ``headers`` with every request; ``timeout`` is httpx's (120 s,
    10 s to connect), and ``transport`` httpx's as well. Close it, or use it in a ``with``.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx.Timeout | float | None = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**_settings_of(url, token, headers, timeout), transport=transport)
        self.memory = _Memory(self)
        self.nodes = _Nodes(self)
        self.edges = _Edges(self)
        self.ceremonies = _Ceremonies(self)
        self.beats = _Beats(self)
        self.diary = _Diary(self)
        self.episodes = _Episodes(self)

    def _send(self, call: _Call[T]) -> T:
        request = _request(call, self._http)
        try:
            response = self._http.send(request)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise _failed(call, request, error) from None
        return _read(call, response)

    def health(self) -> Json:
        """How the server is: ``{status, provider, counts, …}``."""
        return self._send(_Call("GET", "/api/health", _object))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- asynchronous ----------------------------------------------------------------------------------------------------


class _AsyncDoor:
    def __init__(self, client: AsyncWheelClient) -> None:
        self._send = client._send


class _AsyncMemory(_AsyncDoor):
    """Asking, concluding, sending again."""

    async def ask(
        self,
        question: str,
        *,
        scope: ScopeLike,
        peer: str | None = None,
        reasoning_level: str | None = None,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """An answer within a scope, as ``Memory.ask`` gives it."""
        more = {"peer": peer, "reasoning_level": reasoning_level, "limit": limit, "explain": explain, "arms": _names(arms)}
        return await self._send(_ask("ask", question=question, scope=scope, **more))

    async def search(
        self,
        query: str,
        *,
        scope: ScopeLike,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """The records of a scope closest to some words."""
        return await self._send(_ask("search", query=query, scope=scope, limit=limit, explain=explain, arms=_names(arms)))

    async def about(
        self,
        person: str,
        *,
        scope: ScopeLike,
        question: str | None = None,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """What a person said within a scope: closest to a question, else the latest."""
        more = {"limit": limit, "explain": explain, "arms": _names(arms)}
        return await self._send(_ask("about", person=person, scope=scope, question=question, **more))

    async def status(self) -> MemoryStatus:
        """How the providers, the wheel and the river are."""
        return await self._send(_status())

    async def conclude(
        self,
        *,
        about: str,
        content: str,
        kind: str,
        status: str | None = None,
        source_event_ids: Sequence[str] | None = None,
        derived_by: str | None = None,
        provider: str | None = None,
    ) -> Json:
        """Store a conclusion about a person; its node."""
        more = {"source_event_ids": source_event_ids, "derived_by": derived_by, "provider": provider}
        return await self._send(_conclude(about=about, content=content, kind=kind, status=status, **more))

    async def judge(self, id: str, status: str, *, by: str) -> Json:
        """Confirm or reject a conclusion; its node as it stands now."""
        return await self._send(_judge(id, status, by))

    async def resend(self, kind: str, id: str) -> Json:
        """Send a record to the providers again: ``{resent, sent, dropped, pending}``."""
        return await self._send(_resend(kind, id))


class _AsyncNodes(_AsyncDoor):
    """People, circles and whatever else is on the wheel."""

    async def list(
        self,
        *,
        type: str | None = None,
        direction: str | None = None,
        kind: str | None = None,
        limit: Limit = None,
        offset: int = 0,
    ) -> Page[Json]:
        """Nodes, the newest first; ``kind`` is that of their metadata."""
        return await self._send(_list_nodes(type, direction, kind, limit, offset))

    async def get(self, id: str) -> Json:
        """One node; raises NotHeldThere."""
        return await self._send(_get("/api/nodes", id, "node"))

    async def create(self, node: Mapping[str, Any]) -> Json:
        """Store a node; as it is held, with the id and time it was given."""
        return await self._send(_create("/api/nodes", node, "node"))

    async def update(self, id: str, changes: Mapping[str, Any]) -> Json:
        """Change fields of a node; a null direction clears it."""
        return await self._send(_update(f"/api/nodes/{_key(id)}", changes, "node"))

    async def delete(self, id: str) -> None:
        """Take a node out; refused (409) while an edge holds it."""
        await self._send(_delete(f"/api/nodes/{_key(id)}"))


class _AsyncEdges(_AsyncDoor):
    """Relations between nodes."""

    async def list(
        self, *, from_id: str | None = None, to_id: str | None = None, limit: Limit = None, offset: int = 0
    ) -> Page[Json]:
        """Edges, the newest first."""
        return await self._send(_list_edges(from_id, to_id, limit, offset))

    async def create(self, edge: Mapping[str, Any]) -> Json:
        """Store an edge between two nodes that are held; replaces one of the same ends and type."""
        return await self._send(_create("/api/edges", edge, "edge"))

    async def update(self, from_id: str, to_id: str, changes: Mapping[str, Any]) -> Json:
        """Change fields of an edge."""
        return await self._send(_update(_edge(from_id, to_id), changes, "edge"))

    async def delete(self, from_id: str, to_id: str) -> None:
        """Take an edge out."""
        await self._send(_delete(_edge(from_id, to_id)))


class _AsyncCeremonies(_AsyncDoor):
    """Ceremonies."""

    async def list(
        self,
        *,
        direction: str | None = None,
        type: str | None = None,
        episode_path: str | None = None,
        circle_id: str | None = None,
        closes: str | None = None,
        subject_id: str | None = None,
        limit: Limit = None,
        offset: int = 0,
    ) -> Page[Json]:
        """Ceremonies, the newest first."""
        filters = {"direction": direction, "type": type, "episode_path": episode_path, "circle_id": circle_id}
        return await self._send(_list_ceremonies(limit, offset, {**filters, "closes": closes, "subject_id": subject_id}))

    async def get(self, id: str) -> Json:
        """One ceremony; raises NotHeldThere."""
        return await self._send(_get("/api/ceremonies", id, "ceremony"))

    async def create(self, ceremony: Mapping[str, Any]) -> Json:
        """Store a ceremony."""
        return await self._send(_create("/api/ceremonies", ceremony, "ceremony"))

    async def delete(self, id: str) -> None:
        """Take a ceremony out; refused (409) while a closing, turn or diary entry holds it."""
        await self._send(_delete(f"/api/ceremonies/{_key(id)}"))


class _AsyncBeats(_AsyncDoor):
    """Turns."""

    async def list(
        self, *, direction: str | None = None, ceremony: str | None = None, limit: Limit = None, offset: int = 0
    ) -> Page[Json]:
        """Turns, the newest first."""
        return await self._send(_list_beats(direction, ceremony, limit, offset))

    async def get(self, id: str) -> Json:
        """One turn; raises NotHeldThere."""
        return await self._send(_get("/api/narrative/beats", id, None))

    async def create(self, beat: Mapping[str, Any]) -> Json:
        """Store a turn; with ``warnings`` when there are some."""
        return await self._send(_create("/api/narrative/beats", beat, None))

    async def witness(self, id: str, witnesses: Sequence[str] | None = None, *, speaker: str | None = None) -> Json:
        """Add witnesses to a turn, or name its speaker."""
        return await self._send(_update(f"/api/narrative/beats/{_key(id)}", _witnesses(witnesses, speaker), None))


class _AsyncDiary(_AsyncDoor):
    """Diary entries."""

    async def list(
        self,
        *,
        participant: str | None = None,
        phase: str | None = None,
        entry_type: str | None = None,
        chronicle: str | None = None,
        ceremony_id: str | None = None,
        tags: Sequence[str] = (),
        limit: Limit = None,
        offset: int = 0,
    ) -> Page[Json]:
        """Diary entries, the oldest first."""
        filters = {"participant": participant, "phase": phase, "entryType": entry_type, "chronicle": chronicle}
        return await self._send(_list_diary(limit, offset, {**filters, "ceremony_id": ceremony_id, "tag": tuple(tags)}))

    async def get(self, id: str) -> Json:
        """One entry; raises NotHeldThere."""
        return await self._send(_get("/api/diary", id, "entry"))

    async def create(self, entry: Mapping[str, Any]) -> Json:
        """Store an entry."""
        return await self._send(_create("/api/diary", entry, "entry"))

    async def delete(self, id: str) -> None:
        """Take an entry out."""
        await self._send(_delete(f"/api/diary/{_key(id)}"))


class _AsyncEpisodes(_AsyncDoor):
    """Episodes: what several ceremonies belong to."""

    async def get(self, path: str) -> Episode:
        """An episode by its path, such as ``2026-03-20-episode-012-footbridge``."""
        try:
            node = await self._send(_get("/api/nodes", f"chronicle:{path}", "node"))
        except NotHeldThere:
            node = None
        found = await self._send(_list_ceremonies("all", 0, {"episode_path": path}))
        return Episode(path, node, found.items)


class AsyncWheelClient:
    """A served wheel, called from asynchronous code; the arguments are those of ``WheelClient``. ``aclose`` it, or use it in
    an ``async with``."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx.Timeout | float | None = TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**_settings_of(url, token, headers, timeout), transport=transport)
        self.memory = _AsyncMemory(self)
        self.nodes = _AsyncNodes(self)
        self.edges = _AsyncEdges(self)
        self.ceremonies = _AsyncCeremonies(self)
        self.beats = _AsyncBeats(self)
        self.diary = _AsyncDiary(self)
        self.episodes = _AsyncEpisodes(self)

    async def _send(self, call: _Call[T]) -> T:
        request = _request(call, self._http)
        try:
            response = await self._http.send(request)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise _failed(call, request, error) from None
        return _read(call, response)

    async def health(self) -> Json:
        """How the server is: ``{status, provider, counts, …}``."""
        return await self._send(_Call("GET", "/api/health", _object))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _names(arms: Iterable[str] | None) -> list[str] | None:
    return None if arms is None else [arms] if isinstance(arms, str) else list(arms)
