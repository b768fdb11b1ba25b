"""How many searches a served wheel answers, against Datasette's own table JSON with ``_search`` on the same file and server.

    python benchmarks/http.py --records 100000

Builds a wheel as ``search.py`` does (or takes ``--wheel`` again), serves it with ``datasette wheel.db --root`` (so that no
metadata of ours slows the table down), and asks with 1, 8 and 32 clients at once, each on a connection of its own, for words
that 2 % of the records hold:

- memory: ``POST /api/memory/search`` within 1 % of the wheel, with every arm;
- keyword: the same with that arm alone;
- table: ``GET /wheel/records.json?_search=…&_size=12`` over all of the wheel.

They take turns in rounds of a few seconds; the rates are medians over the rounds. ``--soak`` then asks the memory that many
times and tells how the server's memory grew after the first tenth. ``--hung`` asks a provider that never answers
beside the table's requests, and tells what that costs them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import datasette
import httpx
from search import PLANTED, build

CLIENTS = (1, 8, 32)
WORDS = PLANTED["medium"][1]


@dataclass
class Served:
    """A server under test."""

    url: str
    cookie: str
    pid: int

    def rss(self) -> float:
        """Megabytes of memory that are its own at this moment."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


@dataclass
class Round:
    """What came of a few seconds of asking."""

    rate: float
    times: list[float] = field(default_factory=list)


class Connection:
    """One kept-alive connection, with no more of HTTP than these answers need: the client must not be what is measured."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.host = urlsplit(served.url)

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host.hostname, self.host.port)

    async def ask(self, request: bytes) -> None:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"not answered: {head.decode()[:300]}")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length:
            await self.reader.readexactly(int(length[1]))
            return
        while (size := int(await self.reader.readline(), 16)) > 0:
            await self.reader.readexactly(size + 2)
        await self.reader.readline()

    def close(self) -> None:
        self.writer.close()


def memory_request(served: Served, number: int, **more: object) -> bytes:
    body = {"query": WORDS[number % len(WORDS)], "scope": {"circle_id": "circle:hundredth"}, **more}
    return _request(served, "POST", "/api/memory/search", json.dumps(body).encode())


def keyword_request(served: Served, number: int) -> bytes:
    return memory_request(served, number, arms=["keyword"])


def table_request(served: Served, number: int) -> bytes:
    query = urlencode({"_search": WORDS[number % len(WORDS)], "_size": 12})
    return _request(served, "GET", f"/wheel/records.json?{query}")


def _request(served: Served, method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: {urlsplit(served.url).netloc}\r\ncookie: ds_actor={served.cookie}\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def burst(served: Served, make: Callable[[Served, int], bytes], clients: int, seconds: float, most: int = 0) -> Round:
    """Ask for some seconds (or ``most`` times in all), each client as soon as it was answered."""
    connections = [Connection(served) for _ in range(clients)]
    for connection in connections:
        await connection.open()
    times: list[float] = []
    start = time.perf_counter()

    async def client(connection: Connection, number: int) -> None:
        while (len(times) < most) if most else (time.perf_counter() - start < seconds):
            began = time.perf_counter()
            await connection.ask(make(served, number))
            times.append(time.perf_counter() - began)
            number += 1

    await asyncio.gather(*(client(connection, place) for place, connection in enumerate(connections)))
    taken = time.perf_counter() - start
    for connection in connections:
        connection.close()
    return Round(len(times) / taken, times)


def percentile(times: list[float], share: float) -> float:
    """Milliseconds that this share of the requests took at most."""
    return 1000 * sorted(times)[min(len(times) - 1, int(share * len(times)))]


def compare(served: Served, rounds: int, seconds: float) -> float:
    """Print a line for each way and number of clients; the lowest ratio of memory's rate to the table's."""
    ways: dict[str, Callable[[Served, int], bytes]] = {
        "memory": memory_request,
        "keyword": keyword_request,
        "table": table_request,
    }
    for make in ways.values():
        asyncio.run(burst(served, make, 4, 0, 60))
    print(f"{'clients':>7}  {'way':<7}{'requests/s':>11}{'p50 ms':>9}{'p95 ms':>9}{'ratio':>8}")
    ratios = []
    for clients in CLIENTS:
        found: dict[str, list[Round]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, make in ways.items():
                found[name].append(asyncio.run(burst(served, make, clients, seconds)))
        rate = {name: statistics.median(one.rate for one in done) for name, done in found.items()}
        ratios.append(rate["memory"] / rate["table"])
        for name, done in found.items():
            times = [taken for one in done for taken in one.times]
            ratio = f"{rate[name] / rate['table']:.2f}" if name != "table" else ""
            p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
            print(f"{clients:>7}  {name:<7}{rate[name]:>11.1f}{p50:>9.1f}{p95:>9.1f}{ratio:>8}")
    return min(ratios)


def soak(served: Served, requests: int) -> None:
    """Ask many times over, and tell how the server's memory grew after the first tenth."""
    asyncio.run(burst(served, memory_request, 8, 0, requests // 10))
    before = served.rss()
    asyncio.run(burst(served, memory_request, 8, 0, requests - requests // 10))
    after = served.rss()
    print(f"{requests} requests: {before:.0f} MB after the first tenth, {after:.0f} MB at the end ({after - before:+.1f} MB)")


def hung(served: Served, seconds: float) -> None:
    """Tables beside questions that nobody answers."""
    alone = asyncio.run(burst(served, table_request, 2, seconds))

    async def beside() -> Round:
        body = json.dumps({"question": WORDS[0], "scope": {"circle_id": "circle:hundredth"}}).encode()
        asked = [Connection(served) for _ in range(16)]
        for connection in asked:
            await connection.open()
            connection.writer.write(_request(served, "POST", "/api/memory/ask", body))
        await asyncio.sleep(0.5)
        found = await burst(served, table_request, 2, seconds)
        for connection in asked:
            connection.close()
        return found

    together = asyncio.run(beside())
    print(
        f"tables, 2 clients: {alone.rate:.1f}/s alone, {together.rate:.1f}/s beside 16 questions to a provider that hangs "
        f"(p95 {percentile(alone.times, 0.95):.1f} and {percentile(together.times, 0.95):.1f} ms)"
    )


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


def install_never(folder: Path) -> None:
    """Put a provider that never answers where a server with this folder on its path finds it."""
    about = folder / "never-1.dist-info"
    about.mkdir(parents=True)
    (folder / "never.py").write_text(NEVER)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: never\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[wheelmem]\nnever = never\n")


class Server:
    """``datasette`` in a process of its own."""

    def __init__(self, wheel: Path, folder: Path, **variables: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "datasette", "serve", str(wheel), "--root", "--port", str(port)]
        env = {**os.environ, "WHEELMEM_USER_PATH": str(folder), "PYTHONUNBUFFERED": "1", **variables}
        self.log = folder / "served.log"
        with self.log.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env)

    def __enter__(self) -> Served:
        for _ in range(600):
            text = self.log.read_text()
            link = re.search(r"(http://\S+)/-/auth-token\?token=\S+", text)
            if link and "Uvicorn running" in text:
                return Served(link[1], httpx.get(link[0]).cookies["ds_actor"], self.process.pid)
            time.sleep(0.1)
        raise SystemExit(f"the server did not start: {self.log.read_text()}")

    def __exit__(self, *_: object) -> None:
        # Questions may still be under way.
        self.process.kill()
        self.process.wait(timeout=30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--wheel", type=Path, help="a wheel.db that an earlier run has built")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long one round of one way takes")
    parser.add_argument("--soak", type=int, default=0, metavar="REQUESTS")
    parser.add_argument("--hung", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = given.wheel or folder / "wheel.db"
        if not wheel.exists():
            build(wheel, given.records)
        print(f"Datasette {datasette.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
        with Server(wheel, folder) as served:
            lowest = compare(served, given.rounds, given.seconds)
            print(f"lowest ratio {lowest:.2f} (wanted: 0.80)")
            if given.soak:
                soak(served, given.soak)
        if given.hung:
            install_never(folder / "never")
            with Server(wheel, folder, PYTHONPATH=str(folder / "never")) as served:
                hung(served, given.seconds)


if __name__ == "__main__":
    main()
