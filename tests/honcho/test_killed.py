"""Processes killed at any moment: what was recorded arrives, once, in order."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from double import Double
from world import World

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
WRITER = Path(__file__).with_name("writer.py")


def start(world: World, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(world.path), world.double.url, name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run_and_kill(world: World, name: str, wait: Any) -> list[str]:
    """What a writer said it had stored before it was killed; ``wait()`` returns when it is to die."""
    process = start(world, name)
    assert process.stdout is not None
    first = process.stdout.readline().strip()
    wait()
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    # A line that was cut by the kill acknowledges nothing.
    return [line for line in [first, *rest.split("\n")[:-1]] if line]


def check(world: World, acknowledged: list[str]) -> None:
    arrived = {name: [m["metadata"]["wheel_id"] for m in world.double.messages(name)] for name in ("ceremony-0", "ceremony-1")}
    everything = arrived["ceremony-0"] + arrived["ceremony-1"]
    assert len(everything) == len(set(everything)), "nothing arrives twice"
    assert set(acknowledged) <= set(everything), "nothing is lost"
    for one in arrived.values():
        assert one == sorted(one), "and in order"
    assert set(world.double.workspaces["medicine-wheel"].sessions) <= {"ceremony-0", "ceremony-1"}


@pytest.mark.parametrize("turn", range(REPEATS))
async def test_killed_anywhere(world: World, double: Double, turn: int) -> None:
    chance = random.Random(turn)
    acknowledged: list[str] = []
    with double.fault("slow", "", seconds=0.01, after=True):
        for round in range(3):
            acknowledged += run_and_kill(world, f"{round}", lambda: time.sleep(chance.uniform(0, 0.6)))
    await world.deliver()
    assert world.pending() == 0
    check(world, acknowledged)


@pytest.mark.parametrize("turn", range(REPEATS))
async def test_killed_between_the_servers_taking_a_message_and_our_hearing_so(world: World, double: Double, turn: int) -> None:
    acknowledged: list[str] = []
    for round in range(2):
        # The server has taken the messages; its answer never comes.
        with double.fault("hang", "POST .*/messages$", after=True) as fault:

            def taken(fault: Any = fault) -> None:
                while fault.hit == 0:
                    time.sleep(0.005)
                time.sleep(0.05)

            acknowledged += run_and_kill(world, f"{round}", taken)
    assert any(double.session_of(id) for id in acknowledged)
    assert world.pending() > 0
    await world.deliver()
    assert world.pending() == 0
    check(world, acknowledged)


@pytest.mark.parametrize("turn", range(REPEATS))
async def test_killed_between_storing_and_delivering(world: World, double: Double, turn: int) -> None:
    double.stop()
    acknowledged = run_and_kill(world, "0", lambda: time.sleep(0.3))
    assert world.pending() >= len(acknowledged) > 0
    double.start()
    await world.deliver()
    check(world, acknowledged)


@pytest.mark.parametrize("turn", range(REPEATS))
async def test_killed_while_a_session_is_made_anew(world: World, double: Double, turn: int) -> None:
    acknowledged = run_and_kill(world, "0", lambda: time.sleep(0.3))
    await world.deliver()
    world.wheel.delete("beat", acknowledged[0])
    match = ("DELETE", "POST .*/sessions$", "POST .*/messages$")[turn % 3]
    with double.fault("hang", match, after=True) as fault:

        def hit() -> None:
            while fault.hit == 0:
                time.sleep(0.005)

        acknowledged += run_and_kill(world, "1", hit)
    await world.deliver()
    assert world.pending() == 0
    check(world, acknowledged[1:])
    assert double.session_of(acknowledged[0]) == []


async def test_processes_that_deliver_at_once(world: World, double: Double) -> None:
    writers = [start(world, str(n)) for n in range(3)]
    await asyncio.sleep(2.5)
    acknowledged = []
    for writer in writers:
        writer.kill()
        acknowledged += writer.communicate()[0].split("\n")[:-1]
    await world.deliver()
    arrived = [m["metadata"]["wheel_id"] for name in ("ceremony-0", "ceremony-1") for m in double.messages(name)]
    assert len(arrived) == len(set(arrived))
    assert set(acknowledged) <= set(arrived)
    for name in ("ceremony-0", "ceremony-1"):
        for n in range(3):
            mine = [m["metadata"]["wheel_id"] for m in double.messages(name) if f":{n}:" in m["metadata"]["wheel_id"]]
            assert mine == sorted(mine)
