"""Small wheels, and a memory over one with chosen arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wheelmem import create_memory, open_wheel
from wheelmem.contract import Answer
from wheelmem.memory import run
from wheelmem.settings import Settings
from wheelmem.store import Wheel

Row = tuple[str, dict[str, Any]]


class Finder:
    """A wheel, and asking it."""

    def __init__(self, wheel: Wheel) -> None:
        self.wheel = wheel

    def put(self, *rows: Row) -> None:
        for kind, record in rows:
            self.wheel.put(kind, record)

    def search(
        self,
        query: str,
        scope: dict[str, Any],
        arms: Sequence[str] | None = None,
        block: dict[str, Any] | None = None,
        **more: Any,
    ) -> Answer:
        """What is found, explained, by these arms, under these settings."""
        memory = create_memory(wheel=self.wheel, providers=(), settings=Settings(block or {}))
        return run(memory, memory.search(query=query, scope=scope, arms=arms, explain=True, **more))


@pytest.fixture
def finder(tmp_path: Path) -> Iterator[Finder]:
    with open_wheel(tmp_path / "wheel.db") as wheel:
        yield Finder(wheel)


@pytest.fixture
def make_finder(tmp_path: Path) -> Iterator[Callable[[str], Finder]]:
    """Finders over further wheels, by the name of the file."""
    opened: list[Wheel] = []

    def make(name: str) -> Finder:
        opened.append(open_wheel(tmp_path / name))
        return Finder(opened[-1])

    yield make
    for wheel in opened:
        wheel.close()
