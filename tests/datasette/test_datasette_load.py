"""A served wheel under load: providers that hang, several writers, and an end at any moment."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import serving

from wheelmem import demo, load_plugins, open_wheel

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
ASK = {"question": "lantern", "scope": {"circle_id": demo.ORCHARD}}


NEVER = """
import asyncio
from wheelmem import hookimpl

class Never:
    name = "never"

    async def ask(self, question):
        await asyncio.sleep(3600)

    status = search = about = ask

@hookimpl
def register_providers(register, settings):
    register(Never())
"""


@pytest.fixture
def hanging(tmp_path: Path) -> str:
    """A folder in which a provider that never says a word is installed."""
    folder = tmp_path / "never"
    about = folder / "never-1.dist-info"
    about.mkdir(parents=True)
    (folder / "never.py").write_text(NEVER)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: never\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[wheelmem]\nnever = never\n")
    return str(folder)


def client(house: Any) -> httpx.Client:
    return httpx.Client(base_url=house.url, cookies={"ds_actor": house.cookie}, timeout=60)


def test_a_provider_that_hangs_holds_up_nobody_else(wheel_file: Path, tmp_path: Path, hanging: str) -> None:
    waits = {"PYTHONPATH": hanging, "WHEELMEM_REASONING_TIMEOUT": "3600", "WHEELMEM_PROVIDER_TIMEOUT": "3600"}
    with serving(wheel_file, tmp_path, **waits) as house:
        answered = threading.Event()

        def ask() -> None:
            with client(house) as asking:
                try:
                    asking.post("/api/memory/ask", json=ASK)
                except httpx.HTTPError:
                    return
                answered.set()

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(12)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        with client(house) as other:
            for _ in range(3):
                assert other.get("/hearth/records.json?_search=lantern").status_code == 200
                assert other.get("/-/memory").status_code == 200
                assert other.post("/api/nodes", json={"type": "human", "name": "Ida"}).status_code == 201
                assert other.get("/api/nodes?limit=1").json()["nodes"][0]["name"] == "Ida"
        assert not answered.is_set()
        house.process.send_signal(signal.SIGTERM)
        # A server waits for those it serves; Ctrl-C ends that.
        time.sleep(1)
        house.process.send_signal(signal.SIGINT)
        house.process.wait(timeout=30)


def test_the_river_flows_while_the_server_runs(wheel_file: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "honcho"))
    try:
        double = pytest.importorskip("double")
    finally:
        sys.path.pop(0)
    try:
        honcho = double.Double()
    except (FileNotFoundError, OSError) as error:
        pytest.skip(f"no Honcho to test against: {error}")
    try:
        with serving(wheel_file, tmp_path, HONCHO_URL=honcho.url) as house, client(house) as owner:
            beat = {"direction": "east", "title": "Quillwort", "ceremonies": ["ceremony:demo:f1"]}
            made = owner.post("/api/narrative/beats", json=beat)
            assert made.status_code == 201
            for _ in range(200):
                river = owner.get("/api/memory").json()["river"]
                if river["pending"] == 0 and river["providers"]:
                    break
                time.sleep(0.1)
            assert river["pending"] == 0, river
            sent = [message["content"] for id in honcho.session_of(made.json()["id"]) for message in honcho.messages(id)]
            assert any("Quillwort" in content for content in sent)
            answer = owner.post("/api/memory/resend", json={"kind": "beat", "id": "beat:demo:3"})
            assert (answer.status_code, answer.json()["resent"]) == (200, {"kind": "beat", "id": "beat:demo:3"})
            assert owner.post("/api/memory/resend", json={"kind": "beat", "id": "none"}).status_code == 404
            assert owner.post("/api/memory/resend", json={"kind": "node", "id": demo.MIRA}).status_code == 400
            assert owner.get("/api/health").json()["honcho"]["enabled"] is True
    finally:
        honcho.stop()


def test_many_writers_at_once_lose_nothing(wheel_file: Path, tmp_path: Path) -> None:
    with serving(wheel_file, tmp_path) as house, client(house) as owner, open_wheel(wheel_file, plugins=load_plugins()) as wheel:

        def over_http(number: int) -> str:
            response = owner.post("/api/nodes", json={"type": "human", "name": f"http {number}"})
            assert response.status_code == 201, response.text
            return str(response.json()["node"]["id"])

        def beside(number: int) -> str:
            wheel.put("node", {"id": f"node:beside:{number}", "type": "human", "name": "beside"})
            return f"node:beside:{number}"

        with ThreadPoolExecutor(16) as pool:
            ids = [*pool.map(over_http, range(40)), *pool.map(beside, range(40))]
        assert len(set(ids)) == 80
        assert all(wheel.get("node", id) for id in ids)


@pytest.mark.parametrize("number", range(REPEATS))
def test_what_was_answered_survives_a_kill(wheel_file: Path, tmp_path: Path, number: int) -> None:
    acknowledged: list[str] = []
    with serving(wheel_file, tmp_path) as house:

        def write() -> None:
            with client(house) as owner:
                while True:
                    try:
                        response = owner.post("/api/diary", json={"participant": demo.MIRA, "content": "kept"})
                    except httpx.HTTPError:
                        return
                    acknowledged.append(response.json()["entry"]["id"])

        writers = [threading.Thread(target=write) for _ in range(4)]
        for writer in writers:
            writer.start()
        while not acknowledged and any(writer.is_alive() for writer in writers):
            time.sleep(0.01)
        time.sleep(0.17 * number)
        house.process.kill()
        for writer in writers:
            writer.join()
    assert acknowledged
    with open_wheel(wheel_file, plugins=load_plugins()) as wheel:
        assert [id for id in acknowledged if wheel.get("diary", id) is None] == []
