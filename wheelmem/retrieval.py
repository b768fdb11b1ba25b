"""Running arms within a reach, and fusing what they find.

An arm is kept to its own part: what it returns is checked record by record against the reach, what it raises becomes a
note, its SQL is interrupted at its deadline. Ties are settled by the later instant, then kind, then id, never by the order
in which rows happen to lie.
"""

from __future__ import annotations

import math
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .contract import ArmReport, Question
from .store.connections import ReadConnection
from .store.reading import ReachedRecord, ResolvedReach, reached

__all__ = ["ArmWarning", "FoundRecord", "Match", "Retrieved", "Watch", "retrieve"]

# How many records each arm may bring: enough that fusing can lift one that several arms rank low.
DEPTH = 100
# How many SQLite instructions pass between two looks at the clock.
STEPS = 20_000


class ArmWarning(RuntimeWarning):
    """An arm did something that costs it its part: records outside the reach, which the host drops."""


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
    begin, end = watch or (lambda step, seconds: None, lambda: None)
    follow: list[FoundRecord] | None = None
    for arm in sorted(arms, key=lambda arm: getattr(arm, "stage", "find") != "find"):
        if getattr(arm, "stage", "find") != "find" and follow is None:
            follow = [
                FoundRecord(match.found.record_id, match.score, match.reports[0].arm) for match in fuse(rankings, weights)
            ]
        db.offer(reach)
        # The grace lets an interrupted statement end by itself before the whole thread is given up.
        begin(arm, seconds + 0.5)
        deadline = time.monotonic() + seconds
        db.set_progress_handler(lambda deadline=deadline: time.monotonic() > deadline, STEPS)  # type: ignore[misc]
        try:
            rows = list(islice(arm.retrieve(db, question, reach, tuple(follow or ()), DEPTH), 10 * DEPTH))
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                result.notes.append(f"arm {arm.name} did not answer within {seconds:g} s and was left out")
            else:
                _failed(result, arm, error)
            continue
        except Exception as error:
            _failed(result, arm, error)
            continue
        finally:
            db.set_progress_handler(None, 0)
            end()
        ranking = _checked(db, question, reach, arm, rows, result)
        if ranking:
            rankings[arm.name] = ranking
    result.matches = fuse(rankings, weights)
    return result


def _failed(result: Retrieved, arm: Any, error: Exception) -> None:
    # The message may quote records, also from outside the reach: it goes to the log, the kind of error to the caller.
    import logging

    logging.getLogger("wheelmem").warning("arm %s failed: %s: %s", arm.name, type(error).__name__, error)
    result.notes.append(f"arm {arm.name} failed ({type(error).__name__}) and was left out")


def _checked(
    db: ReadConnection, question: Question, reach: ResolvedReach, arm: Any, rows: Iterable[Any], result: Retrieved
) -> Ranking:
    """An arm's rows as a ranking of records in reach; nonsense costs the arm its part."""
    best: dict[int, tuple[float, str | None]] = {}
    for row in rows:
        try:
            record_id, score, path = row
            sound = isinstance(record_id, int) and math.isfinite(score) and (path is None or isinstance(path, str))
        except (TypeError, ValueError):
            sound = False
        if not sound:
            result.notes.append(f"arm {arm.name} answered nonsense and was left out")
            return []
        if record_id not in best or score > best[record_id][0]:
            best[record_id] = (float(score), path)
    inside = reached(db, reach, best)
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
    return ranking[:DEPTH]


def fuse(rankings: Mapping[str, Ranking], weights: Mapping[str, float]) -> list[Match]:
    """One list from the arms' lists: each arm's scores as shares of its best, weighed and added.

    Shares rather than ranks, since an arm's distance between its first and its tenth says how sure it is; of its own best
    rather than of a fixed scale, since arms score on scales of their own.
    """
    totals: dict[int, float] = {}
    reports: dict[int, list[ArmReport]] = {}
    records: dict[int, ReachedRecord] = {}
    for name in sorted(rankings):
        ranking = rankings[name]
        top = max((score for _, score, _ in ranking), default=0.0)
        for rank, (found, score, path) in enumerate(ranking, 1):
            share = score / top if top > 0 else 1.0 / rank
            totals[found.record_id] = totals.get(found.record_id, 0.0) + weights.get(name, 1.0) * share
            reports.setdefault(found.record_id, []).append(ArmReport(name, rank, score, path))
            records[found.record_id] = found
    # Rounded, so that sums that are equal on paper are equal here, and then a tie.
    matches = [Match(records[id], round(total, 12), tuple(reports[id])) for id, total in totals.items()]
    matches.sort(key=lambda match: (-match.score, *match.found.order))
    return matches
