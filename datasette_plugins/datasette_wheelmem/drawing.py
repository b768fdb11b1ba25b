"""The wheel and the strip of time, as numbers for the templates to draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from wheelmem.store.listing import Mark

__all__ = ["Dot", "Tick", "strip", "wheel"]

CENTRE = 200.0
INNER, OUTER = 42.0, 158.0
# North is up, as on a map: degrees clockwise from the right-hand side.
AXES = {"east": 0.0, "south": 90.0, "west": 180.0, "north": 270.0}
SPREAD = 37.0
GOLDEN = 0.6180339887498949
LABELS = 8
LABEL_HEIGHT = 15.0


@dataclass
class Dot:
    """A ceremony on the wheel. ``label`` is set, with its place, on those that are named."""

    mark: Mark
    x: float
    y: float
    lit: bool
    sources: tuple[int, ...]
    label: str = ""
    label_x: float = 0.0
    label_y: float = 0.0
    anchor: str = "start"


def wheel(marks: Sequence[Mark], reached: Iterable[str], cited: Mapping[str, Sequence[int]]) -> list[Dot]:
    """Each ceremony by direction, the later the further out; ``cited`` has the numbers of the sources from each."""
    inside = set(reached)
    known = sorted(mark.instant for mark in marks if mark.instant is not None)
    first, last = (known[0], known[-1]) if known else (0.0, 0.0)
    seen: dict[str, int] = {}
    dots = []
    for mark in reversed(marks):
        direction = mark.direction if mark.direction in AXES else ""
        nth = seen[direction] = seen.get(direction, 0) + 1
        # Steps of the golden ratio never pile up, however many there are.
        share = (nth * GOLDEN) % 1
        age = (mark.instant - first) / (last - first) if mark.instant is not None and last > first else 0.5
        if direction:
            angle, radius = AXES[direction] + (2 * share - 1) * SPREAD, INNER + age * (OUTER - INNER)
        else:
            angle, radius = share * 360, INNER / 2
        turn = math.radians(angle)
        x, y = CENTRE + radius * math.cos(turn), CENTRE + radius * math.sin(turn)
        dots.append(Dot(mark, round(x, 1), round(y, 1), mark.id in inside, tuple(cited.get(mark.id, ()))))
    # The lit ones are drawn last, so that nothing lies over them.
    dots.sort(key=lambda dot: (bool(dot.sources), dot.lit))
    _label(dots)
    return dots


def _label(dots: Sequence[Dot]) -> None:
    """Name the cited ceremonies beside their dots, no two names on one line."""
    taken: list[tuple[str, float]] = []
    for dot in sorted((dot for dot in dots if dot.sources), key=lambda dot: min(dot.sources))[:LABELS]:
        right = dot.x < CENTRE
        dot.anchor, dot.label_x = ("start", dot.x + 11) if right else ("end", dot.x - 11)
        y = dot.y + 4
        while any(side == dot.anchor and abs(y - other) < LABEL_HEIGHT for side, other in taken):
            y += LABEL_HEIGHT
        taken.append((dot.anchor, y))
        dot.label_y = round(y, 1)
        dot.label = dot.mark.name.rpartition(" · ")[0] if dot.mark.name.count(" · ") > 1 else dot.mark.name


@dataclass(frozen=True)
class Tick:
    """A source on the strip; ``x`` from 0 to 100, ``row`` where several would lie over one another."""

    number: int
    x: float
    row: int
    name: str


def instant(text: str | None) -> float | None:
    """Seconds of a time as it was written; None for what is no time."""
    try:
        read = datetime.fromisoformat((text or "").strip())
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def strip(times: Sequence[tuple[int, str | None, str]]) -> tuple[list[Tick], str, str]:
    """Sources, as (number, time, name), on a line from the earliest to the latest; and the days of both ends."""
    known = sorted(((found, number, name) for number, at, name in times if (found := instant(at)) is not None))
    if not known:
        return [], "", ""
    first, last = known[0][0], known[-1][0]
    ticks: list[Tick] = []
    for at, number, name in known:
        x = round(100 * (at - first) / (last - first), 2) if last > first else 50.0
        row = 0
        while any(tick.row == row and abs(tick.x - x) < 3.5 for tick in ticks):
            row += 1
        ticks.append(Tick(number, x, row, name))
    days = [datetime.fromtimestamp(at, UTC).date().isoformat() for at in (first, last)]
    return ticks, days[0], days[1]
