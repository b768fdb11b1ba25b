"""Arms for the kit to judge: one that is right, and others each broken in one way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any

from wheelmem.text import query_terms

Rows = Iterator[tuple[int, float, str | None]]
REACHED = "SELECT record_id, text FROM records WHERE record_id IN (SELECT record_id FROM temp.reach_records) ORDER BY record_id"


class Arm:
    """Counts the question's words in each record of the reach."""

    name = "counting"
    stage = "find"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Rows:
        terms = query_terms(question.query)
        for record_id, text in db.execute(REACHED).fetchall():
            score = sum(text.lower().count(term) for term in terms)
            if score:
                yield record_id, self.score(db, record_id, float(score)), None

    def score(self, db: Any, record_id: int, score: float) -> float:
        return score


class Following(Arm):
    """Right as well: lifts what was said by whoever said what the finders found."""

    name = "following"
    stage = "follow"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Rows:
        for record in found:
            rows = db.execute(
                "SELECT record_id FROM records WHERE speaker = (SELECT speaker FROM records WHERE record_id = ?) "
                "AND record_id IN (SELECT record_id FROM temp.reach_records) ORDER BY record_id",
                (record.record_id,),
            )
            for (record_id,) in rows.fetchall():
                yield record_id, record.score / 2, "same speaker"


class WholeTable(Arm):
    """Weighs a record by how many records there are, in reach or not."""

    def score(self, db: Any, record_id: int, score: float) -> float:
        return score * float(db.execute("SELECT count(*) FROM records").fetchone()[0])


class RareWords(Arm):
    """Weighs words by how rare they are in the whole table, as a plain full-text index does."""

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Rows:
        for term in query_terms(question.query):
            everywhere = db.execute("SELECT count(*) FROM records WHERE lower(text) LIKE '%' || ? || '%'", (term,)).fetchone()[0]
            for record_id, text in db.execute(REACHED).fetchall():
                if term in text.lower():
                    yield record_id, 1.0 / everywhere, None


class Outside(Arm):
    """Returns records without looking whether they are in reach."""

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Rows:
        for (record_id,) in db.execute("SELECT record_id FROM records WHERE text LIKE '%lantern%'").fetchall():
            yield record_id, 1.0, None


class PythonClock(Arm):
    def score(self, db: Any, record_id: int, score: float) -> float:
        return score / time.time()


class Today(Arm):
    """Favours records by the month it is: no two runs in one test would differ."""

    def score(self, db: Any, record_id: int, score: float) -> float:
        return score * date.today().month


class Year(Arm):
    def score(self, db: Any, record_id: int, score: float) -> float:
        return score * datetime.now().year


class SqlClock(Arm):
    """Favours the recent, with a day's resolution."""

    def score(self, db: Any, record_id: int, score: float) -> float:
        return score + float(db.execute("SELECT round(julianday('now') / 365)").fetchone()[0])


class SqlDefaultClock(Arm):
    def score(self, db: Any, record_id: int, score: float) -> float:
        db.execute("SELECT CURRENT_TIMESTAMP").fetchone()
        return score


class Nothing(Arm):
    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Rows:
        return iter(())


class Raises(Arm):
    def score(self, db: Any, record_id: int, score: float) -> float:
        raise KeyError("gone")


class NotReady(Arm):
    def ready(self, db: Any) -> str:
        return "no table of mine"


class SetOrder(Arm):
    """Scores by where a record's kind lands in a set of texts."""

    def score(self, db: Any, record_id: int, score: float) -> float:
        words = {f"word {n}" for n in range(50)}
        return score + list(words).index("word 7")


class RowOrder(Arm):
    """Takes the first rows that come, without saying in which order."""

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Rows:
        rows = db.execute("SELECT record_id FROM records WHERE record_id IN (SELECT record_id FROM temp.reach_records) LIMIT 2")
        for place, (record_id,) in enumerate(rows.fetchall()):
            yield record_id, 1.0 / (place + 1), None


class Remembers(Arm):
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def score(self, db: Any, record_id: int, score: float) -> float:
        self.times += 1
        return score + self.times


class Unpicklable(Arm):
    def __init__(self) -> None:
        self.fold: Callable[[str], str] = lambda text: text
