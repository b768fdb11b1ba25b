from __future__ import annotations

import os
from pathlib import Path

import pytest
from homeworld import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(scope="session")
def repeats() -> int:
    """How often the slow tests repeat: $WHEELMEM_TEST_REPEATS."""
    return int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
