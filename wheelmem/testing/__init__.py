"""For a plugin's own tests: generated wheels, fixtures for pytest, and the laws as functions.

Name it in ``conftest.py`` to have the fixtures::

    pytest_plugins = ["wheelmem.testing"]

and call a law on what you made::

    from wheelmem.testing import assert_confined

    def test_my_arm_keeps_to_the_reach():
        assert_confined(MyArm())
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ..contract import Question, Scope
from ..store import Wheel, reading
from ..store.connections import ReadConnection
from .broken import BrokenArm
from .cases import Bench, Case, generate
from .checks import assert_confined, assert_deterministic, assert_survives

__all__ = [
    "BrokenArm",
    "Case",
    "GeneratedReach",
    "assert_confined",
    "assert_deterministic",
    "assert_survives",
    "broken_arm",
    "generate",
    "generated_case",
    "generated_reach",
    "generated_wheel",
]


@dataclass(frozen=True)
class GeneratedReach:
    """What an arm's ``retrieve`` is handed, over a generated wheel: ``arm.retrieve(r.db, r.question, r.reach, (), 100)``.

    ``inside`` and ``outside`` are the integer keys of the records that lie in the reach and of those that do not.
    """

    db: ReadConnection
    question: Question
    reach: reading.ResolvedReach
    inside: frozenset[int]
    outside: frozenset[int]


@pytest.fixture
def generated_case() -> Case:
    """A generated case: rows, a scope, a question whose words stand in records on both sides of the reach."""
    return generate(0)


@pytest.fixture
def generated_wheel(generated_case: Case) -> Iterator[Wheel]:
    """An open wheel that holds the rows of ``generated_case``, prepared for every installed plugin."""
    with Bench() as bench, bench.wheel(generated_case.rows) as wheel:
        yield wheel


@pytest.fixture
def generated_reach(generated_wheel: Wheel, generated_case: Case) -> Iterator[GeneratedReach]:
    """The reach of ``generated_case`` in one snapshot of ``generated_wheel``, with what an arm is handed."""
    with generated_wheel.snapshot() as db:
        reach = reading.resolve(db, Scope.from_json(generated_case.scope))
        db.offer(reach)
        keys = {(kind, id): key for key, kind, id in db.execute("SELECT record_id, kind, wheel_id FROM records")}
        yield GeneratedReach(
            db,
            Question(generated_case.query, reach.reach, limit=50),
            reach,
            frozenset(keys[key] for key in generated_case.reached),
            frozenset(keys[key] for key in generated_case.outside if key in keys),
        )


@pytest.fixture
def broken_arm() -> Callable[..., Any]:
    """Makes an arm that fails: ``broken_arm("raises")``; see ``BrokenArm`` for the ways there are."""
    return BrokenArm
