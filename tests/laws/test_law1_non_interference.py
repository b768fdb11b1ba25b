"""Law 1: what the wheel answers of its own is the same bytes whether it holds everything or only what the scope reaches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from wheels import Bench, Case, cases, change, take_out

from wheelmem import create_memory
from wheelmem.memory import run
from wheelmem.retrieval import ArmWarning
from wheelmem.store import Wheel


def answers(wheel: Wheel, case: Case, arms: Sequence[Any] | None = None) -> list[tuple[str, str]]:
    """(what of an answer is not the reach, the reach), for every call."""
    memory = create_memory(wheel=wheel, providers=[], arms=arms)
    asked = [
        memory.search(query=case.query, scope=case.scope, explain=True, limit=50),
        memory.search(query=case.query, scope=case.scope, limit=3),
        memory.ask(question=case.query, scope=case.scope, explain=True),
        memory.about(person=case.person, scope=case.scope, question=case.query, explain=True),
        memory.about(person=case.person, scope=case.scope),
    ]
    out = []
    for call in asked:
        answer = run(memory, call).to_json()
        reach = answer.pop("reach")
        out.append((json.dumps(answer), json.dumps(reach)))
    return out


def bites(case: Case, found: list[tuple[str, str]]) -> bool:
    """Whether a record outside shares a word with the question, while the answer has sources."""
    words = set(case.query.lower().replace('"', "").split())
    outside = [row for kind, row in case.rows if (kind, row.get("id")) in case.outside_ids and kind in ("beat", "diary")]
    texts = (" ".join(str(row.get(name, "")) for name in ("title", "description", "content")) for row in outside)
    shares = any(words & set(text.split()) for text in texts)
    return shares and '"sources": []' not in found[0][0]


def test_records_outside_the_reach_change_nothing(bench: Bench) -> None:
    seen: list[bool] = []

    @given(cases())
    def check(case: Case) -> None:
        with bench.wheel(case.inside) as inside, bench.wheel(case.rows) as everything:
            expected = answers(inside, case)
            found = answers(everything, case)
            seen.append(bites(case, found))
            assert found == expected
            change(everything.path, case.outside_ids)
            assert answers(everything, case) == expected
            take_out(everything.path, case.outside_ids, vacuum=True)
            assert answers(everything, case) == expected

    check()
    assert sum(seen) * 3 >= len(seen), f"only {sum(seen)} of {len(seen)} generated cases could have shown a leak"


class CountsEverything:
    """Broken on purpose: its weights are taken over the whole table, so records outside change scores."""

    name = "broken"
    stage = "find"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Iterator[tuple[int, float, None]]:
        total = db.execute("SELECT count(*) FROM records").fetchone()[0]
        for (record_id,) in db.execute("SELECT record_id FROM reach_records"):
            yield record_id, 1.0 + total, None


class ReturnsEverything:
    """Broken on purpose: it returns records outside the reach; the host must drop them."""

    name = "careless"
    stage = "find"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Iterator[tuple[int, float, None]]:
        for (record_id,) in db.execute("SELECT record_id FROM records ORDER BY record_id LIMIT 500"):
            yield record_id, 1.0, None


def test_an_arm_that_ranks_by_the_whole_table_is_caught(bench: Bench) -> None:
    @settings(derandomize=True, max_examples=50, phases=[Phase.generate])
    @given(cases())
    def check(case: Case) -> None:
        with bench.wheel(case.inside) as inside, bench.wheel(case.rows) as everything:
            assert answers(everything, case, [CountsEverything()]) == answers(inside, case, [CountsEverything()])

    with pytest.raises(AssertionError):
        check()


@pytest.mark.filterwarnings("ignore::wheelmem.retrieval.ArmWarning")
def test_a_careless_arm_cannot_leak(bench: Bench) -> None:
    @given(cases())
    def check(case: Case) -> None:
        with bench.wheel(case.rows) as everything:
            memory = create_memory(wheel=everything, providers=[], arms=[ReturnsEverything()])
            answer = run(memory, memory.search(query=case.query, scope=case.scope, limit=50))
            for source in answer.sources:
                kind = "node" if source.wheel_kind == "conclusion" else source.wheel_kind
                assert (kind, source.wheel_id) not in case.outside_ids

    check()


def test_an_arm_that_leaves_the_reach_is_named_in_a_warning(bench: Bench) -> None:
    rows = [("ceremony", {"id": f"ceremony:{n}", "type": "opening"}) for n in range(2)]
    with bench.wheel(rows) as wheel:
        memory = create_memory(wheel=wheel, providers=[], arms=[ReturnsEverything()])
        with pytest.warns(ArmWarning, match=r"careless returned 1 record\(s\) outside the reach"):
            run(memory, memory.search(query="opening", scope={"ceremonies": "ceremony:0"}))
