"""Honcho as a provider of memory: what it is asked, within a reach, and what it receives.

A write must answer as fast with a Honcho as without one, so what only calls need is imported when they are made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wheelmem.contract import ProviderAnswer, ProviderStatus, Question, Reach, Source, WheelmemError

from .client import MAX_FILTER, HonchoClient, HonchoError
from .names import Keeper, Key, Names, Unkept

if TYPE_CHECKING:
    from wheelmem.conclusions import Drawn
    from wheelmem.river import Outcome, Projection

    from .delivery import Delivery

__all__ = ["HonchoProvider", "honcho_provider"]

WHEEL = "medicine-wheel"
NOTHING_THERE = "it holds nothing of this reach yet (wheelmem deliver --all sends it what it never had)"
OLDER = "honcho was searched, not asked: this server cannot keep its reasoning inside a reach (3.0.12 and later can)"
CARDS = (
    "honcho was searched, not asked: its workspace puts peer cards, made from every session, into reasoning; "
    "switch them off with: wheelmem honcho confine (or HONCHO_CONFINE=1)"
)
CHANGED = "what honcho reasoned from changed meanwhile, so its answer is left out"


class HonchoProvider:
    """One wheel on one Honcho; made by ``honcho_provider``.

    Nothing is asked beyond the sessions of the question's reach, and never a session in which something is stale. Where
    the server could not keep to that by itself, it is searched instead, and the note says why.
    """

    name = "honcho"

    def __init__(self, client: HonchoClient, keeper: Keeper, confine: bool, interval: float) -> None:
        self.client = client
        self.confine = confine
        self.interval = interval
        self.names = Names(client, keeper)

    def __repr__(self) -> str:
        return f"HonchoProvider({self.client!r})"

    @property
    def address(self) -> str:
        """Where records are delivered to."""
        return f"{self.client.url} {self.client.workspace}"

    def bound(self, ledger: Keeper) -> HonchoProvider:
        """The same provider for one wheel, which keeps in the ledger what Honcho calls its sessions and peers."""
        return HonchoProvider(self.client, ledger, self.confine, self.interval)

    # --- the river

    @cached_property
    def delivery(self) -> Delivery:
        """What delivers."""
        from .delivery import Delivery

        return Delivery(self.client, self.names)

    async def receive(self, projections: Sequence[Projection]) -> list[Outcome]:
        """Take records, each into its session, in order."""
        return await self.delivery.receive(projections)

    async def forget(self, sessions: Sequence[Key]) -> list[Outcome]:
        """Take sessions down."""
        return await self.delivery.forget(sessions)

    # --- asking

    async def status(self) -> ProviderStatus:
        """Whether Honcho is there, and whether it keeps its reasoning inside a reach."""
        detail: dict[str, Any] = {"url": self.client.url, "workspace": self.client.workspace}
        try:
            able = await self.client.confines()
            cards = await self._cards() if able else await self.client.cards_in_use()
        except HonchoError as error:
            return ProviderStatus(self.name, False, detail=detail, error=str(error))
        detail |= {"reasons": "within a reach" if able and not cards else "no", "peer_cards": "in use" if cards else "off"}
        return ProviderStatus(self.name, True, able and not cards, detail)

    async def search(self, question: Question) -> ProviderAnswer:
        """The messages of the reach closest to the query."""
        sessions = await self._held(question.reach)
        return ProviderAnswer("search", sources=await self._found(question, sessions))

    async def ask(self, question: Question) -> ProviderAnswer:
        """An answer reasoned from the reach, as the wheel or as the peer asked for, with the closest messages beside it."""
        sessions = await self._held(question.reach)
        who = question.peer or WHEEL
        peer = await self.names.peer(who)
        why = await self._why_not(sessions)
        if why is None and peer is None:
            if who != WHEEL:
                why = f"honcho was searched, not asked: it knows no {who}"
            else:
                peer = (await self.names.make_peers([WHEEL]))[WHEEL]
        if why is not None or peer is None:
            return ProviderAnswer("search", note=why, sources=await self._found(question, sessions))
        reasoning = self.client.chat(peer, question.query, list(sessions), question.level or "low")
        return await self._reasoned(question, sessions, reasoning)

    async def about(self, question: Question) -> ProviderAnswer:
        """What Honcho makes of a person within the reach: their answer to a question, else how it sees them."""
        person = question.person or ""
        sessions = await self._held(question.reach)
        peer = await self.names.peer(person)
        if peer is None:
            # Asking about somebody unknown would make a peer of them.
            raise HonchoError(f"it knows no {person}", away=False)
        why = await self._why_not(sessions, cards=bool(question.query))
        if why is not None:
            return ProviderAnswer("search", note=why, sources=await self._found(question, sessions, peer))
        if question.query:
            reasoning = self.client.chat(peer, question.query, list(sessions), question.level or "low")
        else:
            reasoning = self.client.representation(peer, list(sessions))
        return await self._reasoned(question, sessions, reasoning, peer)

    async def conclusions(self, person: str, reach: Reach) -> AsyncIterator[Drawn]:
        """What Honcho drew directly from what stands in the reach's sessions about a person."""
        from wheelmem.conclusions import Drawn

        sessions = await self._sessions(reach)
        peer = await self.names.peer(person) if sessions else None
        if peer is None:
            return
        async for found in self.client.conclusions(peer, list(sessions)):
            id, content, session = (found.get(name) for name in ("id", "content", "session_id"))
            if isinstance(id, str) and isinstance(content, str) and session in sessions:
                yield Drawn(id, content, sessions[session], peer)

    # --- parts of an answer

    async def _sessions(self, reach: Reach) -> dict[str, Key]:
        from wheelmem.river import session_keys

        keys = session_keys(reach)
        return await self.names.sessions(keys) if keys else {}

    async def _held(self, reach: Reach) -> dict[str, Key]:
        sessions = await self._sessions(reach)
        if not sessions:
            raise HonchoError(NOTHING_THERE, away=False)
        return sessions

    async def _cards(self) -> bool:
        """Whether cards are in use, after switching them off where that is wanted."""
        if self.confine:
            await self.client.switch_cards_off()
            return False
        return await self.client.cards_in_use()

    async def _why_not(self, sessions: Mapping[str, Key], cards: bool = True) -> str | None:
        """Why Honcho must not reason over these sessions, or None. Asked of the server each time, never assumed."""
        if not await self.client.confines():
            return OLDER
        if len(sessions) > MAX_FILTER:
            return f"honcho was searched, not asked: it reasons over {MAX_FILTER:,} sessions at the most, not {len(sessions):,}"
        if cards and await self._cards():
            return CARDS
        return None

    async def _reasoned(
        self, question: Question, sessions: Mapping[str, Key], reasoning: Any, peer: str | None = None
    ) -> ProviderAnswer:
        """What reasoning gave, with sources found beside it; what failed of the two is said."""
        import asyncio

        found = self._found(question, sessions, peer)
        results: Sequence[Any] = await asyncio.gather(reasoning, found, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, WheelmemError):
                raise result
        answer, sources = results
        if isinstance(answer, BaseException):
            if isinstance(sources, BaseException):
                raise answer
            return ProviderAnswer("search", note=f"honcho did not reason: {answer}", sources=sources)
        note = None
        if isinstance(sources, BaseException):
            note, sources = f"honcho was not searched for sources: {sources}", ()
        if not answer:
            return ProviderAnswer("search", note="honcho has nothing to say of this reach", sources=sources)
        # What was taken back while Honcho reasoned must not be heard of again.
        still = await self._sessions(question.reach)
        if not set(sessions) <= set(still):
            return ProviderAnswer("search", note=CHANGED, sources=sources)
        return ProviderAnswer("dialectic", answer, note, sources)

    async def _found(self, question: Question, sessions: Mapping[str, Key], peer: str | None = None) -> tuple[Source, ...]:
        """The closest messages as sources, those of sessions that went stale meanwhile left out."""
        query = question.query or question.person or ""
        ids = list(sessions)
        slices = [ids[start : start + MAX_FILTER] for start in range(0, len(ids), MAX_FILTER)]
        answers = [await self.client.search(query, part, question.limit, peer) for part in slices]
        messages = answers[0] if len(answers) == 1 else _merged(query, answers)[: question.limit]
        still = await self._sessions(question.reach)
        messages = [
            message
            for message in messages
            if message.get("session_id") in still and message.get("session_id") in sessions
            and (peer is None or message.get("peer_id") == peer)
        ]
        strangers = [str(message.get("peer_id")) for message in messages if not _marks(message).get("wheel_id")]
        people = await self.names.wheel_ids(strangers) if strangers else {}
        return tuple(self._source(message, sessions[message["session_id"]], people) for message in messages)

    def _source(self, message: Mapping[str, Any], session: Key, people: Mapping[str, str]) -> Source:
        marks = _marks(message)
        kind, id = marks.get("wheel_kind"), marks.get("wheel_id")
        ceremony = session[1] if session[0] == "ceremony" else None
        excerpt, at, peer = (message.get(name) for name in ("content", "created_at", "peer_id"))
        held = isinstance(kind, str) and isinstance(id, str) and kind != "message"
        return Source(
            self.name,
            str(kind) if held else "message",
            str(id) if held else str(message.get("id")),
            ceremony,
            None if held else people.get(str(peer)),
            excerpt=excerpt if isinstance(excerpt, str) else "",
            at=at if isinstance(at, str) else None,
            outside_wheel=None if held else True,
        )


def _marks(message: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = message.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _merged(query: str, answers: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One order for several: more of the query's words first, then by rank, since filler comes in every slice."""
    from wheelmem.text import fold, query_terms

    terms = query_terms(query)
    ranked = [(rank, message) for answer in answers for rank, message in enumerate(answer)]

    def words(message: Mapping[str, Any]) -> int:
        text = fold(str(message.get("content", "")))
        return sum(term in text for term in terms)

    return [message for _, message in sorted(ranked, key=lambda pair: (-words(pair[1]), pair[0]))]


def honcho_provider(client: HonchoClient, *, confine: bool = False, interval: float = 300.0) -> HonchoProvider:
    """Honcho as a provider for ``create_memory``.

    ``confine``: switch peer cards off in its workspace where they are on, so that it can reason within a reach;
    ``interval``: how often a server sends again what waits, in seconds.

    Over a wheel in SQLite it keeps in the store what Honcho calls the wheel's sessions. Over another kind of wheel it looks
    each session up, and asks only those that say whose they are.
    """
    return HonchoProvider(client, Unkept(), confine, interval)
