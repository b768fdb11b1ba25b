"""Law 1 for the arm alone: what it finds, with every bit of every score, is a function of the reach."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wheelmem_fts5.arm import KeywordArm
from wheelmem_fts5.measures import seal
from wheelmem_fts5.words import STOP, stems

from wheelmem import Question, Wheel
from wheelmem.contract import Scope
from wheelmem.store import reading
from wheelmem.testing import assert_confined, assert_deterministic
from wheelmem.testing.cases import Bench, Case, disturb, generate

Found = list[tuple[str, str, float]]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


def found(wheel: Wheel, case: Case, arm: Any = None, limit: int = 5, person: str | None = None) -> Found:
    """(kind, id, score) of what the arm finds."""
    with wheel.snapshot() as db:
        reach = reading.resolve(db, Scope.from_json(case.scope))
        question = Question(case.query, reach.reach, person=person)
        rows = list((arm or KeywordArm()).retrieve(db, question, reach, (), limit))
        keys = {row[0]: tuple(row[1:]) for row in db.execute("SELECT record_id, kind, wheel_id FROM records")}
    return [(*keys[record_id], score) for record_id, score, _ in rows]


def all_found(wheel: Wheel, case: Case, arm: Any = None) -> list[Found]:
    return [found(wheel, case, arm, limit, person) for limit in (2, 100) for person in (None, case.person)]


def check(bench: Bench, case: Case, arm: Any = None) -> bool:
    """Whether the arm finds anything; raises AssertionError when what lies outside makes a difference."""
    with bench.wheel(case.inside) as inside, bench.wheel(case.rows) as everything:
        expected = all_found(inside, case, arm)
        assert all_found(everything, case, arm) == expected
        disturb(everything.path, case)
        assert all_found(everything, case, arm) == expected
        # Sealed or patched from the list of changes: the same numbers.
        everything.write(seal)
        assert all_found(everything, case, arm) == expected
    return any(expected)


@given(st.integers(0, 10**9))
def test_records_outside_change_nothing(bench: Bench, seed: int) -> None:
    assert check(bench, generate(seed)) or '"' in generate(seed).query


def test_the_laws_as_plugin_authors_test_them() -> None:
    assert_confined(KeywordArm(), examples=10)
    assert_deterministic(KeywordArm(), examples=3)


class WholeTable(KeywordArm):
    """Broken on purpose: FTS5's own weights, which count every record of the wheel."""

    def rank(self, db: sqlite3.Connection, text: str, reach: Any, limit: int, person: str | None = None) -> Any:
        ranked = super().rank(db, text, reach, 100, person)
        words = " OR ".join(f'"{stem}"' for _, stem in stems(text))
        scores = dict(db.execute("SELECT rowid, -rank FROM records_fts WHERE records_fts MATCH ?", (words,)))
        rows = [(record_id, scores.get(record_id, 0.0), None) for record_id, _, _ in ranked]
        return sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]


class ByRow(KeywordArm):
    """Broken on purpose: of equal scores those come first whose rows do."""

    def rank(self, db: sqlite3.Connection, text: str, reach: Any, limit: int, person: str | None = None) -> Any:
        return sorted(super().rank(db, text, reach, 100, person), key=lambda row: (-row[1], row[0]))[:limit]


def test_weights_of_the_whole_table_are_caught(bench: Bench) -> None:
    def leaks(seed: int) -> bool:
        try:
            check(bench, generate(seed), WholeTable())
        except AssertionError:
            return True
        return False

    assert any(leaks(seed) for seed in range(50))


def test_ties_settled_by_row_are_caught(bench: Bench) -> None:
    """The same records in another order of arrival are the same answer."""

    def both(arm: Any) -> list[tuple[list[Found], list[Found]]]:
        out = []
        for seed in range(60):
            case = generate(seed)
            context = [row for row in case.inside if row[0] in ("node", "edge", "ceremony")]
            records = [row for row in case.inside if row[0] not in ("node", "edge", "ceremony")]
            with bench.wheel(context + records) as one, bench.wheel(context + records[::-1]) as other:
                out.append((all_found(one, case, arm), all_found(other, case, arm)))
        return out

    assert all(one == other for one, other in both(KeywordArm()))
    assert any(one != other for one, other in both(ByRow()))


def bm25(wheel: Wheel, case: Case, k1: float, b: float) -> dict[str, float]:
    """The score of every record of the reach, written down from the formula."""
    with wheel.snapshot() as db:
        reached = reading.all_reached(db, reading.resolve(db, Scope.from_json(case.scope)))
    words = {one.record.wheel_id: Counter(stem for _, stem in stems(one.record.text)) for one in reached}
    average = sum(map(Counter.total, words.values())) / len(words)
    scores: dict[str, float] = {}
    for stem in dict.fromkeys(stem for raw, stem in stems(case.query) if raw not in STOP):
        holding = [id for id, counts in words.items() if counts[stem]]
        rarity = math.log(1 + (len(words) - len(holding) + 0.5) / (len(holding) + 0.5))
        for id in holding:
            count = words[id][stem]
            weight = count * (k1 + 1) / (count + k1 * (1 - b + b * words[id].total() / average))
            scores[id] = scores.get(id, 0.0) + rarity * weight
    return scores


@given(st.integers(0, 10**9), st.sampled_from([(0.9, 0.4), (1.2, 0.75), (2.0, 0.0)]))
def test_scores_are_the_formula_s(bench: Bench, seed: int, settings: tuple[float, float]) -> None:
    case = generate(seed)
    # Names and phrases add records that the bare formula does not know.
    case.query = " ".join(word for word in case.query.replace('"', "").split() if word not in ("ana", "ben", "cora", "weaver"))
    with bench.wheel(case.rows) as wheel:
        scores = {id: score for _, id, score in found(wheel, case, KeywordArm(*settings), 1000)}
        assert scores == pytest.approx(bm25(wheel, case, *settings), rel=1e-12)
