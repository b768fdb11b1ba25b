from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wheelmem import demo, open_wheel
from wheelmem.store import Wheel


@pytest.fixture
def demo_wheel(tmp_path: Path) -> Iterator[Wheel]:
    """The demo's wheel: three circles, each with a lantern of its own."""
    wheel = open_wheel(tmp_path / "wheel.db")
    demo.build(wheel)
    yield wheel
    wheel.close()
