"""How long a search within a reach takes, against what one would write by hand over the whole table.

    python benchmarks/search.py --records 1000000

Builds a wheel (or takes ``--wheel`` again): 50 records a ceremony, 5 % of the records in two, a Zipf vocabulary, 20 words
and more a record, and planted words of known frequency. Then times, in one process and on one file, ``memory.search`` within
0.1, 1, 10 and 100 % of the wheel, in turn with

- plain: ``SELECT rowid … MATCH … ORDER BY bm25(…) LIMIT 12`` over the whole index, without any scope;
- read: the way without an index, every record of the reach read and matched in Python (``--read``: slow).

Medians, and ratios to plain. ``--check`` adds records outside the reach and compares the answers to the byte.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wheelmem import create_memory, match_records, open_wheel
from wheelmem.contract import Scope
from wheelmem.memory import run
from wheelmem.store import Wheel, reading
from wheelmem.store.jsonl import import_folder

SHARES = (0.001, 0.01, 0.1, 1.0)
CIRCLES = ("circle:thousandth", "circle:hundredth", "circle:tenth", "circle:rest")
# Words by the share of the records that hold them.
PLANTED = {
    "rare": (0.002, ("quagga", "zephyr", "obelisk")),
    "medium": (0.02, ("harbour", "saffron", "walnut")),
    "common": (0.12, ("river", "morning", "stone")),
}
HUNDRED = "isinglass"
PER_CEREMONY = 50


def write_wheel(folder: Path, records: int) -> None:
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = list({"".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(50_000)})
    vocabulary.sort()
    rng.shuffle(vocabulary)
    weights: list[float] = []
    total = 0.0
    for rank in range(len(vocabulary)):
        total += 1 / (rank + 10)
        weights.append(total)
    count = max(len(CIRCLES), records // PER_CEREMONY)
    bounds = [share * count for share in SHARES]
    order = list(range(count))
    rng.shuffle(order)
    circle_of = {}
    for place, number in enumerate(order):
        circle_of[number] = next(circle for circle, bound in zip(CIRCLES, bounds, strict=True) if place < max(1, bound))
    stamp = "2026-{:02}-{:02}T{:02}:{:02}:00.000Z".format
    with (folder / "ceremonies.jsonl").open("w") as out:
        for number in range(count):
            at = stamp(1 + number % 12, 1 + number % 28, number % 24, 0)
            row = {
                "id": f"ceremony:{number}",
                "type": "talking_circle",
                "direction": "east",
                "circle_id": circle_of[number],
                "timestamp": at,
            }
            out.write(json.dumps(row) + "\n")
    hundred = set(rng.sample(range(records), min(100, records)))
    with (folder / "beats.jsonl").open("w") as out:
        for number in range(records):
            words = rng.choices(vocabulary, cum_weights=weights, k=rng.randint(20, 36))
            for share, planted in PLANTED.values():
                words += [word for word in planted if rng.random() < share]
            if number in hundred:
                words.append(HUNDRED)
            rng.shuffle(words)
            places = [f"ceremony:{number // PER_CEREMONY % count}"]
            if rng.random() < 0.05:
                places.append(f"ceremony:{rng.randrange(count)}")
            row = {
                "id": f"beat:{number}",
                "direction": "east",
                "title": " ".join(words[:4]),
                "description": " ".join(words[4:]),
                "ceremonies": list(dict.fromkeys(places)),
                "timestamp": stamp(1 + number % 12, 1 + number % 28, number % 24, number % 60),
            }
            out.write(json.dumps(row) + "\n")


def build(path: Path, records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_wheel(Path(folder), records)
        with open_wheel(path) as wheel:
            import_folder(wheel, folder)


def cases() -> Iterator[tuple[str, str]]:
    for name, (_, words) in PLANTED.items():
        yield name, " ".join(words)
    yield "a word in 100 records", HUNDRED


def timed(ways: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Median seconds of each, run in turn after one run that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for name in ways:
        ways[name]()
    for _ in range(runs):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def measure(wheel: Wheel, runs: int, arms: list[str], read: bool) -> list[dict[str, Any]]:
    memory = create_memory(wheel=wheel, providers=[])
    rows = []
    with wheel.snapshot() as db:
        for name, query in cases():
            expression = " OR ".join(f'"{word}"' for word in query.split())
            for at, share in enumerate(SHARES):
                scope = {"circle_id": list(CIRCLES[: at + 1])}

                def plain(expression: str = expression) -> Any:
                    sql = "SELECT rowid FROM records_fts WHERE records_fts MATCH ? ORDER BY bm25(records_fts) LIMIT 12"
                    return db.execute(sql, (expression,)).fetchall()

                def ours(query: str = query, scope: dict[str, Any] = scope) -> Any:
                    return run(memory, memory.search(query=query, scope=scope, arms=arms))

                def reading_all(query: str = query, scope: dict[str, Any] = scope) -> Any:
                    with wheel.snapshot() as other:
                        found = reading.all_reached(other, reading.resolve(other, Scope.from_json(scope)))
                    return match_records(query, [one.record for one in found])

                ways: dict[str, Callable[[], Any]] = {"plain": plain, "search": ours}
                if read and share <= 0.1:
                    ways["read"] = reading_all
                taken = timed(ways, runs)
                row = {"words": name, "share": share, **{f"{way}_ms": seconds * 1000 for way, seconds in taken.items()}}
                row["ratio"] = taken["search"] / taken["plain"]
                rows.append(row)
                shown = "  ".join(f"{way} {seconds * 1000:9.2f} ms" for way, seconds in taken.items())
                print(f"{name:22} within {share:6.1%}  {shown}  ratio {row['ratio']:6.2f}", file=sys.stderr, flush=True)
    return rows


def same_bytes(path: Path, arms: list[str]) -> bool:
    """Whether answers within 0.1, 1 and 10 % stay the same bytes when a thousand records come in outside."""

    def answers() -> list[str]:
        with open_wheel(path) as wheel:
            memory = create_memory(wheel=wheel, providers=[])
            asked = ((query, list(CIRCLES[: at + 1])) for _, query in cases() for at in range(3))
            return [
                json.dumps(
                    run(memory, memory.search(query=query, scope={"circle_id": circles}, arms=arms, explain=True)).to_json()
                )
                for query, circles in asked
            ]

    before = answers()
    with open_wheel(path) as wheel:
        wheel.put("ceremony", {"id": "ceremony:more", "type": "opening", "circle_id": CIRCLES[-1]})
        for number in range(1000):
            words = " ".join(word for _, planted in PLANTED.values() for word in planted)
            wheel.put("beat", {"id": f"beat:more:{number}", "title": f"{HUNDRED} {words}", "ceremonies": ["ceremony:more"]})
    return answers() == before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--wheel", type=Path, help="keep the wheel here, and take it again when it is there")
    parser.add_argument("--arm", action="append", help="the arms to ask (keyword); may be given again")
    parser.add_argument("--read", action="store_true", help="also time reading every record of the reach, up to 10 %%")
    parser.add_argument("--check", action="store_true", help="also add records outside the reach and compare answers")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    arms = options.arm or ["keyword"]
    with tempfile.TemporaryDirectory() as folder:
        path = options.wheel or Path(folder) / "wheel.db"
        if not path.exists():
            start = time.perf_counter()
            build(path, options.records)
            print(f"built {options.records:,} records in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        with open_wheel(path) as wheel:
            rows = measure(wheel, options.runs, arms, options.read)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory {peak:.0f} MB (before the first search {before:.0f} MB)", file=sys.stderr)
        same = same_bytes(path, arms) if options.check else None
        if same is not None:
            print(f"same bytes with more records outside: {same}", file=sys.stderr)
        if options.json:
            print(
                json.dumps(
                    {"records": options.records, "arms": arms, "rows": rows, "peak_mb": peak, "same_bytes": same}, indent=1
                )
            )


if __name__ == "__main__":
    main()
