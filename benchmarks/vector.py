"""What a search by vectors costs, against the bare product of the same rows in numpy, and what the vectors take on disk.

    python benchmarks/vector.py --records 100000 --dimension 256

Builds a wheel (or takes ``--wheel`` again) whose vectors are numbers drawn by lot, as many clusters as ceremonies, and asks
the arm within 1, 10 and 100 % of it. In turn, in one process and on one file:

- bare: ``rows @ question``, the rows of the reach in single precision, already in memory: what no exact search goes below;
- warm: the arm, asked again in a wheel that has not changed;
- cold: the arm, asked for the first time on a new connection, with nothing of it in memory but the file's pages.

Medians, and ratios to bare. With ``--cpu`` the thread's processor time is counted, not the clock's, for a machine that has
other things to do; then numpy must keep to one thread (``OMP_NUM_THREADS=1``).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from wheelmem_vector import search
from wheelmem_vector.commands import embed_wheel

from wheelmem import hookimpl, open_wheel
from wheelmem.contract import Question, Scope
from wheelmem.plugins import load_plugins
from wheelmem.settings import Settings
from wheelmem.store import Wheel, reading
from wheelmem.store.jsonl import import_folder

SHARES = (0.01, 0.1, 1.0)
PER_CEREMONY = 50
LIMIT = 100


class ByLot:
    """Vectors drawn by lot from the text itself: a ceremony's own direction, and as much again of the record's."""

    name = "lot"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.model = f"lot-{dimension}"

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return np.stack([self._one(text) for text in texts])  # type: ignore[return-value]

    def _one(self, text: str) -> Any:
        own, of = int(text.split()[-1]), int(text.split()[-2])
        direction = np.random.default_rng(of).standard_normal(self.dimension)
        return direction + np.random.default_rng((1, own)).standard_normal(self.dimension)


def write_wheel(folder: Path, records: int) -> None:
    """Ceremonies of fifty turns, in three circles nested by share: a hundredth, the rest of a tenth, everything else."""
    count = max(3, records // PER_CEREMONY)
    bounds = [max(1, int(share * count)) for share in SHARES]
    with (folder / "ceremonies.jsonl").open("w") as ceremonies, (folder / "beats.jsonl").open("w") as beats:
        for number in range(count):
            # Spread over the file, as a circle's sittings are.
            place = number * 7919 % count
            circle = next(at for at, bound in enumerate(bounds) if place < bound)
            ceremony = {"id": f"ceremony:{number}", "type": "talking_circle", "circle_id": f"circle:{circle}"}
            ceremony["intentions"] = [f"sitting {number} {records + number}"]  # type: ignore[assignment]
            ceremonies.write(json.dumps(ceremony) + "\n")
            for turn in range(PER_CEREMONY):
                own = number * PER_CEREMONY + turn
                beat = {"id": f"beat:{own}", "description": f"turn {number} {own}", "ceremonies": [f"ceremony:{number}"]}
                beats.write(json.dumps(beat) + "\n")


def scope_of(share: float) -> Scope:
    circles = tuple(f"circle:{at}" for at in range(SHARES.index(share) + 1))
    return Scope(circle_id=circles)


def ask(db: Any, arm: Any, query: str, scope: Scope) -> list[Any]:
    resolved = reading.resolve(db, scope)
    db.offer(resolved)
    return list(arm.retrieve(db, Question(query, resolved.reach), resolved, (), LIMIT))


def timed(clock: Callable[[], float], call: Callable[..., Any], *arguments: Any) -> float:
    began = clock()
    call(*arguments)
    return (clock() - began) * 1000


class Plugin:
    """What brings the embedder to the arm."""

    def __init__(self, embedder: ByLot) -> None:
        self.embedder = embedder

    @hookimpl
    def register_embedders(self, register: Callable[[Any], None], settings: Settings) -> None:
        register(self.embedder)


def measure(wheel: Wheel, embedder: ByLot, share: float, rounds: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Medians in milliseconds, the three in turn."""
    scope = scope_of(share)
    (arm,) = [arm for arm in wheel.plugins.arms(Settings({"vector.embedder": embedder.name})) if arm.name == "vector"]
    took: dict[str, list[float]] = {"bare": [], "warm": [], "cold": []}
    with wheel.snapshot() as db:
        resolved = reading.resolve(db, scope)
        held, _ = search.held(db, resolved)
        held.near(db, np.zeros(held.dimension))
        rows = held._rows.astype(np.float32)
    for number in range(rounds):
        query = f"question {number} {number}"
        asked = np.asarray(arm._vector(query), dtype=np.float32)
        # A new wheel object: a new connection, with an empty cache; and what the process keeps is thrown away.
        search._kept.clear()
        with open_wheel(wheel.path, plugins=wheel.plugins, create=False) as fresh, fresh.snapshot() as db:
            reading.resolve(db, scope)
            took["cold"].append(timed(clock, ask, db, arm, query, scope))
            ask(db, arm, query, scope)  # the second question of a reach makes its matrix
            for _ in range(3):
                took["bare"].append(timed(clock, np.dot, rows, asked))
                took["warm"].append(timed(clock, ask, db, arm, query, scope))
    medians = {name: statistics.median(values) for name, values in took.items()}
    return {
        "share": share,
        "rows": len(rows),
        **{f"{name}_ms": round(value, 3) for name, value in medians.items()},
        **{f"{name}/bare": round(medians[name] / medians["bare"], 2) for name in ("warm", "cold")},
    }


def size(wheel: Wheel) -> dict[str, Any]:
    """What the tables take of the file, page by page, against two bytes a number."""

    def look(db: Any) -> dict[str, Any]:
        rows, numbers = db.execute("SELECT sum(length(ids)), sum(length(numbers)) FROM vector_blocks").fetchone()
        pages = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'vector\\_%' ESCAPE '\\'").fetchone()[0]
        return {"vectors": rows, "bytes_of_vectors": numbers, "bytes_in_file": pages, "ratio": round(pages / numbers, 3)}

    return wheel.read(look)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    options.add_argument("--records", type=int, default=100_000)
    options.add_argument("--dimension", type=int, default=256)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--wheel", type=Path, help="keep the wheel here, and take it again")
    options.add_argument("--cpu", action="store_true", help="count processor time")
    given = options.parse_args()
    clock = time.thread_time if given.cpu else time.perf_counter
    if given.cpu and os.environ.get("OMP_NUM_THREADS") != "1":
        options.error("processor time is counted for one thread; set OMP_NUM_THREADS=1")
    embedder = ByLot(given.dimension)
    plugins = load_plugins()
    plugins.add(Plugin(embedder), "lot")
    with tempfile.TemporaryDirectory() as folder:
        path = given.wheel or Path(folder) / "wheel.db"
        with open_wheel(path, plugins=plugins) as wheel:
            if not wheel.count().get("beat"):
                write_wheel(Path(folder), given.records)
                import_folder(wheel, Path(folder))
            began = time.perf_counter()
            made = embed_wheel(wheel, embedder)
            took = time.perf_counter() - began
            if made:
                print(f"{made:,} vectors of {given.dimension} made and kept in {took:.1f} s", file=sys.stderr)
            threads = os.environ.get("OMP_NUM_THREADS", "all")
            result = {"time": "processor" if given.cpu else "clock", "threads": threads, **size(wheel)}
            result["searches"] = [measure(wheel, embedder, share, given.rounds, clock) for share in SHARES]
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
