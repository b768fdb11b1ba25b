"""The arm: BM25 over the records of a reach."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Any

from wheelmem.contract import Question
from wheelmem.hookspecs import ArmReach

from .schema import INDEX
from .within import Postings, Within, within
from .words import read_query

__all__ = ["KeywordArm"]


class KeywordArm:
    """Records that hold the question's words, its phrases all of them; rarer words in shorter records first."""

    name = "keyword"
    stage = "find"

    def __init__(self, k1: float = 0.9, b: float = 0.4) -> None:
        self.k1 = k1
        self.b = b

    def ready(self, db: sqlite3.Connection) -> str | None:
        """None when the wheel has its index."""
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (INDEX,)).fetchone():
            return None
        return "the wheel has no keyword index, and could not be given one; open it once where it can be written"

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: ArmReach, found: Sequence[Any], limit: int
    ) -> Iterable[tuple[int, float, str | None]]:
        """At most ``limit`` records, best first; equal scores by the later instant, then kind, then id."""
        return self.rank(db, question.query, reach, limit, question.person)

    def rank(
        self, db: sqlite3.Connection, text: str, reach: ArmReach, limit: int, person: str | None = None
    ) -> list[tuple[int, float, str | None]]:
        query = read_query(db, text)
        inside = within(db, reach)
        inside.forget()
        # Terms in the question's order, always: floating-point sums depend on it.
        found = inside.read(query.terms)
        allowed: set[int] | None = None
        if query.phrases:
            allowed = set().union(*(postings.ids for postings in found))
            for phrase in query.phrases:
                allowed &= inside.holding(phrase, allowed)
        if person is not None:
            theirs = {id for (id,) in db.execute("SELECT record_id FROM records WHERE speaker = ?", (person,))}
            allowed = theirs if allowed is None else allowed & theirs
        return [(record_id, score, None) for record_id, score in _best(db, self._scores(inside, found, limit, allowed), limit)]

    def _scores(self, inside: Within, found: Sequence[Postings], limit: int, allowed: set[int] | None) -> dict[int, float]:
        """The scores of, at least, every record that could be among the best ``limit``.

        Records that hold several terms are scored first. Those that hold one are far more, and most of them weigh less than
        the last of the best so far, whatever their length; then they are not looked at.
        """
        once: set[int] = set()
        several: set[int] = set()
        for postings in found:
            several.update(once.intersection(postings.ids))
            once.update(postings.ids)
        del once
        if allowed is not None:
            several &= allowed
        scores = dict.fromkeys(several, 0.0)
        for postings in found:
            holding = list(several.intersection(postings.ids))
            for record_id, weight in zip(holding, inside.weights(postings, self.k1, self.b, holding), strict=True):
                scores[record_id] += weight
        least = nlargest(limit, scores.values())[-1] if len(scores) >= limit else 0.0
        for postings in found:
            ids: Iterable[int] = postings.ids if inside.most(postings, self.k1, self.b) >= least else postings.more
            single = [id for id in ids if id not in several and (allowed is None or id in allowed)]
            for record_id, weight in zip(single, inside.weights(postings, self.k1, self.b, single), strict=True):
                if weight >= least:
                    scores[record_id] = weight
        return scores


def _best(db: sqlite3.Connection, scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
    """The best ``limit`` in order. Whatever ties with the last of them is looked at before anything is left out."""
    if len(scores) > limit:
        least = nlargest(limit, scores.values())[-1]
        scores = {record_id: score for record_id, score in scores.items() if score >= least}
    order = db.execute(
        "SELECT r.record_id FROM json_each(?) wanted JOIN records r ON r.record_id = wanted.value "
        "ORDER BY r.instant DESC NULLS LAST, r.kind, r.wheel_id",
        (json.dumps(list(scores)),),
    )
    ranked = [(record_id, scores[record_id]) for (record_id,) in order]
    ranked.sort(key=lambda item: -item[1])
    return ranked[:limit]
