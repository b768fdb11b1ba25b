"""Known ways such a tool loses or mangles what it was given; here none of them does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from homeworld import COMMAND, World, clean_env, line, whole

from wheelmem.home import cli
from wheelmem.home.folder import Home
from wheelmem.home.record import next_ulid, ulid_ms, ulid_text, ulid_value

TORN = '{"id":"01HX00000000000000'


def start(world: World, *argv: str) -> subprocess.Popen[bytes]:
    env = clean_env(world.user, AGENT_HOME=str(world.home), AGENT_SESSION_ID="s1")
    return subprocess.Popen([*COMMAND, *argv], env=env, cwd=world.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# --- appends and rewrites take one lock --------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [["drain"], ["apply", "--routes", "[]"]])
def test_an_encode_while_a_drain_rewrites_is_kept(world: World, monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> None:
    first = world.encode("--body", "before")
    meanwhile: list[subprocess.Popen[bytes]] = []
    commit = Home.commit

    def slow(self: Home, files: dict[str, bytes]) -> None:
        meanwhile.append(start(world, "encode", "--body", "meanwhile"))
        with pytest.raises(subprocess.TimeoutExpired):
            meanwhile[0].wait(timeout=1)  # it waits its turn
        commit(self, files)

    monkeypatch.setattr(Home, "commit", slow)
    monkeypatch.setenv("AGENT_SESSION_ID", "s1")
    assert cli.main([*argv, "--home", str(world.home)]) == 0
    second = meanwhile[0].communicate(timeout=60)[0].decode().strip()
    log, archived = whole(world.home)
    assert sorted(log + archived) == [first, second]
    assert second in log


def test_two_drains_at_once_archive_each_record_once(world: World) -> None:
    ids = [world.encode("--body", str(n)) for n in range(3)]
    for one in [start(world, "drain", "--keep", "100") for _ in range(4)]:
        one.communicate(timeout=60)
    log, archived = whole(world.home)
    assert (log, archived) == ([], ids)


# --- torn and foreign lines --------------------------------------------------------------------------------------------


def test_a_torn_tail_is_set_aside_and_never_glued_to(world: World) -> None:
    world.write("EPISODIC.jsonl", line(1) + "\n" + TORN)
    done = world.run("read")
    assert done.stdout.decode() == line(1) + "\n"
    assert done.stderr.count(b"\n") == 1
    assert b"line 2" in done.stderr
    id = world.encode("--body", "next")
    assert [record["id"] for record in world.log()] == [f"01HX{1:022d}", id]
    assert world.text("EPISODIC.quarantine.jsonl") == TORN + "\n"
    assert world.run("read").stderr == b""


def test_a_last_record_without_its_newline_is_a_record(world: World) -> None:
    world.write("EPISODIC.jsonl", line(1))
    assert world.ok("read") == line(1) + "\n"
    world.encode("--body", "next")
    assert world.text("EPISODIC.jsonl").startswith(line(1) + '\n{"id":"')
    assert not (world.home / "EPISODIC.quarantine.jsonl").exists()


BAD = [
    TORN.encode(),
    b"garbage",
    b'{"id":"x","body":"\xff"}',
    b"[1]",
    b'{"body":"no id"}',
    b'{"id":"x","body":NaN}',
    b"[" * 100000,
]


@pytest.mark.parametrize(
    "argv",
    [
        ["encode", "--body", "x"],
        ["drain"],
        ["drain", "--completed-only"],
        ["apply", "--routes", "[]"],
        ["apply", "--routes", json.dumps([{"id": f"01HX{2:022d}", "targets": []}])],
    ],
)
def test_unparseable_lines_block_no_verb_and_are_all_kept(world: World, argv: list[str]) -> None:
    world.write("EPISODIC.jsonl", b"\n".join([*BAD[:3], line(1).encode(), *BAD[3:], line(2).encode(), b""]))
    assert world.ok("read") == line(1) + "\n" + line(2) + "\n"
    assert world.ok("read", "--count") == "2\n"
    assert world.ok("fold").count("\n") == 2
    world.ok("audit", "--owed")
    world.ok(*argv)
    assert (world.home / "EPISODIC.quarantine.jsonl").read_bytes() == b"\n".join([*BAD, b""])
    log, archived = whole(world.home)
    assert {f"01HX{n:022d}" for n in (1, 2)} <= {*log, *archived}
    world.write("EPISODIC.jsonl", world.text("EPISODIC.jsonl") + "more garbage\n")
    world.encode("--body", "y")
    assert (world.home / "EPISODIC.quarantine.jsonl").read_bytes() == b"\n".join([*BAD, b"more garbage", b""])


def test_a_line_spoilt_in_the_middle_by_another_program_is_found_by_the_next_append(world: World) -> None:
    for n in range(3):
        world.encode("--body", str(n))
    text = world.text("EPISODIC.jsonl")
    world.write("EPISODIC.jsonl", text.replace('"body":"1"', '"body":"1'))
    world.encode("--body", "3")
    assert [record["body"] for record in world.log()] == ["0", "2", "3"]
    assert '"body":"1}' in world.text("EPISODIC.quarantine.jsonl")


# --- bytes that stay or move are kept ----------------------------------------------------------------------------------

ODD = (
    '{ "zeta":1, "id":"01HX0000000000000000000007","body":[12345678901234567890,1.0,1e400,-0.0],'
    '"session":"s1" ,"unknown":{"b":1,"a":"\\u00e9"}}'
)


def test_selective_drain_keeps_bytes_in_log_and_archive(world: World) -> None:
    world.ok("session", "register", "--session", "s2")
    other = ODD.replace("s1", "s2").replace("07", "08")
    world.write("EPISODIC.jsonl", ODD + "\n" + other + "\n")
    world.ok("drain", "--completed-only", session="s3")
    assert world.text("EPISODIC.jsonl") == other + "\n"
    assert world.archives() == [ODD + "\n"]


def test_apply_adds_routes_and_touches_nothing_else(world: World) -> None:
    world.write("EPISODIC.jsonl", ODD + "\n" + line(9) + "\r\n")
    world.ok("apply", "--routes", "[]")
    assert world.text("EPISODIC.jsonl") == f'{ODD[:-1]},"routes":["EPISODIC"]}}\n{line(9, routes=["EPISODIC"])}\r\n'
    before = snapshot = world.text("EPISODIC.jsonl")
    world.ok("apply", "--routes", "[]")
    assert world.text("EPISODIC.jsonl") == before == snapshot
    routes = [{"id": f"01HX{9:022d}", "targets": [{"store": "SEMANTIC", "content": "x"}, {"store": "EPISODIC"}]}]
    world.ok("apply", "--routes", json.dumps(routes))
    assert world.text("EPISODIC.jsonl").endswith(line(9, routes=["SEMANTIC", "EPISODIC"]) + "\r\n")


# --- landing is all or nothing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ({"store": "VAULT", "content": "x"}, 1),
        ({"store": "PROCEDURAL", "content": "x" * 8001}, 1),
        ({"store": "PROCEDURAL", "content": 7}, 1),
        ({"store": "PROCEDURAL", "content": "\ud800"}, 1),
        ("SEMANTIC", 2),
    ],
)
def test_apply_that_fails_at_a_later_record_lands_nothing(world: World, second: object, code: int) -> None:
    world.write("EPISODIC.jsonl", line(1) + "\n" + line(2) + "\n")
    good = {"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "once"}]}
    bad = {"id": f"01HX{2:022d}", "targets": [second]}
    world.refused("apply", "--routes", json.dumps([good, bad]), code=code)
    world.ok("apply", "--routes", json.dumps([good]))
    assert world.text("SEMANTIC.md") == "once\n"


def test_the_ceiling_names_store_ceiling_and_overage(world: World) -> None:
    world.write("EPISODIC.jsonl", line(1) + "\n")
    world.write("SEMANTIC.md", "x" * 7990 + "\n")
    routes = [{"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "0123456789"}]}]
    said = world.refused("apply", "--routes", json.dumps(routes))
    assert "SEMANTIC.md would be 8002 bytes, 2 over its ceiling of 8000" in said
    assert "1 over its ceiling of 8000" in world.refused("replace", "--store", "PROCEDURAL", "--body", "y" * 8000)


def test_content_is_not_glued_to_a_store_without_its_last_newline(world: World) -> None:
    world.write("EPISODIC.jsonl", line(1) + "\n")
    world.write("SEMANTIC.md", "no newline")
    routes = [{"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "landed"}]}]
    world.ok("apply", "--routes", json.dumps(routes))
    assert world.text("SEMANTIC.md") == "no newline\nlanded\n"


def test_a_session_that_is_no_path_segment_writes_no_record(world: World) -> None:
    assert "one path segment" in world.refused("encode", "--body", "x", "--session", "a/b")
    assert not world.home.exists()


# --- drain's arguments -------------------------------------------------------------------------------------------------


def test_drain_keep_0_keeps_the_archive_it_just_made(world: World) -> None:
    for text in ("one", "two"):
        world.encode("--body", text)
        told = world.ok("drain", "--keep", "0")
    assert told.splitlines()[1] == ".bak/: 1 kept, 1 pruned (keep=0)"
    assert json.loads(world.archives()[0])["body"] == "two"


@pytest.mark.parametrize(
    "argv",
    [
        ["--keep", "1.5"],
        ["--keep", "3x"],
        ["--keep", "-1"],
        ["--keep", ""],
        ["--keep", "٣"],
        ["--keep"],
        ["completed-only"],
        ["--completed-only=yes"],
        ["--completed-only="],
        ["-completed-only"],
        ["--", "--completed-only"],
        ["--completed-only", "--stale", "1h"],
    ],
)
def test_drain_refuses_what_it_does_not_understand(world: World, argv: list[str]) -> None:
    world.encode("--body", "x")
    world.refused("drain", *argv, code=2)


# --- words and switches ------------------------------------------------------------------------------------------------


def test_a_switch_does_not_swallow_the_next_word(world: World) -> None:
    (world.work / "a.md").write_text("## A\n- one\n")
    assert world.ok("node", "--json", ".") == f'{{"node":"{world.work}","basis":"markerless"}}\n'
    assert world.ok("migrate", "--dry-run", "a.md", "b.jsonl") == "dry-run: 1 items -> (nothing written)\n"
    assert not (world.work / "b.jsonl").exists()


def test_body_before_another_flag_does_not_read_stdin(world: World) -> None:
    said = world.refused("encode", "--body", "--tags", "a", code=2, stdin=b"from stdin")
    assert "--body needs a value" in said


def test_h_in_a_body_is_a_body(world: World) -> None:
    world.encode("--body", "-h")
    assert world.log()[0]["body"] == "-h"


@pytest.mark.parametrize("name", ["../x", "..", "a/b", ""])
def test_a_name_stays_under_agents(world: World, name: str) -> None:
    world.refused("encode", "--body", "x", f"--name={name}", home=False)
    assert not (world.user / "x").exists()


def test_an_empty_home_is_not_the_working_directory(world: World) -> None:
    world.refused("encode", "--body", "x", "--home=", code=2, home=False)
    assert list(world.work.iterdir()) == []


@pytest.mark.parametrize("verb", [["fold"], ["read", "--under", "."], ["audit"], ["node", "."]])
@pytest.mark.parametrize("config", [None, "{", "[]", '{"memory":{"scopeMarkers":"*.x"}}', '{"projects":"x"}'])
def test_a_config_that_is_missing_or_none_fails_the_verb(world: World, verb: list[str], config: str | None) -> None:
    path = world.work / "c.json"
    if config is not None:
        path.write_text(config)
    assert f"config {path}" in world.refused(*verb, "--config", "c.json")
    assert f"config {path}" in world.refused(*verb, AGENT_MEMORY_CONFIG=str(path))
    if config is not None:
        path.rename(world.work / ".cratylus.memory.json")
        assert "config" in world.refused(*verb)


# --- the lock ----------------------------------------------------------------------------------------------------------


def test_only_its_holder_releases_a_lock(world: World) -> None:
    world.ok("lock", "acquire")
    assert "only its holder releases it" in world.refused("lock", "release", session="s2")
    world.refused("lock", "release", session=None)
    assert world.ok("lock", "release", "--force", session="s2") == "released\n"
    world.ok("lock", "acquire")
    assert world.ok("lock", "release", "--session", "s1", session="s2") == "released\n"


# --- bytes that are no UTF-8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["encode", "--body", b"caf\xe9"], 2),
        (["encode", "--body", "x", "--tags", b"\xff"], 2),
        (["encode", "--body", "x", "--session", b"\xff"], 2),
        (["encode", "--body", "-"], 1),
        (["replace", "--store", "SEMANTIC", "--body", "-"], 1),
        (["apply", "--routes", "-"], 1),
    ],
)
def test_bytes_that_are_no_utf8_are_refused(world: World, argv: list[str | bytes], code: int) -> None:
    world.ok("init")
    assert "UTF-8" in world.refused(*argv, code=code, stdin=b"caf\xe9")


def test_migrate_refuses_bytes_that_are_no_utf8(world: World) -> None:
    (world.work / "a.md").write_bytes(b"## A\n- caf\xe9\n")
    assert "UTF-8" in world.refused("migrate", "a.md", "b.jsonl")
    assert [path.name for path in world.work.iterdir()] == ["a.md"]


def test_a_store_that_is_no_utf8_keeps_its_bytes(world: World) -> None:
    world.write("SEMANTIC.md", b"caf\xe9\n")
    world.write("EPISODIC.jsonl", line(1) + "\n")
    routes = [{"id": f"01HX{1:022d}", "targets": [{"store": "SEMANTIC", "content": "x"}]}]
    world.ok("apply", "--routes", json.dumps(routes))
    assert world.run("get", "--store", "SEMANTIC").stdout == b"caf\xe9\nx\n"


# --- ids ---------------------------------------------------------------------------------------------------------------


def test_ids_increase_though_the_clock_steps_back(world: World) -> None:
    ahead = ulid_text((4_000_000_000_000 << 80) + 5)
    world.write("EPISODIC.jsonl", json.dumps({"id": ahead, "body": "from the future"}) + "\n")
    first = world.encode("--body", "now")
    assert ulid_value(first) == ulid_value(ahead) + 1  # type: ignore[operator]
    world.ok("drain")
    second = world.encode("--body", "after the drain emptied the log")
    assert second > first


def test_an_id_that_nothing_can_follow_blocks_nothing(world: World) -> None:
    world.write("EPISODIC.jsonl", '{"id":"7ZZZZZZZZZZZZZZZZZZZZZZZZZ","body":1}\n')
    assert ulid_ms(world.encode("--body", "x")) < 4_000_000_000_000  # type: ignore[operator]


def test_ids_within_a_millisecond_increase() -> None:
    ids = [0]
    for _ in range(1000):
        ids.append(next_ulid(ids[-1], 1_700_000_000_000))
    texts = [ulid_text(id) for id in ids]
    assert texts == sorted(set(texts))
    assert [ulid_value(text) for text in texts] == ids


# --- migrate -----------------------------------------------------------------------------------------------------------


def migrated(world: World, text: str) -> list[tuple[str, str]]:
    (world.work / "in.md").write_text(text)
    world.ok("migrate", "in.md", "out.jsonl", "--overwrite")
    records = [json.loads(row) for row in (world.work / "out.jsonl").read_text().splitlines()]
    assert all(list(r) == ["id", "scope", "path", "body"] and r["body"]["imported"] == "EPISODIC.md" for r in records)
    return [(r["body"]["section"], r["body"]["text"]) for r in records]


def test_text_after_a_comment_s_end_is_kept(world: World) -> None:
    assert migrated(world, "## A\n<!-- x\ny --> kept\n- one\n<!-- z --><!-- w -->- two\n<!-- gone -->\n") == [
        ("A", "kept"),
        ("A", "- one"),
        ("A", "- two"),
    ]


def test_a_comment_that_never_ends_is_text(world: World) -> None:
    assert migrated(world, "## A\n- one\n<!-- open\n- two\n") == [("A", "- one\n<!-- open"), ("A", "- two")]


def test_a_fence_is_closed_by_its_own_kind_only(world: World) -> None:
    text = "## A\n- one\n~~~\n```\n## no\n~~~~\n- two\n````\n```\n- no\n````\n- ```\n  ## no\n  ```\n- `a` ```b``` c\n- last\n"
    assert [text for _, text in migrated(world, text)] == [
        "- one\n~~~\n```\n## no\n~~~~",
        "- two\n````\n```\n- no\n````",
        "- ```\n  ## no\n  ```",
        "- `a` ```b``` c",
        "- last",
    ]


def test_a_log_without_sections_is_kept(world: World) -> None:
    assert migrated(world, "# Log\n\n- one\n- two\n") == [("", "# Log"), ("", "- one"), ("", "- two")]


def test_migrate_never_writes_over_its_source(world: World) -> None:
    (world.work / "a.md").write_text("## A\n- one\n")
    world.refused("migrate", "a.md", "a.md", "--overwrite")
    assert (world.work / "a.md").read_text() == "## A\n- one\n"


def test_the_empty_log_after_a_drain_is_a_file(world: World) -> None:
    world.encode("--body", "x")
    world.ok("drain")
    assert Path(world.home / "EPISODIC.jsonl").read_bytes() == b""
