"""Questions on the command line, as people and as programs ask them."""

from __future__ import annotations

import json
import sqlite3

import pytest

from wheelmem.cli.show import columns_of, wrap
from wheelmem.demo import FERRY, HERON, KITCHEN, MIRA, ORCHARD, QUESTION
from wheelmem.memory import create_memory, run
from wheelmem.store import open_wheel


def test_the_same_question_has_its_answer_from_its_own_circle(cli, demo):
    orchard = cli("ask", QUESTION, "--circle", ORCHARD).out
    ferry = cli("ask", QUESTION, "--circle", FERRY).out
    assert "the lantern is red" in orchard
    assert "Green" not in orchard
    assert "our lantern is green" in ferry
    assert "grandmother" not in ferry


def test_words_need_no_quotes_around_them(cli, demo):
    assert cli("ask", *QUESTION.split(), "--circle", FERRY).out == cli("ask", QUESTION, "--circle", FERRY).out


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["ask", QUESTION], lambda memory, scope: memory.ask(question=QUESTION, scope=scope)),
        (["search", "lantern", "--limit", "2"], lambda memory, scope: memory.search(query="lantern", scope=scope, limit=2)),
        (
            ["search", "lantern", "--explain", "--arm", "keyword"],
            lambda memory, scope: memory.search(query="lantern", scope=scope, explain=True, arms=["keyword"]),
        ),
        (["about", HERON], lambda memory, scope: memory.about(person=HERON, scope=scope)),
        (["about", HERON, "flood"], lambda memory, scope: memory.about(person=HERON, scope=scope, question="flood")),
        (["reach"], lambda memory, scope: memory.reach(scope=scope)),
    ],
)
def test_json_is_the_contract_and_nothing_else(cli, demo, arguments, call):
    result = cli(*arguments, "--circle", FERRY, "--json")
    with open_wheel(demo) as wheel:
        memory = create_memory(wheel=wheel)
        expected = run(memory, call(memory, {"circle_id": FERRY})).to_json()
    assert json.loads(result.out) == expected
    assert list(json.loads(result.out)) == list(expected)
    assert result.err == ""


def test_the_scope_options_make_the_scope(cli, demo):
    given = ["--circle", ORCHARD, "--circle", KITCHEN, "--subject", "pde:landing", "--episode", "e", "--ceremony", "c1"]
    given += ["--ceremony", "c2", "--participant", MIRA, "--exclude", "ceremony:demo:o1"]
    reach = json.loads(cli("reach", "--json", *given).out)
    assert reach["scope"] == {
        "ceremonies": ["c1", "c2"],
        "subject_id": "pde:landing",
        "circle_id": [ORCHARD, KITCHEN],
        "episode_path": "e",
        "participant": MIRA,
        "exclude_ceremonies": ["ceremony:demo:o1"],
    }
    assert reach == json.loads(cli("reach", "--json", "--scope", json.dumps(reach["scope"])).out)
    assert "ceremony:demo:o2" in reach["ceremonies"]
    assert "ceremony:demo:o1" not in reach["ceremonies"]


def test_no_scope_reaches_nothing_and_says_what_to_do(cli, demo):
    result = cli("search", "lantern")
    assert result.out.startswith("empty · no sources")
    assert "--circle" in result.err
    assert FERRY in result.err
    assert json.loads(cli("search", "lantern", "--json").out)["mode"] == "empty"


def test_a_scope_that_reaches_nothing_says_what_the_wheel_lacks(cli, demo):
    result = cli("search", "lantern", "--circle", "circle:elsewhere")
    assert "no ceremony for circle_id circle:elsewhere" in result.err


def test_a_question_that_nothing_answers_says_how_much_was_looked_through(cli, demo):
    result = cli("search", "zeppelin", "--circle", FERRY)
    assert "no sources" in result.out
    assert "4 ceremonies were looked through" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "x", "--scope", '{"foo": 1}'], "scope does not know foo"),
        (["search", "x", "--scope", '{"circle_id": 1}'], "scope.circle_id must be a string or a list of strings"),
        (["search", "x", "--scope", "{"], "--scope is no JSON"),
        (["search", "x", "--scope", "[]"], "--scope must be a JSON object"),
        (["search", "x", "--scope", '{"circle_id": NaN}'], "no JSON"),
        (["search", "x", "--scope", "{}", "--circle", "y"], "leave out --circle"),
        (["search", "x", "--limit", "0"], "--limit"),
        (["search", "x", "--arm", "crystal"], "no arm is named 'crystal'"),
        (["ask", "x", "--level", "extreme"], "--level"),
        (["search", " ", "--circle", "y"], "query must be some words"),
        (["search", "x" * 10_001, "--circle", "y"], "10,001 characters"),
        (["search"], "QUERY"),
        (["serch", "x"], "No such command"),
        (["search", "x", "--colour"], "No such option"),
    ],
)
def test_wrong_use_is_told_in_a_line_and_ends_with_2(cli, demo, arguments, said):
    result = cli(*arguments, code=2)
    assert said in result.err
    assert result.out == ""


@pytest.mark.parametrize("command", [["search", "x"], ["reach"], ["status"], ["record", "node", "{}"], ["about", "x"]])
def test_a_wheel_that_is_none_is_told_in_a_line_and_ends_with_1(cli, tmp_path, command):
    words = tmp_path / "words.txt"
    words.write_text("no database, but long enough to be read as one" * 100)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (a)")
    for path, said in (
        (tmp_path / "gone.db", "wheelmem init"),
        (tmp_path, "is a folder"),
        (words, "no SQLite database"),
        (other, "but no wheel"),
    ):
        before = path.read_bytes() if path.is_file() else None
        result = cli(*command, "--db", path, code=1)
        assert result.err.startswith("Error: ")
        assert said in result.err
        assert result.err.count("\n") == 1
        assert (path.read_bytes() if path.is_file() else None) == before


def test_db_may_stand_before_the_command_or_after_it_or_in_the_environment(cli, demo, tmp_path):
    moved = demo.rename(tmp_path / "moved.db")
    scope = ["--circle", FERRY]
    expected = cli("--db", moved, "reach", *scope).out
    assert "stone steps" in cli("search", "landing", "--db", moved, *scope).out
    assert cli("reach", *scope, "--db", moved).out == expected
    assert cli("reach", *scope, env={"WHEELMEM_DB": str(moved)}).out == expected
    cli("reach", *scope, code=1)


@pytest.mark.parametrize("columns", [30, 47, 80])
def test_lines_keep_to_the_width_of_the_terminal(cli, demo, columns):
    for command in (["ask", QUESTION, "--explain"], ["reach"], ["about", HERON]):
        out = cli(*command, "--circle", FERRY, env={"COLUMNS": str(columns)}).out
        if command != ["reach"]:
            assert max(map(columns_of, out.splitlines())) <= columns


def test_wide_letters_count_for_two_columns():
    lines = wrap("灯籠は緑色です。 灯籠は 緑色です", 12)
    assert all(columns_of(line) <= 12 for line in lines)
    assert "".join(lines).replace(" ", "") == "灯籠は緑色です。灯籠は緑色です"


def test_nothing_in_a_record_is_obeyed_by_the_terminal(cli, demo):
    nasty = "lantern \x1b[31m\x1b]0;title\x07 \u202egnp.exe \x9b2J\r gone"
    cli(
        "record",
        "beat",
        json.dumps(
            {"direction": "east", "title": "x", "description": nasty, "ceremonies": ["ceremony:demo:f1"], "speaker": "\x1b[2J"}
        ),
    )
    out = cli("search", "lantern gone", "--ceremony", "ceremony:demo:f1", "--limit", "1").out
    assert "gone" in out
    assert not any(character in out for character in "\x1b\x07\u202e\x9b\r")


def test_half_a_character_in_a_record_harms_nothing(cli, demo):
    cli("record", "beat", '{"direction": "east", "title": "lantern \\ud800", "ceremonies": ["ceremony:demo:f1"]}')
    assert "lantern" in cli("search", "lantern", "--ceremony", "ceremony:demo:f1").out
    json.loads(cli("search", "lantern", "--ceremony", "ceremony:demo:f1", "--json").out)


def test_status_names_the_wheel_and_what_it_holds(cli, demo):
    out = cli("status").out
    assert str(demo) in out.replace("\n", "")
    assert "12 ceremonies" in out
    assert json.loads(cli("status", "--json").out)["providers"][-1] == {
        "provider": "wheel",
        "enabled": True,
        "confined": True,
        "detail": {"mode": "matched"},
    }


DEAF = """
from wheelmem import hookimpl
from wheelmem.contract import ProviderStatus, WheelmemError

class Deaf:
    name = "deaf"
    async def status(self): return ProviderStatus("deaf", True, False)
    async def receive(self, projections): raise WheelmemError("it hears nothing")

@hookimpl
def register_providers(register, settings):
    register(Deaf())
"""


def test_status_says_what_waits_for_a_provider_and_why(cli, demo, tmp_path):
    (tmp_path / "deaf.py").write_text(DEAF)
    where = ["--plugins-dir", tmp_path]
    cli("status", *where)
    made = cli("record", "beat", '{"direction": "east", "title": "x", "ceremonies": ["ceremony:demo:f1"]}', *where)
    out = cli("status", *where).out
    assert "deaf" in out
    assert "1 record(s) wait for deaf since " in out
    assert "it hears nothing" in out
    river = json.loads(cli("status", "--json", *where).out)["river"]
    assert river["pending"] == 1
    assert river["held_back"][0]["id"] == made.out.strip()
