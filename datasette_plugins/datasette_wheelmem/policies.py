"""The policies that come with wheelmem: how far somebody who may ask can reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wheelmem.contract import Scope

__all__ = ["POLICIES", "Open", "Owner", "Scopes", "Seated"]

Actor = Mapping[str, Any] | None


class Owner:
    """Nobody but the owner."""

    name = "owner"

    async def confine(self, actor: Actor, wheel: Any) -> list[Scope]:
        return []


class Open:
    """Whoever may ask may name any scope."""

    name = "open"

    async def confine(self, actor: Actor, wheel: Any) -> None:
        return None


class Seated:
    """What one sat in oneself: the reach of the actor's ``wheel_id`` as participant. No episodes."""

    name = "seated"
    # Beside answers, one's own page shows one's own diary entries that belong to no ceremony.
    own_diary = True

    async def confine(self, actor: Actor, wheel: Any) -> list[Scope]:
        person = (actor or {}).get("wheel_id")
        return [Scope(participant=person)] if isinstance(person, str) and person.strip() else []


class Scopes:
    """What the actor's own list of ``scopes`` reaches together."""

    name = "scopes"

    async def confine(self, actor: Actor, wheel: Any) -> list[Scope]:
        given = (actor or {}).get("scopes") or []
        return [Scope.from_json(scope) for scope in ([given] if isinstance(given, Mapping) else given)]


POLICIES = (Owner, Open, Seated, Scopes)
