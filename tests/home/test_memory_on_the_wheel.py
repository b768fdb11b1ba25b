"""An agent's home on a wheel: what was captured, asked for within the boundary it was captured under."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from homeworld import World, line

from wheelmem.home.boundary import Boundaries, Config
from wheelmem.home.folder import Home
from wheelmem.home.record import Refused, short_host
from wheelmem.home.wheel import boundary_subject, ceremony_id, home_rows, import_home
from wheelmem.memory import create_memory, run
from wheelmem.store import open_wheel


def bring(world: World) -> dict[str, int]:
    with open_wheel(world.folder / "wheel.db") as wheel:


        def keep(rows: list[tuple[str, dict[str, Any]]]) -> dict[str, int]:
            fresh = [(kind, row) for kind, row in rows if wheel.get(kind, row["id"]) is None]
            wheel.write(lambda db: [wheel.store(db, kind, row) for kind, row in fresh])
            return Counter(kind for kind, _ in fresh)

        home, boundaries = Home(str(world.home)), Boundaries(Config(None))
        return import_home(home, boundaries, lambda id: wheel.get("diary", id) is not None, keep)


def ask(world: World, question: str, scope: dict[str, Any]) -> list[str]:
    with open_wheel(world.folder / "wheel.db") as wheel:
        memory = create_memory(wheel=wheel)
        answer = run(memory, memory.ask(question=question, scope=scope))
        return [source.wheel_id or "" for source in answer.sources]


@pytest.fixture
def bridge(world: World) -> World:
    (world.work / ".git").mkdir()
    return world


def test_the_rows_of_a_capture(bridge: World) -> None:
    id = bridge.encode("--body-json", '{"n": 1.0}', "--tags", "a,b")
    rows = list(home_rows(Home(str(bridge.home)), Boundaries(Config(None)).of_record))
    host = short_host()
    digest = hashlib.sha256(f"{host}\0{bridge.work}".encode()).hexdigest()[:16]
    node, ceremony = "node:agent:0:agent", f"ceremony:home:agent:s1:{digest}"
    at = rows[0][1]["created_at"]
    assert rows == [
        ("node", {"id": node, "type": "agent", "name": "agent", "metadata": {}, "created_at": at, "updated_at": at}),
        (
            "ceremony",
            {
                "id": ceremony,
                "type": "talking_circle",
                "direction": "east",
                "participants": [node],
                "medicines_used": [],
                "intentions": [],
                "timestamp": at,
                "subject_id": f"boundary:{host}:{bridge.work}",
            },
        ),
        (
            "diary",
            {
                "id": f"diary:home:{id}",
                "timestamp": at,
                "participant": node,
                "phase": "nindokendaan",
                "entryType": "observation",
                "content": '{"n":1.0}',
                "metadata": {"ceremony_id": ceremony, "tags": ["a", "b"]},
            },
        ),
    ]
    assert boundary_subject(str(bridge.work)) == rows[1][1]["subject_id"]
    assert ceremony_id("agent", None, host, "legacy").startswith("ceremony:home:agent:none:")


def test_asking_a_boundary_reaches_its_captures_alone(bridge: World) -> None:
    here = bridge.encode("--body", "the lantern is teal")
    sibling = bridge.encode("--body", "the lantern is green", session="s2")
    bridge.encode("--body", "a lantern elsewhere", cwd=bridge.user)
    assert bring(bridge) == {"node": 1, "ceremony": 3, "diary": 3}
    subject = boundary_subject(str(bridge.work))
    assert set(ask(bridge, "lantern", {"subject_id": subject})) == {f"diary:home:{here}", f"diary:home:{sibling}"}
    live = ceremony_id("agent", "s2", short_host(), str(bridge.work))
    assert ask(bridge, "lantern", {"subject_id": subject, "exclude_ceremonies": [live]}) == [f"diary:home:{here}"]
    assert len(ask(bridge, "lantern", {"participant": "node:agent:0:agent"})) == 3


def test_importing_again_adds_what_is_new(bridge: World) -> None:
    bridge.encode("--body", "one")
    assert bring(bridge) == {"node": 1, "ceremony": 1, "diary": 1}
    assert bring(bridge) == {"node": 0, "ceremony": 0, "diary": 0}
    bridge.ok("drain")
    bridge.encode("--body", "two")
    assert bring(bridge) == {"node": 0, "ceremony": 0, "diary": 1}


def test_drained_logs_count_and_what_is_no_record_does_not(bridge: World) -> None:
    bridge.write("EPISODIC.jsonl", line(1) + "\n{torn\n" + line(2) + "\n")
    bridge.ok("apply", "--routes", json.dumps([{"id": f"01HX{1:022d}", "targets": []}]))
    bridge.ok("drain")
    bridge.encode("--body", "three")
    assert bridge.text("EPISODIC.quarantine.jsonl") == "{torn\n"
    assert bring(bridge)["diary"] == 3


def test_a_boundary_that_vanishes_doubles_nothing(bridge: World) -> None:
    place = bridge.work / "sub"
    place.mkdir()
    (place / "PLAN.md").touch()
    id = bridge.encode("--body", "planned", cwd=place)
    bring(bridge)
    (place / "PLAN.md").unlink()
    place.rmdir()
    (bridge.work / ".git").rmdir()
    assert bring(bridge) == {"node": 0, "ceremony": 0, "diary": 0}
    assert ask(bridge, "planned", {"subject_id": boundary_subject(str(place))}) == [f"diary:home:{id}"]


def test_odd_records_come_over(world: World) -> None:
    odd: list[dict[str, Any]] = [
        {"id": "01KVRFGKGNDMQD1FAKNDBDWTY6", "scope": "user", "body": "first version"},
        {"id": "no ulid", "session": 7, "host": None, "cwd": "/a\0b", "body": ["\ud800", None]},
        {"id": "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "session": "a:b c", "host": "elm", "cwd": "/x", "tags": ["\udfff"]},
    ]
    world.write("EPISODIC.jsonl", "".join(json.dumps(record) + "\n" for record in odd))
    assert bring(world) == {"node": 1, "ceremony": 2, "diary": 3}
    with open_wheel(world.folder / "wheel.db") as wheel:
        entries = [wheel.get("diary", f"diary:home:{record['id']}") for record in odd]
    assert [entry and entry["content"] for entry in entries] == ["first version", '["\\ud800",null]', ""]
    assert [entry and entry["timestamp"][:4] for entry in entries] == ["2026", "2026", "9999"]
    assert entries[1] is not None
    assert entries[1]["metadata"]["ceremony_id"].startswith("ceremony:home:agent:none:")


def test_a_home_must_be_there_and_have_a_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no home"):
        import_home(Home(str(tmp_path / "agent")), Boundaries(Config(None)), lambda id: None, lambda rows: {})
    with pytest.raises(Refused, match="no letter or digit"):
        list(home_rows(Home(str(tmp_path / "---")), Boundaries(Config(None)).of_record))
