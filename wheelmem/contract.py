"""What callers, the wheel, arms and providers hand one another: frozen dataclasses, from and to JSON.

JSON carries exactly the keys of the contract, in the order of the fields; a field with nothing to say is absent, never
null. Every class has ``from_json`` (which also takes an instance of itself) and ``to_json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

__all__ = [
    "LEVELS",
    "MODES",
    "Answer",
    "ArmReport",
    "ContractError",
    "Explain",
    "NotHeldError",
    "ProviderAnswer",
    "ProviderStatus",
    "Question",
    "Reach",
    "Record",
    "Scope",
    "Source",
    "WheelmemError",
]

MODES = ("dialectic", "search", "matched", "empty")
LEVELS = ("minimal", "low", "medium", "high", "max")
MAX_QUESTION = 10_000
DEFAULT_LIMIT = 12
MAX_LIMIT = 50


class WheelmemError(Exception):
    """Something a caller can act on; the message is one line that says what was wrong and what to do."""


class ContractError(WheelmemError, ValueError):
    """What was asked does not fit the contract: an unknown scope field, a wrong type, a blank question."""


class NotHeldError(WheelmemError, LookupError):
    """The wheel does not hold what was named."""


class _Json:
    """``to_json`` over the dataclass's own fields: absent when None, tuples as lists, nested classes as objects."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The JSON object: the fields in their order, those with nothing to say left out."""
        out = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not None:
                out[field.name] = _plain(value)
        return out

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """An instance from a JSON object. Keys that the contract does not know are passed over."""
        if isinstance(value, cls):
            return value
        given = _object(value, cls.__name__)
        known = {field.name: given[field.name] for field in fields(cls) if given.get(field.name) is not None}  # type: ignore[arg-type]
        try:
            return cls(**cls._nested(known))
        except TypeError:
            raise ContractError(f"{cls.__name__} lacks a field; given: {', '.join(sorted(given)) or 'nothing'}") from None

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        return known


def _plain(value: Any) -> Any:
    if isinstance(value, _Json):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ContractError(f"{what.lower()} must be an object, not {type(value).__name__}")
    return value


def _texts(value: Any, message: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise ContractError(message)
    if not all(isinstance(item, str) for item in value):
        raise ContractError(message)
    return tuple(value)


@dataclass(frozen=True, slots=True)
class Scope(_Json):
    """What a question may draw on. Every field adds ceremonies; the reach is their union, less what is excluded.

    ``ceremonies``, ``subject_id``, ``circle_id`` and ``episode_path`` take one string or several; ``participant`` takes
    one; ``exclude_ceremonies`` several. A scope keeps the form it was given in.
    """

    ceremonies: str | tuple[str, ...] | None = None
    subject_id: str | tuple[str, ...] | None = None
    circle_id: str | tuple[str, ...] | None = None
    episode_path: str | tuple[str, ...] | None = None
    participant: str | None = None
    exclude_ceremonies: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """A scope from an object; raises ContractError naming an unknown field or one of the wrong type."""
        if isinstance(value, cls):
            return value
        given = _object(value, "scope")
        names = [field.name for field in fields(cls)]
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            raise ContractError(f"scope does not know {', '.join(unknown)} (it has {', '.join(names)})")
        read: dict[str, Any] = {}
        for name in names:
            item = given.get(name)
            if item is None:
                continue
            if name == "participant":
                if not isinstance(item, str):
                    raise ContractError("scope.participant must be a string")
                read[name] = item
            elif name == "exclude_ceremonies":
                read[name] = _texts(item, "scope.exclude_ceremonies must be a list of strings")
            elif isinstance(item, str):
                read[name] = item
            else:
                read[name] = _texts(item, f"scope.{name} must be a string or a list of strings")
        return cls(**read)

    def named(self, field: str) -> list[str]:
        """What a field names: trimmed, blanks dropped, in order, repeats kept."""
        value = getattr(self, field)
        if value is None:
            return []
        values: Iterable[str] = (value,) if isinstance(value, str) else value
        return [text for text in (item.strip() for item in values) if text]


@dataclass(frozen=True, slots=True)
class Reach(_Json):
    """What a scope resolves to: ceremony ids in the wheel's order (closings last), and the episode paths it named."""

    scope: Scope
    ceremonies: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is reached; then nobody is asked anything."""
        return not self.ceremonies and not self.episodes

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        out = {"scope": Scope.from_json(known.get("scope", {}))}
        for name in ("ceremonies", "episodes"):
            if name in known:
                out[name] = _texts(known[name], f"reach.{name} must be a list of strings")  # type: ignore[assignment]
        return out


@dataclass(frozen=True, slots=True)
class Record(_Json):
    """One record of the wheel as a question may draw on it. ``at`` is an ISO 8601 instant as it was written."""

    wheel_kind: str
    wheel_id: str
    ceremony_id: str | None = None
    speaker: str | None = None
    text: str = ""
    at: str | None = None


@dataclass(frozen=True, slots=True)
class ArmReport(_Json):
    """What one arm said of a source: its rank there (from 1), its score, and the path that led to it, if any."""

    arm: str
    rank: int
    score: float
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Explain(_Json):
    """Why a source stands where it stands; given only when asked for. ``duplicates`` are records with the same words."""

    arms: tuple[ArmReport, ...] = ()
    duplicates: tuple[str, ...] | None = None

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {"arms": tuple(ArmReport.from_json(arm) for arm in known.get("arms", ()))}
        if "duplicates" in known:
            out["duplicates"] = _texts(known["duplicates"], "duplicates must be a list of strings")
        return out


@dataclass(frozen=True, slots=True)
class Source(_Json):
    """What an answer rests on: a record of the wheel, or (``outside_wheel``) something a provider alone holds."""

    provider: str
    wheel_kind: str
    wheel_id: str
    ceremony_id: str | None = None
    speaker: str | None = None
    speaker_name: str | None = None
    speaker_kind: str | None = None
    excerpt: str = ""
    at: str | None = None
    outside_wheel: bool | None = None
    explain: Explain | None = None

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        if "explain" in known:
            known["explain"] = Explain.from_json(known["explain"])
        return known


@dataclass(frozen=True, slots=True)
class Answer(_Json):
    """An answer within a reach. ``mode`` is one of MODES; ``note`` says why a fallback answered, or what was left out."""

    provider: str
    mode: str
    answer: str | None = None
    sources: tuple[Source, ...] = ()
    reach: Reach = Reach(Scope())
    note: str | None = None

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        known["sources"] = tuple(Source.from_json(source) for source in known.get("sources", ()))
        known["reach"] = Reach.from_json(known.get("reach", {"scope": {}}))
        return known


@dataclass(frozen=True, slots=True)
class Question(_Json):
    """What arms and providers are asked: the words, within a reach that is already resolved.

    ``peer`` is whom a provider should reason as; ``person`` whom an ``about`` is about; ``level`` how hard to reason
    (one of LEVELS); ``limit`` how many sources are wanted at the most.
    """

    query: str
    reach: Reach
    peer: str | None = None
    person: str | None = None
    level: str | None = None
    limit: int = DEFAULT_LIMIT

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        known["reach"] = Reach.from_json(known.get("reach", {"scope": {}}))
        return known


@dataclass(frozen=True, slots=True)
class ProviderAnswer(_Json):
    """What a provider answers. Its sources' claims to be records are checked against the reach before they are shown."""

    mode: str
    answer: str | None = None
    note: str | None = None
    sources: tuple[Source, ...] = ()

    @classmethod
    def _nested(cls, known: dict[str, Any]) -> dict[str, Any]:
        known["sources"] = tuple(Source.from_json(source) for source in known.get("sources", ()))
        return known


@dataclass(frozen=True, slots=True)
class ProviderStatus(_Json):
    """How a provider is. ``confined``: whether it can keep its reasoning inside a reach; ``detail`` is its own."""

    provider: str
    enabled: bool
    confined: bool | None = None
    detail: Mapping[str, Any] | None = None
    error: str | None = None


def question_text(value: Any, field: str = "question") -> str:
    """The words of a question, trimmed; raises ContractError when there are none or more than 10,000 characters."""
    if not isinstance(value, str) or not value.strip():
        raise ContractError(f"{field} must be some words")
    text = value.strip()
    if len(text) > MAX_QUESTION:
        raise ContractError(f"{field} is {len(text):,} characters long; at most {MAX_QUESTION:,} are read")
    return text


def limit_of(value: Any) -> int:
    """How many sources: a positive whole number, at most 50; anything else counts as not given (12)."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return min(value, MAX_LIMIT)
    return DEFAULT_LIMIT
