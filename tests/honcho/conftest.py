"""A Honcho for each test, checked when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from double import Double


@pytest.fixture
def make_double() -> Iterator[Callable[..., Double]]:
    """Make doubles; at the end none may have seen a request that the description does not allow."""
    made: list[Double] = []

    def make(**options: Any) -> Double:
        made.append(Double(**options))
        return made[-1]

    yield make
    for double in made:
        double.stop()
    assert [violation for double in made for violation in double.violations] == []


@pytest.fixture
def double(make_double: Callable[..., Double]) -> Double:
    return make_double()
