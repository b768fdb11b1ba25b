"""Whatever tool changes a row, and however: what is derived from it is right when the statement ends."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storeworld import REPEATS, derived, keyword, plain_wheel, told, told_of_reimport

from wheelmem import create_memory, open_wheel
from wheelmem.memory import run
from wheelmem.store import Wheel

LISTS = [
    None, "[]", "", "null", '["a"]', '["c1"]', '["c1","c2"]', '["c2","c1","c2"]', '["gone","c1"]', '["","c1",null]',
    "c1", '"c2"', "5", '{"a":1}', '[1,2.0,true]', '[["x"]]', "NaN", "[NaN]", "not [json", '["n\\u0000ul"]',
]  # fmt: skip
OBJECTS = [
    None, "{}", "", "[]", "not json", "null", '"c1"', '{"ceremony_id":"c1"}', '{"ceremony_id":"gone"}', '{"ceremony_id":""}',
    '{"ceremony_id":5}', '{"ceremony_id":["c1"]}', '{"facilitator_id":"n1"}',
    '{"kind":"memory_projection","status":"confirmed","projection_kind":"pattern","derived_by":"n1","source_event_ids":["b1","c1"],'
    '"generated_at":"2026-03-01T00:00:00Z"}',
    '{"kind":"memory_projection","status":"confirmed","derived_by":"n2","source_event_ids":"b1"}',
    '{"kind":"memory_projection","status":"confirmed","source_event_ids":[]}',
    '{"kind":"memory_projection","status":"inferred","source_event_ids":["b1"]}',
]  # fmt: skip
TEXTS = [None, "", "words", "more\nwords", "Ana"]
TIMES = [None, "", "2026-03-01T18:00:00.000Z", "2026-03-01T20:00:00+02:00", "2026-03-01", "now", "soon"]
CONTEXTS = [None, "", "prose", "c1", "c2", "ceremony:x", '{"episode_path":"e1"}', '{"episodePath":"e1"}', "[1]", "{"]
SHAPES: dict[str, tuple[str, dict[str, list[Any]]]] = {
    "ceremonies": ("c", {
        "type": [None, "closing", "talking_circle"], "direction": [None, "east"], "participants": LISTS, "intentions": LISTS,
        "timestamp": TIMES, "research_context": CONTEXTS, "closes": [None, "c1"], "circle_id": [None, "n3"],
    }),
    "beats": ("b", {
        "direction": [None, "", "west"], "title": TEXTS, "description": TEXTS, "prose": TEXTS, "ceremonies": LISTS,
        "learnings": LISTS, "timestamp": TIMES, "speaker": [None, "", "n1"], "witnesses": LISTS,
    }),
    "diary": ("d", {
        "timestamp": TIMES, "participant": [None, "", "n1"], "phase": [None, "", "migwech"], "entryType": [None, "", "learning"],
        "content": TEXTS, "metadata": OBJECTS, "chronicle": [None, "", "chronicle:e1", "e1"],
    }),
    "nodes": ("n", {"type": [None, "human", "knowledge", "circle"], "name": TEXTS, "description": TEXTS, "metadata": OBJECTS}),
}  # fmt: skip
CONFLICTS = ["", " OR REPLACE", " OR IGNORE", " OR FAIL", " OR ABORT", " OR ROLLBACK"]

Statement = tuple[str, list[Any]]


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    """One statement that puts rows in, changes them or takes them out, with any conflict clause."""
    table = draw(st.sampled_from(list(SHAPES)))
    letter, shape = SHAPES[table]
    ids = st.sampled_from([f"{letter}{number}" for number in range(1, 4)])
    position = st.one_of(st.none(), st.integers(-1, 4))
    conflict = draw(st.sampled_from(CONFLICTS))
    columns = [*shape]
    values = st.tuples(*(st.sampled_from(shape[name]) for name in columns))
    quoted = ", ".join(f'"{name}"' for name in ["position", "id", *columns])
    kind = draw(st.sampled_from(["insert", "insert", "upsert", "update", "rename", "move", "delete"]))
    if kind in ("insert", "upsert"):
        rows = draw(st.lists(st.tuples(position, ids, values), min_size=1, max_size=1 if kind == "upsert" else 3))
        places = ", ".join(f"({', '.join('?' * (len(columns) + 2))})" for _ in rows)
        upsert = ", ".join(f'"{name}" = excluded."{name}"' for name in columns)
        tail = f" ON CONFLICT (id) DO UPDATE SET {upsert}" if kind == "upsert" else ""
        sql = f"INSERT{conflict if kind == 'insert' else ''} INTO {table} ({quoted}) VALUES {places}{tail}"
        return sql, [value for place, id, row in rows for value in (place, id, *row)]
    if kind == "update":
        names = draw(st.lists(st.sampled_from(columns), min_size=1, unique=True))
        set_to = [draw(st.sampled_from(shape[name])) for name in names]
        changes = ", ".join(f'"{name}" = ?' for name in names)
        return f"UPDATE{conflict} {table} SET {changes} WHERE id >= ?", [*set_to, draw(ids)]
    if kind == "rename":
        return f"UPDATE{conflict} {table} SET id = ? WHERE id = ?", [draw(ids), draw(ids)]
    if kind == "move":
        return f"UPDATE{conflict} {table} SET position = ? WHERE id = ?", [draw(st.integers(-1, 4)), draw(ids)]
    return f"DELETE FROM {table} WHERE id = ?", [draw(ids)]


def play(db: sqlite3.Connection, played: list[Statement]) -> None:
    for sql, values in played:
        try:
            db.execute(sql, values)
        except sqlite3.IntegrityError:
            pass


@settings(max_examples=min(5000, 40 * REPEATS))
@given(st.lists(statements(), min_size=1, max_size=12))
def test_after_any_statements_a_wheel_is_as_one_made_from_its_export(played: list[Statement]) -> None:
    with tempfile.TemporaryDirectory() as place, open_wheel(Path(place) / "w.db", plugins=keyword()) as wheel:
        db = sqlite3.connect(wheel.path, isolation_level=None)
        play(db, played)
        # The keyword arm's index says the same as the records do.
        db.execute("INSERT INTO records_fts (records_fts, rank) VALUES ('integrity-check', 1)")
        db.close()
        assert told(wheel) == told_of_reimport(wheel)


@settings(max_examples=min(5000, 20 * REPEATS))
@given(st.lists(statements(), min_size=1, max_size=12))
def test_what_is_derived_row_by_row_is_what_is_derived_from_all_rows_at_once(played: list[Statement]) -> None:
    from wheelmem.store.schema import derive

    with tempfile.TemporaryDirectory() as place, plain_wheel(Path(place) / "w.db") as wheel:
        db = sqlite3.connect(wheel.path, isolation_level=None)
        play(db, played)
        by_row = derived(db)
        for table in ("records", "also_in", "ceremony_participants", "beat_witnesses", "conclusion_sources", "places"):
            db.execute(f"DELETE FROM {table}")
        for table in SHAPES:
            derive(db, table, -1000)
        assert derived(db) == by_row
        db.close()


def test_vacuum_keeps_every_key_and_the_order() -> None:
    with tempfile.TemporaryDirectory() as place, plain_wheel(Path(place) / "w.db") as wheel:
        for number in (5, 3, 9, 1, 7):
            wheel.put("ceremony", {"id": f"c{number}"})
            wheel.put("beat", {"id": f"b{number}", "title": f"t{number}", "ceremonies": [f"c{number}"]})
        wheel.delete("ceremony", "c3")
        wheel.delete("beat", "b9")
        keys = "SELECT record_id, wheel_id, home, text FROM records ORDER BY record_id"
        before = told(wheel), wheel.read(lambda db: db.execute(keys).fetchall())
        db = sqlite3.connect(wheel.path)
        db.execute("VACUUM")
        db.close()
        assert (told(wheel), wheel.read(lambda db: db.execute(keys).fetchall())) == before


@pytest.mark.parametrize("position", [1 << 60, -(1 << 60), (1 << 63) - 1])
def test_a_position_of_which_no_key_can_be_made_is_refused_at_once(tmp_path: Path, position: int) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        db = sqlite3.connect(wheel.path, isolation_level=None)
        for table in SHAPES:
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                db.execute(f"INSERT INTO {table} (position, id) VALUES (?, 'x')", (position,))
            db.execute(f"INSERT INTO {table} (position, id) VALUES (?, 'y')", (position >> 5,))
        db.close()
        assert sum(wheel.count().values()) == 4
        assert told(wheel) == told_of_reimport(wheel)


# --- the same as its user would see it -----------------------------------------------------------------------------


@pytest.fixture
def wheel(tmp_path: Path) -> Any:
    with open_wheel(tmp_path / "w.db", plugins=keyword()) as made:
        made.put("ceremony", {"id": "c1", "type": "talking_circle"})
        made.put("ceremony", {"id": "c2", "type": "talking_circle"})
        made.put("beat", {"id": "b1", "title": "the lantern", "ceremonies": ["c1"]})
        yield made


def found(wheel: Wheel, query: str, *ceremonies: str) -> list[str]:
    memory = create_memory(wheel=wheel)
    answer = run(memory, memory.search(query=query, scope={"ceremonies": list(ceremonies or ("c1", "c2"))}))
    return [source.wheel_id for source in answer.sources if source.wheel_id]


SQL = [
    ("INSERT INTO beats (id, title, ceremonies) VALUES ('b2', 'a heron', '[\"c2\"]')", {"heron": ["b2"], "lantern": ["b1"]}),
    (
        "INSERT OR REPLACE INTO beats (id, title, ceremonies) VALUES ('b1', 'a heron', '[\"c2\"]')",
        {"heron": ["b1"], "lantern": []},
    ),
    (
        "INSERT OR REPLACE INTO beats (position, id, title, ceremonies) VALUES (1, 'b9', 'heron', 'c1')",
        {"heron": ["b9"], "lantern": []},
    ),
    (
        "INSERT OR IGNORE INTO beats (id, title, ceremonies) VALUES ('b1', 'a heron', '[\"c2\"]')",
        {"heron": [], "lantern": ["b1"]},
    ),
    (
        "INSERT INTO beats (id, title, ceremonies) VALUES ('b1', 'heron', 'c1') ON CONFLICT DO UPDATE SET title = excluded.title",
        {"heron": ["b1"], "lantern": []},
    ),
    ("UPDATE beats SET title = 'a heron' WHERE id = 'b1'", {"heron": ["b1"], "lantern": []}),
    ("UPDATE beats SET id = 'b3' WHERE id = 'b1'", {"lantern": ["b3"]}),
    ("UPDATE beats SET position = 77 WHERE id = 'b1'", {"lantern": ["b1"]}),
    ("UPDATE beats SET ceremonies = '[\"elsewhere\"]' WHERE id = 'b1'", {"lantern": []}),
    ("DELETE FROM beats", {"lantern": []}),
    ("DELETE FROM ceremonies WHERE id = 'c1'", {"lantern": []}),
]


@pytest.mark.parametrize(("sql", "expected"), SQL, ids=[sql[:44] for sql, _ in SQL])
def test_rows_changed_with_sqlite3_are_found_or_gone_in_the_next_search(
    wheel: Wheel, sql: str, expected: dict[str, list[str]]
) -> None:
    assert found(wheel, "lantern") == ["b1"]
    db = sqlite3.connect(wheel.path)
    with db:
        db.execute(sql)
    db.close()
    assert {query: found(wheel, query) for query in expected} == expected


def test_a_row_replaced_by_another_of_its_position_and_a_third_of_its_id_leaves_nothing_behind(wheel: Wheel) -> None:
    wheel.put("beat", {"id": "b2", "title": "a heron", "ceremonies": ["c2", "c1"], "witnesses": ["Ana"]})
    db = sqlite3.connect(wheel.path)
    with db:
        db.execute("UPDATE OR REPLACE beats SET position = 2, title = 'a kite' WHERE id = 'b1'")
    assert found(wheel, "heron") == []
    assert found(wheel, "kite", "c1") == ["b1"]
    assert db.execute("SELECT count(*) FROM beat_witnesses").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM also_in").fetchone() == (0,)
    db.close()


def test_rows_changed_with_the_sqlite_utils_command_are_found_or_gone_in_the_next_search(wheel: Wheel) -> None:
    def sqlite_utils(*arguments: str, given: Any = None) -> None:
        command = [str(Path(sys.executable).parent / "sqlite-utils"), *arguments]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    path = str(wheel.path)
    row = {"id": "b2", "title": "a heron", "ceremonies": ["c1", "c2"]}
    sqlite_utils("insert", path, "beats", "-", given=row)
    assert found(wheel, "heron", "c2") == ["b2"]
    position = wheel.read(lambda db: db.execute("SELECT position FROM beats WHERE id = 'b2'").fetchone()[0])
    sqlite_utils("upsert", path, "beats", "-", "--pk", "position", given={"position": position, "id": "b2", "title": "a kite"})
    assert (found(wheel, "heron"), found(wheel, "kite", "c1")) == ([], ["b2"])
    sqlite_utils("insert", path, "beats", "-", "--replace", given={**row, "position": position, "title": "a mill"})
    assert (found(wheel, "kite"), found(wheel, "mill", "c1")) == ([], ["b2"])
    sqlite_utils("insert", path, "beats", "-", "--ignore", given={**row, "title": "a swan"})
    assert (found(wheel, "swan"), found(wheel, "mill")) == ([], ["b2"])
    sqlite_utils("query", path, "UPDATE beats SET title = 'a weir' WHERE id = 'b2'")
    assert (found(wheel, "mill"), found(wheel, "weir")) == ([], ["b2"])
    sqlite_utils("query", path, "DELETE FROM beats WHERE id = 'b2'")
    assert found(wheel, "weir") == []
