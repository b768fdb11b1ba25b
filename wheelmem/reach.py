"""From a scope to the ceremonies it reaches. Pure: what the wheel holds is handed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .contract import Reach, Scope

__all__ = ["closes", "episode_of", "is_empty_scope", "resolve_reach"]

_ADDING = ("ceremonies", "subject_id", "circle_id", "episode_path", "participant")


def is_empty_scope(scope: Scope | Mapping[str, Any]) -> bool:
    """Whether a scope names nothing. Exclusions alone name nothing."""
    scope = Scope.from_json(scope)
    return not any(scope.named(field) for field in _ADDING)


def episode_of(ceremony: Mapping[str, Any]) -> str | None:
    """A ceremony's episode: its ``episode_path``, else the one in a ``research_context`` that is a JSON object."""
    path = ceremony.get("episode_path")
    if path:
        return str(path)
    context = ceremony.get("research_context")
    if isinstance(context, str):
        if not context.lstrip().startswith("{"):
            return None
        import json

        try:
            context = json.loads(context)
        except (ValueError, RecursionError):
            return None
    if isinstance(context, Mapping):
        for key in ("episode_path", "episodePath"):
            if isinstance(context.get(key), str) and context[key]:
                return str(context[key])
    return None


def closes(ceremony: Mapping[str, Any], held: Iterable[str]) -> str | None:
    """The ceremony a closing closes: its ``closes``, else a ``research_context`` that is the id of a held ceremony."""
    if ceremony.get("closes"):
        return str(ceremony["closes"])
    context = ceremony.get("research_context")
    if ceremony.get("type") == "closing" and isinstance(context, str) and context in held:
        return context
    return None


def _participants(ceremony: Mapping[str, Any]) -> tuple[str, ...]:
    people = ceremony.get("participants") or ()
    return (people,) if isinstance(people, str) else tuple(people)


def resolve_reach(
    scope: Scope | Mapping[str, Any],
    ceremonies: Iterable[Mapping[str, Any]],
    seats: Iterable[Mapping[str, Any]],
) -> Reach:
    """The ceremonies a scope reaches among ``ceremonies`` (in the wheel's order), and the episodes it names.

    ``ceremonies`` are objects with ``id`` and, where they have them, ``participants``, ``circle_id``, ``subject_id``,
    ``episode_path``, ``closes``, ``type``, ``research_context``; ``seats`` are ``{person_id, circle_id}``. A closing
    follows what it closes, in one pass over the ceremonies in order. What is excluded is taken out last of all.
    """
    scope = Scope.from_json(scope)
    if is_empty_scope(scope):
        return Reach(scope)
    ceremonies = list(ceremonies)
    held = {ceremony["id"] for ceremony in ceremonies}
    named = {field: set(scope.named(field)) for field in _ADDING}
    circles = named["circle_id"] | {seat["circle_id"] for seat in seats if seat["person_id"] in named["participant"]}

    def reached(ceremony: Mapping[str, Any]) -> bool:
        return (
            ceremony["id"] in named["ceremonies"]
            or ceremony.get("subject_id") in named["subject_id"]
            or ceremony.get("circle_id") in circles
            or episode_of(ceremony) in named["episode_path"]
            or not named["participant"].isdisjoint(_participants(ceremony))
        )

    reach = dict.fromkeys(ceremony["id"] for ceremony in ceremonies if reached(ceremony))
    for ceremony in ceremonies:
        if ceremony["id"] not in reach and closes(ceremony, held) in reach:
            reach[ceremony["id"]] = None
    excluded = set(scope.named("exclude_ceremonies"))
    return Reach(
        scope,
        tuple(id for id in reach if id not in excluded),
        tuple(scope.named("episode_path")),
    )
