"""Honcho's version 3 API over HTTP, as far as the wheel uses it."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from wheelmem.contract import WheelmemError

from . import WORKSPACE
from .ids import is_id

if TYPE_CHECKING:
    import httpx

__all__ = ["WORKSPACE", "HonchoClient", "HonchoError"]

MAX_BATCH = 100
MAX_PAGE = 100
MAX_FILTER = 1000
MAX_CONTENT = 25_000
CONFINED_FOR = 300.0
# Statuses that speak of the server's state, not of what it was sent.
AWAY = {408, 425, 429}

_OPENERS = {
    "ConnectError": "it cannot be reached",
    "ConnectTimeout": "it cannot be reached in time",
    "PoolTimeout": "too many calls are under way",
    "ReadTimeout": "it did not answer in time",
    "WriteTimeout": "it did not take the request in time",
    "DecodingError": "its answer cannot be decoded",
}


class HonchoError(WheelmemError):
    """A call that failed. ``away``: the server was not there, or not well, so the same call may succeed later.

    ``status`` is the HTTP status when there was an answer. The message holds neither the key nor what was sent.
    """

    def __init__(self, message: str, *, away: bool, status: int | None = None) -> None:
        super().__init__(message)
        self.away = away
        self.status = status


class HonchoClient:
    """One workspace of one Honcho. Every call is a coroutine; connections are pooled for each event loop.

    ``url`` is the server's base address and ``api_key`` what is sent as a bearer token. Timeouts are seconds:
    ``connect_timeout`` to reach the server, ``timeout`` for a whole call, ``reasoning_timeout`` for one that reasons.
    Calls that change nothing when sent twice are sent once more when a pooled connection turns out to be dead; no other
    call is repeated.
    """

    def __init__(
        self,
        url: str,
        workspace: str = WORKSPACE,
        api_key: str | None = None,
        *,
        connect_timeout: float = 5.0,
        timeout: float = 20.0,
        reasoning_timeout: float = 90.0,
    ) -> None:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WheelmemError("HONCHO_URL must be an address like http://localhost:8000")
        if not is_id(workspace):
            raise WheelmemError(f"HONCHO_WORKSPACE_ID may hold only letters, digits, - and _, not {workspace!r}")
        key = (api_key or "").strip()
        if not key.isascii() or not key.isprintable() or " " in key:
            raise WheelmemError("HONCHO_API_KEY holds a character that no key can hold")
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self.workspace = workspace
        self.connect_timeout, self.timeout, self.reasoning_timeout = connect_timeout, timeout, reasoning_timeout
        self._key = key
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._auth = (parts.username or "", parts.password or "") if parts.username and not key else None
        self._pool: tuple[weakref.ReferenceType[Any], httpx.AsyncClient] | None = None
        self._confined: tuple[float, bool] | None = None

    def __repr__(self) -> str:
        return f"HonchoClient({self.url!r}, workspace={self.workspace!r})"

    async def aclose(self) -> None:
        """Close the pooled connections of this event loop."""
        import asyncio

        pool, self._pool = self._pool, None
        if pool is not None and pool[0]() is asyncio.get_running_loop():
            await pool[1].aclose()

    # --- one call

    def _client(self) -> httpx.AsyncClient:
        import asyncio

        # Pooled connections belong to the loop that opened them.
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool[0]() is not loop:
            import httpx

            made = httpx.AsyncClient(
                headers=self._headers,
                auth=self._auth,
                timeout=httpx.Timeout(None, connect=self.connect_timeout),
                limits=httpx.Limits(max_connections=10, max_keepalive_connections=10, keepalive_expiry=30),
            )
            self._pool = (weakref.ref(loop), made)
        return self._pool[1]

    async def _call(
        self, method: str, path: str, body: Any = None, *, again: bool, seconds: float | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of an answer that is a success; HonchoError otherwise. ``again``: harmless when sent twice."""
        import asyncio

        import httpx

        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {} if content is None else {"content-type": "application/json"}
        seconds = self.timeout if seconds is None else seconds
        client = self._client()
        for last in (not again, True):
            try:
                async with asyncio.timeout(seconds):
                    response = await client.request(method, self.url + path, content=content, headers=headers)
                break
            except TimeoutError:
                raise self._away(f"it did not answer within {seconds:g} s") from None
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError, httpx.CloseError):
                if last:
                    raise self._away("it closed the connection without an answer") from None
            except httpx.HTTPError as error:
                raise self._away(_OPENERS.get(type(error).__name__, type(error).__name__)) from None
            except (httpx.InvalidURL, ValueError, RuntimeError) as error:
                raise self._away(f"the call could not be made ({type(error).__name__})") from None
        status = response.status_code
        if status >= 400:
            away = status >= 500 or status in AWAY
            said = _detail(response)
            # A server may repeat the key it refuses.
            said = said.replace(self._key, "…") if self._key else said
            raise HonchoError(f"honcho answered {status}{said}", away=away, status=status)
        if status >= 300:
            raise HonchoError(f"honcho answered {status}: HONCHO_URL leads elsewhere", away=True, status=status)
        if status == 204 or not response.content:
            return status, None
        try:
            return status, response.json()
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "nothing named").partition(";")[0][:40]
            raise self._away(f"its answer is no JSON ({kind}); is HONCHO_URL a Honcho?") from None

    def _away(self, why: str) -> HonchoError:
        return HonchoError(f"honcho at {self.url}: {why}", away=True)

    def _odd(self) -> HonchoError:
        return self._away("its answer is not what version 3 gives")

    async def _object(self, method: str, path: str, body: Any, **options: Any) -> tuple[int, dict[str, Any]]:
        status, data = await self._call(method, path, body, **options)
        if not isinstance(data, dict):
            raise self._odd()
        return status, data

    async def _pages(self, path: str, filters: Mapping[str, Any], most: int | None = None) -> AsyncIterator[dict[str, Any]]:
        page = 1
        while True:
            where = f"{path}?page={page}&size={MAX_PAGE}"
            _, data = await self._object("POST", where, {"filters": filters}, again=True)
            items = data.get("items")
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise self._odd()
            for item in items:
                yield item
            if len(items) < MAX_PAGE or page >= (data.get("pages") or 0):
                return
            page += 1

    @property
    def _w(self) -> str:
        return f"/v3/workspaces/{self.workspace}"

    # --- the server and the workspace

    async def confines(self) -> bool:
        """Whether this server keeps reasoning inside a list of sessions, by its own description; kept five minutes."""
        now = time.monotonic()
        if self._confined is None or now - self._confined[0] > CONFINED_FOR:
            _, document = await self._object("GET", "/openapi.json", None, again=True)
            schemas = (document.get("components") or {}).get("schemas") or {}
            found = all(
                "filters" in ((schemas.get(name) or {}).get("properties") or {})
                for name in ("DialecticOptions", "PeerRepresentationGet")
            )
            self._confined = (now, found)
        return self._confined[1]

    async def configuration(self) -> dict[str, Any]:
        """The workspace's configuration as it is stored; a workspace that is made here does not use peer cards."""
        body = {"id": self.workspace, "configuration": {"peer_card": {"use": False}}}
        _, data = await self._object("POST", "/v3/workspaces", body, again=True)
        found = data.get("configuration")
        return found if isinstance(found, dict) else {}

    async def cards_in_use(self) -> bool:
        """Whether reasoning in this workspace sees peer cards, which are made from every session."""
        return _uses_cards(await self.configuration())

    async def switch_cards_off(self) -> bool:
        """Keep peer cards out of reasoning, leaving all other configuration; whether anything had to be changed."""
        stored = await self.configuration()
        if not _uses_cards(stored):
            return False
        card = stored.get("peer_card")
        wanted = {**(card if isinstance(card, dict) else {}), "use": False}
        # Keys are replaced whole, so the one key is sent with everything it held.
        await self._object("PUT", self._w, {"configuration": {"peer_card": wanted}}, again=True)
        if await self.cards_in_use():
            raise HonchoError("honcho did not keep peer_card.use = false", away=False)
        return True

    # --- peers and sessions

    async def find(self, what: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """``peers`` or ``sessions`` that exist, by id."""
        wanted = [id for id in dict.fromkeys(ids) if is_id(id)]
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(wanted), MAX_PAGE):
            part = wanted[start : start + MAX_PAGE]
            async for item in self._pages(f"{self._w}/{what}/list", {"id": {"in": part}}):
                if item.get("id") in part:
                    found[item["id"]] = item
        return found

    async def make(self, what: str, id: str, metadata: Mapping[str, Any] | None = None) -> tuple[bool, dict[str, Any]]:
        """Get or create one of ``peers`` or ``sessions``; whether it was made now, and its metadata as stored.

        Metadata that is given replaces what was there.
        """
        body = {"id": id} if metadata is None else {"id": id, "metadata": metadata}
        status, data = await self._object("POST", f"{self._w}/{what}", body, again=True)
        found = data.get("metadata")
        return status == 201, found if isinstance(found, dict) else {}

    async def seat(self, session: str, peers: Sequence[str]) -> None:
        """Seat peers in a session: they are observed, and observe nobody."""
        seats = {peer: {"observe_me": True, "observe_others": False} for peer in peers}
        await self._call("POST", f"{self._w}/sessions/{quote(session)}/peers", seats, again=True)

    async def delete_session(self, session: str) -> None:
        """Delete a session and all it holds; one that is not there is as good as deleted."""
        try:
            await self._call("DELETE", f"{self._w}/sessions/{quote(session)}", again=True)
        except HonchoError as error:
            if error.status != 404:
                raise

    # --- messages

    async def send(self, session: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Post at most 100 messages, in order; all of them are taken, or none."""
        body = {"messages": list(messages)}
        await self._call("POST", f"{self._w}/sessions/{quote(session)}/messages", body, again=False)

    async def messages_of(self, session: str, wheel_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The messages in a session that carry one of these wheel ids."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(wheel_ids), MAX_PAGE):
            part = list(wheel_ids[start : start + MAX_PAGE])
            filters = {"metadata": {"wheel_id": {"in": part}}}
            async for item in self._pages(f"{self._w}/sessions/{quote(session)}/messages/list", filters):
                if isinstance(item.get("metadata"), dict) and item["metadata"].get("wheel_id") in part:
                    found.append(item)
        return found

    async def has_messages(self, session: str) -> bool:
        """Whether anything stands in a session."""
        path = f"{self._w}/sessions/{quote(session)}/messages/list?page=1&size=1"
        _, data = await self._object("POST", path, {}, again=True)
        return bool(data.get("items"))

    async def search(
        self, query: str, sessions: Sequence[str], limit: int, peer: str | None = None
    ) -> list[dict[str, Any]]:
        """Messages in these sessions closest to the query; what does not match at all fills the rest."""
        filters: dict[str, Any] = {"session_id": {"in": _checked(sessions)}}
        if peer is not None:
            filters["peer_id"] = _checked([peer])[0]
        body = {"query": _plain(query), "filters": filters, "limit": max(1, min(limit, 100))}
        _, data = await self._call("POST", f"{self._w}/search", body, again=True)
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self._odd()
        return data

    # --- reasoning

    async def chat(self, peer: str, query: str, sessions: Sequence[str], level: str = "low") -> str:
        """What Honcho answers as ``peer``, from these sessions only (where ``confines()`` holds)."""
        body = {"query": _plain(query), "filters": {"session_id": {"in": _checked(sessions)}}, "reasoning_level": level}
        path = f"{self._w}/peers/{quote(peer)}/chat"
        _, data = await self._object("POST", path, body, again=False, seconds=self.reasoning_timeout)
        return str(data.get("content") or "").strip()

    async def representation(self, peer: str, sessions: Sequence[str]) -> str:
        """What Honcho concluded about ``peer`` in these sessions only (where ``confines()`` holds)."""
        body = {"filters": {"session_id": {"in": _checked(sessions)}}}
        path = f"{self._w}/peers/{quote(peer)}/representation"
        _, data = await self._object("POST", path, body, again=True, seconds=self.reasoning_timeout)
        return str(data.get("representation") or "").strip()

    async def conclusions(self, peer: str, sessions: Sequence[str]) -> AsyncIterator[dict[str, Any]]:
        """What Honcho drew directly from the messages of these sessions about ``peer``."""
        for start in range(0, len(sessions), MAX_FILTER):
            part = _checked(sessions[start : start + MAX_FILTER])
            filters = {"observed_id": peer, "level": "explicit", "session_id": {"in": part}}
            async for item in self._pages(f"{self._w}/conclusions/list", filters):
                if item.get("session_id") in part and item.get("level", "explicit") == "explicit":
                    yield item


def _checked(ids: Sequence[str]) -> list[str]:
    """The ids, each one plain: a ``*`` in a list would mean everything, and no id at all is nothing to ask about."""
    if not ids:
        raise HonchoError("no session to ask about", away=False)
    for id in ids:
        if not is_id(id):
            raise HonchoError(f"{id!r} is no Honcho id", away=False)
    return list(ids)


def _plain(query: str) -> str:
    return query.replace("\0", " ")


def _uses_cards(configuration: Mapping[str, Any]) -> bool:
    card = configuration.get("peer_card")
    return not (isinstance(card, Mapping) and card.get("use") is False)


def _detail(response: httpx.Response) -> str:
    """What a refusal says, without what was refused: a list of errors repeats the whole text it was sent."""
    try:
        detail = response.json().get("detail")
    except (ValueError, AttributeError, RecursionError):
        return ""
    if isinstance(detail, list):
        said = [
            f"{'/'.join(str(part) for part in error.get('loc', ()))}: {error.get('msg')}"
            for error in detail[:3]
            if isinstance(error, Mapping)
        ]
        detail = "; ".join(said)
    return f": {' '.join(detail.split())[:200]}" if isinstance(detail, str) and detail.strip() else ""


def honcho_from_env(env: Mapping[str, str] | None = None) -> HonchoClient | None:
    """A client as ``HONCHO_URL``, ``HONCHO_WORKSPACE_ID`` and ``HONCHO_API_KEY`` say; None when no address is set."""
    env = os.environ if env is None else env
    url = env.get("HONCHO_URL", "").strip()
    if not url:
        return None
    return HonchoClient(url, env.get("HONCHO_WORKSPACE_ID", "").strip() or WORKSPACE, env.get("HONCHO_API_KEY"))
