from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from datasette.app import Datasette

from wheelmem import demo, open_wheel
from wheelmem.client import AsyncWheelClient, WheelClient


@pytest.fixture
def wheel_file(tmp_path: Path) -> Path:
    path = tmp_path / "wheel.db"
    with open_wheel(path) as wheel:
        demo.build(wheel)
    return path


@pytest.fixture
def house(wheel_file: Path) -> Iterator[Datasette]:
    ds = Datasette([str(wheel_file)])
    ds.root_enabled = True  # 1.0 asks for it, 0.65 passes over it
    yield ds
    for database in ds.databases.values():
        database.close()


def owner(ds: Datasette) -> dict[str, str]:
    return {"cookie": "ds_actor=" + ds.sign({"a": {"id": "root"}}, "actor")}


@pytest.fixture
async def client(house: Datasette) -> AsyncIterator[AsyncWheelClient]:
    """The owner's client of the demo wheel."""
    await house.invoke_startup()
    async with AsyncWheelClient(
        "http://wheel.test", headers=owner(house), transport=httpx.ASGITransport(app=house.app())
    ) as made:
        yield made


@pytest.fixture
def server(wheel_file: Path, house: Datasette, unused_tcp_port: int) -> Iterator[tuple[str, dict[str, str]]]:
    """The same wheel, served by a process of its own: its address, and the owner's headers."""
    secret = "only-for-this-test"
    command = [sys.executable, "-m", "datasette", "serve", str(wheel_file), "--port", str(unused_tcp_port), "--secret", secret]
    if hasattr(Datasette, "allowed"):
        command.append("--root")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{unused_tcp_port}"
    try:
        for _ in range(300):
            try:
                httpx.get(address + "/-/versions.json", timeout=5)
                break
            except httpx.TransportError:
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.1)
        signer = Datasette([], secret=secret)
        yield address, owner(signer)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def sync_client(server: tuple[str, dict[str, str]]) -> Iterator[WheelClient]:
    address, headers = server
    with WheelClient(address, headers=headers) as made:
        yield made
