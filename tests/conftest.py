"""What all tests share: how often the slow ones repeat, where the shared right values lie, Hypothesis's profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The fixtures that plugin authors get; a conftest below the top may not name them.
pytest_plugins = ["wheelmem.testing"]

# The one variable that says how often slow tests repeat: small by default, 200 and more for a long night.
REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))

settings.register_profile(
    "wheelmem",
    max_examples=min(1000, 10 * REPEATS),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("wheelmem")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of right values and sample data beside the project; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder of shared values beside the project")
    return folder
