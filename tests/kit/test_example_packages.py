"""The example packages, and one whose arms all hang, as a stranger's: built, installed, and found by entry point alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from environment import EXAMPLES, Environment

PACKAGES = sorted(path.parent for path in EXAMPLES.glob("*/pyproject.toml"))
GARDEN = "circle:garden"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("examples"), PACKAGES)


@pytest.fixture(scope="module")
def wheel(environment: Environment) -> Path:
    path = environment.folder / "wheel.db"
    for kind, record in (
        ("node", {"id": GARDEN, "type": "circle", "name": "Garden"}),
        ("ceremony", {"id": "ceremony:1", "type": "talking_circle", "direction": "south", "circle_id": GARDEN}),
        ("beat", {"id": "beat:1", "title": "The old lantern", "description": "by the bridge", "ceremonies": ["ceremony:1"]}),
        ("beat", {"id": "beat:2", "title": "A bridge", "description": "a lantern that is old", "ceremonies": ["ceremony:1"]}),
    ):
        done = environment.run("-c", STORE, str(path), kind, json.dumps(record))
        assert done.returncode == 0, done.stderr
    return path


STORE = "import sys, json; from wheelmem import open_wheel; open_wheel(sys.argv[1]).put(sys.argv[2], json.loads(sys.argv[3]))"


def said(environment: Environment, *arguments: str, **env: str) -> Any:
    done = environment.wheelmem(*arguments, "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_every_example_is_listed_with_its_distribution(environment: Environment, wheel: Path) -> None:
    found = {plugin["name"]: plugin["from"] for plugin in said(environment, "plugins")}
    assert found["runs"] == "wheelmem-runs 0.1.0"
    assert found["notes"] == "wheelmem-notes 0.1.0"
    assert found["howto"] == "wheelmem-howto 0.1.0"


def test_the_arm_answers(environment: Environment, wheel: Path) -> None:
    assert any(arm["name"] == "runs" and arm["ready"] for arm in said(environment, "arms", "--db", str(wheel)))
    search = ["search", "--db", str(wheel), "--circle", GARDEN, "--arm", "runs", "--explain", "the old lantern"]
    answer = said(environment, *search)
    assert [source["wheel_id"] for source in answer["sources"]] == ["beat:1", "beat:2"]
    assert answer["sources"][0]["explain"]["arms"] == [{"arm": "runs", "rank": 1, "score": 3.0, "path": "3 words in a row"}]


def test_the_provider_answers_once_it_is_set_up(environment: Environment, wheel: Path) -> None:
    notes = environment.folder / "notes"
    notes.mkdir()
    (notes / "ceremony-1.md").write_text("Ana wrote: the lantern is red.")
    assert not any(one["provider"] == "notes" for one in said(environment, "status", "--db", str(wheel))["providers"])
    env = {"WHEELMEM_NOTES_FOLDER": str(notes)}
    assert {"provider": "notes", "enabled": True, "confined": True, "detail": {"notes": 1}} in said(
        environment, "status", "--db", str(wheel), **env
    )["providers"]
    answer = said(environment, "ask", "--db", str(wheel), "--circle", GARDEN, "which lantern?", **env)
    assert (answer["provider"], answer["mode"]) == ("notes", "search")
    first = answer["sources"][0]
    assert (first["wheel_kind"], first["wheel_id"], first["outside_wheel"]) == ("message", "ceremony-1.md", True)
    assert {source["wheel_id"] for source in answer["sources"][1:]} <= {"beat:1", "beat:2", "ceremony:1"}
    assert "they are no records" in answer["note"]


def test_the_classifier_is_there(environment: Environment) -> None:
    assert {"name": "howto", "plugin": "howto", "does": ["weigh", "route"]} in said(environment, "classifiers")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_its_own_tests_pass(environment: Environment, package: Path) -> None:
    done = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(package / "tests"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_three_arms_in_a_row_that_hang_cost_a_note_each(tmp_path: Path, wheel: Path) -> None:
    environment = Environment(tmp_path, [EXAMPLES / "wheelmem-runs", Path(__file__).parent / "wheelmem-hanging"])
    search = ["search", "--db", str(wheel), "--circle", GARDEN, "the old lantern"]
    plain = said(environment, *search, WHEELMEM_LOAD_PLUGINS="runs")
    names = ("hangs-asleep", "hangs-loop", "hangs-sql")
    answer = said(environment, *search, WHEELMEM_LOAD_PLUGINS="runs,hanging", WHEELMEM_ARM_TIMEOUT="0.5")
    assert answer["sources"] == plain["sources"]
    assert [source["wheel_id"] for source in answer["sources"]] == ["beat:1", "beat:2"]
    notes = answer["note"].split("; ")
    assert [sum(f"arm {name} did not" in note for note in notes) for name in names] == [1, 1, 1], notes
