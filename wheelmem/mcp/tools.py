"""The tools as an agent sees them: name, when to use it, what goes in, what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..conclusions import KINDS, STATUSES
from ..contract import LEVELS, MAX_LIMIT, MAX_QUESTION, Answer, ContractError, ProviderStatus, Scope
from ..schemas import schema_of

__all__ = ["TOOLS", "Tool"]


@dataclass(frozen=True)
class Tool:
    """A tool: ``properties`` are the schemas of its arguments, ``required`` those that must be given."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    output: Mapping[str, Any]
    reads_only: bool = True
    more: Mapping[str, Any] = field(default_factory=dict)

    def input(self, pinned: bool) -> dict[str, Any]:
        """The schema of its arguments; with a pinned scope none need be named."""
        required = [name for name in self.required if not (pinned and name == "scope")]
        return {"type": "object", "properties": dict(self.properties), "required": required, "additionalProperties": False}

    def arguments(self, given: Mapping[str, Any] | None, pinned: bool) -> dict[str, Any]:
        """What was given, nulls as absent; raises ContractError for an argument that is unknown, missing or of a wrong type."""
        found = {name: value for name, value in (given or {}).items() if value is not None}
        unknown = [name for name in found if name not in self.properties]
        if unknown:
            raise ContractError(f"{self.name} does not know {', '.join(unknown)} (it has {', '.join(self.properties)})")
        for name in self.input(pinned)["required"]:
            if name not in found:
                raise ContractError(f"{self.name} needs {name}")
        for name, value in found.items():
            kind = self.properties[name].get("type")
            wanted, said = _TYPES.get(str(kind), (object, ""))
            if not isinstance(value, wanted) or (kind == "integer" and isinstance(value, bool)):
                raise ContractError(f"{name} must be {said}, not {type(value).__name__}")
            if isinstance(value, list) and not all(isinstance(item, str) for item in value):
                raise ContractError(f"{name} must be a list of strings")
        return found


_TYPES: dict[str, tuple[type[Any], str]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list of strings"),
    "object": (dict, "an object"),
}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


_WORDS = {"minLength": 1, "maxLength": MAX_QUESTION}
_IDS = {"type": "array", "items": {"type": "string"}}
_SCOPE = {
    **schema_of(Scope),
    "description": "Which ceremonies the answer may draw on; every field adds some, exclude_ceremonies takes some away. At least "
    "one of ceremonies, subject_id, circle_id, episode_path, participant must name something, else nothing is reached.",
}
_COMMON = {
    "scope": _SCOPE,
    "limit": {
        "type": "integer",
        "minimum": 1,
        "description": f"How many sources at the most: 12 unless given, never over {MAX_LIMIT}.",
    },
    "explain": {"type": "boolean", "description": "Say of each source which arms found it."},
    "arms": {**_IDS, "description": "The only arms to ask, by name; all of them when absent."},
}
_ANSWER = schema_of(Answer)
_NODE = {"type": "object", "properties": {"node": {"type": "object"}}, "required": ["node"]}

TOOLS = (
    Tool(
        "memory_status",
        "How the memory is",
        "How the wheel and each provider that reasons over it are, and what still waits for them. Call it when the note of "
        "an answer says that a provider did not answer.",
        {},
        (),
        {
            "type": "object",
            "properties": {"providers": {"type": "array", "items": schema_of(ProviderStatus)}, "river": {"type": "object"}},
            "required": ["providers", "river"],
        },
    ),
    Tool(
        "memory_ask",
        "Ask a question within a scope",
        "Answer a question from what was said and done in the ceremonies of a scope, and from nothing else. `answer` holds words "
        "when a provider reasoned (mode dialectic); otherwise read the excerpts in `sources`, best first. Cite sources by "
        "wheel_id; one marked outside_wheel is no record of the wheel. `note` says what went wrong or was left out. Mode empty "
        "means that the scope reaches nothing: name another, do not answer from elsewhere.",
        {
            "question": _text("The question, in the people's own words.", **_WORDS),
            **_COMMON,
            "peer": _text("The id of whom a provider should reason as."),
            "reasoning_level": _text("How hard a provider should reason.", enum=list(LEVELS)),
        },
        ("question", "scope"),
        _ANSWER,
    ),
    Tool(
        "memory_search",
        "Find records within a scope",
        "The records of a scope closest to some words, best first, without reasoning. Quick; use it to look something up or to "
        'find ids. "Words in quotes" are looked for as a phrase.',
        {"query": _text("The words to look for.", **_WORDS), **_COMMON},
        ("query", "scope"),
        _ANSWER,
    ),
    Tool(
        "memory_about",
        "What a person said",
        "What one person or agent said, as far as a scope reaches: with a question what of it comes closest, else the latest.",
        {
            "person": _text("The person's id (node:human:…), or the plain name that the records have.", **_WORDS),
            **_COMMON,
            "question": _text("What to look for in their words.", maxLength=MAX_QUESTION),
        },
        ("person", "scope"),
        _ANSWER,
    ),
    Tool(
        "memory_conclude",
        "Conclude something, or judge a conclusion",
        "Make a conclusion about a person (about, content, kind, and in source_event_ids the records it rests on), or judge one "
        "that is there (id, status, by). What you conclude yourself stays inferred: confirm or reject only what a person told "
        "you to, and name that person in `by`. A confirmed conclusion is found by later questions whose scope reaches all its "
        "sources.",
        {
            "about": _text("To make one: the id of the person it is about."),
            "content": _text("To make one: what is concluded."),
            "kind": _text("To make one: what sort it is.", enum=list(KINDS)),
            "source_event_ids": {**_IDS, "description": "To make one: the ids of the records it rests on."},
            "derived_by": _text("To make one: the id of who concluded it, yours as a rule."),
            "id": _text("To judge one: the conclusion's id (node:knowledge:memory_projection:…)."),
            "status": _text("How it stands.", enum=list(STATUSES)),
            "by": _text("To judge one: who judges, an id or a name."),
        },
        (),
        _NODE,
        reads_only=False,
    ),
    Tool(
        "memory_resend",
        "Send a record to the providers again",
        "Send one record to every provider that receives, for when memory_status shows that it never arrived.",
        {
            "kind": _text("What it is.", enum=["beat", "ceremony", "diary"]),
            "id": _text("The record's id."),
        },
        ("kind", "id"),
        {
            "type": "object",
            "properties": {
                "resent": {"type": "object", "properties": {"kind": {"type": "string"}, "id": {"type": "string"}}},
                **{name: {"type": "integer"} for name in ("sent", "dropped", "pending")},
            },
            "required": ["resent", "sent", "dropped", "pending"],
        },
        reads_only=False,
    ),
)
