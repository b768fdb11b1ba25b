"""A wheel served by Datasette in this process, and clients that are its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from datasette.app import Datasette

from wheelmem.client import AsyncWheelClient


def datasette(path: Path) -> Datasette:
    made = Datasette([str(path)])
    made.root_enabled = True  # 1.0 asks for it, 0.65 passes over it
    return made


def owner(ds: Datasette) -> dict[str, str]:
    return {"cookie": "ds_actor=" + ds.sign({"a": {"id": "root"}}, "actor")}


@asynccontextmanager
async def served(path: Path, **headers: str) -> AsyncIterator[AsyncWheelClient]:
    """A client of the wheel, as its owner unless other headers are given."""
    ds = datasette(path)
    await ds.invoke_startup()
    transport = httpx.ASGITransport(app=ds.app())
    try:
        async with AsyncWheelClient("http://wheel.test", headers=headers or owner(ds), transport=transport) as client:
            yield client
    finally:
        for database in ds.databases.values():
            database.close()
