"""Rows changed with any SQLite tool are found, or gone, in the next search."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from keyword_fixtures import Find, Say

from wheelmem import Wheel

IN = '["ceremony:1"]'


@pytest.fixture
def sql(wheel: Wheel) -> Callable[..., None]:
    def run(*statements: str) -> None:
        db = sqlite3.connect(wheel.path)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    return run


@pytest.fixture
def sqlite_utils(wheel: Wheel) -> Callable[..., None]:
    def run(*arguments: str, rows: Any = None) -> None:
        command = [sys.executable, "-m", "sqlite_utils", arguments[0], str(wheel.path), *arguments[1:]]
        text = None if rows is None else json.dumps(rows)
        subprocess.run([*command, *(["-"] if text else [])], input=text, text=True, check=True, capture_output=True)

    return run


def sound(wheel: Wheel) -> None:
    """The index holds exactly what the records say."""
    db = sqlite3.connect(wheel.path)
    db.execute("INSERT INTO records_fts (records_fts, rank) VALUES ('integrity-check', 1)")
    sizes = db.execute("SELECT count(*) FROM records_fts_docsize").fetchone()
    assert sizes == db.execute("SELECT count(*) FROM records").fetchone()
    db.close()


def test_rows_changed_with_plain_sqlite(wheel: Wheel, find: Find, sql: Callable[..., None]) -> None:
    assert find("lantern") == []
    sql(f"INSERT INTO beats (id, title, ceremonies) VALUES ('beat:1', 'a lantern', '{IN}')")
    assert find("lantern") == ["beat:1"]
    sql("UPDATE beats SET title = 'a river' WHERE id = 'beat:1'")
    assert (find("lantern"), find("river")) == ([], ["beat:1"])
    sql(f"INSERT OR REPLACE INTO beats (id, title, ceremonies) VALUES ('beat:1', 'a stone', '{IN}')")
    assert (find("river"), find("stone")) == ([], ["beat:1"])
    sql(f"REPLACE INTO beats (position, id, title, ceremonies) SELECT position, 'beat:2', 'a bridge', '{IN}' FROM beats")
    assert (find("stone"), find("bridge")) == ([], ["beat:2"])
    sql(f"INSERT OR IGNORE INTO beats (id, title, ceremonies) VALUES ('beat:2', 'ignored', '{IN}')")
    assert (find("ignored"), find("bridge")) == ([], ["beat:2"])
    sql("UPDATE OR REPLACE beats SET id = 'beat:3'")
    assert find("bridge") == ["beat:3"]
    sql("UPDATE beats SET ceremonies = '[\"ceremony:elsewhere\"]'")
    assert find("bridge") == []
    sql(f"UPDATE beats SET ceremonies = '{IN}'")
    assert find("bridge") == ["beat:3"]
    sql("DELETE FROM beats")
    assert find("bridge") == []
    sound(wheel)


def test_rows_changed_with_recursive_triggers_on_and_off(wheel: Wheel, find: Find, sql: Callable[..., None]) -> None:
    for setting in ("ON", "OFF"):
        sql(
            f"PRAGMA recursive_triggers = {setting}",
            f"INSERT OR REPLACE INTO beats (id, title, ceremonies) VALUES ('beat:1', 'a lantern {setting}', '{IN}')",
            f"INSERT OR REPLACE INTO beats (id, title, ceremonies) VALUES ('beat:1', 'a river {setting}', '{IN}')",
        )
        assert (find("lantern"), find("river")) == ([], ["beat:1"])
        sound(wheel)


def test_what_is_rolled_back_was_never_there(wheel: Wheel, find: Find) -> None:
    db = sqlite3.connect(wheel.path, isolation_level=None)
    db.execute("BEGIN")
    db.execute(f"INSERT INTO beats (id, title, ceremonies) VALUES ('beat:1', 'a lantern', '{IN}')")
    db.execute("ROLLBACK")
    db.close()
    assert find("lantern") == []
    sound(wheel)


def test_rows_changed_with_the_sqlite_utils_command(wheel: Wheel, find: Find, sqlite_utils: Callable[..., None]) -> None:
    row = {"id": "beat:1", "title": "a lantern", "ceremonies": ["ceremony:1"]}
    sqlite_utils("insert", "beats", rows=row)
    assert find("lantern") == ["beat:1"]
    sqlite_utils("upsert", "beats", "--pk", "id", rows={**row, "title": "a river"})
    assert (find("lantern"), find("river")) == ([], ["beat:1"])
    sqlite_utils("insert", "beats", "--replace", rows={**row, "title": "a stone"})
    assert (find("river"), find("stone")) == ([], ["beat:1"])
    sqlite_utils("query", "UPDATE beats SET title = 'a bridge'")
    assert (find("stone"), find("bridge")) == ([], ["beat:1"])
    sqlite_utils("vacuum")
    assert find("bridge") == ["beat:1"]
    sqlite_utils("query", "DELETE FROM beats")
    assert find("bridge") == []
    sound(wheel)


def test_the_index_is_one_that_other_tools_find(wheel: Wheel, say: Say) -> None:
    import sqlite_utils

    say("beat:1", "two lanterns")
    db = sqlite_utils.Database(wheel.path)
    assert db["records"].detect_fts() == "records_fts"
    assert [row["wheel_id"] for row in db["records"].search("lantern")] == ["beat:1"]
    db.close()


def test_a_wheel_that_was_filled_before_the_arm_came(tmp_path: Any) -> None:
    from wheelmem import create_memory, load_plugins, open_wheel
    from wheelmem.memory import run

    path = tmp_path / "wheel.db"
    with open_wheel(path, plugins=load_plugins(load="")) as bare:
        bare.put("ceremony", {"id": "ceremony:1", "type": "opening", "circle_id": "circle:a"})
        bare.put("beat", {"id": "beat:1", "title": "a lantern", "ceremonies": ["ceremony:1"]})
    with open_wheel(path) as wheel:
        answer = run(
            memory := create_memory(wheel=wheel, providers=[]),
            memory.search(query="lantern", scope={"circle_id": "circle:a"}, arms=["keyword"]),
        )
        assert [source.wheel_id for source in answer.sources] == ["beat:1"]
        sound(wheel)
