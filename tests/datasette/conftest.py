"""A wheel under a name of its own, in whichever Datasette is installed."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from houses import make_datasette

from wheelmem import demo, load_plugins, open_wheel

# With rich installed, Datasette prints every error's frames; 0.65 fails at that for an address nobody answers.
sys.modules["datasette.handle_exception"].rich = None  # type: ignore[attr-defined]


@pytest.fixture
def wheel_file(tmp_path: Path) -> Path:
    """The demo wheel, in a file that is not named wheel.db."""
    path = tmp_path / "hearth.sqlite"
    with open_wheel(path, plugins=load_plugins()) as wheel:
        demo.build(wheel)
    return path


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    """A database that is no wheel."""
    path = tmp_path / "apples.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE apples (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO apples (name) VALUES ('Antonovka')")
    return path


@pytest.fixture
def make() -> Iterator[Callable[..., Datasette]]:
    """Datasettes that let go of their files at the end of the test."""
    made = []

    def one(*arguments: Any, **options: Any) -> Datasette:
        made.append(make_datasette(*arguments, **options))
        return made[-1]

    yield one
    for ds in made:
        for database in ds.databases.values():
            database.close()
