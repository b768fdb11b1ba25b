"""A Honcho for each test, checked when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from double import Double
from world import World


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


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(double: Double, name: str = "wheel.db", **options: Any) -> World:
        made.append(World(tmp_path / name, double, **options))
        return made[-1]

    yield make
    for world in made:
        world.wheel.close()


@pytest.fixture
def world(double: Double, make_world: Callable[..., World]) -> World:
    return make_world(double)
