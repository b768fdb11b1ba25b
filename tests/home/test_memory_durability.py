"""Nothing acknowledged is lost: not to other processes, not to kill -9, not to a full disk."""

from __future__ import annotations

import collections
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from homeworld import World, clean_env, line, snapshot, whole

WORKER = Path(__file__).with_name("worker.py")


class Worker:
    """A process at work on the home; what it prints goes to a file, so that nobody waits for a reader."""

    def __init__(self, world: World, verb: str, count: int = 10**9) -> None:
        self._file = tempfile.TemporaryFile("w+", dir=world.folder)  # noqa: SIM115
        argv = [sys.executable, str(WORKER), verb, str(count)]
        env = clean_env(world.user, AGENT_HOME=str(world.home))
        self._process = subprocess.Popen(argv, env=env, cwd=world.work, stdout=self._file, stderr=self._file)

    def wait(self) -> str:
        self._process.wait(timeout=300)
        return self.printed()

    def stop(self, how: signal.Signals) -> str:
        assert self._process.poll() is None, self.printed()
        self._process.send_signal(how)
        return self.wait()

    def printed(self) -> str:
        self._file.seek(0)
        return self._file.read()

    def at_work(self) -> None:
        """Wait until it has begun its first call."""
        while os.fstat(self._file.fileno()).st_size == 0:
            time.sleep(0.001)


def acknowledged(printed: str) -> list[str]:
    return [row for row in printed.splitlines() if len(row) == 26 and row.isalnum()]


def check_nothing_lost(world: World, ids: list[str]) -> None:
    """Each acknowledged record is in the log or in exactly one archive, and what landed has landed once."""
    log, archived = whole(world.home)
    times = collections.Counter(log + archived)
    assert max(times.values(), default=0) <= 1, "a record is in two places"
    assert set(ids) <= set(times), "an acknowledged record is gone"
    texts = [world.text("SEMANTIC.md"), world.text("PROCEDURAL.md"), *texts_before(world)]
    landed = collections.Counter(row for text in texts for row in text.splitlines() if row)
    assert max(landed.values(), default=0) <= 1, "content landed twice"
    assert not set(landed) & set(log), "content landed of a record that is still in the log"


def texts_before(world: World) -> Iterator[str]:
    for store in ("SEMANTIC", "PROCEDURAL"):
        for path in world.home.glob(f".bak/{store}.*.md"):
            yield path.read_text()


def test_eight_encode_while_others_drain_apply_and_read(world: World) -> None:
    writers = [Worker(world, "encode", 250) for _ in range(8)]
    others = {verb: Worker(world, verb) for verb in ("drain", "apply", "read", "dream", "fold")}
    ids = []
    for writer in writers:
        printed = writer.wait()
        assert "Traceback" not in printed
        own = acknowledged(printed)
        assert own == sorted(own)
        ids += own
    for verb, other in others.items():
        printed = other.stop(signal.SIGINT)
        assert "Traceback" not in printed
        assert printed.count("< 0") > 1, f"{verb} did nothing: {printed[-500:]}"
    assert len(ids) == len(set(ids)) == 8 * 250
    check_nothing_lost(world, ids)
    for archive in world.archives():
        rows = [json.loads(row)["id"] for row in archive.splitlines()]
        assert rows == sorted(rows)


@pytest.mark.parametrize("verb", ["encode", "drain", "apply", "dream"])
def test_kill_9_at_random_moments(world: World, verb: str, repeats: int) -> None:
    """Half the kills at least must come in the midst of a call, or this shows nothing."""
    ids: list[str] = []
    midst = finished = 0
    for number in range(repeats):
        workers = [Worker(world, "encode"), *([Worker(world, verb)] if verb != "encode" else [])]
        victim = workers[-1]
        for worker in workers:
            worker.at_work()
        time.sleep(random.uniform(0, 0.05))
        printed = victim.stop(signal.SIGKILL)
        midst += printed.splitlines()[-1][0] != "<"
        finished += (world.home / ".txn" / "journal").exists()
        for worker in workers:
            ids += acknowledged(printed if worker is victim else worker.stop(signal.SIGKILL))
        world.run("read", "--count")  # the next call of any kind finishes what was decided
        check_nothing_lost(world, ids)
        ids.append(world.encode("--body", f"after kill {number}"))
        assert ids[-1] == max(ids)
    print(
        f"\n{verb}: {midst} of {repeats} kills landed in the midst of a call, {finished} of them between the decision "
        f"and its last rename; {len(ids)} records acknowledged"
    )
    assert midst * 2 >= repeats


# --- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(world: World) -> Iterator[World]:
    """A world whose agent home is on a disk of its own with no room to speak of."""
    world.home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(world.home)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield world
    finally:
        subprocess.run(["umount", str(world.home)], check=True)


VERBS = [
    ["encode", "--body", "x" * 3000],
    ["drain"],
    ["drain", "--completed-only", "--stale", "0"],
    ["apply", "--routes", json.dumps([{"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "x" * 5000}]}])],
    ["replace", "--store", "SEMANTIC", "--body", "y" * 5000],
    ["init"],
    ["session", "register", "--session", "other"],
    ["lock", "acquire"],
]


@pytest.mark.parametrize("room", [0, 1, 3])
@pytest.mark.parametrize("argv", VERBS, ids=lambda argv: " ".join(argv)[:30])
def test_a_full_disk_is_a_clear_error_and_leaves_nothing_half_written(small_disk: World, argv: list[str], room: int) -> None:
    """With room for this many more pages of 4 KiB."""
    world = small_disk
    world.write("EPISODIC.jsonl", "".join(line(n) + "\n" for n in range(60)))
    world.encode("--body", "first")
    world.write("SEMANTIC.md", "facts\n")
    world.ok("apply", "--routes", "[]")
    before = snapshot(world.home)
    with open(world.home / "ballast", "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"\0" * 4096)
        except OSError:
            ballast.truncate(ballast.tell() // 4096 * 4096 - 4096 * room)
    done = world.run(*argv)
    (world.home / "ballast").unlink()
    after = {name: data for name, data in snapshot(world.home).items() if not name.startswith("sessions/")}
    before = {name: data for name, data in before.items() if not name.startswith("sessions/")}
    if done.returncode:
        assert done.returncode == 1
        assert done.stderr.count(b"\n") == 1, done.stderr
        assert b"No space left on device" in done.stderr
        assert after == before
    assert "EPISODIC.quarantine.jsonl" not in after
    assert all(json.loads(path.read_bytes()) for path in world.home.glob("sessions/*.json"))
    log, archived = whole(world.home)
    assert len(set(log + archived)) == len(log + archived) >= 61
    world.encode("--body", "room again")
    if room == 0 and argv[0] in ("encode", "drain", "replace", "apply"):
        assert done.returncode == 1


@pytest.mark.parametrize("argv", VERBS[:5], ids=lambda argv: " ".join(argv)[:30])
def test_a_file_that_may_not_grow_is_a_clear_error(world: World, argv: list[str]) -> None:
    world.encode("--body", "first")
    world.write("EPISODIC.jsonl", world.text("EPISODIC.jsonl") + "".join(line(n) + "\n" for n in range(60)))
    world.ok("apply", "--routes", "[]")
    before = {name: data for name, data in snapshot(world.home).items() if not name.startswith("sessions/")}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = world.run(*argv, preexec=limit)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"File too large" in done.stderr
    assert {n: data for n, data in snapshot(world.home).items() if not n.startswith("sessions/")} == before


def test_an_append_that_is_cut_short_leaves_no_torn_line(world: World) -> None:
    world.write("EPISODIC.jsonl", "".join(line(n) + "\n" for n in range(60)))
    world.encode("--body", "first")
    before = world.text("EPISODIC.jsonl")

    def limit() -> None:
        most = len(before) + 20  # the disk takes the beginning of the line and no more
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    assert world.run("encode", "--body", "second", preexec=limit).returncode == 1
    assert world.text("EPISODIC.jsonl") == before


# --- a home that may not be written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", VERBS, ids=lambda argv: " ".join(argv)[:30])
def test_a_read_only_home_is_a_clear_error(world: World, argv: list[str]) -> None:
    world.encode("--body", "first")
    world.write("EPISODIC.jsonl", world.text("EPISODIC.jsonl") + line(1) + "\n")
    if argv == ["init"]:
        (world.home / "sessions" / "s1.json").rename(world.home / "x.json")
    else:
        world.write("SEMANTIC.md", "facts\n")
    done = as_nobody(world, argv)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"Permission denied" in done.stderr


def test_a_read_only_home_is_read(world: World) -> None:
    world.encode("--body", "first")
    world.write("SEMANTIC.md", "facts\n")
    for argv in (["read"], ["read", "--count"], ["fold"], ["audit"], ["get", "--store", "SEMANTIC"], ["lock", "status"],
                 ["session", "list"], ["home"]):  # fmt: skip
        done = as_nobody(world, argv)
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        assert done.stdout


def as_nobody(world: World, argv: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Call as a user who may read everything here and write nothing; nothing may have changed after it."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    for folder in (world.folder, *world.folder.parents):
        if not os.stat(folder).st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o055)
    for path in [world.folder, *world.folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)

    # the interpreter itself may be out of that user's reach, so everything is imported before the change of user
    modules = ", ".join(f"wheelmem.home.{name}" for name in ("cli", "lock", "dream", "boundary", "audit"))
    script = f"import os, sys, uuid, {modules}; from wheelmem.home import cli\n"
    script += "os.setgroups([]); os.setgid(65534); os.setuid(65534); sys.exit(cli.main(sys.argv[1:]))"
    env = clean_env(world.user, AGENT_HOME=str(world.home), AGENT_SESSION_ID="s1")
    before = snapshot(world.home)
    done = subprocess.run(
        [sys.executable, "-c", script, *argv], capture_output=True, cwd=world.work, env=env, timeout=60, check=False
    )
    assert snapshot(world.home) == before
    return done
