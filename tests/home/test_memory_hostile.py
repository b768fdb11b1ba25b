"""Hostile names and values are refused with one line, and change nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from homeworld import World, line

from wheelmem.home import cli


@pytest.fixture
def seeded(world: World) -> World:
    world.ok("init")
    world.encode("--body", "one")
    return world


@pytest.mark.parametrize("id", ["../up", "a/b", "..", ".", "a\\b", "a\nb", "a\x1bb", "x" * 300, "/etc/passwd", ""])
def test_session_ids(seeded: World, id: str) -> None:
    seeded.refused("encode", "--body", "x", f"--session={id}")
    seeded.refused("session", "register", f"--session={id}")
    seeded.refused("session", "heartbeat", f"--session={id}")
    seeded.refused("session", "release", f"--session={id}")
    seeded.refused("session", "status", id)
    seeded.refused("drain", f"--for-session={id}")
    seeded.refused("lock", "acquire", f"--session={id}")
    if id:
        seeded.refused("encode", "--body", "x", session=None, CLAUDE_SESSION_ID=id)
        seeded.refused("encode", "--body", "x", session=None, AGENT_SESSION_ID_FROM="RUN", RUN=id)


def test_a_nul_is_refused_wherever_it_can_come(seeded: World, capsys: pytest.CaptureFixture[str]) -> None:
    home = str(seeded.home)
    for argv in (
        ["encode", "--body", "x", "--home", home, "--session", "a\0b"],
        ["encode", "--body", "x", "--home", home + "\0", "--session", "a"],
        ["encode", "--body", "x", "--home", home, "--session", "a", "--tags", "t\0"],
        ["encode", "--body", "x", "--home", home, "--session", "a", "--path", "a\0.jsonl"],
        ["read", "--under", "a\0b", "--home", home],
        ["node", "a\0b"],
        ["migrate", "a\0b", "c"],
        ["home", "--name", "a\0b"],
        ["fold", "--config", "a\0b", "--home", home],
        ["audit", "--allow", "a\0b", "--home", home],
        ["audit", "--keys", "a\0b", "--home", home],
    ):
        assert cli.main(argv) in (1, 2), argv
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "Traceback" not in said


@pytest.mark.parametrize("path", ["../out.jsonl", "/tmp/out.jsonl", "a/../../out.jsonl", "SEMANTIC.md", "sessions/x.jsonl"])
@pytest.mark.parametrize("path2", ["dream.lock", ".bak/x.jsonl", ".", ".txn/journal"])
def test_paths_of_other_logs(seeded: World, path: str, path2: str) -> None:
    for given in (path, path2):
        for verb in (["encode", "--body", "x"], ["read"], ["fold"], ["drain"], ["apply", "--routes", "[]"]):
            seeded.refused(*verb, "--path", given)
    assert not (seeded.folder / "out.jsonl").exists()


@pytest.mark.parametrize("name", ["EPISODIC.jsonl", "SEMANTIC.md", ".bak", "sessions", "dream.lock", ".txn", ".log.lock"])
def test_symlinks_out_of_the_home(seeded: World, name: str) -> None:
    outside = seeded.folder / "outside"
    outside.mkdir()
    target = outside / "x"
    if name in (".bak", "sessions", ".txn"):
        target.mkdir()
    else:
        target.write_text(line(1) + "\n" if name.endswith("l") else "outside\n")
    before = sorted((path, path.is_file() and path.read_bytes()) for path in outside.rglob("*"))
    victim = seeded.home / name
    if victim.is_dir():
        for child in victim.iterdir():
            child.unlink()
        victim.rmdir()
    victim.unlink(missing_ok=True)
    victim.symlink_to(target)
    routes = '[{"id":"%s","targets":[{"store":"SEMANTIC","content":"x"}]}]'
    id = json.loads(seeded.text("EPISODIC.jsonl"))["id"]
    refusals = 0
    for argv in (
        ["encode", "--body", "x"],
        ["drain"],
        ["apply", "--routes", routes % id],
        ["replace", "--store", "SEMANTIC", "--body", "x"],
        ["lock", "acquire"],
    ):
        done = seeded.run(*argv)
        if done.returncode:
            refusals += 1
            assert done.stderr.count(b"\n") == 1
            assert b"Traceback" not in done.stderr
        assert sorted((path, path.is_file() and path.read_bytes()) for path in outside.rglob("*")) == before
    assert refusals


def test_a_home_that_is_a_link_is_a_home(world: World) -> None:
    world.home.mkdir()
    (world.folder / "link").symlink_to(world.home)
    world.encode("--body", "x", "--home", str(world.folder / "link"))
    assert len(world.log()) == 1


def test_homes(seeded: World) -> None:
    file = seeded.folder / "file"
    file.write_text("mine")
    for home in (f"{file}", f"{file}/sub", "/proc/none", f"{seeded.folder}/a\nb", f"{seeded.folder}/{'x' * 300}"):
        seeded.refused("encode", "--body", "x", "--home", home)
        seeded.refused("init", "--home", home)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("tag", ["a\nb", "a\x00b"[:1] + "\x01", "\x7f"])
def test_tags(seeded: World, tag: str) -> None:
    assert "tag" in seeded.refused("encode", "--body", "x", "--tags", f"ok,{tag}")
    assert "tag" in seeded.refused("encode", "--body", "x", "--scope", tag + "x")


def test_bodies(seeded: World) -> None:
    assert "at most" in seeded.refused("encode", "--body", "-", stdin=b"x" * 10_000_000)
    seeded.refused("encode", "--body-json", "[" * 100_000, code=2)
    seeded.refused("encode", "--body", "x", "--body-json", "1", code=2)
    seeded.refused("encode", code=2)
    assert "UTF-8" not in seeded.encode("--body", "-", stdin=b"a\0b\nc")
    assert seeded.log()[-1]["body"] == "a\0b\nc"


@pytest.mark.parametrize("verb", [["fold"], ["node", "."], ["audit"], ["read", "--under", "."]])
@pytest.mark.parametrize("config", [b"\xff", b"[" * 100_000, b"{" * 10, b'"x"', b"", b'{"host":[]}', b'{"memory":7}'])
def test_configs(seeded: World, verb: list[str], config: bytes) -> None:
    (seeded.work / "c.json").write_bytes(config)
    assert "config" in seeded.refused(*verb, "--config", "c.json")
    seeded.refused(*verb, "--config", ".")


def test_records_that_say_odd_things_are_read(world: World) -> None:
    odd: list[dict[str, object]] = [
        {"id": "01HX0000000000000000000001", "cwd": "../..", "session": "../x", "host": 7, "tags": "x", "body": None},
        {"id": "a\n\"b", "cwd": "/a\0b", "body": {"deep": [[[]]]}},
        {"id": "01HX0000000000000000000003", "cwd": {"not": "text"}, "host": "elm", "session": [], "routes": "x"},
        {"id": "01HX0000000000000000000004", "cwd": "/" + "x" * 5000, "body": "\ud800"},
        {"id": "01HX0000000000000000000005", "cwd": "/proc/self/root/../..", "scope": 1},
    ]  # fmt: skip
    world.write("EPISODIC.jsonl", "".join(json.dumps(record) + "\n" for record in odd))
    assert world.ok("read", "--count") == "5\n"
    assert [json.loads(row)["id"] for row in world.ok("fold").splitlines()] == [record.get("id") for record in odd]
    world.ok("read", "--under", "/", "--for-session", "s1", "--scope", "x")
    world.ok("apply", "--routes", "[]")
    world.ok("drain", "--completed-only")
    assert len(world.archives()[0].splitlines()) == 5


def test_a_damaged_journal_is_named_not_followed(seeded: World) -> None:
    outside = seeded.folder / "victim"
    outside.write_text("mine")
    seeded.write(".txn/0", "theirs")
    for journal in ('[["0","../victim"]]', '[["0","/etc/x"]]', "{", '[["../EPISODIC.jsonl","SEMANTIC.md"]]', "[[1]]"):
        seeded.write(".txn/journal", journal)
        seeded.refused("encode", "--body", "x")
    assert outside.read_text() == "mine"


def test_a_fifo_in_the_way(seeded: World) -> None:
    os.mkfifo(seeded.home / "pipe.jsonl")
    seeded.refused("encode", "--body", "x", "--path", "pipe.jsonl")
    seeded.refused("read", "--path", "pipe.jsonl")


def test_an_unwritable_dest_of_migrate(world: World) -> None:
    Path(world.work / "a.md").write_text("## A\n- one\n")
    world.refused("migrate", "a.md", "nowhere/b.jsonl")
    world.refused("migrate", "nowhere.md", "b.jsonl")
    (world.work / "folder").mkdir()
    world.refused("migrate", "a.md", "folder", "--overwrite")
    assert sorted(path.name for path in world.work.iterdir()) == ["a.md", "folder"]


@pytest.mark.parametrize("verb", ["encode --body x", "read", "fold", "--version", "--help", "session list", "audit", "drain"])
@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_output_is_no_failure(world: World, verb: str, closed: int) -> None:
    world.ok("init")
    done = world.run(*verb.split(), preexec=lambda: os.close(closed))
    assert (done.returncode, done.stderr) == (0, b"")
    if verb.startswith("encode"):
        assert [record["body"] for record in world.log()] == ["x"]


def test_a_closed_input_is_no_text(seeded: World) -> None:
    for verb in (("encode", "--body", "-"), ("replace", "--store", "SEMANTIC", "--body", "-"), ("apply", "--routes", "-")):
        seeded.refused(*verb, preexec=lambda: os.close(0))
