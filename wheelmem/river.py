"""The river: what leaves the wheel for providers that receive, and how it gets there.

A record becomes a ``Projection``: which session it belongs to, who speaks, who is seated, in what words. What is owed is
written by the store with the record itself; a *pass* delivers it in order, oldest first, and ends at the first sign that
a provider is away. One pass runs at a time, across processes.

A provider that receives has, beside its ``name``::

    async def receive(self, projections) -> list[str | Outcome]     # sent, wait or refused, for each
    async def forget(self, sessions) -> list[str | Outcome]         # optional: take down these (kind, id) sessions

and may have ``address`` (where it delivers to; elsewhere nothing has been delivered yet), ``interval`` (seconds until what
waits goes again) and ``bound(ledger)``, which gives the provider as it serves one wheel; see ``Ledger``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .contract import ContractError, NotHeldError, WheelmemError
from .reach import episode_of
from .store import outbox, writing
from .store.outbox import enroll

if TYPE_CHECKING:
    from .store import Wheel
    from .store.outbox import Delivery

__all__ = [
    "Delivered",
    "Ledger",
    "Outcome",
    "Projection",
    "River",
    "SessionKey",
    "bind",
    "enroll",
    "project",
    "session_keys",
]

T = TypeVar("T")
WHEEL = "medicine-wheel"
BATCH = 2000
BATCH_CHARACTERS = 4_000_000
INTERVAL = 300.0
WAITS_FOR_ANOTHER = 10
SessionKey = tuple[str, str]


# --- projections


@dataclass(frozen=True, slots=True)
class Projection:
    """A record as it leaves the wheel.

    ``session`` is (kind, wheel id), the kind one of ceremony, chronicle, cycle, wheel; ``session_metadata`` describes that
    session. ``speaker`` and ``seats`` are wheel ids or plain names; ``at`` is the record's timestamp as it was written;
    ``metadata`` holds ``wheel_kind``, ``wheel_id`` and what locates the record. ``tried``: it may be there already.
    """

    kind: str
    id: str
    session: SessionKey
    speaker: str
    seats: tuple[str, ...]
    content: str
    at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    session_metadata: Mapping[str, Any] = field(default_factory=dict)
    tried: bool = False


def session_of(kind: str, record: Mapping[str, Any]) -> SessionKey:
    """Where a record belongs: its (first) ceremony, else its cycle or chronicle, else the wheel itself."""
    if kind == "ceremony":
        return "ceremony", str(record["id"])
    if kind == "beat":
        ceremonies, cycle = _texts(record.get("ceremonies")), _text(record.get("cycle_id"))
        if ceremonies:
            return "ceremony", ceremonies[0]
        return ("cycle", cycle) if cycle else ("wheel", WHEEL)
    ceremony, chronicle = _text(_inside(record).get("ceremony_id")), _text(record.get("chronicle"))
    if ceremony:
        return "ceremony", ceremony
    return ("chronicle", chronicle) if chronicle else ("wheel", WHEEL)


def session_keys(reach: Any) -> list[SessionKey]:
    """The sessions of a reach: each ceremony, and for each episode the chronicles of that path."""
    keys = [("ceremony", id) for id in reach.ceremonies]
    for path in reach.episodes:
        keys += [("chronicle", f"chronicle:{path}"), ("chronicle", path)]
    return list(dict.fromkeys(keys))


def project(kind: str, record: Mapping[str, Any], ceremony: Mapping[str, Any] | None = None) -> Projection:
    """The projection of a ceremony, beat or diary entry; ``ceremony`` is the ceremony whose session it goes to, if held."""
    session = session_of(kind, record)
    metadata: dict[str, Any] = {"wheel_kind": kind, "wheel_id": str(record["id"])}
    more: dict[str, Any]
    if kind == "ceremony":
        speaker, seats = WHEEL, [WHEEL, *_texts(record.get("participants"))]
        content = _ceremony_words(record)
        more = {name: record.get(name) for name in ("type", "source")}
    elif kind == "beat":
        speaker = _text(record.get("speaker")) or WHEEL
        seats = [speaker, *_texts(record.get("witnesses"))]
        content = _beat_words(record)
        more = {name: record.get(name) for name in ("direction", "act", "cycle_id", "origin")}
        more |= {name: _texts(record.get(name)) or None for name in ("ceremonies", "witnesses")}
    else:
        speaker = _text(record.get("participant")) or WHEEL
        seats = [speaker]
        content = _diary_words(record)
        inside = _inside(record)
        more = {"phase": record.get("phase"), "entry_type": record.get("entryType"), "chronicle": record.get("chronicle")}
        more["agent"] = record.get("agent", inside.get("agent"))
    described: dict[str, Any] = {"wheel_kind": session[0], "wheel_id": session[1]}
    if ceremony is not None and session[0] == "ceremony":
        described |= {
            name: value
            for name, value in (
                ("type", ceremony.get("type")),
                ("direction", ceremony.get("direction")),
                ("episode", episode_of(ceremony)),
                ("circle", ceremony.get("circle_id")),
                ("subject", ceremony.get("subject_id")),
            )
            if value is not None
        }
    metadata |= {name: value for name, value in more.items() if value is not None}
    return Projection(
        kind,
        str(record["id"]),
        session,
        speaker,
        tuple(dict.fromkeys(seats)),
        content,
        _text(record.get("timestamp")) or None,
        metadata,
        described,
    )


def _beat_words(beat: Mapping[str, Any]) -> str:
    direction, prose = _text(beat.get("direction")), _text(beat.get("prose"))
    lines = [f"[{direction}] {_text(beat.get('title'))}" if direction else _text(beat.get("title"))]
    lines.append(_text(beat.get("description")))
    if prose:
        lines.append(f"\n{prose}")
    lines.append(_line("Learnings", beat.get("learnings")))
    lines.append(_line("Relations honored", beat.get("relations_honored")))
    return "\n".join(line for line in lines if line)


def _ceremony_words(ceremony: Mapping[str, Any]) -> str:
    type, direction = _text(ceremony.get("type")), _text(ceremony.get("direction"))
    first = f"Ceremony: {type}".rstrip() + (f" ({direction})" if direction else "")
    context = _text(ceremony.get("research_context")).strip()
    if context.startswith(("{", "[", '"')) or (context.startswith("ceremony:") and " " not in context):
        context = ""
    lines = [
        first,
        _line("Participants", ceremony.get("participants")),
        _line("Intentions", ceremony.get("intentions"), "; "),
        _line("Medicines", ceremony.get("medicines_used")),
        _line("Relations honored", ceremony.get("relations_honored")),
        _line("Context", context),
        _line("Episode", episode_of(ceremony)),
        _line("Circle", ceremony.get("circle_id")),
        _line("About", ceremony.get("subject_id")),
    ]
    return "\n".join(line for line in lines if line)


def _diary_words(entry: Mapping[str, Any]) -> str:
    label = " · ".join(part for part in (_text(entry.get("phase")), _text(entry.get("entryType"))) if part)
    content = _text(entry.get("content"))
    lines = [f"[{label}] {content}" if label else content, _line("Tags", _inside(entry).get("tags"))]
    return "\n".join(line for line in lines if line)


def _line(label: str, value: Any, separator: str = ", ") -> str:
    words = separator.join(_texts(value))
    return f"{label}: {words}" if words else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    """A list field as its texts, also when it came as one bare text."""
    values = value if isinstance(value, list | tuple) else [value]
    return [item for item in values if isinstance(item, str) and item]


def _inside(record: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = record.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


# --- what a provider keeps about this wheel


class Ledger:
    """What one provider calls the things of one wheel; ``what`` is ``session`` or ``peer``, a key (kind, wheel id)."""

    def __init__(self, wheel: Wheel, provider: str) -> None:
        self._wheel = wheel
        self._provider = provider
        self.uuid = wheel.uuid

    async def find(self, what: str, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """The provider's id and its state, for those that are known: ``live``, ``stale`` or ``gone``.

        Only a live session holds what the wheel holds; any other must not be asked.
        """
        wanted = list(keys)
        return await asyncio.to_thread(self._wheel.read, lambda db: outbox.ids_of(db, self._provider, what, wanted))

    async def owner(self, what: str, remote_id: str) -> tuple[str, str] | None:
        """What of this wheel the provider calls by this id."""
        return await asyncio.to_thread(self._wheel.read, lambda db: outbox.owner_of(db, self._provider, what, remote_id))

    async def adopt(self, what: str, named: Mapping[tuple[str, str], str]) -> set[tuple[str, str]]:
        """Keep what the provider calls these; those whose id belongs to something else are not kept. Which were kept."""

        def keep(db: sqlite3.Connection) -> set[tuple[str, str]]:
            return {key for key, id in named.items() if outbox.adopt(db, self._provider, what, *key, id)}

        return await asyncio.to_thread(self._wheel.write, keep) if named else set()

    async def went_live(self, keys: Iterable[SessionKey]) -> None:
        """These sessions, which had been taken down, have been made again."""
        wanted = list(keys)
        if wanted:
            mark = partial(outbox.went_live, provider=self._provider, sessions=wanted)
            await asyncio.to_thread(self._wheel.write, mark)

    async def lost(self, keys: Iterable[SessionKey]) -> None:
        """What was delivered to these sessions is not there any more: they are to be made anew."""
        wanted = list(keys)
        if wanted:
            mark = partial(outbox.mark_stale, provider=self._provider, sessions=wanted)
            await asyncio.to_thread(self._wheel.write, mark)


def bind(wheel: Wheel, providers: Sequence[Any]) -> list[Any]:
    """The providers as they serve this wheel: each that can be bound to a ledger is."""
    return [
        provider.bound(Ledger(wheel, provider.name)) if hasattr(provider, "bound") else provider for provider in providers
    ]


# --- delivering


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one projection: ``sent``, ``wait`` or ``refused``, and why. ``away``: so it is with all others."""

    state: str
    error: str | None = None
    away: bool = True

    @classmethod
    def of(cls, said: Any) -> Outcome:
        """An outcome from what a provider answered."""
        made = said if isinstance(said, Outcome) else cls(str(said))
        if made.state not in ("sent", "wait", "refused"):
            raise WheelmemError(f"answered {made.state!r} where sent, wait or refused is wanted")
        return made


@dataclass(slots=True)
class Delivered:
    """What a pass did for one provider. ``errors``: why records were refused, each reason once; ``away``: why some wait."""

    provider: str
    sent: int = 0
    refused: int = 0
    dropped: int = 0
    rebuilt: int = 0
    pending: int = 0
    errors: list[str] = field(default_factory=list)
    away: str | None = None

    def lines(self) -> list[str]:
        """What somebody should know of it, a line each; none when all went well."""
        said = [f"{self.provider} refused {error}" for error in self.errors]
        if self.dropped:
            said.append(f"{self.dropped} record(s) waiting for {self.provider} are no longer held, and were dropped")
        if self.away:
            said.append(f"{self.pending} record(s) wait for {self.provider}: {self.away}")
        return said


@contextmanager
def _one_pass(wheel: Wheel) -> Iterator[bool]:
    """Whether this is the only pass, in any process, until the end of the block. A killed process lets go by dying."""
    lock = sqlite3.connect(f"{wheel.path}-river", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            yield False
            return
        yield True
    finally:
        lock.close()


class River:
    """Delivers what a wheel owes to its providers.

    ``write`` runs a function of a connection in one transaction (``wheel.write`` in a thread, unless given); ``interval``
    is how often what waits goes again while ``run`` runs, in seconds (what the providers wish, else five minutes).
    """

    def __init__(
        self,
        wheel: Wheel,
        providers: Sequence[Any],
        *,
        interval: float | None = None,
        write: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]] | None = None,
    ) -> None:
        self.wheel = wheel
        self.providers = [provider for provider in bind(wheel, providers) if hasattr(provider, "receive")]
        wished = [provider.interval for provider in self.providers if hasattr(provider, "interval")]
        self.interval: float = interval if interval is not None else min(wished, default=INTERVAL)
        self._write = write or (lambda fn: asyncio.to_thread(wheel.write, fn))
        self._woken = asyncio.Event()

    # --- looking and asking for more

    def status(self) -> dict[str, Any]:
        """How the river stands, as JSON: ``providers`` (see ``outbox.standing``), and the oldest records ``held_back``."""

        def look(db: sqlite3.Connection) -> dict[str, Any]:
            standing = outbox.standing(db)
            out: dict[str, Any] = {"pending": sum(one["pending"] for one in standing), "providers": standing}
            held_back = outbox.held_back(db)
            return {**out, "held_back": held_back} if held_back else out

        return self.wheel.read(look)

    def _named(self, provider: str | None) -> list[str]:
        names = [one.name for one in self.providers]
        if not names:
            raise WheelmemError("no provider that receives is configured (for Honcho, set HONCHO_URL)")
        if provider is not None and provider not in names:
            raise ContractError(f"no provider named {provider!r} receives; there are: {', '.join(names)}")
        return names if provider is None else [provider]

    def queue_all(self, provider: str | None = None) -> int:
        """Owe every record that a provider never had; how many."""
        names = self._named(provider)
        enroll(self.wheel, self.providers)
        return int(self.wheel.write(lambda db: sum(outbox.queue_all(db, name) for name in names)))

    def resend(self, kind: str, id: str, provider: str | None = None) -> None:
        """Owe one record again; raises NotHeldError for one that the wheel does not hold."""
        names = self._named(provider)
        if kind not in outbox.LEAVING:
            raise ContractError(f"kind must be one of {', '.join(outbox.LEAVING)}, not {kind!r}")
        if self.wheel.get(kind, id) is None:
            raise NotHeldError(f"the wheel holds no {kind} {id}")
        enroll(self.wheel, self.providers)
        self.wheel.write(partial(outbox.queue_again, providers=names, kind=kind, id=id))

    # --- a pass

    async def deliver(self, seconds: float | None = None, progress: Callable[[int], None] | None = None) -> list[Delivered]:
        """One pass over all that waits; what it did, a provider each. Nothing when another pass is under way.

        Stops after ``seconds``, if given (and then waits half a second for another pass to end); ``progress`` is told how
        many more records have been dealt with.
        """
        enrolled = [provider for provider in self.providers if provider.name in self.wheel.read(outbox.receivers)]
        passes = [Delivered(provider.name) for provider in enrolled]
        for turn in range(WAITS_FOR_ANOTHER if seconds else 1):
            if turn:
                # The pass under way may have looked already for what this one is to deliver.
                await asyncio.sleep(0.05)
            with _one_pass(self.wheel) as alone:
                if alone:
                    try:
                        async with asyncio.timeout(seconds):
                            for provider, done in zip(enrolled, passes, strict=True):
                                await self._pass(provider, done, progress or (lambda more: None))
                    except TimeoutError:
                        for done in passes:
                            done.away = done.away or f"not done within {seconds:g} s"
                    break
        else:
            return []
        standing = {one["provider"]: one for one in self.wheel.read(outbox.standing)}
        for done in passes:
            done.pending = standing[done.provider]["pending"]
            # What was recorded during the pass waits too, for no fault.
            done.away = (done.away or standing[done.provider].get("error")) if done.pending else None
        return passes

    async def _pass(self, provider: Any, done: Delivered, progress: Callable[[int], None]) -> None:
        after = 0
        while True:
            if await self._forget(provider, done):
                after = 0
            if done.away:
                return
            if not self.wheel.read(partial(outbox.owed, provider=provider.name, after=after, limit=1)):
                return
            batch: _Batch = await self._write(partial(_take, provider=provider.name, after=after))
            done.dropped += len(batch.dropped)
            progress(len(batch.dropped))
            after = max([after, *batch.dropped, *(delivery.delivery_id for delivery in batch.deliveries)])
            if not batch.deliveries:
                continue
            outcomes = await _asked(provider.receive(batch.projections), len(batch.deliveries))
            became = [
                (delivery.delivery_id, "tried" if outcome.state == "wait" else outcome.state, outcome.error)
                for delivery, outcome in zip(batch.deliveries, outcomes, strict=True)
            ]
            await self._write(partial(outbox.settle, deliveries=became))
            for delivery, outcome in zip(batch.deliveries, outcomes, strict=True):
                if outcome.state == "sent":
                    done.sent += 1
                elif outcome.state == "refused":
                    done.refused += 1
                    said = f"{delivery.kind} {delivery.record_id}: {outcome.error or 'no reason given'}"
                    if outcome.error not in {error.partition(": ")[2] for error in done.errors}:
                        done.errors.append(said)
                elif outcome.away:
                    done.away = outcome.error or "it asked to wait"
            progress(sum(1 for outcome in outcomes if outcome.state != "wait"))
            if done.away:
                return

    async def _forget(self, provider: Any, done: Delivered) -> bool:
        """Take down the sessions that are stale; whether anything is owed again because of it."""
        stale = self.wheel.read(lambda db: outbox.stale_sessions(db, provider.name))
        if not stale or not hasattr(provider, "forget"):
            return False
        taken = False
        for start in range(0, len(stale), BATCH):
            part = stale[start : start + BATCH]
            outcomes = await _asked(provider.forget(part), len(part))
            gone = [key for key, outcome in zip(part, outcomes, strict=True) if outcome.state == "sent"]
            await self._write(partial(outbox.forgotten, provider=provider.name, sessions=gone))
            done.rebuilt += len(gone)
            taken = taken or bool(gone)
            waits = [outcome for outcome in outcomes if outcome.state != "sent"]
            if waits:
                done.away = waits[0].error or "it asked to wait"
                break
        return taken

    # --- in the background

    def wake(self) -> None:
        """Something was recorded: start a pass now (from the event loop that ``run`` is in)."""
        self._woken.set()

    async def run(self, report: Callable[[str], None] | None = None) -> None:
        """Deliver until cancelled: at once, on every interval, and when woken. ``report`` is told each problem once."""
        said: set[str] = set()
        while True:
            self._woken.clear()
            try:
                passes = await self.deliver()
                lines = [line for done in passes for line in done.lines()]
            except Exception as error:
                lines = [f"the river stands still: {' '.join(str(error).split()) or type(error).__name__}"]
            for line in lines:
                if report is not None and line not in said:
                    report(line)
            said = set(lines)
            try:
                async with asyncio.timeout(self.interval):
                    await self._woken.wait()
            except TimeoutError:
                pass


@dataclass
class _Batch:
    deliveries: list[Delivery]
    projections: list[Projection]
    dropped: list[int]


def _take(db: sqlite3.Connection, provider: str, after: int) -> _Batch:
    """The next records to send, noted as tried; those that the wheel no longer holds are dropped."""
    batch = _Batch([], [], [])
    ceremonies: dict[str, Mapping[str, Any] | None] = {}
    characters = 0
    for delivery in outbox.owed(db, provider, after, BATCH):
        record = writing.get(db, delivery.kind, delivery.record_id)
        if record is None:
            batch.dropped.append(delivery.delivery_id)
            continue
        kind, id = session_of(delivery.kind, record)
        if kind == "ceremony" and id not in ceremonies:
            ceremonies[id] = writing.get(db, "ceremony", id)
        projection = project(delivery.kind, record, ceremonies.get(id))
        batch.deliveries.append(delivery)
        batch.projections.append(replace(projection, tried=True) if delivery.tried else projection)
        characters += len(projection.content)
        if characters > BATCH_CHARACTERS:
            break
    outbox.drop(db, batch.dropped)
    outbox.try_now(
        db,
        ((one.delivery_id, *projection.session) for one, projection in zip(batch.deliveries, batch.projections, strict=True)),
    )
    return batch


async def _asked(call: Awaitable[Any], count: int) -> list[Outcome]:
    """A provider's outcomes; one that raises, or answers nonsense, is away."""
    try:
        outcomes = [Outcome.of(said) for said in await call]
        if len(outcomes) != count:
            raise WheelmemError(f"answered {len(outcomes)} times for {count} record(s)")
        return outcomes
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        return [Outcome("wait", text if isinstance(error, WheelmemError) else f"{type(error).__name__}: {text}")] * count
