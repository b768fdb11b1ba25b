"""Homes and lengths: the same whether read from the seal, patched with what changed since, or counted anew."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from keyword_fixtures import Find, Say
from wheelmem_fts5 import measures as module
from wheelmem_fts5.measures import measures, seal
from wheelmem_fts5.words import stems

from wheelmem import Wheel, open_wheel

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "take", "seal", "far", "negative"]),
        st.integers(0, 9),
        st.integers(0, 3),
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=30,
)


def counted(db: sqlite3.Connection) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
    """Every record's (home, length), and every place's (records, words), from the records themselves."""
    records = {}
    places: dict[int, tuple[int, int]] = {}
    for record_id, home, text in db.execute("SELECT record_id, coalesce(home, 0), text FROM records"):
        length = len(stems(text))
        records[record_id] = (home, length)
        if home:
            held, words = places.get(home, (0, 0))
            places[home] = (held + 1, words + length)
    return records, places


def check(db: sqlite3.Connection) -> None:
    held = measures(db)
    records, places = counted(db)
    assert {record_id: held.get(record_id) for record_id in records} == records
    sums = {place: (held.counts[place], held.totals[place]) for place in range(len(held.counts)) if held.counts[place]}
    assert sums == places


@given(STEPS)
def test_however_it_came_about(tmp_path_factory: object, steps: list[tuple[str, int, int, int]]) -> None:
    folder: Path = tmp_path_factory.mktemp("measures")  # type: ignore[attr-defined]
    with open_wheel(folder / "wheel.db") as wheel:
        for what, n, ceremony, words in steps:
            beat = {"id": f"beat:{n}", "title": "word " * words, "ceremonies": [f"ceremony:{ceremony}"] if ceremony else []}
            if what == "put":
                wheel.put("beat", beat)
            elif what == "take":
                wheel.write(lambda db, n=n: db.execute("DELETE FROM beats WHERE id = ?", (f"beat:{n}",)))  # type: ignore[misc]
            elif what == "seal":
                wheel.write(seal)
            else:
                position = 10**12 + n if what == "far" else -1 - n
                wheel.write(
                    lambda db, n=n, position=position, words=words, ceremony=ceremony: db.execute(  # type: ignore[misc]
                        "INSERT OR REPLACE INTO beats (position, id, title, ceremonies) VALUES (?, ?, ?, json_array(?))",
                        (position, f"beat:odd{position}", "word " * words, f"ceremony:{ceremony}"),
                    )
                )
            with wheel.snapshot() as db:
                check(db)
        # As a process that has seen none of it reads the file.
        module._shared.clear()
        with wheel.snapshot() as db:
            db.cache.clear()
            check(db)


def test_positions_far_out_and_below_zero_are_found(wheel: Wheel, say: Say, find: Find) -> None:
    say("beat:1", "a lantern")
    db = sqlite3.connect(wheel.path)
    for position in (-5, 2**40):
        db.execute(
            "INSERT INTO beats (position, id, title, ceremonies) VALUES (?, ?, 'a lantern too', '[\"ceremony:1\"]')",
            (position, f"beat:{position}"),
        )
    db.commit()
    db.close()
    assert find("lantern") == ["beat:1", "beat:-5", f"beat:{2**40}"]


def test_a_long_list_of_changes_is_sealed_by_the_next_write(wheel: Wheel, say: Say) -> None:
    def waiting() -> int:
        count: int = wheel.read(lambda db: db.execute("SELECT count(*) FROM records_fts_changed").fetchone()[0])
        return count

    db = sqlite3.connect(wheel.path)
    rows = ((f"beat:{n}", "a lantern") for n in range(module.LONG))
    db.executemany("INSERT INTO beats (id, title, ceremonies) VALUES (?, ?, '[\"ceremony:1\"]')", rows)
    db.commit()
    db.close()
    assert waiting() >= module.LONG
    say("beat:last", "a lantern")
    assert waiting() == 0
    with wheel.snapshot() as reader:
        check(reader)
