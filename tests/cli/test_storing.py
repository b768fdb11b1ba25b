"""Making a wheel and putting records into it."""

from __future__ import annotations

import json

import pytest

from wheelmem.store import open_wheel


def test_init_makes_a_wheel_once(cli, machine):
    assert str(machine / "wheel.db") in cli("init").out
    cli("record", "node", '{"type": "human", "name": "Ana"}')
    assert "a wheel already: 1 node, no edges" in cli("init").out


def test_a_recorded_ceremony_and_its_turn_are_found(cli, machine):
    cli("init")
    circle = cli("record", "node", '{"type": "circle", "name": "Garden"}').out.strip()
    ana = cli("record", "node", '{"type": "human", "name": "Ana"}').out.strip()
    edge = cli("record", "edge", json.dumps({"from_id": ana, "to_id": circle, "relationship_type": "member_of"}))
    assert edge.out == f"{ana} {circle} member_of\n"
    ceremony = cli("record", "ceremony", "-", input=json.dumps({"type": "talking_circle", "circle_id": circle})).out.strip()
    turn = {"direction": "east", "title": "Ana speaks", "description": "teal", "ceremonies": [ceremony], "speaker": ana}
    beat = cli("record", "beat", json.dumps(turn))
    assert beat.err == ""
    entry = cli("record", "diary", json.dumps({"participant": ana, "content": "teal!", "metadata": {"ceremony_id": ceremony}}))
    found = json.loads(cli("search", "teal", "--circle", circle, "--json").out)["sources"]
    assert {source["wheel_id"] for source in found} == {beat.out.strip(), entry.out.strip()}
    assert {source["speaker_name"] for source in found} == {"Ana"}


def test_record_can_print_what_was_stored(cli, machine):
    cli("init")
    made = json.loads(cli("record", "node", '{"type": "human", "name": "Żaneta", "shoe": 38}', "--json").out)
    with open_wheel(machine / "wheel.db") as wheel:
        assert wheel.get("node", made["id"]) == made
    assert made["shoe"] == 38


def test_a_turn_may_come_before_its_ceremony(cli, machine):
    cli("init")
    result = cli("record", "beat", '{"direction": "east", "title": "early", "ceremonies": ["ceremony:late"]}')
    assert result.out.startswith("beat:east:")
    assert "does not hold ceremony:late yet" in result.err
    cli("record", "ceremony", '{"id": "ceremony:late", "type": "opening"}')
    assert "early" in cli("search", "early", "--ceremony", "ceremony:late").out


@pytest.mark.parametrize(
    ("kind", "given", "code", "said"),
    [
        ("diary", '{"participant": "a", "content": "b", "metadata": {"ceremony_id": "ceremony:x"}}', 1, "no ceremony ceremony:x"),
        ("ceremony", '{"type": "closing", "closes": "ceremony:x"}', 1, "no ceremony ceremony:x"),
        ("ceremony", '{"type": "closing", "research_context": "ceremony:x"}', 1, "no ceremony ceremony:x"),
        ("edge", '{"from_id": "a", "to_id": "b", "relationship_type": "c"}', 1, "no node a"),
        ("ceremony", '{"type": "party"}', 2, "smudging, talking_circle, spirit_feeding, opening, closing"),
        ("beat", '{"title": "x", "direction": "up"}', 2, "east, south, west, north"),
        ("node", "[]", 2, "must be a JSON object, not a list"),
        ("node", "nonsense", 2, "no JSON"),
        ("node", "[" * 100_000, 2, "no JSON"),
        ("node", '{"type": "human", "name": "x", "age": NaN}', 2, "no JSON"),
        ("song", "{}", 2, "'song' is not one of"),
    ],
)
def test_a_record_that_is_refused_leaves_the_wheel_as_it_was(cli, machine, kind, given, code, said):
    cli("init")
    with open_wheel(machine / "wheel.db") as wheel:
        before = wheel.count()
    result = cli("record", kind, "-", input=given, code=code)
    assert said in result.err
    assert result.out == ""
    assert result.err.splitlines()[-1].startswith("Error: ")
    with open_wheel(machine / "wheel.db") as wheel:
        assert wheel.count() == before


def test_standard_input_that_is_no_text_is_refused(cli, machine):
    cli("init")
    assert "UTF-8" in cli("record", "node", "-", input=b'{"name": "\xff"}', code=2).err


def test_recording_an_id_again_says_so(cli, machine):
    cli("init")
    one = '{"id": "node:1", "type": "human", "name": "Ana", "created_at": "2026-03-01", "updated_at": "2026-03-01"}'
    assert cli("record", "node", one).err == ""
    assert "held already" in cli("record", "node", one).err
    assert "the new value stands" in cli("record", "node", one.replace("Ana", "Anna")).err


@pytest.mark.parametrize(
    "id", ["node:’quote", "node:日本", "node:\U0001f56f\ufe0f", "node:a b", "node:%00", "-node", "node:\u202e"]
)
def test_ids_may_hold_any_letters(cli, machine, id):
    cli("init")
    made = cli("record", "node", json.dumps({"id": id, "type": "circle", "name": "C"}))
    assert made.out == id + "\n"
    cli("record", "ceremony", json.dumps({"type": "opening", "circle_id": id, "intentions": ["hum"]}))
    assert json.loads(cli("search", "hum", f"--circle={id}", "--json").out)["sources"]


def test_the_demo_again_changes_nothing_and_keeps_off_other_wheels(cli, demo, machine, tmp_path):
    first = cli("demo", "--db", demo).out
    assert cli("demo", "--db", demo).out == first
    own = tmp_path / "own.db"
    cli("init", "--db", own)
    cli("record", "ceremony", '{"type": "opening"}', "--db", own)
    assert "ceremonies of your own" in cli("demo", "--db", own, code=1).err
    # The wheel that the environment names is somebody's own.
    cli("demo", env={"WHEELMEM_DB": str(own)})
    assert (machine / "demo.db").exists()
    with open_wheel(own) as wheel:
        assert wheel.count()["ceremonies"] == 1


LINES = {
    "nodes.jsonl": [
        '{"id":"node:1","type":"human","name":"Ana"}',
        '{"id":"node:1","type":"human","name":"Ana Ríos"}',
        '{"id":"node:2","type":"hum',
    ],
    "ceremonies.jsonl": ['{"id":"ceremony:1","type":"opening","participants":"Ana","weather":"fog"}'],
    "beats.jsonl": ['{"id":"beat:1","title":"teal","ceremonies":["ceremony:1"],"speaker":"node:1"}'],
    "songs.jsonl": ['{"id":"song:1","key":"G"}'],
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    for name, lines in LINES.items():
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_a_folder_comes_in_is_found_and_goes_out_as_it_came(cli, folder, tmp_path):
    result = cli("import", folder)
    assert result.err.startswith("set aside: nodes.jsonl line 3: ")
    assert result.err.count("\n") == 1
    assert [line.split() for line in result.out.splitlines()][1] == ["nodes.jsonl", "3", "1", "1", "0", "1"]
    assert "Ana Ríos" in cli("search", "teal", "--ceremony", "ceremony:1").out
    again = json.loads(cli("import", folder, "--json").out)
    assert all(file["added"] == file["changed"] == 0 for file in again["files"])
    assert [(one["file"], one["line"]) for one in again["quarantined"]] == [("nodes.jsonl", 3)]
    out = tmp_path / "out" / "deep"
    assert {"file": "songs.jsonl", "lines": 1} in json.loads(cli("export", out, "--json").out)["files"]
    for name, lines in LINES.items():
        kept = [json.loads(line) for line in lines[-1:] if name != "nodes.jsonl"] or [json.loads(lines[1])]
        assert [json.loads(line) for line in (out / name).read_text(encoding="utf-8").splitlines()] == kept
    assert "ceremonies.jsonl" in cli("export", out).out


def test_the_folder_may_be_named_by_the_environment(cli, folder):
    cli("import", env={"MW_DATA_DIR": str(folder)})
    assert "Name a folder" in cli("import", code=2).err
    assert "Name a folder" in cli("export", code=2).err


def test_a_folder_that_is_no_wheel_makes_none(cli, machine, tmp_path):
    assert "no folder at" in cli("import", tmp_path / "gone", code=1).err
    assert not (machine / "wheel.db").exists()
    (tmp_path / "empty").mkdir()
    assert "is no wheel" in cli("import", tmp_path / "empty", code=1).err
    cli("init")
    assert "/proc/nowhere" in cli("export", "/proc/nowhere", code=1).err


SERVE = """
import click
from wheelmem import hookimpl

@hookimpl
def register_commands(cli):
    @cli.command()
    @click.argument("db", required=False)
    @click.pass_obj
    def serve(app, db):
        click.echo(f"serving {db or app.path}")
"""


def test_the_demo_can_be_served_by_whatever_serves(cli, machine, tmp_path, monkeypatch):
    monkeypatch.setenv("WHEELMEM_LOAD_PLUGINS", "")
    assert "no plugin that is loaded brings the command serve" in cli("demo", "--serve", code=1).err
    (tmp_path / "server.py").write_text(SERVE)
    assert cli("demo", "--serve", "--plugins-dir", tmp_path).out.endswith(f"serving {machine / 'demo.db'}\n")


DEAF = """
from wheelmem import hookimpl

class Deaf:
    name = "deaf"
    async def receive(self, projections): raise AssertionError("the demo was sent")

@hookimpl
def register_providers(register, settings):
    register(Deaf())
"""


def test_the_demo_is_sent_to_nobody(cli, machine, tmp_path):
    (tmp_path / "deaf.py").write_text(DEAF)
    cli("demo", "--plugins-dir", tmp_path)
    with open_wheel(machine / "demo.db") as wheel:
        assert wheel.read(lambda db: db.execute("SELECT count(*) FROM deliveries").fetchone()) == (0,)
