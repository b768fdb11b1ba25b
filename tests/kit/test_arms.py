"""The kit's checks on arms: a right arm passes, and each way of being wrong is caught and said."""

from __future__ import annotations

import warnings
from typing import Any

import arms
import pytest

from wheelmem import create_memory
from wheelmem.memory import run
from wheelmem.settings import Settings
from wheelmem.testing import Case, GeneratedReach, assert_confined, assert_deterministic, generate


@pytest.mark.parametrize("arm", [arms.Arm(), arms.Following()], ids=lambda arm: arm.name)
def test_a_right_arm_passes(arm: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_confined(arm, examples=10)
        assert_deterministic(arm, examples=5)


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (arms.WholeTable(), "records outside the reach change what it finds"),
        (arms.RareWords(), "records outside the reach change what it finds"),
        (arms.Outside(), "outside the reach; they were dropped"),
        (arms.PythonClock(), "records outside the reach change|at another time"),
        (arms.Today(), "at another time"),
        (arms.Year(), "at another time"),
        (arms.SqlClock(), "asks SQLite for the time"),
        (arms.SqlDefaultClock(), "asks SQLite for the time"),
        (arms.Nothing(), "found nothing in 25 generated wheels"),
        (arms.Raises(), "failed \\(KeyError\\)"),
        (arms.NotReady(), "not ready on a generated wheel: no table of mine"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_assert_confined_catches(arm: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_confined(arm)


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (arms.SetOrder(), "in another process"),
        (arms.RowOrder(), "when rows lie otherwise"),
        (arms.Remembers(), "asked again"),
        (arms.Year(), "at another time"),
        (arms.Nothing(), "found nothing"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_assert_deterministic_catches(arm: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_deterministic(arm)


def test_an_arm_that_cannot_be_pickled_is_told_what_was_left_out() -> None:
    with pytest.warns(UserWarning, match="the order of its sets was not tested"):
        assert_deterministic(arms.Unpicklable(), examples=2)


def test_a_failure_names_the_seed_that_shows_it_again() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_confined(arms.WholeTable())
    seed = int(str(caught.value).partition("(seed ")[2].partition(",")[0])
    with pytest.raises(AssertionError, match=f"seed {seed}"):
        assert_confined(arms.WholeTable(), examples=1, seed=seed)


def test_every_generated_case_could_show_a_leak() -> None:
    for seed in range(60):
        case = generate(seed)
        words = {word for word in case.query.strip('"').split() if word != "the"}
        texts = {key: str(row) for (kind, row) in case.rows for key in [(kind, row.get("id"))]}
        assert case.reached
        assert case.outside
        for side in (case.reached, case.outside):
            shown = [texts[("node" if kind == "conclusion" else kind, id)] for kind, id in side]
            assert any(word in text for word in words for text in shown), case
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)


def test_the_fixtures_hand_out_what_an_arm_is_handed(generated_reach: GeneratedReach, generated_case: Case) -> None:
    found = {row[0] for row in arms.Arm().retrieve(generated_reach.db, generated_reach.question, generated_reach.reach, (), 50)}
    assert found
    assert found <= generated_reach.inside
    assert {row[0] for row in generated_reach.db.execute("SELECT record_id FROM reach_records")} == generated_reach.inside
    assert generated_reach.outside


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("raises", "failed (RuntimeError)"),
        ("nonsense", "answered nonsense"),
        ("outside", ""),
        ("hangs", "did not answer within 0.2 s"),
        ("sleeps", "switched off"),
    ],
)
@pytest.mark.filterwarnings("ignore::wheelmem.retrieval.ArmWarning")
def test_a_broken_arm_breaks_as_it_says(generated_wheel: Any, generated_case: Case, broken_arm: Any, way: str, said: str) -> None:
    settings = Settings(env={"WHEELMEM_ARM_TIMEOUT": "0.2"})
    memory = create_memory(wheel=generated_wheel, providers=[], arms=[broken_arm(way, name=way), arms.Arm()], settings=settings)
    answer = run(memory, memory.search(query=generated_case.query, scope=generated_case.scope))
    assert answer.sources
    assert f"arm {way}" in (answer.note or "") if said else True
    assert said in (answer.note or "")
    assert {(source.wheel_kind, source.wheel_id) for source in answer.sources} <= generated_case.reached
