"""The arithmetic: scores are the same to the last bit in any company, and nobody who belongs in the list is passed over."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from wheelmem_vector.search import DIGITS, Held
from wheelmem_vector.store import FULL, packed, unit


class Rows:
    """Stands for a wheel whose vectors lie in these blocks."""

    def __init__(self, blocks: list[bytes]) -> None:
        self.blocks = blocks

    def execute(self, sql: str, parameters: tuple[int, ...] = ()) -> Any:
        row = (self.blocks[parameters[0]],) if parameters else (-2000,)

        class Cursor:
            def fetchone(self) -> tuple[Any]:
                return row

        return Cursor()


def made(rows: Any, sizes: list[int]) -> tuple[Held, Rows]:
    """The rows in blocks of these sizes, the rest in as few as can be."""
    blocks, at = [], 0
    for size in [*sizes, 256, 256]:
        part = rows[at : at + size]
        at += size
        if len(part):
            blocks.append(b"".join(packed(row) for row in part))
    lengths = [len(block) // (2 * rows.shape[1]) for block in blocks]
    every = [(number, np.ones(length, dtype=bool)) for number, length in enumerate(lengths)]
    return Held(np.arange(len(rows)), every, rows.shape[1]), Rows(blocks)


cases = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(1, 300),
    st.sampled_from([1, 3, 16, 31, 256, 1024]),
    st.lists(st.integers(1, 90), max_size=4),
)


@given(cases)
def test_a_score_is_what_exact_arithmetic_gives_in_whatever_company(case: Any) -> None:
    seed, count, dimension, sizes = case
    random = np.random.default_rng(seed)
    rows = unit(random.standard_normal((count, dimension)) * random.choice([1.0, 1e-3], size=(count, dimension)))
    asked = unit(random.standard_normal((1, dimension)))[0]
    held, db = made(rows, sizes)
    near = held.near(db, asked)  # type: ignore[arg-type]
    scores = held.scores(np.arange(count), asked)
    for at in {0, count // 2, count - 1}:
        stored = np.frombuffer(packed(rows[at]), dtype="<i2").tolist()
        fine = [Fraction(round(float(number) * 2**32), 2**32) for number in asked]
        exact = sum((Fraction(a, FULL) * b for a, b in zip(stored, fine, strict=True)), Fraction(0))
        assert abs(Fraction(scores[at]) - exact) <= Fraction(1, 2 * 10**DIGITS) + Fraction(1, 10**12)
        alone, alone_db = made(rows[at : at + 1], [])
        alone.near(alone_db, asked)  # type: ignore[arg-type]
        assert alone.scores(np.arange(1), asked) == [scores[at]]
    # The first product, on the way in, and the later ones are never further off than they may be.
    for found in (near, held.near(db, asked)):  # type: ignore[arg-type]
        assert np.abs(found - np.asarray(scores)).max() <= held.slack
    order = random.permutation(count)
    assert held.scores(order, asked) == [scores[at] for at in order]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=2, max_size=40))
def test_what_a_model_gives_is_kept_to_half_a_step(numbers: list[float]) -> None:
    (vector,) = unit([numbers])
    assert np.isfinite(vector).all()
    stored = np.frombuffer(packed(vector), dtype="<i2") / FULL
    assert np.abs(stored - vector).max() <= 0.5 / FULL + 1e-12
    assert abs(np.linalg.norm(vector) - 1.0) < 1e-9 or not vector.any()
