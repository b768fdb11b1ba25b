"""Law 6: the same store and the same question give the same answer, whatever the clock, the process or the memory."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from wheels import Bench, Case, cases

from wheelmem import create_memory
from wheelmem.memory import run
from wheelmem.store import Wheel


def said(wheel: Wheel, case: Case, arms: Any = None) -> str:
    memory = create_memory(wheel=wheel, providers=[], arms=arms)
    return json.dumps(
        [
            run(memory, memory.search(query=case.query, scope=case.scope, explain=True)).to_json(),
            run(memory, memory.about(person=case.person, scope=case.scope, question=case.query)).to_json(),
            run(memory, memory.about(person=case.person, scope=case.scope)).to_json(),
        ]
    )


def law(bench: Bench, arms: Any = None, phases: Sequence[Phase] = tuple(Phase)) -> None:
    @settings(phases=phases)
    @given(cases(), cases())
    def check(case: Case, other: Case) -> None:
        with bench.wheel(case.rows) as wheel:
            first = said(wheel, case, arms)
            # Other questions in between leave things in memory that must not show.
            said(wheel, Case(case.rows, other.scope, other.query, other.person), arms)
            assert said(wheel, case, arms) == first

    check()


def test_the_same_question_again_gives_the_same_bytes(bench: Bench) -> None:
    law(bench)


class Moody:
    """Broken on purpose: its scores come from a random source, as they would from a clock."""

    name = "moody"
    stage = "find"

    def retrieve(self, db: Any, question: Any, reach: Any, found: Any, limit: int) -> Any:
        return [(id, random.SystemRandom().random(), None) for (id,) in db.execute("SELECT record_id FROM reach_records")]


def test_an_arm_with_a_mood_is_caught(bench: Bench) -> None:
    with pytest.raises((AssertionError, ExceptionGroup, BaseExceptionGroup)):
        law(bench, [Moody()], phases=[Phase.generate])


PROGRAM = """
import json, sys
from wheelmem import create_memory, open_wheel
from wheelmem.memory import run
wheel = open_wheel(sys.argv[1])
memory = create_memory(wheel=wheel, providers=[])
query, scope = json.loads(sys.argv[2])
print(json.dumps(run(memory, memory.search(query=query, scope=scope, explain=True)).to_json()))
"""


def test_another_process_with_another_hash_seed_says_the_same(bench: Bench) -> None:
    rows: list[tuple[str, dict[str, Any]]] = [
        ("ceremony", {"id": f"ceremony:{n}", "type": "opening", "circle_id": "circle:a"}) for n in range(4)
    ]
    rows += [
        ("beat", {"id": f"beat:{n}", "title": "lantern river dawn"[: 7 + n % 12], "ceremonies": [f"ceremony:{n % 4}"]})
        for n in range(40)
    ]
    with bench.wheel(rows) as wheel:
        said = {
            subprocess.run(
                [sys.executable, "-c", PROGRAM, str(Path(wheel.path)), json.dumps(["lantern river", {"circle_id": "circle:a"}])],
                env={**os.environ, "PYTHONHASHSEED": str(seed)},
                capture_output=True,
                check=True,
                text=True,
            ).stdout
            for seed in (1, 2, 3)
        }
    assert len(said) == 1
