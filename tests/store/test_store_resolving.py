"""The store resolves a scope from its indexes; the pure function over all ceremonies says what that must come to."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from storeworld import REPEATS, plain_wheel

from wheelmem.contract import Scope
from wheelmem.reach import resolve_reach
from wheelmem.store import reading, writing

IDS = [f"ceremony:{number}" for number in range(1, 7)]
PEOPLE = ["node:human:1:a", "node:human:2:b", "Ana"]
CIRCLES = ["circle:1", "circle:2"]
EPISODES = ["e1", "e2"]
SUBJECTS = ["s1", "s2"]
CONTEXTS = [
    *IDS[:3], "prose", "", "[]", "{", {}, 7, {"episodePath": "e1"},
    '{"episodePath":"e1"}', '{"episode_path":"e2","episodePath":"e1"}', '{"episode_path":""}',
    ' {"episodePath":"e2"}', '{"episode_path":5,"episodePath":"e1"}',
]  # fmt: skip


def maybe(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, None, "", *values])


ceremonies = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from(IDS)},
        optional={
            "type": maybe(["closing", "talking_circle"]),
            "participants": st.lists(st.sampled_from([*PEOPLE, ""]), max_size=3) | st.sampled_from([*PEOPLE, None]),
            "circle_id": maybe(CIRCLES),
            "subject_id": maybe(SUBJECTS),
            "episode_path": maybe(EPISODES),
            "closes": maybe([*IDS, "gone"]),
            "research_context": maybe(CONTEXTS),
        },
    ),
    max_size=9,
)
seats = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(CIRCLES), st.sampled_from(["member_of", "knows"])), max_size=3
)
facilitators = st.lists(st.sampled_from([*PEOPLE, None, 5]), min_size=2, max_size=2)
names = st.sampled_from(["", " ", "nobody", "ceremony:1 "])
scopes = st.fixed_dictionaries(
    {},
    optional={
        "ceremonies": st.lists(st.sampled_from(IDS) | names, max_size=2) | st.sampled_from(IDS),
        "subject_id": st.lists(st.sampled_from(SUBJECTS) | names, max_size=2) | st.sampled_from(SUBJECTS),
        "circle_id": st.lists(st.sampled_from(CIRCLES) | names, max_size=2),
        "episode_path": st.lists(st.sampled_from(EPISODES) | names, max_size=2) | st.sampled_from(EPISODES),
        "participant": st.sampled_from(PEOPLE) | names,
        "exclude_ceremonies": st.lists(st.sampled_from(IDS), max_size=2),
    },
)


@settings(max_examples=min(5000, 40 * REPEATS))
@given(ceremonies, seats, facilitators, st.lists(scopes, min_size=1, max_size=4))
def test_the_store_resolves_any_scope_as_the_pure_function_does(
    rows: list[dict[str, Any]], sits: list[tuple[str, str, str]], leads: list[Any], asked: list[dict[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as place, plain_wheel(Path(place) / "w.db") as wheel:

        def fill(db: sqlite3.Connection) -> None:
            for row in rows:
                wheel.store(db, "ceremony", row)
            for person, circle, relation in sits:
                wheel.store(db, "edge", {"from_id": person, "to_id": circle, "relationship_type": relation})
            for circle, leader in zip(CIRCLES, leads, strict=True):
                metadata = {} if leader is None else {"facilitator_id": leader}
                wheel.store(db, "node", {"id": circle, "type": "circle", "metadata": metadata})

        wheel.write(fill)
        latest: dict[str, dict[str, Any]] = {}
        for row in rows:
            latest[row["id"]] = row
        sitting = [{"person_id": person, "circle_id": circle} for person, circle, relation in sits if relation == "member_of"]
        sitting += [
            {"person_id": lead, "circle_id": circle} for circle, lead in zip(CIRCLES, leads, strict=True) if isinstance(lead, str)
        ]
        with wheel.snapshot() as db:
            assert [one["id"] for one in writing.select(db, "ceremony")] == list(latest)
            assert {(person, circle) for person, circle in db.execute("SELECT * FROM seats")} == {
                (seat["person_id"], seat["circle_id"]) for seat in sitting
            }
            for scope in asked:
                expected = resolve_reach(scope, list(latest.values()), sitting)
                resolved = reading.resolve(db, Scope.from_json(scope))
                assert resolved.reach == expected
                # And what is in reach are those ceremonies, each once.
                reached = [
                    one.record.wheel_id for one in reading.all_reached(db, resolved) if one.record.wheel_kind == "ceremony"
                ]
                assert sorted(reached) == sorted(expected.ceremonies)
