"""Killed, or refused by the disk, at every single step of a verb: the home is as before the call or as after it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homeworld import World, line, whole

from wheelmem.home import cli, session
from wheelmem.home.folder import Home
from wheelmem.home.log import Log

ROUTES = [
    {"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "a"}, {"store": "PROCEDURAL", "content": "b"}]},
    {"id": f"01HX{2:022d}", "targets": []},
]
CALLS = {
    "encode": ["encode", "--body", "x", "--session", "s1"],
    "encode after a torn tail": ["encode", "--body", "x", "--session", "s1"],
    "drain": ["drain", "--session", "s1"],
    "drain some": ["drain", "--completed-only", "--session", "s1"],
    "apply": ["apply", "--session", "s1", "--routes", json.dumps(ROUTES)],
    "replace": ["replace", "--session", "s1", "--store", "SEMANTIC", "--body", "new"],
}
STEPS = ("open", "write", "pwrite", "fsync", "rename", "replace", "link", "unlink", "mkdir", "ftruncate")


def prepare(world: World, name: str) -> None:
    text = "".join(line(n, session=f"s{n % 2 + 1}") + "\n" for n in range(1, 5))
    world.write("EPISODIC.jsonl", text + ('{"id":"01HX' if "torn" in name else ""))
    world.write("SEMANTIC.md", "facts")
    session.register(Home(str(world.home)), "s2")


def at_step(number: int, then: Callable[[], None]) -> None:
    """Do `then` instead of the number-th step that touches the disk."""
    left = [number]

    def instead(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                then()
            return step(*args, **kwargs)

        return run

    for step in STEPS:
        setattr(os, step, instead(getattr(os, step)))


def nothing() -> None:
    pass


def in_child(world: World, argv: list[str], number: int = 0, then: Callable[[], None] = nothing) -> int:
    """Run the call in a process of its own that does `then` at a step; how it ended, as os.waitstatus_to_exitcode says."""
    pid = os.fork()
    if pid == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (1, 2):
            os.dup2(quiet, fd)
        at_step(number, then)
        os._exit(cli.main([*argv, "--home", str(world.home)]))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill() -> None:
    raise OSError(28, "No space left on device")


def stores(world: World) -> tuple[str, str]:
    return world.text("SEMANTIC.md"), world.text("PROCEDURAL.md")


def state(world: World) -> tuple[Any, ...]:
    """What a home tells once the next call has finished what was decided: bodies in the log, archives, stores."""
    home = Home(str(world.home))
    with home.exclusive():
        Log(home).load()
    log, archived = whole(world.home)
    assert len(set(log + archived)) == len(log + archived)
    fixed = [id for id in log if id.startswith("01HX")]
    return fixed, archived, stores(world), len(list(world.home.glob(".bak/SEMANTIC.*.md")))


@pytest.mark.parametrize("then", [kill, fill])
@pytest.mark.parametrize("name", CALLS)
def test_every_step(world: World, name: str, then: Callable[[], None], tmp_path_factory: pytest.TempPathFactory) -> None:
    ends = 0
    outcomes = set()
    for number in range(1, 500):
        world = World(tmp_path_factory.mktemp("step"))
        prepare(world, name)
        before = fixed_part(world)
        end = in_child(world, CALLS[name], number, then)
        outcomes.add(state_after(world, name, before))
        text = world.text("EPISODIC.quarantine.jsonl")
        assert text in ("", '{"id":"01HX\n')
        assert in_child(world, ["encode", "--body", "goes on", "--session", "s1"]) == 0
        if "torn" in name:
            assert world.text("EPISODIC.quarantine.jsonl") == '{"id":"01HX\n', "what was torn is kept, once"
        assert in_child(world, ["drain", "--for-session", "s9", "--session", "s9"]) == 0, "no lock is left"
        if end == 0:
            ends += 1
            if ends == 2 or then is kill:
                break
    else:
        pytest.fail("the call never came to its end")
    assert number > 5
    assert "after" in outcomes
    assert "before" in outcomes


def fixed_part(world: World) -> tuple[list[str], tuple[str, str]]:
    return [row for row in world.text("EPISODIC.jsonl").splitlines() if row.endswith("}")], stores(world)


def state_after(world: World, name: str, before: tuple[list[str], tuple[str, str]]) -> str:
    """`before` or `after`; anything between fails."""
    fixed, archived, now, kept = state(world)
    ids = [json.loads(row)["id"] for row in before[0]]
    assert sorted(fixed + archived) == ids
    if name.startswith("encode"):
        assert (fixed, archived, now) == (ids, [], before[1])
        return "after" if len(world.log()) > len(ids) else "before"
    if (fixed, archived, now) == (ids, [], before[1]) and kept == 0:
        return "before"
    if name == "drain":
        assert (fixed, now) == ([], before[1])
    elif name == "drain some":
        assert (archived, now) == ([ids[1], ids[3]], before[1])
    elif name == "apply":
        assert (archived, now) == (ids[:2], ("facts\na\n", "b\n"))
    else:
        assert (fixed, now, kept) == (ids, ("new\n", ""), 1)
    return "after"


def test_a_reader_finishes_what_a_killed_call_decided(world: World) -> None:
    prepare(world, "drain")
    for number in range(1, 500):
        if in_child(world, CALLS["drain"], number, kill) == 0:
            pytest.fail("it was never killed between its decision and its end")
        if (world.home / ".txn" / "journal").exists():
            break
    world.ok("read")
    assert not Path(world.home / ".txn" / "journal").exists()
    assert whole(world.home)[0] == []
