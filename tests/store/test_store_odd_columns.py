"""Rows as no wheelmem would write them, and more scopes than anybody should keep."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from storeworld import plain_wheel

from wheelmem.contract import Scope
from wheelmem.store import reading
from wheelmem.store.connections import Recent


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE nodes SET name = x'ff00'",
        "UPDATE ceremonies SET id = x'ff00'",
        "UPDATE ceremonies SET timestamp = x'ff00'",
        "UPDATE beats SET speaker = x'ff00'",
        "INSERT INTO diary (id, participant) VALUES ('d', x'ff00')",
        "INSERT INTO edges (from_id, to_id, relationship_type) VALUES ('a', x'ff00', 'member_of')",
    ],
)
def test_a_blob_where_an_id_a_name_or_a_time_stands_is_refused(tmp_path: Path, sql: str) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        wheel.put("node", {"id": "n", "type": "human", "name": "Ana"})
        wheel.put("ceremony", {"id": "c", "type": "opening"})
        wheel.put("beat", {"id": "b", "title": "t", "ceremonies": ["c"]})
    db = sqlite3.connect(tmp_path / "w.db")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        db.execute(sql)
    db.close()


@pytest.mark.parametrize("context", ['{"a":' * 50_000 + "1" + "}" * 50_000, '{"a":' * 1_500 + "1" + "}" * 1_500])
def test_a_context_nested_too_deep_to_read_names_no_episode(tmp_path: Path, context: str) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        wheel.put("ceremony", {"id": "c", "type": "opening", "participants": ["Elm"], "research_context": context})
        reach = wheel.read(lambda db: reading.resolve(db, Scope(participant="Elm"))).reach
    assert reach.ceremonies == ("c",)


def test_a_connection_keeps_the_scopes_asked_last_and_no_more(tmp_path: Path) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        wheel.put("ceremony", {"id": "c", "type": "opening"})

        def ask(db: Any) -> int:
            db.cache["measures"] = "dear"
            for number in range(1_000):
                reading.resolve(db, Scope(ceremonies=("c", f"x{number}")))
                assert db.cache.get("measures") == "dear"
            return len(db.cache)

        assert wheel.read(ask) == Recent.most
