"""Running arms within a reach, and fusing what they find.

An arm is kept to its own part: what it returns is checked record by record against the reach, what it raises becomes a
note, its SQL is interrupted at its deadline. Ties are settled by the later instant, then kind, then id, never by the order
in which rows happen to lie.
"""

from __future__ import annotations

import math
import re
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from .contract import ArmReport, Question, Record
from .store.connections import ReadConnection
from .store.reading import ReachedRecord, ResolvedReach, reached
from .store.rows import clean
from .text import fold

__all__ = ["ArmWarning", "FoundRecord", "Match", "Retrieved", "Spoiled", "Watch", "lent", "retrieve"]

# How many records an arm may bring unless it has a ``most`` of its own: enough that fusing can lift one that several arms
# rank low.
DEPTH = 100
# In this order; each is given what those before it found.
STAGES = ("find", "follow", "favour")
# How many SQLite instructions pass between two looks at the clock.
STEPS = 20_000


class ArmWarning(RuntimeWarning):
    """An arm did something that costs it its part: records outside the reach, which the host drops."""


class Spoiled(Exception):
    """An arm did something to the connection it was lent that the others would feel: what was read there cannot be used."""

    def __init__(self, arm: Any, how: str) -> None:
        super().__init__(how)
        self.arm = arm
        self.how = how


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """What the finders found, as arms of stage ``follow`` see it."""

    record_id: int
    score: float
    arm: str


@dataclass(frozen=True, slots=True)
class Match:
    """A record found: its fused score and what each arm said of it."""

    found: ReachedRecord
    score: float
    reports: tuple[ArmReport, ...]
    duplicates: tuple[str, ...] = ()


@dataclass
class Retrieved:
    """What the arms found, best first, and what went wrong (arm's name and why)."""

    matches: list[Match] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Ranking = list[tuple[ReachedRecord, float, str | None]]
# (begin a step that may take so many seconds, end it): how whoever runs the arms can tell that one hangs.
Watch = tuple[Callable[[Any, float], None], Callable[[], None]]


def retrieve(
    db: ReadConnection,
    question: Question,
    reach: ResolvedReach,
    arms: Sequence[Any],
    weights: Mapping[str, float],
    seconds: float,
    watch: Watch | None = None,
) -> Retrieved:
    """Ask each arm, in the snapshot of ``db``, and fuse. ``seconds`` is what one arm may take."""
    result = Retrieved()
    rankings: dict[str, Ranking] = {}
    stage = STAGES[0]
    found: tuple[FoundRecord, ...] = ()
    favours: dict[str, Ranking] = {}
    known: dict[int, ReachedRecord] = {}
    for arm in sorted(arms, key=lambda arm: STAGES.index(_stage(arm))):
        if _stage(arm) != stage:
            stage = _stage(arm)
            found = tuple(
                FoundRecord(match.found.record_id, match.score, match.reports[0].arm) for match in fuse(rankings, weights)
            )
        db.offer(reach)
        rows = None
        with lent(db, arm, seconds, watch):
            try:
                rows = list(islice(arm.retrieve(db, question, reach, found, most_of(arm)), 10 * DEPTH))
            except BaseException as error:  # this is a worker's thread, where no Ctrl-C arrives
                if isinstance(error, sqlite3.OperationalError) and "interrupted" in str(error):
                    result.notes.append(f"arm {arm.name} did not answer within {seconds:g} s and was left out")
                else:
                    _failed(result, arm, error)
        if rows is None:
            continue
        ranking = _checked(db, question, reach, arm, rows, result, known)
        if ranking:
            (favours if stage == "favour" else rankings)[arm.name] = ranking
    result.matches = without_repeats(fuse(rankings, weights, favours), question.limit)
    return result


def _stage(arm: Any) -> str:
    stage = getattr(arm, "stage", "find")
    return stage if stage in STAGES else "follow"


@contextmanager
def lent(db: ReadConnection, arm: Any, seconds: float, watch: Watch | None = None) -> Iterator[None]:
    """An arm's turn with the connection, its SQL interrupted at the deadline; Spoiled when it is not given back as it was."""
    begin, end = watch or (lambda step, seconds: None, lambda: None)
    # The grace lets an interrupted statement end by itself before the whole thread is given up.
    begin(arm, seconds + 0.5)
    deadline = time.monotonic() + seconds
    db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
    try:
        yield
    finally:
        with suppress(sqlite3.Error):
            db.set_progress_handler(None, 0)
        end()
    how = db.spoiled()
    if how is not None:
        raise Spoiled(arm, how)


def _failed(result: Retrieved, arm: Any, error: BaseException) -> None:
    # The message may quote records, also from outside the reach: it goes to the log, the kind of error to the caller.
    import logging

    logging.getLogger("wheelmem").warning("arm %s failed: %s: %s", arm.name, type(error).__name__, error)
    result.notes.append(f"arm {arm.name} failed ({type(error).__name__}) and was left out")


def _checked(
    db: ReadConnection,
    question: Question,
    reach: ResolvedReach,
    arm: Any,
    rows: Iterable[Any],
    result: Retrieved,
    known: dict[int, ReachedRecord],
) -> Ranking:
    """An arm's rows as a ranking of records in reach; nonsense costs the arm its part. ``known`` gathers what was looked up."""
    best: dict[int, tuple[float, str | None]] = {}
    for row in rows:
        try:
            record_id, given, path = row
            score = float(given)
            sound = isinstance(record_id, int) and math.isfinite(score) and (path is None or isinstance(path, str))
        except Exception:
            sound = False
        if not sound:
            result.notes.append(f"arm {arm.name} answered nonsense and was left out")
            return []
        if record_id not in best or score > best[record_id][0]:
            best[record_id] = (score, None if path is None else clean(path))
    try:
        known |= reached(db, reach, [id for id in best if id not in known])
    except sqlite3.Error as error:
        raise Spoiled(arm, f"left the connection unusable ({type(error).__name__})") from error
    inside = {id: known[id] for id in best if id in known}
    outside = len(best) - len(inside)
    if outside:
        message = f"arm {arm.name} returned {outside} record(s) outside the reach; they were dropped"
        warnings.warn(message, ArmWarning, stacklevel=2)
    ranking = [
        (found, *best[record_id])
        for record_id, found in inside.items()
        if question.person is None or found.record.speaker == question.person
    ]
    ranking.sort(key=lambda item: (-item[1], *item[0].order))
    return ranking[: most_of(arm)]


def most_of(arm: Any) -> int:
    """How many records an arm may bring: its ``most``, within reason."""
    most = getattr(arm, "most", DEPTH)
    return min(most, 10 * DEPTH) if isinstance(most, int) and most > 0 else DEPTH


def own_weight(arm: Any) -> float:
    """What an arm counts when nobody says otherwise: its ``weight``, 1.0 without one."""
    weight = getattr(arm, "weight", 1.0)
    return float(weight) if isinstance(weight, int | float) and math.isfinite(weight) and weight >= 0 else 1.0


def fuse(
    rankings: Mapping[str, Ranking], weights: Mapping[str, float], favours: Mapping[str, Ranking] | None = None
) -> list[Match]:
    """One list from the arms' lists: each arm's scores as shares of its best, weighed and added; then what arms favour.

    Shares rather than ranks, since an arm's distance between its first and its tenth says how sure it is; of its own best
    rather than of a fixed scale, since arms score on scales of their own. A list as long as ``DEPTH`` is measured from its
    last score, not from zero: what was cut off gets nothing, so what was nearly cut off gets next to nothing.

    ``favours`` are on the scale of the fused scores already (see ``wheelmem.hookspecs.Arm``), and are added as they are.
    """
    totals: dict[int, float] = {}
    reports: dict[int, list[ArmReport]] = {}
    records: dict[int, ReachedRecord] = {}

    def add(name: str, ranking: Ranking, share_of: Callable[[float], float]) -> None:
        for rank, (found, score, path) in enumerate(ranking, 1):
            id = found.record_id
            totals[id] = totals.get(id, 0.0) + weights.get(name, 1.0) * share_of(score)
            reports.setdefault(id, []).append(ArmReport(name, rank, score, path))
            records[id] = found

    for name in sorted(rankings):
        scores = [score for _, score, _ in rankings[name]]
        add(name, rankings[name], _shares(scores))
    for name in sorted(favours or {}):
        known = [item for item in (favours or {})[name] if item[0].record_id in records]
        add(name, known, lambda score: score)
    # Rounded, so that sums that are equal on paper are equal here, and then a tie.
    matches = [Match(records[id], round(total, 12), tuple(reports[id])) for id, total in totals.items()]
    matches.sort(key=lambda match: (-match.score, *match.found.order))
    return matches


def _shares(scores: Sequence[float]) -> Callable[[float], float]:
    """What part of the way from the least to the best a score stands; the least is zero, unless the list was cut off there."""
    top, least = max(scores, default=0.0), min(scores, default=0.0)
    floor = least if len(scores) >= DEPTH else min(0.0, least)
    if top <= floor:
        return lambda score: 1.0
    return lambda score: (score - floor) / (top - floor)


def without_repeats(matches: Iterable[Match], limit: int) -> list[Match]:
    """The first ``limit``, the same words recorded twice standing once, at the better place, the other named beside them.

    Words are the same when the shorter text stands in the longer and is most of it: a turn, and the diary entry that quotes
    it. Thanks and greetings, which are often said twice, are too short to count.
    """
    kept: list[Match] = []
    texts: list[str] = []
    repeats: dict[int, list[str]] = {}
    for match in matches:
        text = _said(match.found.record)
        at = next((at for at, other in enumerate(texts) if _same(text, other)), None) if text else None
        if at is None:
            if len(kept) == limit:
                break
            kept.append(match)
            texts.append(text)
        else:
            repeats.setdefault(at, []).append(match.found.record.wheel_id)
    return [replace(match, duplicates=tuple(repeats[at])) if at in repeats else match for at, match in enumerate(kept)]


_LABEL = re.compile(r"\A\[[^\]\n]*\]\s*")
_SPACES = re.compile(r"[\W_]+")
# Fewer letters than this are said again and again.
SHORTEST = 24


def _said(record: Record) -> str:
    """What a record says, folded, without its label and a turn's title; empty when that is too little to be a repeat."""
    text = _LABEL.sub("", record.text)
    if record.wheel_kind == "beat":
        title, _, rest = text.partition("\n")
        text = rest or title
    if record.wheel_kind == "ceremony" or len(text) < SHORTEST:
        return ""
    said = _SPACES.sub(" ", fold(text)).strip()
    return f" {said} " if len(said) >= SHORTEST else ""


def _same(one: str, other: str) -> bool:
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    return 4 * len(short) >= 3 * len(long) and short in long
