"""Records into Honcho's sessions: each once, in order, said by its speaker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wheelmem.river import Outcome, Projection

from .client import MAX_BATCH, MAX_CONTENT, HonchoClient, HonchoError
from .names import AT_ONCE, Key, Names

__all__ = ["Delivery"]

# What one call carries at the most, in characters, so that a few long records do not make a call that times out.
MAX_CALL = 1_000_000
# How long it is believed that a session and its seats are as they were left.
BELIEVED = 300.0


class Delivery:
    """Delivers projections to one Honcho, for one wheel."""

    def __init__(self, client: HonchoClient, names: Names) -> None:
        self.client = client
        self.names = names
        self._workspace_at = float("-inf")
        # By session: its Honcho id, when it was looked at, how it was described, who is seated.
        self._sessions: dict[Key, tuple[str, float, Mapping[str, Any], set[str]]] = {}

    async def receive(self, projections: Sequence[Projection]) -> list[Outcome]:
        """What becomes of each: ``sent``, ``wait`` or ``refused``."""
        try:
            if time.monotonic() - self._workspace_at > BELIEVED:
                await self.client.configuration()
                self._workspace_at = time.monotonic()
            peers = await self.names.make_peers(
                dict.fromkeys(name for one in projections for name in (one.speaker, *one.seats))
            )
            wanted: dict[Key, Mapping[str, Any]] = {one.session: one.session_metadata for one in projections}
            sessions = await self._sessions_of(wanted)
        except HonchoError as error:
            return [_outcome(error)] * len(projections)
        groups: dict[Key, list[int]] = {}
        for place, one in enumerate(projections):
            groups.setdefault(one.session, []).append(place)
        limit = asyncio.Semaphore(AT_ONCE)
        outcomes: list[Outcome | None] = [None] * len(projections)
        gone_away: list[Outcome] = []

        async def group(key: Key, places: list[int]) -> None:
            async with limit:
                session = sessions[key]
                said = _outcome(session) if isinstance(session, HonchoError) else None
                if said is None and not gone_away:
                    try:
                        await self._send(key, str(session), places, projections, peers, outcomes)
                        return
                    except HonchoError as error:
                        said = _outcome(error)
                said = said or gone_away[0]
                if said.away and said.state == "wait":
                    gone_away.append(said)
                for place in places:
                    outcomes[place] = outcomes[place] or said

        await asyncio.gather(*(group(key, places) for key, places in groups.items()))
        return [outcome or Outcome("wait") for outcome in outcomes]

    async def forget(self, sessions: Sequence[Key]) -> list[Outcome]:
        """Take sessions down, with all they hold."""
        known = await self.names.keeper.find("session", sessions)
        outcomes = []
        for key in sessions:
            self._sessions.pop(key, None)
            try:
                if key in known:
                    await self.client.delete_session(known[key][0])
                outcomes.append(Outcome("sent"))
            except HonchoError as error:
                outcomes.append(Outcome("wait", str(error)))
                outcomes += [Outcome("wait", str(error))] * (len(sessions) - len(outcomes))
                break
        return outcomes

    async def _sessions_of(self, wanted: Mapping[Key, Mapping[str, Any]]) -> dict[Key, str | HonchoError]:
        now = time.monotonic()
        found: dict[Key, str | HonchoError] = {}
        # Another process may have taken a session down, or made it anew, since it was looked at here.
        kept = await self.names.keeper.find("session", wanted)
        for key, metadata in wanted.items():
            known = self._sessions.get(key)
            if known and now - known[1] < BELIEVED and known[2] == metadata and kept.get(key) == (known[0], "live"):
                found[key] = known[0]
        made = await self.names.make_sessions({key: wanted[key] for key in wanted if key not in found})
        for key, id in made.items():
            found[key] = id
            if isinstance(id, str):
                self._sessions[key] = (id, now, wanted[key], set())
        return found

    async def _send(
        self,
        key: Key,
        session: str,
        places: Sequence[int],
        projections: Sequence[Projection],
        peers: Mapping[str, str],
        outcomes: list[Outcome | None],
    ) -> None:
        """One session's records, in order. Raises when Honcho is away; what was settled before that is settled."""
        seated = self._sessions[key][3]
        seats = dict.fromkeys(
            peers[name] for place in places for name in projections[place].seats if name in peers and peers[name] not in seated
        )
        if seats:
            await self.client.seat(session, list(seats))
            seated.update(seats)
        there = await self._there(session, [projections[place] for place in places if projections[place].tried])
        # Calls of whole records where they fit; a record longer than a message goes in parts.
        call: list[tuple[int, list[dict[str, Any]]]] = []
        room, characters = MAX_BATCH, MAX_CALL
        for place in places:
            one = projections[place]
            if one.speaker not in peers:
                outcomes[place] = Outcome("wait", f"no peer can stand for {one.speaker}", away=False)
                continue
            messages = [
                message
                for message in _messages(one, peers[one.speaker])
                if there.isdisjoint((kind, one.id, message["metadata"].get("part", 1)) for kind in (one.kind, ""))
            ]
            size = sum(len(message["content"]) for message in messages)
            if call and (len(messages) > room or size > characters):
                await self._post(session, call, outcomes)
                call, room, characters = [], MAX_BATCH, MAX_CALL
            call.append((place, messages))
            room, characters = room - len(messages), characters - size
        await self._post(session, call, outcomes)

    async def _there(self, session: str, tried: Sequence[Projection]) -> set[tuple[str, str, int]]:
        if not tried:
            return set()
        found = await self.client.messages_of(session, [one.id for one in tried])
        marks = (message["metadata"] for message in found)
        return {(str(mark.get("wheel_kind") or ""), str(mark["wheel_id"]), mark.get("part") or 1) for mark in marks}

    async def _post(
        self, session: str, call: Sequence[tuple[int, list[dict[str, Any]]]], outcomes: list[Outcome | None]
    ) -> None:
        """Post a call's records. A refusal refuses all of a call, so then they go one by one, to find whose it was."""
        messages = [message for _, made in call for message in made]
        try:
            for start in range(0, len(messages), MAX_BATCH):
                await self.client.send(session, messages[start : start + MAX_BATCH])
        except HonchoError as error:
            if error.away or error.status in (404, 409):
                raise
            if len(call) > 1:
                half = len(call) // 2
                await self._post(session, call[:half], outcomes)
                await self._post(session, call[half:], outcomes)
                return
            outcomes[call[0][0]] = _outcome(error)
            return
        for place, _ in call:
            outcomes[place] = Outcome("sent")


def _outcome(error: HonchoError) -> Outcome:
    if error.away:
        return Outcome("wait", str(error))
    if error.status in (None, 404, 409):
        return Outcome("wait", str(error), away=False)
    return Outcome("refused", str(error))


def _messages(one: Projection, peer: str) -> list[dict[str, Any]]:
    """A record as messages: one, or several when it is longer than a message may be."""
    text = one.content.replace("\0", "")
    parts = [text[start : start + MAX_CONTENT] for start in range(0, len(text), MAX_CONTENT)] or [""]
    made = []
    for number, part in enumerate(parts, 1):
        metadata = _without_nul(dict(one.metadata))
        if len(parts) > 1:
            metadata |= {"part": number, "parts": len(parts)}
        message = {"content": part, "peer_id": peer, "metadata": metadata}
        at = _instant(one.at)
        made.append(message if at is None else {**message, "created_at": at})
    return made


def _instant(at: str | None) -> str | None:
    """A timestamp as Honcho reads it; None for one that is no date, so that Honcho's own clock stands instead."""
    try:
        moment = datetime.fromisoformat(at) if at else None
    except ValueError:
        return None
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list | tuple):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(item) for name, item in value.items()}
    return value
