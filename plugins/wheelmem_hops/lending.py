"""Words lent between neighbouring turns, weighed by BM25 as if each turn held what its neighbours lend it.

What answers a question often holds none of its words: they stand in the turn before, which asks. So each turn lends its
words to those around it, less the further they are; a turn that asks lends all of them to the one that follows. Lending
before weighing, rather than spreading finished scores, lets two neighbours that hold different words of the question add
up as if one turn held both, while the same word twice still saturates.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wheelmem_fts5.within import Postings, Within
from wheelmem_fts5.words import Term

from .forms import forms
from .turns import Ceremony

__all__ = ["Lending", "Lent"]

K1, B = 0.9, 0.4


@dataclass(frozen=True)
class Lending:
    """How words are lent: ``turns`` each way, ``before`` and ``after`` the weights of the nearest, ``decay`` per turn further."""

    turns: int = 5
    before: float = 0.5
    after: float = 0.4
    answer: float = 1.0
    decay: float = 0.7
    asking: float = 0.75

    def weights(self, nearest: float) -> list[float]:
        """What a word weighs one, two, … turns away."""
        return [nearest * self.decay**step for step in range(self.turns)]

    @property
    def whole(self) -> float:
        """How many times a word counts in all, in its own turn and the others."""
        return 1.0 + sum(self.weights(self.before)) + sum(self.weights(self.after))


class Row:
    """The turns of several ceremonies in one long row of slots, with room between ceremonies so that nothing crosses."""

    def __init__(self, held: Sequence[Ceremony], lengths: Sequence[Sequence[int]], how: Lending) -> None:
        self.how = how
        self.ids: list[int] = []
        self.places: list[int] = []
        self.asks: list[bool] = []
        room = [0] * how.turns
        sizes: list[int] = []
        self.slots: dict[int, list[int]] = {}
        for ceremony, lengths_of in zip(held, lengths, strict=True):
            self._extend(room, [0] * how.turns, [False] * how.turns)
            sizes += room
            for at, id in enumerate(ceremony.ids, len(self.ids)):
                self.slots.setdefault(id, []).append(at)
            self._extend(ceremony.ids, [ceremony.place] * len(ceremony.ids), ceremony.asks)
            sizes += lengths_of
        self._extend(room, [0] * how.turns, [False] * how.turns)
        sizes += room
        self._before, self._answered, self._after = self._steps()
        lent = self.lend((slot, size) for slot, size in enumerate(sizes) if size)
        self.lengths = [lent.get(slot, 0.0) for slot in range(len(self.ids))]
        self.members = frozenset(self.slots)

    def _extend(self, ids: Iterable[int], places: Iterable[int], asks: Iterable[bool]) -> None:
        self.ids.extend(ids)
        self.places.extend(places)
        self.asks.extend(asks)

    def _steps(self) -> tuple[list[tuple[int, float]], ...]:
        before = list(enumerate(self.how.weights(self.how.before), 1))
        answered = [(1, max(self.how.answer, self.how.before)), *before[1:]] if before else []
        after = [(-step, weight) for step, weight in enumerate(self.how.weights(self.how.after), 1)]
        return before, answered, after

    def weight(self, slot: int, step: int) -> float:
        """What the words of a turn weigh ``step`` turns from it."""
        steps = self._after if step < 0 else self._answered if self.asks[slot] else self._before
        return steps[abs(step) - 1][1]

    def lend(self, amounts: Iterable[tuple[int, float]]) -> dict[int, float]:
        """What slots have, when some have these amounts and lend them; slots that get nothing are left out."""
        got: dict[int, float] = {}
        get = got.get
        plain, asked = self._before + self._after, self._answered + self._after
        asks = self.asks
        for slot, amount in amounts:
            got[slot] = get(slot, 0.0) + amount
            for step, weight in asked if asks[slot] else plain:
                to = slot + step
                got[to] = get(to, 0.0) + weight * amount
        return got


class Lent:
    """Scores of records with the words they have and were lent."""

    def __init__(self, row: Row, sums: Mapping[int, float], own: Mapping[int, float], alone: Mapping[int, float]) -> None:
        self.scores = {id: score for id, score in alone.items() if score > 0.0}
        self._row, self._own = row, own
        self._best: dict[int, int] = {}
        for slot, total in sorted(sums.items()):
            id = row.ids[slot]
            score = total * row.how.asking if row.asks[slot] else total
            # The room between ceremonies holds nobody.
            if id and score > self.scores.get(id, 0.0):
                self.scores[id] = score
                self._best[id] = slot

    def lender(self, record_id: int) -> tuple[int, int, int] | None:
        """Who lent a record most: (lender, turns from it to the record, place); None when its own words weigh more."""
        slot = self._best.get(record_id)
        if slot is None:
            return None
        row = self._row
        most, found = self._own.get(record_id, 0.0), None
        for distance in range(1, row.how.turns + 1):
            for step in (distance, -distance):
                lender = row.ids[slot - step]
                amount = row.weight(slot - step, step) * self._own.get(lender, 0.0) if lender else 0.0
                if amount > most:
                    most, found = amount, (lender, step, row.places[slot])
        return found


def lend(
    db: sqlite3.Connection, inside: Within, terms: Sequence[Term], held: Sequence[Ceremony], others: Iterable[int], how: Lending
) -> Lent:
    """The turns of some ceremonies of the reach, and ``others`` (which are no turns), with the words each has or is lent."""
    row = _row(db, inside, held, how)
    apart = frozenset(id for id in others if id not in row.slots)
    sums: dict[int, float] = {}
    own: dict[int, float] = {}
    alone: dict[int, float] = {}
    base, slope, room = K1 * (1.0 - B), K1 * B / inside.average, K1 * B / (inside.average * how.whole)
    read: set[str] = set()
    for term in terms:
        if term.stem in read:
            continue
        postings, also = _together(inside, term)
        read |= also
        top = inside.rarity(postings) * (K1 + 1.0)
        # Sorted, since floating-point sums depend on the order.
        counts = [(id, postings.more.get(id, 1)) for id in sorted(row.members.intersection(postings.ids))]
        for id in sorted(apart.intersection(postings.ids)):
            count = postings.more.get(id, 1)
            length = inside.lengths([id])[0]
            alone[id] = alone.get(id, 0.0) + top * count / (count + base + slope * length)
        for id, count in counts:
            own[id] = own.get(id, 0.0) + top * count
        got = row.lend((slot, float(count)) for id, count in counts for slot in row.slots[id])
        lengths = row.lengths
        for slot, amount in got.items():
            sums[slot] = sums.get(slot, 0.0) + top * amount / (amount + base + room * lengths[slot])
    return Lent(row, sums, own, alone)


def _together(inside: Within, term: Term) -> tuple[Postings, set[str]]:
    """The postings of a term in all its forms, as one; and the stems of those other forms."""
    same = forms(term)
    every = [postings for postings in map(inside.postings, same) if postings.ids]
    also = {form.stem for form in same[1:]}
    if len(every) == 1:
        return every[0], also
    counts: dict[int, int] = {}
    for postings in every:
        for id, count in postings.counts():
            counts[id] = counts.get(id, 0) + count
    return Postings(list(counts), {id: count for id, count in counts.items() if count > 1}), also


def _row(db: sqlite3.Connection, inside: Within, held: Sequence[Ceremony], how: Lending) -> Row:
    """The row of these ceremonies. A circle is asked again and again, so the last is kept while the file does not change."""
    cache = getattr(db, "cache", {})
    key = (tuple(ceremony.place for ceremony in held), how)
    kept: tuple[object, Row] | None = cache.get("hops.row")
    if kept is not None and kept[0] == key:
        return kept[1]
    row = Row(held, [inside.lengths(ceremony.ids) for ceremony in held], how)
    cache["hops.row"] = (key, row)
    return row
