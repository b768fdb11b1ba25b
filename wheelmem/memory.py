"""Asking a wheel's memory within a scope: ``create_memory`` and what it gives.

The wheel resolves the scope and finds its own matches in one snapshot; providers are asked in turn, inside the reach; then
a second snapshot resolves again, and only what both reach is kept. What a provider claims is believed about words, never
about reach.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .contract import (
    LEVELS,
    Answer,
    ContractError,
    Explain,
    ProviderAnswer,
    ProviderStatus,
    Question,
    Reach,
    Record,
    Scope,
    Source,
    WheelmemError,
    limit_of,
    question_text,
)
from .reach import is_empty_scope, resolve_reach
from .retrieval import Match, Spoiled, Watch, lent, own_weight, retrieve
from .store import reading
from .store.connections import ReadConnection
from .store.rows import clean, dumps
from .store.wheel import Wheel
from .text import PERSON_ID, excerpt_around, fold, match_records, phrases, query_terms, source_of, substitute_names
from .workers import Hung, Job, Workers, in_event_loop

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["Memory", "create_memory", "run"]

T = TypeVar("T")
G = TypeVar("G", ProviderAnswer, Source)
WHEEL = "wheel"
WHEEL_NAME = "the wheel"
# Arms that never came back, by what they are: switched off until the process ends.
_switched_off: set[tuple[type, str]] = set()


@dataclass
class _Look:
    """What the wheel itself says in one snapshot."""

    reach: Reach
    matches: list[tuple[Record, Explain | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # What the snapshot resolved to, for the second look to keep inside; None for a wheel of another kind.
    resolved: reading.ResolvedReach | None = None
    keys: list[int] = field(default_factory=list)
    names: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    # Records that a provider cited, by (kind, id), those in reach only.
    cited: Mapping[tuple[str, str], Record] = field(default_factory=dict)


@dataclass(frozen=True)
class _Asked:
    """One call, its arguments checked."""

    verb: str
    query: str
    scope: Scope
    limit: int
    explain: bool
    arms: tuple[str, ...] | None
    peer: str | None = None
    person: str | None = None
    level: str | None = None

    def question(self, reach: Reach) -> Question:
        return Question(self.query, reach, self.peer, self.person, self.level, self.limit)


class Memory:
    """A wheel's memory. Every call is a coroutine that takes keywords; ``wheelmem.memory.run`` calls one without a loop."""

    def __init__(
        self,
        wheel: Any,
        providers: Sequence[Any],
        arms: Sequence[Any],
        classifiers: Sequence[Any],
        settings: Settings,
    ) -> None:
        self.wheel = wheel
        self.providers = tuple(providers)
        self.arms = tuple(arms)
        self.classifiers = tuple(classifiers)
        self.settings = settings
        self._kept: _StoreWheel | _OtherWheel = _StoreWheel(wheel, self) if isinstance(wheel, Wheel) else _OtherWheel(wheel)
        self._pins: tuple[tuple[Scope, ...], ...] = ()
        self._fixed_note: str | None = None

    # --- what a caller asks -----------------------------------------------------------------------------------------

    async def ask(
        self,
        *,
        question: str,
        scope: Scope | Mapping[str, Any],
        peer: str | None = None,
        reasoning_level: str | None = None,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """Answer a question within a scope: the first provider that answers reasons over the reach, else the wheel matches.

        ``peer`` is whom the provider should reason as; ``reasoning_level`` one of minimal, low, medium, high, max; ``limit``
        how many sources (12, at most 50); ``explain`` adds to each source why it stands there; ``arms`` names the only
        arms to ask. Raises ContractError for a question or scope that does not fit.
        """
        if reasoning_level is not None and reasoning_level not in LEVELS:
            raise ContractError(f"reasoning_level must be one of {', '.join(LEVELS)}, not {reasoning_level!r}")
        asked = self._asked("ask", question_text(question), scope, limit, explain, arms)
        return await self._answer(replace(asked, peer=_one(peer, "peer"), level=reasoning_level))

    async def search(
        self,
        *,
        query: str,
        scope: Scope | Mapping[str, Any],
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """The records of a scope closest to some words, without reasoning."""
        return await self._answer(self._asked("search", question_text(query, "query"), scope, limit, explain, arms))

    async def about(
        self,
        *,
        person: str,
        scope: Scope | Mapping[str, Any],
        question: str | None = None,
        limit: int | None = None,
        explain: bool = False,
        arms: Iterable[str] | None = None,
    ) -> Answer:
        """What a person (an id, or a plain name as the records have it) said, as far as a scope reaches.

        With a question the closest of their records, none when nothing matches; without one the latest.
        """
        person = question_text(person, "person")
        query = "" if question is None or question == "" else question_text(question)
        return await self._answer(replace(self._asked("about", query, scope, limit, explain, arms), person=person))

    async def reach(self, *, scope: Scope | Mapping[str, Any]) -> Reach:
        """What a scope resolves to."""
        return (await self._kept.look(self, self._asked("reach", "", scope, None, False, None))).reach

    async def status(self) -> list[ProviderStatus]:
        """How each provider is (one that fails: not enabled, with its error), then the wheel itself."""
        statuses = []
        for provider in self.providers:
            try:
                found = await _within(provider.status, self.settings["status_timeout"])
                status = ProviderStatus.from_json(found)
                dumps(status.to_json())
                statuses.append(status)
            except Exception as error:
                statuses.append(ProviderStatus(provider.name, False, error=_why(error)))
        statuses.append(ProviderStatus(WHEEL, True, True, {"mode": "matched"}))
        return statuses

    async def holds(self, kind: str, id: str) -> bool:
        """Whether a record is held (for a memory made with ``within``: held inside what it may draw on)."""
        return await self._kept.holds(self, kind, id)

    def within(self, *scopes: Scope | Mapping[str, Any], note: str | None = None) -> Memory:
        """The same memory, confined: every answer draws on what was asked *and* on what these scopes together reach.

        ``note`` is said with every answer, whatever was asked. May be applied again; each time confines further.
        """
        made = Memory(self.wheel, self.providers, self.arms, self.classifiers, self.settings)
        made._pins = (*self._pins, tuple(Scope.from_json(scope) for scope in scopes))
        made._fixed_note = note if note is not None else self._fixed_note
        return made

    # --- how it is answered -----------------------------------------------------------------------------------------

    def _asked(self, verb: str, query: str, scope: Any, limit: Any, explain: bool, arms: Iterable[str] | None) -> _Asked:
        names = None if arms is None else tuple(dict.fromkeys([arms] if isinstance(arms, str) else arms))
        known = [arm.name for arm in self.arms]
        for name in names or ():
            if name not in known:
                raise ContractError(f"no arm is named {name!r}; there are: {', '.join(known) or 'none'}")
        most = limit_of(self.settings["limit"] if limit is None else limit)
        return _Asked(verb, query, Scope.from_json(scope), most, bool(explain), names)

    async def _answer(self, asked: _Asked) -> Answer:
        look = await self._kept.look(self, asked)
        if look.reach.is_empty:
            return self._finish(Answer(WHEEL, "empty", reach=look.reach, note=None), [])
        question = asked.question(look.reach)
        given, notes = await self._ask_providers(asked, question)
        if given is None:
            sources = [self._source(asked, record, look, explain=explain) for record, explain in look.matches]
            return self._finish(Answer(WHEEL, "matched", None, tuple(sources[: asked.limit]), look.reach), notes + look.notes)
        provider, answer = given
        claims = [(source.wheel_kind, source.wheel_id) for source in answer.sources if source.wheel_kind != "message"]
        second = await self._kept.look_again(self, asked, look, claims, answer.answer or "")
        theirs, dropped = self._believed(asked, provider.name, answer, second)
        if dropped:
            notes.append(f"{dropped} source(s) of {provider.name} left out: not a record within this scope")
        own = [self._source(asked, record, second, explain=explain) for record, explain in second.matches]
        if answer.note:
            notes.insert(0, answer.note)
        text = answer.answer if answer.mode == "dialectic" else None
        return self._finish(
            Answer(
                provider.name,
                answer.mode,
                None if text is None else substitute_names(text, second.names),
                tuple(_merge(theirs, own, asked.limit)),
                second.reach,
            ),
            notes + second.notes,
        )

    def _finish(self, answer: Answer, notes: Sequence[str]) -> Answer:
        said = [*notes, *([self._fixed_note] if self._fixed_note else [])]
        return replace(answer, note="; ".join(dict.fromkeys(said)) or None)

    async def _ask_providers(self, asked: _Asked, question: Question) -> tuple[tuple[Any, ProviderAnswer] | None, list[str]]:
        """The first provider's answer, and a note for each that failed before it."""
        notes: list[str] = []
        able = [provider for provider in self.providers if hasattr(provider, asked.verb)]
        if not self.providers:
            notes.append("no provider is configured; the wheel matched its own records")
        elif not able:
            notes.append(f"no provider answers {asked.verb}; the wheel matched its own records")
        seconds = self.settings["provider_timeout" if asked.verb == "search" else "reasoning_timeout"]
        for provider in able:
            try:
                given = await _within(partial(getattr(provider, asked.verb), question), seconds)
                return (provider, _sound(provider.name, given)), notes
            except Exception as error:
                notes.append(f"{provider.name} did not answer: {_why(error)}")
        return None, notes

    def _believed(self, asked: _Asked, provider: str, answer: ProviderAnswer, look: _Look) -> tuple[list[Source], int]:
        """A provider's sources as they may be shown, and how many claimed a record that is not in reach."""
        believed: dict[tuple[str, str], Source] = {}
        dropped = 0
        for source in answer.sources:
            key = (source.wheel_kind, source.wheel_id)
            if source.wheel_kind == "message":
                shown = replace(
                    source,
                    provider=provider,
                    excerpt=_excerpt(substitute_names(source.excerpt, look.names), asked.query),
                    speaker_name=_name(source.speaker, look.names) or source.speaker_name,
                    speaker_kind=look.kinds.get(source.speaker or "") or None,
                    ceremony_id=None,
                    outside_wheel=True,
                    explain=None,
                )
            elif key in look.cited:
                shown = self._source(asked, look.cited[key], look, provider)
            else:
                dropped += 1
                continue
            believed.setdefault(key, shown)
        return list(believed.values()), dropped

    def _source(
        self, asked: _Asked, record: Record, look: _Look, provider: str = WHEEL, explain: Explain | None = None
    ) -> Source:
        text = substitute_names(record.text, look.names)
        return replace(
            source_of(record, _excerpt(text, asked.query), provider),
            speaker_name=_name(record.speaker, look.names),
            speaker_kind=look.kinds.get(record.speaker or ""),
            explain=explain if asked.explain else None,
        )

    # --- what the kinds of wheel share ------------------------------------------------------------------------------

    def wanted_arms(self, names: tuple[str, ...] | None) -> list[Any]:
        """The arms to ask: those named, else those of the setting ``arms``, else all."""
        chosen = names if names is not None else self.settings["arms"]
        return [arm for arm in self.arms if not chosen or arm.name in chosen]

    def weigh(self, question: Question, notes: list[str], watch: Watch) -> dict[str, float]:
        """What each arm counts: the settings' weights, else the arm's own, times what the first classifier to speak says."""
        set_to = self.settings["weights"]
        weights = {arm.name: float(set_to.get(arm.name, own_weight(arm))) for arm in self.arms}
        for classifier in self.classifiers:
            if not hasattr(classifier, "weigh") or (type(classifier), classifier.name) in _switched_off:
                continue
            begin, end = watch
            begin(classifier, self.settings["arm_timeout"])
            try:
                said = classifier.weigh(question)
                factors = None if said is None else {str(name): float(value) for name, value in said.items()}
            except BaseException as error:  # this is a worker's thread, where no Ctrl-C arrives
                notes.append(f"classifier {classifier.name} failed ({type(error).__name__}) and was left out")
                continue
            finally:
                end()
            if factors is not None:
                return {name: weight * max(0.0, factors.get(name, 1.0)) for name, weight in weights.items()}
        return weights


# --- a wheel in SQLite -----------------------------------------------------------------------------------------------


class _StoreWheel:
    """The looks of a memory over a ``Wheel``: each in one snapshot, on a worker thread."""

    def __init__(self, wheel: Wheel, memory: Memory) -> None:
        self.wheel = wheel
        self.workers = _workers_of(wheel)

    async def _snapshot(self, fn: Callable[[ReadConnection, Job[T]], T]) -> T:
        def job(job: Job[T]) -> T:
            with self.wheel.snapshot() as db:
                return fn(db, job)

        return await self.workers.run_async(job)

    def resolve(self, db: ReadConnection, memory: Memory, scope: Scope) -> reading.ResolvedReach:
        return reading.confined(db, scope, memory._pins)

    async def look(self, memory: Memory, asked: _Asked) -> _Look:
        notes: list[str] = []
        spoilers: list[Any] = []
        while True:
            wanted = [arm for arm in memory.wanted_arms(asked.arms) if arm not in spoilers]
            arms = [arm for arm in wanted if (type(arm), arm.name) not in _switched_off]
            off = [arm.name for arm in wanted if arm not in arms]
            try:

                def first(db: ReadConnection, job: Job[_Look], arms: Sequence[Any] = arms) -> _Look:
                    return self._first(db, job, memory, asked, arms)

                look = await self._snapshot(first)
            except Hung as hung:
                _switched_off.add((type(hung.step), hung.step.name))
                part = "arm" if hasattr(hung.step, "retrieve") else "classifier"
                notes.append(
                    f"{part} {hung.step.name} did not come back within {memory.settings['arm_timeout']:g} s; "
                    "it is switched off until this process ends"
                )
                continue
            except Spoiled as spoiled:
                spoilers.append(spoiled.arm)
                notes.append(f"arm {spoiled.arm.name} {spoiled.how} and was left out")
                continue
            said = " ".join(notes)
            notes += [f"arm {name} is switched off: it did not come back earlier" for name in off if f"arm {name} " not in said]
            look.notes = notes + look.notes
            return look

    def _first(self, db: ReadConnection, job: Job[_Look], memory: Memory, asked: _Asked, arms: Sequence[Any]) -> _Look:
        resolved = self.resolve(db, memory, asked.scope)
        look = _Look(resolved.reach, resolved=resolved)
        if resolved.reach.is_empty or asked.verb == "reach":
            return look
        if asked.verb == "about" and not asked.query:
            found = reading.latest(db, resolved, asked.person or "", asked.limit)
            look.keys = [item.record_id for item in found]
            look.matches = [(item.record, Explain() if asked.explain else None) for item in found]
        else:
            ready = []
            watch = (job.begin, job.end)
            seconds = memory.settings["arm_timeout"]
            for arm in arms:
                why = _unready(arm, db, seconds, watch)
                if why is None:
                    ready.append(arm)
                elif asked.arms is not None:
                    look.notes.append(f"arm {arm.name} is not ready: {why}")
            question = asked.question(resolved.reach)
            weights = memory.weigh(question, look.notes, watch)
            got = retrieve(db, question, resolved, ready, weights, seconds, watch)
            look.notes += got.notes
            matches = got.matches[: asked.limit]
            look.keys = [match.found.record_id for match in matches]
            look.matches = [(match.found.record, _explained(match) if asked.explain else None) for match in matches]
        self._name(db, look, [record for record, _ in look.matches])
        return look

    async def look_again(
        self, memory: Memory, asked: _Asked, first: _Look, claims: Sequence[tuple[str, str]], answer: str
    ) -> _Look:
        def second(db: ReadConnection, job: Job[_Look]) -> _Look:
            assert first.resolved is not None
            both = reading.intersect(db, first.resolved, [self.resolve(db, memory, asked.scope)])
            cited = {key: found.record for key, found in reading.claimed(db, both, claims).items()}
            still = reading.reached(db, both, first.keys)
            kept = [
                (still[key].record, explain)
                for key, (_, explain) in zip(first.keys, first.matches, strict=True)
                if key in still and (asked.person is None or still[key].record.speaker == asked.person)
            ]
            look = _Look(both.reach, kept, first.notes, both, cited=cited)
            self._name(db, look, [*cited.values(), *(record for record, _ in kept)], answer)
            return look

        return await self._snapshot(second)

    @staticmethod
    def _name(db: ReadConnection, look: _Look, records: Sequence[Record], answer: str = "") -> None:
        ids = _ids_in(records, answer)
        look.names, look.kinds = reading.names(db, ids), reading.kinds(db, ids)

    async def holds(self, memory: Memory, kind: str, id: str) -> bool:
        def held(db: ReadConnection, job: Job[bool]) -> bool:
            if not memory._pins:
                return reading.is_record(db, kind, id)
            reach = self.resolve_pins(db, memory)
            return bool(reading.claimed(db, reach, [(kind, id)]))

        return await self._snapshot(held)

    def resolve_pins(self, db: ReadConnection, memory: Memory) -> reading.ResolvedReach:
        """What a confined memory may draw on at all."""
        first, *others = memory._pins
        found = reading.unite(db, [reading.resolve(db, scope) for scope in first])
        for scopes in others:
            found = reading.intersect(db, found, [reading.resolve(db, scope) for scope in scopes])
        return found


_all_workers: dict[int, Workers] = {}


def _workers_of(wheel: Wheel) -> Workers:
    """One small pool a process: SQLite reads hold the GIL for most of their time, so more threads would only wait."""
    return _all_workers.setdefault(0, Workers())


# --- a wheel of another kind -----------------------------------------------------------------------------------------


class _OtherWheel:
    """The looks of a memory over any object that answers as ``create_memory`` says."""

    def __init__(self, wheel: Any) -> None:
        self.wheel = wheel

    async def _resolve(self, memory: Memory, scope: Scope) -> Reach:
        if is_empty_scope(scope):
            return Reach(scope)
        ceremonies, seats = await self.wheel.ceremonies(), await self.wheel.seats()
        reach, within = resolve_reach(scope, ceremonies, seats), ceremonies
        for scopes in memory._pins:
            allowed = [resolve_reach(pinned, ceremonies, seats) for pinned in scopes]
            reach = _intersect(reach, allowed)
            # A ceremony outside leads nowhere, not even to a closing inside.
            inside = {id for one in allowed for id in one.ceremonies}
            within = [one for one in within if one["id"] in inside]
            held = set(resolve_reach(scope, within, seats).ceremonies)
            reach = replace(reach, ceremonies=tuple(id for id in reach.ceremonies if id in held))
        return reach

    async def _records(self, reach: Reach) -> list[Record]:
        return [Record.from_json(record) for record in await self.wheel.records(reach)]

    async def look(self, memory: Memory, asked: _Asked) -> _Look:
        look = _Look(await self._resolve(memory, asked.scope))
        if look.reach.is_empty or asked.verb == "reach":
            return look
        records = await self._records(look.reach)
        look.matches = [(record, None) for record in self._matching(asked, records)]
        await self._name(look, [record for record, _ in look.matches])
        return look

    @staticmethod
    def _matching(asked: _Asked, records: Sequence[Record]) -> list[Record]:
        if asked.person is not None:
            records = [record for record in records if record.speaker == asked.person]
        if asked.verb == "about" and not asked.query:
            return sorted(records, key=lambda record: record.at or "", reverse=True)[: asked.limit]
        by_key = {(record.wheel_kind, record.wheel_id): record for record in records}
        return [by_key[source.wheel_kind, source.wheel_id] for source in match_records(asked.query, by_key.values(), asked.limit)]

    async def look_again(
        self, memory: Memory, asked: _Asked, first: _Look, claims: Sequence[tuple[str, str]], answer: str
    ) -> _Look:
        both = _intersect(first.reach, [await self._resolve(memory, asked.scope)])
        records = {(record.wheel_kind, record.wheel_id): record for record in await self._records(both)}
        matched = [(record.wheel_kind, record.wheel_id) for record, _ in first.matches]
        look = _Look(both, [(records[key], None) for key in matched if key in records], first.notes)
        look.cited = {key: records[key] for key in claims if key in records}
        await self._name(look, [*look.cited.values(), *(record for record, _ in look.matches)], answer)
        return look

    async def _name(self, look: _Look, records: Sequence[Record], answer: str = "") -> None:
        ids = _ids_in(records, answer)
        for field_name in ("names", "kinds"):
            ask: Callable[[list[str]], Awaitable[Mapping[str, str]]] | None = getattr(self.wheel, field_name, None)
            if ask is None:
                continue
            try:
                setattr(look, field_name, dict(await ask(ids)))
            except Exception as error:
                look.notes.append(f"{field_name} could not be looked up ({type(error).__name__}); ids stay as they are")

    async def holds(self, memory: Memory, kind: str, id: str) -> bool:
        if not memory._pins:
            raise WheelmemError("a wheel of this kind tells what it holds within a scope only; confine the memory first")
        for scope in memory._pins[0]:
            records = await self._records(await self._resolve(memory, scope))
            if any((record.wheel_kind, record.wheel_id) == (kind, id) for record in records):
                return True
        return False


def _intersect(reach: Reach, allowed: Sequence[Reach]) -> Reach:
    ceremonies = {id for one in allowed for id in one.ceremonies}
    episodes = {path for one in allowed for path in one.episodes}
    return replace(
        reach,
        ceremonies=tuple(id for id in reach.ceremonies if id in ceremonies),
        episodes=tuple(path for path in reach.episodes if path in episodes),
    )


def _unready(arm: Any, db: ReadConnection, seconds: float, watch: Watch) -> str | None:
    """Why an arm cannot be asked, None when it can; one that cannot even tell is asked, and fails there."""
    if not hasattr(arm, "ready"):
        return None
    with lent(db, arm, seconds, watch):
        try:
            why = arm.ready(db)
            return None if why is None else str(why)
        except BaseException:
            return None
    raise AssertionError


# --- small parts -----------------------------------------------------------------------------------------------------


def _one(value: Any, name: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ContractError(f"{name} must be a string")
    return value


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it took too long"
    text = " ".join(str(error).split())
    if not isinstance(error, WheelmemError | TimeoutError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:300]


async def _within(call: Callable[[], Awaitable[T]], seconds: float) -> T:
    """What a plugin's coroutine gives, or TimeoutError; one that does not heed being cancelled is left behind, not waited for.

    Whatever it raises beside Ctrl-C comes out as an Exception: it must not end the process, nor pass for the caller's own end.
    """

    async def called() -> T:
        try:
            return await call()
        except SystemExit:
            raise RuntimeError("it asked the process to end") from None

    if not in_event_loop():
        return await called()
    import asyncio

    task = asyncio.ensure_future(called())
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise TimeoutError(f"no answer within {seconds:g} s")
    if task.cancelled():
        raise RuntimeError("it was cancelled")
    error = task.exception()
    if error is not None and not isinstance(error, Exception | KeyboardInterrupt):
        raise RuntimeError(f"it raised {type(error).__name__}") from error
    return task.result()


def _sound(name: str, given: Any) -> ProviderAnswer:
    """A provider's answer as the contract has it; raises for one that is nonsense."""
    try:
        answer = ProviderAnswer.from_json(given)
        sources = [Source.from_json(source) for source in answer.sources]
    except (WheelmemError, TypeError, ValueError, KeyError, AttributeError):
        raise WheelmemError("its answer was no answer") from None
    answer = _all_text(answer, ("mode", "answer", "note"))
    sources = [_all_text(source, _TEXTS) for source in sources]
    if answer.mode == "dialectic":
        if not isinstance(answer.answer, str) or not answer.answer.strip():
            raise WheelmemError("it reasoned, and said nothing")
    elif answer.mode != "search":
        raise WheelmemError("its answer was no answer")
    return replace(answer, sources=tuple(sources))


_TEXTS = ("provider", "wheel_kind", "wheel_id", "ceremony_id", "speaker", "speaker_name", "speaker_kind", "excerpt", "at")


def _all_text(given: G, names: Sequence[str]) -> G:
    """The same with lone surrogates, which nothing can be written with, replaced; raises when something there is no text."""
    texts = {name: getattr(given, name) for name in names}
    if not all(text is None or isinstance(text, str) for text in texts.values()):
        raise WheelmemError("its answer was no answer")
    odd: dict[str, Any] = {name: clean(text) for name, text in texts.items() if text is not None and clean(text) != text}
    return replace(given, **odd) if odd else given


def _explained(match: Match) -> Explain:
    return Explain(match.reports, match.duplicates or None)


def _ids_in(records: Iterable[Record], answer: str = "") -> list[str]:
    """Every person's or agent's id that an answer could show: speakers, and ids inside texts."""
    ids: dict[str, None] = {}
    for record in records:
        if record.speaker:
            ids[record.speaker] = None
        if "node:" in record.text:
            ids.update(dict.fromkeys(PERSON_ID.findall(record.text)))
    ids.update(dict.fromkeys(PERSON_ID.findall(answer)))
    return list(ids)


def _name(id: str | None, names: Mapping[str, str]) -> str | None:
    if id is None:
        return None
    return WHEEL_NAME if id == reading.WHEEL else names.get(id)


_WORD = re.compile(r"[^\W_]+")


def _excerpt(text: str, query: str) -> str:
    """The text around what was asked: its phrases, else its words, else the beginnings of its words (an arm may have stemmed)."""
    folded = fold(text)
    for wanted in ([fold(phrase) for phrase in phrases(query)], query_terms(query) or _WORD.findall(fold(query))):
        if any(term in folded for term in wanted):
            return excerpt_around(text, wanted)
    beginnings = [term[: max(4, len(term) - 3)] for term in query_terms(query) if len(term) > 4]
    return excerpt_around(text, beginnings)


def _merge(theirs: Sequence[Source], own: Sequence[Source], limit: int) -> list[Source]:
    """A provider's sources, then the wheel's own; where both have more than fit, the wheel's keep a third of the places."""
    third = -(-limit // 3)
    taken = min(len(theirs), limit)
    while True:
        keys = {(source.wheel_kind, source.wheel_id) for source in theirs[:taken] if not source.outside_wheel}
        more = [source for source in own if (source.wheel_kind, source.wheel_id) not in keys]
        room = limit - min(third, len(more))
        if taken <= room:
            return [*theirs[:taken], *more][:limit]
        taken = room


def create_memory(
    *,
    wheel: Any,
    providers: Sequence[Any] | None = None,
    arms: Sequence[Any] | None = None,
    classifiers: Sequence[Any] | None = None,
    settings: Settings | None = None,
) -> Memory:
    """A memory over a wheel: one opened with ``open_wheel``, or any object with these coroutines.

    ``ceremonies()`` gives objects with an ``id`` and what ``resolve_reach`` reads; ``seats()`` gives ``{person_id,
    circle_id}``; ``records(reach)`` the records in reach; ``names(ids)`` and optionally ``kinds(ids)`` mappings. Such a
    wheel is matched on its words, without arms.

    Providers, arms and classifiers are by default those of the wheel's plugins; what is given here stands instead.
    """
    if settings is None:
        from .settings import load_settings

        settings = load_settings()
    if isinstance(wheel, Wheel):
        providers = wheel.plugins.providers(settings) if providers is None else providers
        if providers:
            from .river import bind

            providers = bind(wheel, providers)
        arms = wheel.plugins.arms(settings) if arms is None else arms
        classifiers = wheel.plugins.classifiers(settings) if classifiers is None else classifiers
    return Memory(wheel, providers or (), arms or (), classifiers or (), settings)


def run(memory: Memory, call: Coroutine[Any, Any, T]) -> T:
    """The result of one of a memory's calls, from code without an event loop.

    Without providers nothing needs a loop, so none is made (and asyncio is not imported).
    """
    if memory.providers or not isinstance(memory.wheel, Wheel):
        return _run_in_loop(call)
    try:
        call.send(None)
    except StopIteration as stop:
        found: T = stop.value
        return found
    raise RuntimeError("a memory without providers waited for something")


def _run_in_loop(call: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run``, but for one thing: a provider's task that does not heed being cancelled is not waited for."""
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(call)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=1.0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
