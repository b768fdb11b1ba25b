"""Whatever any SQLite tool does to the wheel: after the next pass Honcho holds what the wheel holds, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from double import Double
from hypothesis import given
from hypothesis import strategies as st
from world import World

from wheelmem.river import project

IDS = st.sampled_from(["b:1", "b:2", "b:3"])
PLACES = st.sampled_from([None, "c:1", "c-1", "c:2"])
VERBS = st.sampled_from(["INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE", "upsert"])

put = st.tuples(st.just("put"), VERBS, IDS, PLACES, st.sampled_from(["teal", "green"]), st.sampled_from([None, 1, 2, 3]))
change = st.tuples(st.just("change"), IDS, st.sampled_from(["title", "ceremonies", "id", "position", "cycle_id"]), IDS, PLACES)
delete = st.tuples(st.just("delete"), IDS)
ceremony = st.tuples(st.just("ceremony"), st.sampled_from(["c:1", "c-1", "c:2"]), st.sampled_from(["opening", "closing", None]))
deliver = st.tuples(st.just("deliver"))
interrupted = st.tuples(st.just("interrupted"), st.sampled_from(["DELETE", "/messages$", "/sessions$"]), st.booleans())


def listed(place: str | None) -> str | None:
    return None if place is None else json.dumps([place])


def apply(path: Any, step: tuple[Any, ...]) -> None:
    """One change with plain sqlite3."""
    db = sqlite3.connect(path)
    try:
        match step:
            case ("put", verb, id, place, title, position):
                into = "beats (id, title, ceremonies, position) VALUES (?, ?, ?, ?)"
                values = (id, title, listed(place), position)
                if verb == "upsert":
                    db.execute(f"INSERT INTO {into} ON CONFLICT DO UPDATE SET title = excluded.title", values)
                else:
                    db.execute(f"{verb} INTO {into}", values)
            case ("change", id, "ceremonies", _, place):
                db.execute("UPDATE beats SET ceremonies = ? WHERE id = ?", (listed(place), id))
            case ("change", id, "position", other, _):
                sql = "UPDATE OR REPLACE beats SET position = (SELECT position FROM beats WHERE id = ?) WHERE id = ?"
                db.execute(sql, (other, id)) if db.execute("SELECT 1 FROM beats WHERE id = ?", (other,)).fetchone() else None
            case ("change", id, "id", other, _):
                db.execute("UPDATE OR REPLACE beats SET id = ? WHERE id = ?", (other, id))
            case ("change", id, column, other, _):
                db.execute(f"UPDATE beats SET {column} = ? WHERE id = ?", (other, id))
            case ("delete", id):
                db.execute("DELETE FROM beats WHERE id = ?", (id,))
            case ("ceremony", id, None):
                db.execute("DELETE FROM ceremonies WHERE id = ?", (id,))
            case ("ceremony", id, type):
                db.execute("INSERT OR REPLACE INTO ceremonies (id, type) VALUES (?, ?)", (id, type))
        db.commit()
    finally:
        db.close()


@given(steps=st.lists(st.one_of(put, put, change, delete, ceremony, deliver, deliver, interrupted), min_size=2, max_size=14))
async def test_honcho_holds_what_the_wheel_holds(steps: list[tuple[Any, ...]], tmp_path_factory: Any) -> None:
    with Double() as double:
        world = World(tmp_path_factory.mktemp("tool") / "wheel.db", double)
        for step in steps:
            if step[0] == "deliver":
                await world.deliver()
            elif step[0] == "interrupted":
                with double.fault("close", step[1], after=step[2]):
                    await world.deliver()
            else:
                apply(world.path, step)
        done = await world.deliver()
        assert (done.pending, done.refused) == (0, 0)
        with world.wheel.snapshot() as db:
            from wheelmem.store.writing import select

            held = [(kind, record) for kind in ("ceremony", "beat") for record in select(db, kind)]
        expected: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for kind, record in held:
            one = project(kind, record)
            expected.setdefault(one.session, set()).add((one.id, one.content))
        arrived: dict[tuple[str, str], list[tuple[str, str]]] = {}
        workspace = double.workspaces.get("medicine-wheel")
        for session in workspace.sessions.values() if workspace else ():
            if session.gone_at is None and session.messages:
                key = (session.metadata["wheel_kind"], session.metadata["wheel_id"])
                found = [(message["metadata"]["wheel_id"], message["content"]) for message in session.messages]
                assert arrived.setdefault(key, found) is found, "one session for each"
        assert {key: set(found) for key, found in arrived.items()} == expected
        assert all(len(found) == len(set(found)) for found in arrived.values())
        world.wheel.close()
        assert double.violations == []
