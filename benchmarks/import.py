"""How fast a JSONL folder comes in, against what a bare ``executemany`` would take.

    python benchmarks/import.py --records 100000 --runs 5

The peer gets the very rows the import made, ready in memory, and puts them into the same tables with the same indexes but
without a trigger, in one transaction; with the keyword index it then rebuilds that. The import reads and parses the files,
derives, keeps its place, and lets triggers fill the index. Printed: medians in rows of the five tables a second, and the
import's rate as a ratio of the peer's.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from wheelmem.plugins import load_plugins
from wheelmem.store import open_wheel
from wheelmem.store.jsonl import import_folder

PER_CEREMONY = 50
FILLED = [
    *("nodes", "edges", "ceremonies", "beats", "diary"),
    *("places", "records", "also_in", "ceremony_participants", "beat_witnesses", "conclusion_sources"),
]


def write_folder(folder: Path, records: int) -> None:
    """A wheel of so many records: 50 a ceremony, of which one in five is a diary entry; 5 % in two ceremonies; Zipf words."""
    rng = random.Random(11)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(30_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    people = [f"node:human:{number}:p{number}" for number in range(200)]

    def words() -> str:
        return " ".join(rng.choices(vocabulary, weights, k=rng.randint(20, 40)))

    def write(name: str, lines: Sequence[Mapping[str, object]]) -> None:
        (folder / name).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

    stamp = "2026-03-{:02}T{:02}:{:02}:00.000Z".format
    ceremonies = [f"ceremony:{number}" for number in range(max(1, records // PER_CEREMONY))]
    circles = [f"circle:{number}" for number in range(max(1, len(ceremonies) // 100))]
    write(
        "nodes.jsonl",
        [{"id": id, "type": "human", "name": f"Person {id[-3:]}", "metadata": {}} for id in people]
        + [{"id": id, "type": "circle", "name": id, "metadata": {"facilitator_id": people[0]}} for id in circles],
    )
    write(
        "edges.jsonl",
        [
            {"from_id": person, "to_id": circle, "relationship_type": "member_of", "strength": 1, "obligations": ["show up"]}
            for circle in circles
            for person in rng.sample(people, 8)
        ],
    )
    write(
        "ceremonies.jsonl",
        [
            {
                "id": id,
                "type": "talking_circle",
                "direction": "east",
                "participants": rng.sample(people, 4),
                "intentions": [words()[:60]],
                "timestamp": stamp(1 + number % 28, 9, 0),
                "circle_id": circles[number % len(circles)],
            }
            for number, id in enumerate(ceremonies)
        ],
    )
    beats: list[dict[str, object]] = []
    diary: list[dict[str, object]] = []
    for number in range(records):
        place = ceremonies[number // PER_CEREMONY % len(ceremonies)]
        when = stamp(1 + number % 28, 10 + number % 9, number % 60)
        if number % 5 == 4:
            entry = {"phase": "nindokendaan", "entryType": "observation", "content": words(), "metadata": {"ceremony_id": place}}
            diary.append({"id": f"diary:{number}", "timestamp": when, "participant": rng.choice(people), **entry})
            continue
        both = [place, rng.choice(ceremonies)] if rng.random() < 0.05 else [place]
        beat = {"direction": "east", "title": words()[:40], "description": words(), "ceremonies": both, "learnings": [], "act": 1}
        beats.append({"id": f"beat:{number}", **beat, "timestamp": when, "speaker": rng.choice(people), "witnesses": []})
    write("beats.jsonl", beats)
    write("diary-entries.jsonl", diary)


def bring_in(folder: Path, path: Path, plugins: str) -> float:
    """Seconds an import takes into an empty wheel."""
    with open_wheel(path, plugins=load_plugins(load=plugins)) as wheel:
        begin = time.perf_counter()
        import_folder(wheel, folder)
        return time.perf_counter() - begin


def bare(path: Path, made: Path, index: bool) -> float:
    """Seconds to put the rows of the wheel ``made`` into the same tables of another file with nothing but ``executemany``."""
    source = sqlite3.connect(made)
    rows = {name: source.execute(f"SELECT * FROM {name}").fetchall() for name in FILLED}
    names = ", ".join(f"'{name}'" for name in FILLED)
    tables = f"type IN ('table', 'index') AND tbl_name IN ({names})"
    schema = source.execute(f"SELECT sql FROM sqlite_master WHERE {tables}").fetchall()
    search = source.execute("SELECT sql FROM sqlite_master WHERE name = 'records_fts'").fetchone()
    source.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    for (sql,) in [*schema, *([search] if index else [])]:
        if sql:
            db.execute(sql)
    begin = time.perf_counter()
    db.execute("BEGIN")
    for name, values in rows.items():
        if values:
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(values[0]))})", values)
    if index:
        db.execute("INSERT INTO records_fts (records_fts) VALUES ('rebuild')")
    db.execute("COMMIT")
    taken = time.perf_counter() - begin
    db.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "folder"
        folder.mkdir()
        write_folder(folder, arguments.records)
        total = sum(1 for path in folder.glob("*.jsonl") for _ in path.open())
        size = sum(path.stat().st_size for path in folder.glob("*.jsonl"))
        print(f"{total:,} lines, {size / 1e6:.1f} MB; medians of {arguments.runs} runs, lines a second")
        for label, plugins, index in (("without an index", "", False), ("with the keyword index", "fts5", True)):
            ours, peers = [], []
            for run in range(arguments.runs):
                made = Path(place) / f"ours-{index}-{run}.db"
                ours.append(bring_in(folder, made, plugins))
                peer = Path(place) / f"peer-{index}-{run}.db"
                peers.append(bare(peer, made, index))
                for path in Path(place).glob("*.db*"):
                    path.unlink()
            our, peer_time = statistics.median(ours), statistics.median(peers)
            print(f"{label}: import {total / our:,.0f}, executemany {total / peer_time:,.0f}, ratio {peer_time / our:.2f}")


if __name__ == "__main__":
    main()
