"""What the store's tests share: what a wheel holds told without its integer keys, and wheels made from an export."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wheelmem.plugins import PluginHost, load_plugins
from wheelmem.store import Wheel, open_wheel
from wheelmem.store.jsonl import export_folder, import_folder

# As in tests/conftest.py, which cannot be imported by name: other folders have a conftest too.
REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
FILES = {
    "node": "nodes.jsonl",
    "edge": "edges.jsonl",
    "ceremony": "ceremonies.jsonl",
    "beat": "beats.jsonl",
    "diary": "diary-entries.jsonl",
}


def keyword() -> PluginHost:
    """The keyword arm and nothing else."""
    return load_plugins(load="fts5")


def plain_wheel(path: Path) -> Wheel:
    """A wheel without plugins."""
    return open_wheel(path, plugins=PluginHost())


def write_folder(folder: Path, **files: Iterable[Mapping[str, Any]]) -> Path:
    """A JSONL folder; ``beat=[…]`` writes the file of beats."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, records in files.items():
        (folder / FILES[kind]).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return folder


def derived(db: sqlite3.Connection) -> dict[str, Any]:
    """Everything that is derived, with ids in place of integer keys, and records in the wheel's order."""

    def rows(sql: str) -> list[Any]:
        return [tuple(row) for row in db.execute(sql)]

    return {
        "records": rows(
            "SELECT r.kind, r.wheel_id, p.kind, p.id, r.speaker, r.at, r.instant, r.text FROM records r "
            "LEFT JOIN places p ON p.place = r.home ORDER BY r.record_id & 7, r.record_id"
        ),
        "also in": sorted(
            rows(
                "SELECT r.kind, r.wheel_id, p.kind, p.id, a.ord FROM also_in a LEFT JOIN records r USING (record_id) "
                "LEFT JOIN places p ON p.place = a.place"
            ),
            key=repr,
        ),
        "participants": rows("SELECT ceremony_id, participant, ord FROM ceremony_participants ORDER BY 1, 2"),
        "witnesses": rows("SELECT beat_id, witness, ord FROM beat_witnesses ORDER BY 1, 2"),
        "sources": sorted(
            rows("SELECT r.wheel_id, s.source_id FROM conclusion_sources s LEFT JOIN records r USING (record_id)"), key=repr
        ),
    }


def told(wheel: Wheel) -> dict[str, Any]:
    """All that a wheel holds: its records as JSON in their order, and what is derived from them."""

    def read(db: sqlite3.Connection) -> dict[str, Any]:
        from wheelmem.store import writing

        held = {kind: list(writing.each(db, kind)) for kind in FILES}
        others = [tuple(row) for row in db.execute("SELECT file, id, record FROM other_records ORDER BY file, position")]
        return {**held, "other": others, "derived": derived(db)}

    return wheel.read(read)


def told_of_reimport(wheel: Wheel) -> dict[str, Any]:
    """What a new wheel holds that was made from an export of this one."""
    with tempfile.TemporaryDirectory() as place:
        export_folder(wheel, Path(place) / "folder")
        with plain_wheel(Path(place) / "again.db") as again:
            report = import_folder(again, Path(place) / "folder")
            assert report.quarantined == ()
            return told(again)
