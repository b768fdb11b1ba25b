"""The river serves any provider that receives, and Honcho serves any wheel."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from double import Double
from wheelmem_honcho import HonchoClient, honcho_from_env, honcho_provider
from world import ANA, World

from wheelmem import river as river_module
from wheelmem.contract import Record
from wheelmem.memory import create_memory
from wheelmem.plugins import PluginHost
from wheelmem.river import Outcome, Projection, River, enroll
from wheelmem.settings import Settings
from wheelmem.store import open_wheel


class Shelf:
    """A provider that keeps what it is told, or does as it is bid."""

    name = "shelf"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.kept: list[str] = []

    async def receive(self, projections: Sequence[Projection]) -> list[Any]:
        answer = self.answers.pop(0) if self.answers else "sent"
        if isinstance(answer, Exception):
            raise answer
        if answer == "sent":
            self.kept += [one.id for one in projections]
        return answer if isinstance(answer, list) else [answer] * len(projections)


def wheel_of(path: Path, shelf: Any, records: int) -> Any:
    wheel = open_wheel(path, plugins=PluginHost())
    enroll(wheel, [shelf])
    wheel.write(lambda db: [wheel.store(db, "beat", {"id": f"b:{n}", "title": "x" * 500}) for n in range(records)])
    return wheel


async def test_a_provider_of_few_words(tmp_path: Path) -> None:
    shelf = Shelf("wait", RuntimeError("on fire"), ["sent"], "perhaps", "sent")
    with wheel_of(tmp_path / "w.db", shelf, 3) as wheel:
        river = River(wheel, [shelf])
        reasons = []
        for _ in range(4):
            (done,) = await river.deliver()
            assert (done.sent, done.pending) == (0, 3)
            reasons.append(done.away)
        assert reasons[1:3] == ["RuntimeError: on fire", "answered 1 times for 3 record(s)"]
        assert "where sent, wait or refused is wanted" in str(reasons[3])
        assert (await river.deliver())[0].pending == 0
        assert shelf.kept == ["b:0", "b:1", "b:2"]
        shelf.answers = [[Outcome("refused", "no"), Outcome("wait", "later", away=False)]]
        wheel.put("beat", {"id": "b:0", "title": "changed"})
        wheel.put("beat", {"id": "b:4"})
        (done,) = await river.deliver()
        assert (done.refused, done.pending) == (1, 1)
        assert done.lines() == ["shelf refused beat b:0: no", "1 record(s) wait for shelf: later"]


async def test_each_provider_is_owed_on_its_own(tmp_path: Path) -> None:
    first, second = Shelf(), Shelf("wait")
    second.name = "attic"
    with wheel_of(tmp_path / "w.db", first, 2) as wheel:
        enroll(wheel, [second])
        wheel.put("beat", {"id": "b:2"})
        passes = {done.provider: done for done in await River(wheel, [first, second]).deliver()}
        assert (passes["shelf"].sent, passes["attic"].pending) == (3, 1)
        assert second.kept == []


async def test_memory_does_not_grow_with_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(river_module, "BATCH", 100)
    peaks = []
    for number in (300, 300, 3000):
        shelf = Shelf()
        shelf.receive = lambda projections: _sent(len(projections))  # type: ignore[assignment]
        with wheel_of(tmp_path / f"{len(peaks)}.db", shelf, number) as wheel:
            tracemalloc.start()
            (done,) = await River(wheel, [shelf]).deliver()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert done.sent == number
    assert peaks[2] < 1.5 * peaks[1]


async def _sent(count: int) -> list[str]:
    return ["sent"] * count


class Paper:
    """A wheel that is kept elsewhere."""

    async def ceremonies(self) -> list[dict[str, Any]]:
        return [{"id": "ceremony:1:a"}, {"id": "ceremony:2:b"}]

    async def seats(self) -> list[dict[str, str]]:
        return []

    async def records(self, reach: Any) -> list[Record]:
        return [Record("beat", "beat:1", "ceremony:1:a", ANA, "[east] Ana speaks\nThe lantern is teal.")]

    async def names(self, ids: list[str]) -> dict[str, str]:
        return {ANA: "Ana"}


async def test_honcho_serves_a_wheel_kept_elsewhere(world: World, double: Double) -> None:
    world.ceremony()
    world.beat()
    world.ceremony("ceremony:2:b")
    world.beat("beat:2", "ceremony:2:b", description="The lantern is a secret.")
    await world.deliver()
    sessions = double.workspaces["medicine-wheel"].sessions
    memory = create_memory(wheel=Paper(), providers=[honcho_provider(HonchoClient(double.url))], settings=Settings())
    scope = {"ceremonies": ["ceremony:1:a"]}
    answer = await memory.ask(question="which lantern", scope=scope)
    assert answer.provider == "wheel", "a session that names a wheel by its uuid is not this one's"
    for session in sessions.values():
        del session.metadata["wheel_uuid"]
    answer = await memory.ask(question="which lantern", scope=scope)
    assert (answer.provider, answer.mode) == ("honcho", "dialectic")
    assert "teal" in (answer.answer or "")
    assert "secret" not in str(answer.to_json())
    assert [source.wheel_id for source in answer.sources] == ["beat:1"]


def test_from_the_environment() -> None:
    assert honcho_from_env({}) is None
    assert honcho_from_env({"HONCHO_URL": " "}) is None
    client = honcho_from_env({"HONCHO_URL": "http://h:1/", "HONCHO_WORKSPACE_ID": "ours", "HONCHO_API_KEY": "k-e-y"})
    assert client is not None
    assert (client.url, client.workspace) == ("http://h:1", "ours")
    assert "k-e-y" not in repr(client)
