"""Words within a reach: which of its records hold a term, how often, and what that weighs. For this arm, and for others.

Everything here is a function of the reach alone: what lies outside changes no number, down to the last bit.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import eq
from typing import Any

from wheelmem.hookspecs import ArmReach
from wheelmem.text import fold

from .measures import Measures, measures
from .schema import INDEX, TERMS
from .words import Phrase, Term, quoted

__all__ = ["Postings", "Within", "within"]

# A reach of so many records is held as a set of ids: a megabyte or two.
SMALL = 20_000
# The words inside ids such as node:human:1772000000001:ada are no words of the text.
_ID_WORDS = {"node": "human|agent", "human": "human", "agent": "agent"}
# The parts of the index in which words of spaceless scripts may begin; numbers, since 3月 is one word.
_BEGINNINGS = (
    ("0", ":"),
    ("\u0e00", "\u10a0"),
    ("\u1780", "\u1800"),
    ("\u3040", "\ud7ff"),
    ("\uf900", "\ufb00"),
    ("\uff66", "\uffa0"),
    ("\U0001b000", "\U0003ffff"),
)
_HANGUL = ("\uac00", "\ud7ff")


@dataclass(frozen=True, slots=True)
class Postings:
    """The records of a reach that hold a term: their ids, and how often for those that hold it more than once."""

    ids: list[int]
    more: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def counts(self) -> Iterator[tuple[int, int]]:
        """(record id, how often), in the order of ``ids``."""
        return ((record_id, self.more.get(record_id, 1)) for record_id in self.ids)


class Within:
    """A reach as the index sees it, in one snapshot. Made by ``within``.

    ``size`` is its number of records, ``average`` their mean length in words.
    """

    def __init__(self, db: sqlite3.Connection, reach: ArmReach, held: Measures) -> None:
        self._db = db
        self._held = held
        places = [place for place in reach.places if 0 < place < len(held.counts)]
        self._flags = bytearray(max(len(held.counts), max(places, default=0)) + 1)
        for place in places:
            self._flags[place] = 1
        # Records that are in reach though their home is not.
        self._others = {
            record_id for record_id in (*self._linked(reach), *reach.conclusions) if not self._flags[held.get(record_id)[0]]
        }
        self.size = sum(map(held.counts.__getitem__, places)) + len(self._others)
        self.words = sum(map(held.totals.__getitem__, places)) + sum(held.get(record_id)[1] for record_id in self._others)
        self.average = self.words / self.size if self.size and self.words else 1.0
        homes = sum(map(held.counts.__getitem__, places))
        # Looking into every record's home is the larger part of a common word's cost, so it is left out where it can be:
        # for a reach that is everything, and for one small enough to hold its records' ids.
        self._everything = homes == sum(held.counts) and db.execute("SELECT count(*) FROM records").fetchone()[0] == self.size
        self._small: frozenset[int] | None = None
        if self.size <= SMALL:
            at_home = "SELECT json_group_array(record_id) FROM records WHERE home IN (SELECT value FROM json_each(?))"
            self._small = frozenset(self._ids(at_home, json.dumps(list(reach.places)))) | self._others
        self._kept: dict[Term, Postings] = {}

    def _linked(self, reach: ArmReach) -> list[int]:
        return self._ids(
            "SELECT json_group_array(record_id) FROM also_in WHERE place IN (SELECT value FROM json_each(?))",
            json.dumps(list(reach.places)),
        )

    def _ids(self, sql: str, *parameters: Any) -> list[int]:
        """The one JSON array a statement gives. Reading 100,000 numbers as one text takes a quarter of reading them as rows."""
        found: list[int] = json.loads(self._db.execute(sql, parameters).fetchone()[0])
        return found

    def __contains__(self, record_id: int) -> bool:
        return bool(self._flags[self._held.get(record_id)[0]]) or record_id in self._others

    def inside(self, record_ids: Iterable[int]) -> list[int]:
        """Those of the records that are in reach, in their order. The records must be held."""
        if self._everything:
            return list(record_ids)
        if self._small is not None:
            small = self._small
            return [id for id in record_ids if id in small]
        flags, others = self._flags, self._others
        if self._held.far:
            return [record_id for record_id in record_ids if record_id in self]
        homes = self._held.homes
        if others:
            return [id for id in record_ids if flags[homes[id & 7][id >> 3]] or id in others]
        return [id for id in record_ids if flags[homes[id & 7][id >> 3]]]

    def lengths(self, record_ids: Iterable[int]) -> list[int]:
        """How many words each record holds."""
        if self._held.far:
            return [self._held.get(record_id)[1] for record_id in record_ids]
        lengths = self._held.lengths
        return [lengths[id & 7][id >> 3] for id in record_ids]

    # --- terms ------------------------------------------------------------------------------------------------------

    def read(self, terms: Iterable[Term]) -> list[Postings]:
        """The postings of each term: the records of the reach that hold it, or are by or about somebody called so."""
        terms = list(terms)
        new = [term for term in dict.fromkeys(terms) if term not in self._kept]
        parts = [term for term in new if term.part]
        if parts:
            found = self._parts([term.stem for term in parts])
            self._kept.update((term, found[term.stem]) for term in parts)
        self._kept.update((term, self._whole(term)) for term in new if not term.part)
        return [self._kept[term] for term in terms]

    def postings(self, term: Term) -> Postings:
        """The postings of one term; several are read faster together."""
        return self.read([term])[0]

    def forget(self) -> None:
        """Let go of the postings read so far: they are kept for arms that look at the same question, and no longer."""
        self._kept.clear()

    def _whole(self, term: Term) -> Postings:
        every = self._ids(f"SELECT json_group_array(doc) FROM {TERMS} WHERE term = ?", term.stem)
        found = _counted(self.inside(every))
        if term.stem in _ID_WORDS and found.ids:
            found = self._outside_ids(found, term.stem)
        if term.people:
            held = set(found.ids)
            people = (id for id in self.inside(self._of_people(term.people)) if id not in held)
            found = Postings([*found.ids, *dict.fromkeys(people)], found.more)
        return found

    def _of_people(self, people: tuple[str, ...]) -> Iterator[int]:
        """The records that somebody of these said, or in whose text (as who took part, or is named) their id stands."""
        yield from self._ids(
            "SELECT json_group_array(record_id) FROM records WHERE speaker IN (SELECT value FROM json_each(?))",
            json.dumps(people),
        )
        ids = [quoted(person) for person in people if ":" in person]
        for start in range(0, len(ids), 50):
            yield from self.matching(" OR ".join(ids[start : start + 50]))

    def _outside_ids(self, found: Postings, word: str) -> Postings:
        """The same without those occurrences that are part of an id."""
        ids = re_id(_ID_WORDS[word])
        counts = dict(found.counts())
        for record_id, text in self._texts(found.ids):
            counts[record_id] -= len(ids(text.lower())) if "node:" in text else 0
        return Postings(
            [id for id, count in counts.items() if count > 0], {id: count for id, count in counts.items() if count > 1}
        )

    def _parts(self, parts: list[str]) -> dict[str, Postings]:
        """The records that hold pieces of words in scripts without spaces, from the index's words that hold the pieces.

        Words have to be looked through one by one, so it is done once for all the pieces of a question.
        """
        counts: dict[str, Counter[int]] = {part: Counter() for part in parts}
        hangul = all("\uac00" <= part <= "\ud7af" for part in parts)
        held = " OR ".join("instr(term, ?)" for _ in parts)
        for first, beyond in (_HANGUL,) if hangul else _BEGINNINGS:
            rows = self._db.execute(
                f"SELECT term, json_group_array(doc) FROM {TERMS} WHERE term >= ? AND term < ? AND ({held}) GROUP BY term",
                (first, beyond, *parts),
            )
            for word, docs in rows:
                ids = self.inside(json.loads(docs))
                for part in parts:
                    times = word.count(part)
                    if times:
                        counts[part].update(ids if times == 1 else ids * times)
        return {
            part: Postings(sorted(found), {id: count for id, count in found.items() if count > 1})
            for part, found in counts.items()
        }

    # --- phrases ----------------------------------------------------------------------------------------------------

    def holding(self, phrase: Phrase, among: Iterable[int]) -> set[int]:
        """Those of some records of the reach in which a phrase stands."""
        if not phrase.parts:
            return set(self.matching(quoted(phrase.text))).intersection(among)
        wanted = "".join(fold(phrase.text).split())
        return {id for id, text in self._texts(list(among)) if wanted in "".join(fold(text).split())}

    def matching(self, expression: str) -> list[int]:
        """The records, of the whole wheel, that match an expression of FTS5's query syntax."""
        return self._ids(f"SELECT json_group_array(rowid) FROM {INDEX} WHERE {INDEX} MATCH ?", expression)

    def _texts(self, record_ids: list[int]) -> Iterator[tuple[int, str]]:
        for start in range(0, len(record_ids), 500):
            yield from self._db.execute(
                "SELECT record_id, text FROM records WHERE record_id IN (SELECT value FROM json_each(?))",
                (json.dumps(record_ids[start : start + 500]),),
            )

    # --- weights ----------------------------------------------------------------------------------------------------

    def rarity(self, postings: Postings) -> float:
        """What one occurrence in a record of average length weighs (BM25's idf, never below zero)."""
        return math.log(1.0 + (self.size - len(postings) + 0.5) / (len(postings) + 0.5))

    def weights(self, postings: Postings, k1: float = 0.9, b: float = 0.4, among: Sequence[int] | None = None) -> list[float]:
        """BM25 of a term for each of its records, in the order of ``postings.ids``; or for some of them, in their order."""
        ids = postings.ids if among is None else among
        top = self.rarity(postings) * (k1 + 1.0)
        base, slope = k1 * (1.0 - b), k1 * b / self.average

        class Once(dict[int, float]):
            """The weight of a single occurrence by a record's length: there are few lengths."""

            def __missing__(self, length: int) -> float:
                weight = self[length] = top / (1.0 + (base + slope * length))
                return weight

        lengths = self.lengths(ids)
        weights = list(map(Once().__getitem__, lengths))
        more = postings.more
        if more:
            for at, record_id in enumerate(ids):
                if record_id in more:
                    count = more[record_id]
                    weights[at] = top * count / (count + (base + slope * lengths[at]))
        return weights

    def most(self, postings: Postings, k1: float = 0.9, b: float = 0.4) -> float:
        """What a single occurrence weighs at the most, in a record of no length at all."""
        return self.rarity(postings) * (k1 + 1.0) / (1.0 + k1 * (1.0 - b))


def _counted(occurrences: list[int]) -> Postings:
    """Postings from a rising list of record ids, each as often as it holds the term."""
    again = list(compress(occurrences, map(eq, occurrences, islice(occurrences, 1, None))))
    if not again:
        return Postings(occurrences)
    return Postings(list(dict.fromkeys(occurrences)), {id: 1 + times for id, times in Counter(again).items()})


def re_id(types: str) -> Any:
    import re

    return re.compile(rf"node:(?:{types}):[0-9]+:[a-z0-9]+").findall


def within(db: sqlite3.Connection, reach: ArmReach) -> Within:
    """The reach as the index sees it, kept for as long as the file does not change."""
    cache: dict[Any, Any] = getattr(db, "cache", {})
    key = ("keyword.within", tuple(reach.places), reach.conclusions)
    found: Within | None = cache.get(key)
    if found is None:
        held: Measures | None = cache.get("keyword.measures")
        if held is None:
            held = cache["keyword.measures"] = measures(db)
        found = cache[key] = Within(db, reach, held)
    return found
