"""A wheel, a Honcho, and what is between them, as the tests here use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from double import Double
from wheelmem_honcho import HonchoClient, honcho_provider

from wheelmem.memory import create_memory
from wheelmem.plugins import load_plugins
from wheelmem.river import Delivered, River, enroll
from wheelmem.settings import Settings
from wheelmem.store import open_wheel

KEY = "hk-9f31-not-to-be-seen"
ANA, BEN = "node:human:1:ana", "node:human:2:ben"


class World:
    """A wheel, a Honcho, and what is between them."""

    def __init__(self, path: Path, double: Double, **options: Any) -> None:
        self.path = path
        self.double = double
        self.wheel = open_wheel(path, plugins=load_plugins(load="fts5"))
        self.client = HonchoClient(double.url, api_key=KEY, reasoning_timeout=20)
        self.provider = honcho_provider(self.client, **options)
        self.river = River(self.wheel, [self.provider])
        enroll(self.wheel, [self.provider])
        self.memory = create_memory(wheel=self.wheel, providers=[self.provider], settings=Settings())

    async def deliver(self) -> Delivered:
        (done,) = await self.river.deliver()
        return done

    def person(self, id: str = ANA, name: str = "Ana") -> str:
        self.wheel.put("node", {"id": id, "type": "human", "name": name})
        return id

    def ceremony(self, id: str = "ceremony:1:a", **more: Any) -> str:
        given = {"type": "talking_circle", "direction": "east", "timestamp": "2026-03-08T18:00:00Z"}
        self.wheel.put("ceremony", {"id": id, **given, **more})
        return id

    def beat(self, id: str = "beat:1", ceremony: str | None = "ceremony:1:a", **more: Any) -> str:
        given: dict[str, Any] = {"direction": "east", "title": "Ana speaks", "description": "The lantern is teal."}
        if ceremony is not None:
            given["ceremonies"] = [ceremony]
        self.wheel.put("beat", {"id": id, "speaker": ANA, **given, **more})
        return id

    def diary(self, id: str = "diary:1", ceremony: str | None = "ceremony:1:a", **more: Any) -> str:
        given: dict[str, Any] = {"participant": ANA, "content": "I liked the lantern.", "phase": "nindokendaan"}
        if ceremony is not None:
            given["metadata"] = {"ceremony_id": ceremony, **more.pop("metadata", {})}
        self.wheel.put("diary", {"id": id, "entryType": "observation", **given, **more})
        return id

    def pending(self) -> int:
        return int(self.river.status()["pending"])
