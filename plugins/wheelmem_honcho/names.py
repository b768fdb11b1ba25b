"""Which session and which peer of Honcho is which of the wheel's, so that no two things of the wheel share one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from .client import HonchoClient, HonchoError
from .ids import candidates

__all__ = ["Keeper", "Key", "Names", "Unkept"]

Key = tuple[str, str]
KINDS = ("ceremony", "chronicle", "cycle", "wheel")
PEER = "peer"
AT_ONCE = 6
# What another wheel needs at most to put its name on a session that it has just made.
NAMING = 0.5


class Keeper(Protocol):
    """Where the mapping is kept; ``wheelmem.river.Ledger`` is one."""

    uuid: str

    async def find(self, what: str, keys: Iterable[Key]) -> dict[Key, tuple[str, str]]: ...
    async def owner(self, what: str, remote_id: str) -> Key | None: ...
    async def adopt(self, what: str, named: Mapping[Key, str]) -> set[Key]: ...
    async def went_live(self, keys: Iterable[Key]) -> None: ...
    async def lost(self, keys: Iterable[Key]) -> None: ...


class Unkept:
    """For a wheel without a store of ours: nothing is kept, so every session is looked up when it is asked about."""

    uuid = ""

    async def find(self, what: str, keys: Iterable[Key]) -> dict[Key, tuple[str, str]]:
        return {}

    async def owner(self, what: str, remote_id: str) -> Key | None:
        return None

    async def adopt(self, what: str, named: Mapping[Key, str]) -> set[Key]:
        return set(named)

    async def went_live(self, keys: Iterable[Key]) -> None: ...

    async def lost(self, keys: Iterable[Key]) -> None: ...


class Names:
    """The mapping of one wheel on one Honcho."""

    def __init__(self, client: HonchoClient, keeper: Keeper) -> None:
        self.client = client
        self.keeper = keeper

    # --- for asking: nothing is made, and what is not shown to be this wheel's is not asked

    async def sessions(self, keys: Sequence[Key]) -> dict[str, Key]:
        """The sessions that may be asked, by Honcho id: those delivered to, with nothing stale in them."""
        if isinstance(self.keeper, Unkept):
            return await self._look_up(keys)
        found = await self.keeper.find("session", keys)
        return {id: key for key, (id, state) in found.items() if state == "live"}

    async def _look_up(self, keys: Sequence[Key]) -> dict[str, Key]:
        wanted: dict[str, list[Key]] = {}
        for key in keys:
            for id in candidates(*key)[:2]:
                wanted.setdefault(id, []).append(key)
        found = await self.client.find("sessions", list(wanted))
        return {
            id: key
            for id, session in found.items()
            for key in wanted[id]
            if self._is_ours(key, session.get("metadata") or {})
        }

    async def peer(self, wheel_id: str) -> str | None:
        """The peer who stands for a person, or None when Honcho does not know them (asking would make one)."""
        key = (PEER, wheel_id)
        found = await self.keeper.find(PEER, [key])
        if key in found:
            return found[key][0]
        tried = candidates(PEER, wheel_id)[:2]
        peers = await self.client.find("peers", tried)
        for id in tried:
            named = (peers[id].get("metadata") or {}).get("wheel_id") if id in peers else None
            if id in peers and named in (None, wheel_id) and await self.keeper.owner(PEER, id) in (None, key):
                return id
        return None

    async def wheel_ids(self, peers: Iterable[str]) -> dict[str, str]:
        """Whom peers stand for, by Honcho id, as their metadata says."""
        found = await self.client.find("peers", list(peers))
        named = {id: (peer.get("metadata") or {}).get("wheel_id") for id, peer in found.items()}
        return {id: name for id, name in named.items() if isinstance(name, str)}

    # --- for delivering

    def _is_ours(self, key: Key, metadata: Mapping[str, Any]) -> bool:
        """Whether a session's metadata shows it to be this wheel's, or the original's for the same id."""
        kind, uuid = metadata.get("wheel_kind"), metadata.get("wheel_uuid")
        if metadata.get("wheel_id") != key[1] or (kind in KINDS and kind != key[0]):
            return False
        return uuid is None or (uuid == self.keeper.uuid != "")

    def label(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """A session's metadata, with the wheel it belongs to."""
        return {**metadata, "wheel_uuid": self.keeper.uuid} if self.keeper.uuid else dict(metadata)

    async def make_sessions(self, wanted: Mapping[Key, Mapping[str, Any]]) -> dict[Key, str | HonchoError]:
        """The session for each key, made and described where need be; an error where there is none to be had now."""
        import asyncio

        known = await self.keeper.find("session", wanted)
        taken: dict[str, Key] = {id: key for key, (id, _) in known.items()}
        limit = asyncio.Semaphore(AT_ONCE)
        revived: list[Key] = []
        lost: list[Key] = []

        async def one(key: Key) -> str | HonchoError:
            async with limit:
                try:
                    if key in known:
                        id, state = known[key]
                        made, ours = await self._describe(key, id, wanted[key])
                        if ours:
                            if made and state == "live":
                                lost.append(key)
                            elif state == "gone":
                                revived.append(key)
                            return id
                        lost.append(key)
                    for id in candidates(*key, self.keeper.uuid):
                        owner = taken.setdefault(id, key)
                        if owner != key or await self.keeper.owner("session", id) not in (None, key):
                            continue
                        if (await self._describe(key, id, wanted[key]))[1]:
                            return id
                    return HonchoError(f"every session that could be for {key[1]} belongs to others", away=False)
                except HonchoError as error:
                    if error.status in (404, 409):
                        return HonchoError("its session is still being deleted", away=False, status=error.status)
                    return error

        keys = list(wanted)
        found = dict(zip(keys, await asyncio.gather(*(one(key) for key in keys)), strict=True))
        named = {key: id for key, id in found.items() if isinstance(id, str)}
        fresh = {key: id for key, id in named.items() if key not in known or known[key][0] != id}
        for key in set(fresh) - await self.keeper.adopt("session", fresh):
            found[key] = HonchoError(f"the session for {key[1]} was taken meanwhile", away=False)
        await self.keeper.went_live(revived)
        await self.keeper.lost(lost)
        return found

    async def _describe(self, key: Key, id: str, metadata: Mapping[str, Any]) -> tuple[bool, bool]:
        """Get or create a session: whether it was made now, and whether it is ours; then it says so."""
        import asyncio

        label = self.label(metadata)
        made, stored = await self.client.make("sessions", id)
        if not made and not stored:
            # It has no name: its maker may be about to give it one, or died before that.
            await asyncio.sleep(NAMING)
            _, stored = await self.client.make("sessions", id)
            if not stored and await self.client.has_messages(id):
                return False, False
        if stored and not self._is_ours(key, stored):
            return False, False
        # A beat may come before its ceremony; then what is known of the ceremony stays.
        if any(stored.get(name) != value for name, value in label.items()):
            await self.client.make("sessions", id, {**stored, **label})
        return made, True

    async def make_peers(self, wheel_ids: Iterable[str]) -> dict[str, str]:
        """The peer for each person, made and named where need be."""
        keys = {name: (PEER, name) for name in wheel_ids}
        known = await self.keeper.find(PEER, keys.values())
        found = {name: known[key][0] for name, key in keys.items() if key in known}
        missing = [name for name in keys if name not in found]
        if not missing:
            return found
        tried = {name: candidates(PEER, name)[:2] for name in missing}
        peers = await self.client.find("peers", [id for ids in tried.values() for id in ids])
        taken: dict[str, str] = {}
        for name in missing:
            for id in tried[name]:
                named = (peers.get(id, {}).get("metadata") or {}).get("wheel_id")
                if named not in (None, name) or taken.get(id, name) != name:
                    continue
                if await self.keeper.owner(PEER, id) not in (None, keys[name]):
                    continue
                taken[id] = name
                if named is None:
                    kept = peers.get(id, {}).get("metadata") or {}
                    await self.client.make("peers", id, {**kept, "wheel_id": name})
                found[name] = id
                break
        await self.keeper.adopt(PEER, {keys[name]: found[name] for name in missing if name in found})
        return found
