"""The kit on what comes with wheelmem: every arm keeps the laws it checks, and so does the Honcho provider."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from environment import ROOT

from wheelmem import load_plugins, open_wheel
from wheelmem.river import bind
from wheelmem.settings import Settings
from wheelmem.testing import assert_confined, assert_deterministic, assert_survives

ARMS = {arm.name: arm for arm in load_plugins().arms(Settings())}


def ready(arm: Any, folder: Path) -> Any:
    with open_wheel(folder / "wheel.db") as wheel:
        why = wheel.read(arm.ready) if hasattr(arm, "ready") else None
    if why is not None:
        pytest.skip(f"arm {arm.name} is not ready here: {why}")
    return arm


@pytest.mark.parametrize("name", sorted(ARMS))
def test_every_arm_keeps_to_the_reach(name: str, tmp_path: Path) -> None:
    assert_confined(ready(ARMS[name], tmp_path), examples=15)


@pytest.mark.parametrize("name", sorted(ARMS))
def test_every_arm_answers_the_same_again(name: str, tmp_path: Path) -> None:
    assert_deterministic(ready(ARMS[name], tmp_path), examples=15)


@pytest.mark.parametrize("there", [True, False], ids=["there", "away"])
def test_the_honcho_provider_survives(there: bool, tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "honcho"))
    try:
        from double import Double
    finally:
        sys.path.pop(0)
    double = Double()
    try:
        if not there:
            double.stop()
        settings = Settings(env={"HONCHO_URL": double.url})
        with open_wheel(tmp_path / "wheel.db") as wheel:
            (provider,) = bind(wheel, [one for one in load_plugins().providers(settings) if one.name == "honcho"])
            assert_survives(provider)
    finally:
        double.stop()
