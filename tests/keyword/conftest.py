from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyword_fixtures import ADA, CIRCLE, Find, Say

from wheelmem import Wheel, create_memory, open_wheel
from wheelmem.memory import run


@pytest.fixture
def wheel(tmp_path: Path) -> Iterator[Wheel]:
    """A circle with one ceremony, and nothing said yet."""
    with open_wheel(tmp_path / "wheel.db") as made:
        made.put("node", {"id": ADA, "type": "human", "name": "Ada Lovelace"})
        made.put("ceremony", {"id": "ceremony:1", "type": "opening", "circle_id": CIRCLE, "participants": [ADA, "Bob Reed"]})
        yield made


@pytest.fixture
def say(wheel: Wheel) -> Say:
    """``say("beat:1", "words", speaker=…)`` in the ceremony."""

    def put(id: str, words: str, ceremony: str = "ceremony:1", **fields: Any) -> None:
        wheel.put("beat", {"id": id, "title": words, "ceremonies": [ceremony], **fields})

    return put


@pytest.fixture
def find(wheel: Wheel) -> Find:
    """The ids that a search of the circle finds, best first."""
    memory = create_memory(wheel=wheel, providers=[])

    def search(query: str, person: str | None = None, limit: int = 12) -> list[str]:
        scope = {"circle_id": CIRCLE}
        if person is None:
            call = memory.search(query=query, scope=scope, arms=["keyword"], limit=limit)
        else:
            call = memory.about(person=person, question=query, scope=scope, arms=["keyword"], limit=limit)
        answer = run(memory, call)
        assert "keyword" not in (answer.note or ""), answer.note
        return [source.wheel_id for source in answer.sources]

    return search
