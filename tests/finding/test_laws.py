"""The laws, with every arm on: hops, the favouring arms, and vectors of a tiny model."""

from __future__ import annotations

import os

import pytest
from wheelmem_hops.arm import HopsArm
from wheelmem_rules.favours import DatesArm, SpeakerArm

from wheelmem.testing import assert_confined, assert_deterministic

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))


@pytest.mark.parametrize("arm", [HopsArm(), HopsArm(depth=3, turns=1), SpeakerArm(), DatesArm()], ids=lambda arm: arm.name)
def test_each_arm_keeps_to_the_reach(arm: object) -> None:
    assert_confined(arm, examples=10 * REPEATS)


@pytest.mark.parametrize("arm", [HopsArm(), SpeakerArm(), DatesArm()], ids=lambda arm: arm.name)
def test_each_arm_answers_the_same_whatever_the_clock_or_the_order_of_rows(arm: object) -> None:
    assert_deterministic(arm, examples=3 * REPEATS)
