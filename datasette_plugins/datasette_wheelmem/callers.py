"""Who calls, what they may do, and how far they reach."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from typing import Any

from wheelmem.contract import NotHeldError, Scope
from wheelmem.memory import Memory
from wheelmem.store import reading
from wheelmem.store.reading import ResolvedReach

from . import access
from .served import Served, served
from .web import Refusal

__all__ = ["NOTE", "Caller", "caller"]

# The same whatever was asked: that something was left out must not show.
NOTE = "this answer draws on no more than you may see here"


class Caller:
    """One request's actor on one wheel. ``scopes`` is None for those who may name any scope."""

    def __init__(self, house: Served, actor: Mapping[str, Any] | None, scopes: tuple[Scope, ...] | None) -> None:
        self.house = house
        self.actor = actor
        self.scopes = scopes

    @property
    def confined(self) -> bool:
        """Whether the policy holds this caller to less than the whole wheel."""
        return self.scopes is not None

    @property
    def wheel_id(self) -> str | None:
        """Who the caller is on the wheel, if anybody."""
        found = (self.actor or {}).get("wheel_id")
        return found.strip() or None if isinstance(found, str) else None

    @property
    def own_diary(self) -> str | None:
        """Whose diary entries the policy shows although they belong to no ceremony: the caller's own, or nobody's."""
        return self.wheel_id if self.confined and getattr(self.house.policy(), "own_diary", False) else None

    @property
    def name(self) -> str:
        """Who a judgement is by: the person on the wheel, else the actor."""
        return self.wheel_id or str((self.actor or {}).get("id") or "anonymous")

    @property
    def memory(self) -> Memory:
        """The memory as far as this caller reaches."""
        return self.house.memory if self.scopes is None else self.house.memory.within(*self.scopes, note=NOTE)

    async def may(self, action: str) -> bool:
        """Whether the caller has a permission."""
        return await access.may(self.house.datasette, self.actor, action)

    async def need(self, *actions: str) -> None:
        """Refuse a caller who lacks one of these permissions."""
        for action in actions:
            if not await self.may(action):
                first = "sign in first; " if self.actor is None else ""
                raise Refusal(403, f"{first}this needs the permission {action}")
        if self.scopes == () and "memory-read" not in actions:
            raise Refusal(403, f"the policy {self.house.settings['policy']} lets you reach nothing here")

    def allowed(self, db: sqlite3.Connection) -> ResolvedReach | None:
        """What the caller may see at all, in this snapshot; None for everything."""
        if self.scopes is None:
            return None
        return reading.unite(db, [reading.resolve(db, scope) for scope in self.scopes])

    def needed(self, db: sqlite3.Connection) -> ResolvedReach:
        """The same, for a caller who is confined."""
        allowed = self.allowed(db)
        assert allowed is not None
        return allowed

    def reach(self, db: sqlite3.Connection, scope: Scope) -> ResolvedReach:
        """What a scope resolves to, as far as the caller reaches."""
        return reading.confined(db, scope, [] if self.scopes is None else [self.scopes])

    def need_ceremony(self, db: sqlite3.Connection, id: Any) -> None:
        """Refuse a ceremony beyond the caller's reach just like one that the wheel does not hold."""
        allowed = self.allowed(db)
        if allowed is not None and id not in allowed.reach.ceremonies:
            raise NotHeldError(f"the wheel holds no ceremony {id}")

    def need_record(self, db: sqlite3.Connection, kind: str, id: str) -> None:
        """The same for any record."""
        allowed = self.allowed(db)
        if allowed is not None and not reading.claimed(db, allowed, [(kind, id)]):
            raise NotHeldError(f"the wheel holds no {kind} {id}")


async def caller(datasette: Any, request: Any) -> Caller:
    """Who makes this request. Whoever may read the whole wheel is not confined; all others are as the policy says."""
    house = await served(datasette)
    actor = _described(house, request.actor)
    if await access.may(datasette, request.actor, "memory-read"):
        return Caller(house, actor, None)
    policy = house.policy()
    if policy is None:
        return Caller(house, actor, ())
    try:
        given = await policy.confine(actor, house.wheel)
        scopes = None if given is None else _scopes(given)
    except Exception as error:
        logging.getLogger("wheelmem").error("policy %s failed", policy.name, exc_info=error)
        scopes = ()
    return Caller(house, actor, scopes)


def _scopes(given: Any) -> tuple[Scope, ...]:
    scopes = [given] if isinstance(given, Scope | Mapping) else list(given)
    return tuple(Scope.from_json(scope) for scope in scopes)


def _described(house: Served, actor: Any) -> dict[str, Any] | None:
    """The actor, with what the configuration's ``actors`` says of that id where the actor itself does not say it."""
    if not isinstance(actor, Mapping):
        return None
    more = house.actors.get(str(actor.get("id"))) or {}
    return {**{str(key): value for key, value in more.items() if key in ("wheel_id", "scopes")}, **actor}
