"""The arm: lent words first, then the relations, one after another."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from wheelmem_fts5.arm import KeywordArm
from wheelmem_fts5.within import Within, within
from wheelmem_fts5.words import read_query

from wheelmem.contract import Question
from wheelmem.hookspecs import ArmReach, FoundRecord

from .lending import Lending, Lent, lend
from .relations import FOLLOWED, Look
from .schema import LINKS
from .turns import ceremonies, places_of

__all__ = ["HopsArm"]

# How many of the found records are started from; and how many at each step of the other relations.
SEEDS, FRONT = 100, 16
_COUNTED = ("", "one turn", "two turns", "three turns", "four turns", "five turns", "six turns", "seven turns", "eight turns")


class HopsArm:
    """Records near those that were found, by what the wheel itself says is near.

    A record's score is what its words and those lent to it weigh, as a share of the best, and what the best relation that
    leads to it passes on. ``weights`` are by relation (see ``RELATIONS``).
    """

    name = "hops"
    stage = "follow"
    # It weighs the finders' words again, with more to go by.
    weight = 4.0

    def __init__(
        self,
        depth: int = 2,
        decay: float = 0.7,
        turns: int = 5,
        asking: float = 0.75,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        from . import RELATIONS

        given = {name: weight for name, (weight, _) in RELATIONS.items()} | dict(weights or {})
        self.depth = depth
        self.decay = decay
        self.weights = given
        self.lending = Lending(max(0, turns), given["before"], given["after"], given["answer"], decay, asking)

    def ready(self, db: sqlite3.Connection) -> str | None:
        """None when the wheel has the keyword index and the table of links."""
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (LINKS,)).fetchone():
            return "the wheel has no table of links, and could not be given one; open it once where it can be written"
        return KeywordArm().ready(db)

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: ArmReach, found: Sequence[FoundRecord], limit: int
    ) -> Iterable[tuple[int, float, str | None]]:
        """At most ``limit`` records, best first. Without finders' records, or for one person, it starts from the words itself."""
        seeds = [(one.record_id, one.score) for one in found[:SEEDS]]
        if not seeds or question.person is not None:
            seeds = [(id, score) for id, score, _ in KeywordArm().rank(db, question.query, reach, SEEDS)]
        if not seeds:
            return []
        inside = within(db, reach)
        query = read_query(db, question.query)
        places = frozenset(reach.places)
        where = places_of(db, [id for id, _ in seeds], places)
        held = ceremonies(db, sorted({place for found_in in where.values() for place in found_in}))
        lent = lend(db, inside, query.terms, held, [id for id, _ in seeds], self.lending)
        top = max(lent.scores.values(), default=0.0)
        scores = {id: score / top for id, score in lent.scores.items()} if top else {}
        best = seeds[0][1]
        shares = {id: score / best if best > 0 else 1.0 for id, score in seeds[:FRONT]}
        passed = self._follow(db, reach, inside, places, shares)
        for id, (amount, _) in passed.items():
            scores[id] = scores.get(id, 0.0) + amount
        if question.person is not None:
            theirs = {id for (id,) in db.execute("SELECT record_id FROM records WHERE speaker = ?", (question.person,))}
            scores = {id: score for id, score in scores.items() if id in theirs}
        ranked = _ranked(db, {id: round(score, 12) for id, score in scores.items()}, limit)
        return self._told(db, ranked, lent, passed, top)

    def _follow(
        self, db: sqlite3.Connection, reach: ArmReach, inside: Within, places: frozenset[int], shares: Mapping[int, float]
    ) -> dict[int, tuple[float, str]]:
        """What the relations pass on, to records of the reach only: the most that any path does, and that path."""
        passed: dict[int, tuple[float, str]] = {}
        front: dict[int, tuple[float, str]] = {id: (share, "") for id, share in shares.items()}
        for step in range(self.depth):
            look = self._look(db, inside, places, front)
            reached: dict[int, tuple[float, str]] = {}
            for relation, follow in FOLLOWED.items():
                weight = self.weights[relation] * self.decay**step
                if weight <= 0:
                    continue
                hops = [hop for hop in follow(look) if hop[1] in inside and hop[0] != hop[1]]
                fans: dict[int, int] = {}
                for source, _, _ in hops:
                    fans[source] = fans.get(source, 0) + 1
                for source, target, how in hops:
                    share, before = front[source]
                    # What leads to many records says little of each.
                    amount = round(weight * share / math.sqrt(fans[source]), 12)
                    told = (amount, f"{how}, itself {before}" if before else how)
                    if target not in reached or (-told[0], told[1]) < (-reached[target][0], reached[target][1]):
                        reached[target] = told
            new = {id: told for id, told in reached.items() if told[0] > passed.get(id, (0.0, ""))[0]}
            passed |= new
            front = dict(sorted(new.items(), key=lambda item: (-item[1][0], item[0] & 7, item[0]))[:FRONT])
            if not front:
                break
        return passed

    @staticmethod
    def _look(
        db: sqlite3.Connection, inside: Within, places: frozenset[int], front: Mapping[int, tuple[float, str]]
    ) -> Look:
        rows = {
            id: (kind, wheel_id, speaker, text)
            for id, kind, wheel_id, speaker, text in db.execute(
                "SELECT record_id, kind, wheel_id, speaker, text FROM records "
                "WHERE record_id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(front)),),
            )
        }
        where = places_of(db, front, places)
        near = sorted({place for found_in in where.values() for place in found_in})
        return Look(db, inside, places, {id: rows[id] for id in front if id in rows}, ceremonies(db, near))

    def _told(
        self,
        db: sqlite3.Connection,
        ranked: Sequence[tuple[int, float]],
        lent: Lent,
        passed: Mapping[int, tuple[float, str]],
        top: float,
    ) -> list[tuple[int, float, str | None]]:
        """The records with their paths: what passed on most, the relation or the turn that lent its words."""
        lenders = {id: found for id, _ in ranked if (found := lent.lender(id)) is not None}
        names = _names(db, {lender for lender, _, _ in lenders.values()}, {place for _, _, place in lenders.values()})
        told: list[tuple[int, float, str | None]] = []
        for id, score in ranked:
            words = lent.scores.get(id, 0.0) / top if top else 0.0
            path = passed[id][1] if id in passed and passed[id][0] > words else None
            if path is None and id in lenders:
                lender, step, place = lenders[id]
                many = _COUNTED[abs(step)] if abs(step) < len(_COUNTED) else f"{abs(step)} turns"
                path = f"{many} {'after' if step > 0 else 'before'} {names[0][lender]} in {names[1][place]}"
            told.append((id, score, path))
        return told


def _names(db: sqlite3.Connection, records: set[int], places: set[int]) -> tuple[dict[int, str], dict[int, str]]:
    """The ids of some records, and of some places, by key."""
    each = "(SELECT value FROM json_each(?))"
    found = db.execute(f"SELECT record_id, wheel_id FROM records WHERE record_id IN {each}", (json.dumps(sorted(records)),))
    where = db.execute(f"SELECT place, id FROM places WHERE place IN {each}", (json.dumps(sorted(places)),))
    return dict(found.fetchall()), dict(where.fetchall())


def _ranked(db: sqlite3.Connection, scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The best ``limit``: equal scores by the later instant, then kind, then id."""
    if len(scores) > limit:
        from heapq import nlargest

        least = nlargest(limit, scores.values())[-1]
        scores = {id: score for id, score in scores.items() if score >= least}
    order = db.execute(
        "SELECT r.record_id FROM json_each(?) wanted JOIN records r ON r.record_id = wanted.value "
        "ORDER BY r.instant DESC NULLS LAST, r.kind, r.wheel_id",
        (json.dumps(list(scores)),),
    )
    ranked = [(id, scores[id]) for (id,) in order]
    ranked.sort(key=lambda item: -item[1])
    return ranked[:limit]
