"""How fast the river delivers: records a second, against the same messages sent back to back by bare httpx.

Both go to the same server on a loopback port, in a process of its own, which adds no delay. The bare sender has every
message ready and posts them, a hundred a call, to sessions that exist. Rounds alternate; medians are compared.

    python benchmarks/river.py [--records 10000] [--ceremonies 20] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

TESTS = Path(__file__).resolve().parents[1] / "tests" / "honcho"
SERVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from double import Double
double = Double(check=False, derive=False)
double.keep_requests = False
print(double.url, flush=True)
while True:
    time.sleep(3600)
"""


def make_wheel(path: Path, records: int, ceremonies: int, provider: Any) -> Any:
    """A wheel that owes everything it holds."""
    from wheelmem.plugins import PluginHost
    from wheelmem.river import enroll
    from wheelmem.store import open_wheel

    wheel = open_wheel(path, plugins=PluginHost())
    enroll(wheel, [provider])

    def fill(db: Any) -> None:
        for n in range(ceremonies):
            wheel.store(db, "ceremony", {"id": f"ceremony:{n}", "type": "talking_circle", "direction": "east"})
        for n in range(records - ceremonies):
            wheel.store(
                db,
                "beat",
                {
                    "id": f"beat:{n}",
                    "direction": "south",
                    "title": f"Turn {n}",
                    "description": "The banks below the mill are stone; above it they are clay and move every spring. " * 3,
                    "speaker": f"node:human:{n % 40}:p",
                    "ceremonies": [f"ceremony:{n * ceremonies // records}"],
                    "timestamp": "2026-03-08T18:10:00.000Z",
                },
            )

    wheel.write(fill)
    return wheel


async def river(wheel: Any, provider: Any) -> tuple[float, int]:
    """Seconds for a whole pass, and how much memory it added at its peak, in KiB."""
    from wheelmem.river import River

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    (done,) = await River(wheel, [provider]).deliver()
    seconds = time.perf_counter() - started
    assert done.pending == done.refused == 0, done
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def sent_by(url: str, workspace: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """What stands in a workspace, as calls of a hundred messages."""
    calls = []
    with httpx.Client(base_url=f"{url}/v3/workspaces/{workspace}", timeout=60) as http:
        for session in http.post("/sessions/list?size=100", json={}).json()["items"]:
            page = 1
            while True:
                found = http.post(f"/sessions/{session['id']}/messages/list?size=100&page={page}", json={}).json()
                keep = ("content", "peer_id", "metadata", "created_at")
                messages = [{name: message[name] for name in keep} for message in found["items"]]
                if not messages:
                    break
                calls.append((session["id"], messages))
                page += 1
    return calls


async def bare(url: str, workspace: str, calls: list[tuple[str, list[dict[str, Any]]]]) -> float:
    """Seconds for the same messages, one call after the other on one connection."""
    async with httpx.AsyncClient(base_url=f"{url}/v3/workspaces/{workspace}", timeout=60) as http:
        started = time.perf_counter()
        for session, messages in calls:
            (await http.post(f"/sessions/{session}/messages", json={"messages": messages})).raise_for_status()
        return time.perf_counter() - started


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--records", type=int, default=10_000)
    options.add_argument("--ceremonies", type=int, default=20)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    from wheelmem_honcho import HonchoClient, honcho_provider

    server = subprocess.Popen([sys.executable, "-c", SERVER, str(TESTS)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        ours, theirs, memory = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(given.rounds):
                provider = honcho_provider(HonchoClient(url, f"river-{turn}"))
                wheel = make_wheel(Path(folder) / f"{turn}.db", given.records, given.ceremonies, provider)
                seconds, grown = asyncio.run(river(wheel, provider))
                ours.append(seconds)
                memory.append(grown)
                wheel.close()
                calls = sent_by(url, f"river-{turn}")
                assert sum(len(messages) for _, messages in calls) == given.records
                theirs.append(asyncio.run(bare(url, f"bare-{turn}", calls)))
                for workspace in (f"river-{turn}", f"bare-{turn}"):
                    httpx.delete(f"{url}/v3/workspaces/{workspace}")
    finally:
        server.terminate()
    river_rate = given.records / statistics.median(ours)
    bare_rate = given.records / statistics.median(theirs)
    figures = {
        "records": given.records,
        "river records/s": round(river_rate),
        "bare httpx records/s": round(bare_rate),
        "ratio": round(river_rate / bare_rate, 2),
        "memory added at the peak of the first pass, MiB": round(memory[0] / 1024, 1),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
