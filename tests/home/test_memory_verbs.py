"""The verbs, as their user sees them, where the recorded transcripts do not show it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from homeworld import World, clean_env, line

from wheelmem.home import lock
from wheelmem.home.cli import VERBS
from wheelmem.home.folder import Home


def test_version_and_usage(world: World) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", world.ok("--version"))
    assert "encode" in world.ok("--help")
    for verb in VERBS:
        assert world.ok(verb, "--help").startswith(f"usage: memory {verb}")
    assert not world.home.exists()


def test_an_unknown_verb_is_wrong_use(world: World) -> None:
    assert "unknown verb" in world.refused("remember", code=2)


def test_install_tells_whether_it_is_on_path(world: World) -> None:
    bin = world.folder / "bin"
    bin.mkdir()
    assert b"not on PATH" in world.run("install", PATH=str(bin)).stderr
    (bin / "memory").write_text("#!/bin/sh\n")
    (bin / "memory").chmod(0o755)
    assert str(bin / "memory") in world.ok("install", PATH=str(bin))
    assert not world.home.exists()


def test_init_seeds_what_is_absent_and_touches_nothing_else(world: World) -> None:
    world.write("SEMANTIC.md", "mine")
    assert world.ok("init") == (
        f"init {world.home}\n  seeded: PROCEDURAL.md, EPISODIC.jsonl\n  present, untouched: SEMANTIC.md\n"
    )
    assert world.text("SEMANTIC.md") == "mine"
    assert world.ok("init").endswith("  seeded: -\n  present, untouched: SEMANTIC.md, PROCEDURAL.md, EPISODIC.jsonl\n")
    assert world.ok("audit").startswith("audit: clean")


def test_tags_are_trimmed_and_scope_is_one_of_them(world: World) -> None:
    world.encode("--body", "x", "--tags", " a, ,b ", "--scope", "user")
    assert world.log()[0]["tags"] == ["a", "b", "user"]
    assert world.ok("read", "--scope", "user", "--count") == "1\n"
    assert world.ok("read", "--scope", "other", "--count") == "0\n"


def test_stdin_loses_one_newline(world: World) -> None:
    world.encode("--body", "-", stdin="deux lignes\nété\n\n".encode())
    assert world.log()[0]["body"] == "deux lignes\nété\n"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("12345678901234567890", "12345678901234567890"),
        ("1.0", "1.0"),
        ("1e400", "1e400"),
        (' { "b" : [ 1 , "a  b" ] , "a" : null } ', '{"b":[1,"a  b"],"a":null}'),
        (r'"\u00e9 \ud83d\ude00 \/"', '"é 😀 /"'),
        (r'"\ud800"', r'"\ud800"'),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_json_bodies_are_kept_as_spelled(world: World, given: str, kept: str) -> None:
    world.encode("--body-json", given)
    assert world.text("EPISODIC.jsonl").endswith(f'"body":{kept}}}\n')
    assert world.ok("read") == world.text("EPISODIC.jsonl")


def test_another_log_in_the_home(world: World) -> None:
    world.encode("--body", "x", "--path", "notes/side.jsonl")
    assert world.text("EPISODIC.jsonl") == ""
    assert world.ok("read", "--path", "notes/side.jsonl", "--count") == "1\n"
    assert "nothing to archive" in world.ok("drain")
    assert "drained 1 record(s)" in world.ok("drain", "--path", "notes/side.jsonl")


def test_whose_capture_it_is_must_be_clear(world: World) -> None:
    assert "no session is live" in world.refused("encode", "--body", "x", session=None)
    world.ok("session", "register", "--session", "one")
    world.encode("--body", "x", session=None)
    assert world.log()[0]["session"] == "one"
    world.ok("session", "register", "--session", "two")
    assert "2 sessions are live (one, two)" in world.refused("encode", "--body", "x", session=None)
    world.encode("--body", "x", CLAUDE_SESSION_ID="claude")
    assert world.log()[1]["session"] == "claude"


def test_capturing_again_revives_a_released_session(world: World) -> None:
    world.encode("--body", "x")
    world.ok("session", "release")
    assert world.ok("session", "status") == "completed\n"
    world.encode("--body", "y")
    assert world.ok("session", "status") == "live\n"


def test_session_json_and_list(world: World) -> None:
    for id in ("b", "a"):
        world.ok("session", "register", "--session", id)
    world.ok("session", "release", "--session", "b")
    listed = [json.loads(row) for row in world.ok("session", "list").splitlines()]
    assert [(row["id"], row["state"], row["released"]) for row in listed] == [("a", "live", False), ("b", "completed", True)]
    assert list(listed[0]) == ["id", "state", "lastBeat", "released"]
    assert json.loads(world.ok("session", "status", "z", "--json")) == {"id": "z", "state": "absent", "released": False}


def test_a_new_session_gets_an_id(world: World) -> None:
    assert re.fullmatch(r"registered [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n", world.ok("session", "register", session=None))


def test_an_owned_session_lives_as_long_as_its_process(world: World) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        world.ok("session", "register", "--pid", str(owner.pid))
        assert world.ok("session", "status") == "live\n"
    finally:
        owner.communicate(b"\n")
    assert world.ok("session", "status") == "completed\n"
    assert "no process" in world.refused("session", "register", "--pid", str(owner.pid))


def test_a_damaged_session_file_stops_nothing(world: World) -> None:
    world.write("sessions/broken.json", "{")
    world.write("sessions/odd.json", "[]")
    world.encode("--body", "x")
    assert len(world.ok("session", "list").splitlines()) == 1


def test_home_by_session(world: World) -> None:
    world.encode("--body", "x", "--name", "kit", home=False)
    assert world.ok("home", "--session", "s1", home=False) == f"{world.user}/.agents/kit\n"
    assert world.ok("home", "--session", "s1") == f"{world.user}/.agents/kit\n"
    world.encode("--body", "x")
    assert world.ok("home", "--session", "s1") == f"{world.home}\n"
    assert "no home knows session" in world.refused("home", "--session", "zz", home=False)


def test_node_of_a_file_or_a_relative_path(world: World) -> None:
    (world.work / ".git").mkdir()
    (world.work / "a").mkdir()
    assert world.ok("node", "a") == f"{world.work}\n"
    assert world.ok("node", "--json", "a") == f'{{"node":"{world.work}","basis":".git"}}\n'


def test_read_under_counts_what_it_leaves_out(world: World) -> None:
    (world.work / "package.json").write_text("{}")
    world.encode("--body", "here")
    gone = world.work / "sub"
    gone.mkdir()
    (gone / "PLAN.md").write_text("")
    world.encode("--body", "gone", cwd=gone)
    (gone / "PLAN.md").unlink()
    gone.rmdir()
    (world.work / "package.json").unlink()
    with open(world.home / "EPISODIC.jsonl", "a") as log:
        log.write(line(1) + "\n" + line(2).replace("elm", "alder") + '\n{"id":"x","body":1}\n')
    done = world.run("read", "--under", str(world.work))
    assert [json.loads(row)["body"] for row in done.stdout.splitlines()] == ["here"]
    assert done.stderr.decode() == f"under {world.work}: 1 matched; foreign-host: alder=1 elm=1; legacy: 1\n"


def test_read_under_counts_before_other_sessions_are_left_out(world: World) -> None:
    world.encode("--body", "mine")
    world.encode("--body", "theirs", session="s2")
    done = world.run("read", "--under", str(world.work), "--for-session", "s1", "--count")
    assert done.stdout == b"1\n"
    assert b": 2 matched;" in done.stderr


def test_audit_owed_from_a_dozen(world: World) -> None:
    world.write("EPISODIC.jsonl", "".join(line(n) + "\n" for n in range(11)))
    assert world.ok("audit", "--owed") == "clear\n"
    world.encode("--body", "x")
    assert world.ok("audit", "--owed") == "owed\n"


def test_audit_over_the_watermark_comes_first_and_fails_nothing(world: World) -> None:
    world.write("SEMANTIC.md", "x" * 8000 + "\n")
    assert world.ok("audit") == (
        "SEMANTIC.md: 8001B over the 8000B watermark — depalimpsest owed\naudit: clean (1 file(s) scanned, 0 pinned)\n"
    )


def test_audit_knows_projects_and_the_config_s_own_folder(world: World) -> None:
    config = world.work / "c.json"
    config.write_text('{"projects":["alpha"]}')
    (world.work / "go.mod").write_text("")
    world.write("SEMANTIC.md", "Alpha and work, alphabet, work-shop\n")
    assert world.run("audit", "--config", str(config)).stdout.decode().splitlines()[:-1] == [
        "SEMANTIC.md:1: [repo-key] work",
        "SEMANTIC.md:1: [repo-key] Alpha",
    ]
    (world.work / "go.mod").unlink()
    assert b"] work" not in world.run("audit", "--config", str(config)).stdout


def test_a_git_word_and_a_hash_make_branches(world: World) -> None:
    world.write(
        "SEMANTIC.md",
        "`topic/one`, merged\nabc1234 (topic/two)\nMR topic/three\npush/pull the branch\nmerge origin/x/y\ndiff/round trip\n",
    )
    assert re.findall(r":(\d): \[branch-ref\] (.*)", world.run("audit").stdout.decode()) == [
        ("1", "topic/one"),
        ("2", "topic/two"),
        ("3", "topic/three"),
        ("5", "origin/x/y"),
    ]


# --- the lock ----------------------------------------------------------------------------------------------------------


def aged(path: Path, minutes: float) -> None:
    then = time.time() - 60 * minutes
    os.utime(path, (then, then))


def test_a_stale_lock_is_stolen(world: World) -> None:
    world.ok("lock", "acquire")
    aged(world.home / "dream.lock", 130)
    assert world.ok("lock", "status").startswith("held (age 130.0m): {")
    assert world.ok("lock", "acquire", session="s2") == "acquired (stole stale lock, age 130.0m)\n"
    assert '"session":"s2"' in world.text("dream.lock")
    aged(world.home / "dream.lock", 119)
    assert "lock held (age 119.0m, stale after 120.0m): {" in world.refused("lock", "acquire")


def test_an_empty_lock_names_no_holder(world: World) -> None:
    world.write("dream.lock", "")
    assert world.ok("lock", "status") == "held (age 0.0m)\n"
    assert world.refused("drain") == "lock held (age 0.0m, stale after 120.0m)\n"


def test_the_holder_writes_under_its_own_lock(world: World) -> None:
    world.encode("--body", "x")
    world.ok("lock", "acquire")
    world.ok("drain")
    assert (world.home / "dream.lock").exists()
    assert "lock held" in world.refused("drain", session="s2")


def test_a_lock_taken_for_a_call_is_not_the_session_s_own(world: World) -> None:
    home = Home(str(world.home))
    with lock.guard(home, "s1", "dream"):
        assert '"verb":"dream"' in world.refused("drain")
        assert "only its holder" in world.refused("lock", "release", session="s2")
    assert world.ok("lock", "status") == "free\n"


def test_a_lock_left_by_a_killed_call_keeps_nobody_out(world: World) -> None:
    world.encode("--body", "x")
    script = (
        "import os, signal; from wheelmem.home import cli, dream\n"
        "dream.land = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "cli.main(['apply', '--routes', '[]'])"
    )
    env = {"AGENT_HOME": str(world.home), "HOME": str(world.user), "AGENT_SESSION_ID": "s9"}
    subprocess.run([sys.executable, "-c", script], env=env, timeout=60, check=False)
    assert (world.home / "dream.lock").exists()
    assert "drained 1" in world.ok("drain")


# --- stores ------------------------------------------------------------------------------------------------------------


def test_replace_if_match_keeps_two_sessions_from_wiping_each_other(world: World) -> None:
    world.write("SEMANTIC.md", "old\n")
    read = world.ok("get", "--store", "SEMANTIC", "--hash").strip()
    world.ok("replace", "--store", "SEMANTIC", "--body", "first", "--if-match", read)
    assert "has changed" in world.refused("replace", "--store", "SEMANTIC", "--body", "second", "--if-match", read)
    assert world.ok("get", "--store", "SEMANTIC") == "first\n"
    absent = world.ok("get", "--store", "PROCEDURAL", "--hash").strip()
    world.ok("replace", "--store", "PROCEDURAL", "--body", "ways", "--if-match", absent)


def test_replace_keeps_each_previous_text(world: World) -> None:
    for text in ("one", "two", "three"):
        world.ok("replace", "--store", "SEMANTIC", "--body", text)
    assert [path.read_text() for path in sorted(world.home.glob(".bak/SEMANTIC.*.md"))] == ["one\n", "two\n"]


@pytest.mark.parametrize("verb", [("get",), ("replace", "--body", "x")])
def test_the_log_is_no_store(world: World, verb: tuple[str, ...]) -> None:
    world.refused(*verb, "--store", "EPISODIC", code=2)
    world.refused(*verb, "--store", "semantic")


def test_apply_says_what_it_did_and_archives_what_left(world: World) -> None:
    world.write("EPISODIC.jsonl", "".join(line(n) + "\n" for n in (1, 2, 3)))
    routes = [
        {"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "a"}, {"store": "PROCEDURAL", "content": "b"}]},
        {"id": f"01HX{2:022d}", "targets": []},
    ]
    assert world.ok("apply", "--routes", "-", stdin=json.dumps(routes).encode()) == (
        "applied 2 decision(s): 2 consumed, 1 retained, 2 home(s) landed\n"
    )
    assert world.archives() == [line(1) + "\n" + line(2) + "\n"]
    assert world.text("EPISODIC.jsonl") == line(3, routes=["EPISODIC"]) + "\n"


# --- dream -------------------------------------------------------------------------------------------------------------


def test_dream_routes_by_what_captures_say(world: World) -> None:
    bodies = [
        ("FACT: the lantern\n  is teal", ""),
        ("RULE: ask first", ""),
        ("NEXT: measure", ""),
        ("RULE: a tag beats it", "semantic"),
        ("both", "semantic,procedural"),
        ("stay and land", "next,semantic"),
        ("nothing to keep", "drop"),
        ("keep what is not only dropped", "drop,next"),
        ("who knows", ""),
        ("fact: lower case says nothing", ""),
        ("word " * 100, "semantic"),
    ]
    for body, tags in bodies:
        world.encode("--body", body, "--tags", tags)
    before = world.text("EPISODIC.jsonl")
    routes = world.ok("dream", "--dry-run", "--classifier", "rules")
    assert world.text("EPISODIC.jsonl") == before
    landed = world.ok("dream", "--classifier", "rules")
    assert landed == "applied 9 decision(s): 6 consumed, 5 retained, 2 home(s) landed\n"
    facts = world.text("SEMANTIC.md").splitlines()
    assert facts[:4] == ["- the lantern is teal", "- a tag beats it", "- both", "- stay and land"]
    assert len(facts) == 5
    assert len(facts[4]) <= 203
    assert facts[4].endswith("word…")
    assert world.text("PROCEDURAL.md") == "- ask first\n- both\n"
    assert [record["body"] for record in world.log()] == [bodies[i][0] for i in (2, 5, 7, 8, 9)]
    assert len(world.archives()[0].splitlines()) == 6
    # the dry run's routes are what apply takes
    world.write("EPISODIC.jsonl", before)
    (world.home / "SEMANTIC.md").unlink()
    assert world.ok("apply", "--routes", routes) == landed
    assert world.text("SEMANTIC.md").splitlines() == facts


def test_dream_names_the_classifiers_there_are(world: World) -> None:
    assert "there are: " in world.refused("dream", "--classifier", "nobody", "--dry-run")


PLUGIN = """
from wheelmem import hookimpl

class Mine:
    name = "mine"
    def route(self, record):
        if record["body"] == "fail":
            raise ValueError("no idea")
        if record["body"] == "nonsense":
            return "SEMANTIC"
        if record["body"] == "place":
            return [{"store": "SEMANTIC", "content": record["node"] + " " + record["basis"]}]

@hookimpl
def register_classifiers(register, settings):
    register(Mine())
"""


def test_a_stranger_s_classifier_and_one_that_fails(world: World) -> None:
    (world.folder / "plugins").mkdir()
    (world.folder / "plugins" / "mine.py").write_text(PLUGIN)
    for body in ("fail", "nonsense", "place"):
        world.encode("--body", body)
    done = world.run("dream", "--plugins-dir", str(world.folder / "plugins"), "--classifier", "mine")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"classifier mine failed on ") == 2
    assert world.text("SEMANTIC.md") == f"{world.work} markerless\n"
    assert [record["body"] for record in world.log()] == ["fail", "nonsense"]


def test_wheelmem_memory_is_the_same_command(world: World) -> None:
    argv = [sys.executable, "-m", "wheelmem", "memory"]
    env = clean_env(world.user, AGENT_HOME=str(world.home))
    for given in (["encode", "--body", "-x", "--session", "s1"], ["read", "--count"], ["read", "--help"], ["--version"]):
        done = subprocess.run([*argv, *given], env=env, cwd=world.work, capture_output=True, text=True, check=True)
        assert given[0] == "encode" or done.stdout == world.ok(*given)
    assert [record["body"] for record in world.log()] == ["-x"]
    done = subprocess.run([*argv, "drain", "3x"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


# --- what starts with it -----------------------------------------------------------------------------------------------


def test_home_imports_the_standard_library_only() -> None:
    modules = ["record", "folder", "boundary", "session", "lock", "log", "dream", "audit", "migrate", "wheel", "cli"]
    script = (
        "import sys; before = set(sys.modules)\n"
        + "".join(f"import wheelmem.home.{name}\n" for name in modules)
        + "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["wheelmem"]


def test_encode_starts_with_little() -> None:
    script = "import sys, wheelmem.home.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"argparse", "pathlib", "dataclasses", "subprocess", "socket", "hashlib", "uuid", "click", "wheelmem.contract"}
    assert not heavy & set(loaded)
