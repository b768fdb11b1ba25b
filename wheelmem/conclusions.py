"""What a provider or an agent concluded, as it returns to the wheel: nodes that rest on records and are judged by people.

A conclusion is a node of type ``knowledge``; its metadata says what it is about, what it rests on and how it stands. Every
judgement is kept, who and when. Only a confirmed one whose every source is in reach is ever found.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from .contract import ContractError, NotHeldError, Scope, WheelmemError
from .ids import fold_id
from .reach import is_empty_scope
from .store import outbox, reading, writing

if TYPE_CHECKING:
    from .store import Wheel

__all__ = ["KINDS", "STATUSES", "Drawn", "conclude", "conclusions", "judge", "judgements", "pull"]

KINDS = ("pattern", "summary", "open_question", "preference")
STATUSES = ("inferred", "confirmed", "rejected")
MARK = "memory_projection"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a provider drew from one session: its own id for it, the words, the session as (kind, wheel id), the peer."""

    id: str
    content: str
    session: tuple[str, str]
    peer: str | None = None


def conclude(
    wheel: Wheel,
    *,
    about: str,
    content: str,
    kind: str,
    status: str = "inferred",
    source_event_ids: Sequence[str] = (),
    derived_by: str | None = None,
    provider: str | None = None,
) -> dict[str, Any]:
    """Store a conclusion about a person; the node as it is held.

    ``source_event_ids`` are the ids of the records it rests on, all of which must be held (NotHeldError); ``derived_by``
    who concluded it; ``provider`` where it comes from (the wheel itself when absent). Anything but ``inferred`` counts as
    a judgement by ``derived_by``. Raises ContractError for what does not fit.
    """
    node = partial(
        _conclude,
        about=_words(about, "about"),
        content=_words(content, "content"),
        kind=_one_of(kind, KINDS, "kind"),
        status=_one_of(status, STATUSES, "status"),
        sources=_ids(source_event_ids),
        derived_by=_words(derived_by, "derived_by") if derived_by else None,
        source=_words(provider, "provider") if provider else "wheel",
    )
    return wheel.write(lambda db: node(wheel, db))


def _conclude(
    wheel: Wheel,
    db: sqlite3.Connection,
    *,
    about: str,
    content: str,
    kind: str,
    status: str,
    sources: Sequence[str],
    derived_by: str | None,
    source: str,
    peer: str | None = None,
) -> dict[str, Any]:
    missing = [id for id in sources if not any(reading.is_record(db, leaving, id) for leaving in outbox.LEAVING)]
    if missing:
        raise NotHeldError(f"the wheel holds no record {', '.join(missing)}: name ceremonies, beats or diary entries it holds")
    moment = time.time_ns() // 1_000_000
    # Nothing else may have been concluded about this person in this millisecond.
    while writing.get(db, "node", id := f"node:knowledge:{MARK}:{fold_id(about)}:{moment}") is not None:
        moment += 1
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first = next((line.strip() for line in content.splitlines() if line.strip()), "")
    metadata = {
        "kind": MARK,
        "source": source,
        "source_event_ids": list(sources),
        "peer_id": peer or fold_id(about),
        "projection_kind": kind,
        "status": status,
        "generated_at": now,
        "about": about,
    }
    if derived_by is not None:
        metadata["derived_by"] = derived_by
    if status != "inferred":
        by = derived_by or source
        metadata |= {"judged_by": by, "judged_at": now}
        outbox.judge(db, id, status, by, now)
    node = {
        "id": id,
        "type": "knowledge",
        "name": f"{kind}: {first[:80]}",
        "description": content,
        "direction": "west",
        "metadata": metadata,
        "created_at": now,
        "updated_at": now,
    }
    wheel.store(db, "node", node)
    return node


def judge(wheel: Wheel, id: str, status: str, *, by: str) -> dict[str, Any]:
    """Judge a conclusion: ``confirmed``, ``rejected`` or ``inferred`` again; the node with its new standing.

    The judgement is added to those before it. Raises NotHeldError when the wheel holds no conclusion of that id.
    """
    _one_of(status, STATUSES, "status")
    who = _words(by, "by")

    def write(db: sqlite3.Connection) -> dict[str, Any]:
        node = writing.get(db, "node", id)
        if node is None or not _is_conclusion(node):
            raise NotHeldError(f"the wheel holds no conclusion {id}")
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        judged = {**node["metadata"], "status": status, "judged_by": who, "judged_at": now}
        outbox.judge(db, id, status, who, now)
        changed = {**node, "metadata": judged, "updated_at": now}
        wheel.store(db, "node", changed)
        return changed

    return wheel.write(write)


def judgements(wheel: Wheel, id: str) -> list[dict[str, str]]:
    """Every judgement of a conclusion, the first first: ``status``, ``judged_by``, ``judged_at``."""
    return [dict(one) for one in wheel.read(lambda db: outbox.judgements(db, id))]


def conclusions(wheel: Wheel, *, about: str | None = None, status: str | None = None) -> list[dict[str, Any]]:
    """The conclusions held, the latest last, about a person and with a status when these are given."""
    if status is not None:
        _one_of(status, STATUSES, "status")
    nodes = wheel.read(outbox.conclusion_nodes)
    return [
        node
        for node in nodes
        if (about is None or node["metadata"].get("about") == about)
        and (status is None or node["metadata"].get("status") == status)
    ]


async def pull(wheel: Wheel, provider: Any, *, person: str, scope: Scope | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Bring what a provider drew about a person from the sessions of a scope; the nodes that are new.

    Each is ``inferred`` and rests on the records of its session that are in reach, and comes once: what was brought before,
    or rests on nothing held, is passed over.
    """
    who = _words(person, "person")
    scope = Scope.from_json(scope)
    if is_empty_scope(scope):
        return []
    if not hasattr(provider, "conclusions"):
        raise WheelmemError(f"{provider.name} has no conclusions to give")
    resolved = wheel.read(lambda db: reading.resolve(db, scope))
    if resolved.reach.is_empty:
        return []
    drawn = [one async for one in provider.conclusions(who, resolved.reach)]

    def write(db: sqlite3.Connection) -> list[dict[str, Any]]:
        # The reach is that of now: what was moved out of it meanwhile carries nothing.
        reach = reading.resolve(db, scope)
        made = []
        for one in drawn:
            if outbox.known_conclusion(db, provider.name, one.id) or not one.content.strip():
                continue
            there = reading.claimed(db, reach, outbox.records_in(db, provider.name, *one.session))
            if not there:
                continue
            node = _conclude(
                wheel,
                db,
                about=who,
                content=one.content.strip(),
                kind="pattern",
                status="inferred",
                sources=[id for _, id in there],
                derived_by=None,
                source=provider.name,
                peer=one.peer,
            )
            outbox.pulled(db, provider.name, one.id, node["id"])
            made.append(node)
        return made

    return wheel.write(write) if drawn else []


def _is_conclusion(node: Mapping[str, Any]) -> bool:
    metadata = node.get("metadata")
    return node.get("type") == "knowledge" and isinstance(metadata, Mapping) and metadata.get("kind") == MARK


def _words(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ContractError(f"{field} must be some words")
    return value.strip()


def _one_of(value: Any, allowed: Sequence[str], field: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ContractError(f"{field} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def _ids(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ContractError("source_event_ids must be a list of record ids")
    ids = list(value)
    if not all(isinstance(id, str) and id.strip() for id in ids):
        raise ContractError("source_event_ids must be a list of record ids")
    return list(dict.fromkeys(ids))
