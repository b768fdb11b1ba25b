"""What came in comes out, as a folder that makes the same wheel again."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storeworld import FILES, plain_wheel, told, told_of_reimport

from wheelmem import open_wheel
from wheelmem.store import StoreError, Wheel
from wheelmem.store.jsonl import export_folder, import_folder
from wheelmem.store.rows import KINDS


@pytest.fixture
def wheel(tmp_path: Path) -> Any:
    with plain_wheel(tmp_path / "w.db") as made:
        yield made


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_an_export_of_the_sample_says_what_the_sample_says(shared: Path, tmp_path: Path) -> None:
    sample, out = shared / "data" / "wheel-sample", tmp_path / "out"
    with open_wheel(tmp_path / "w.db") as wheel:
        import_folder(wheel, sample)
        report = export_folder(wheel, out)
        assert {one.file: one.lines for one in report.files} == {
            "nodes.jsonl": 9, "edges.jsonl": 6, "ceremonies.jsonl": 6, "beats.jsonl": 6, "diary-entries.jsonl": 3,
            "cycles.jsonl": 1,
        }  # fmt: skip
        for one in report.files:
            if one.file != "nodes.jsonl":
                assert read(out / one.file) == read(sample / one.file)
        assert told(wheel) == told_of_reimport(wheel)
        # Into the wheel it came from it brings nothing.
        assert sum(one.added + one.changed for one in import_folder(wheel, out).files) == 0


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
    | st.just("\ud83d"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def records(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A record with any value in any field, listed or not."""
    kind = draw(st.sampled_from(list(FILES)))
    table = KINDS[kind]
    names = st.sampled_from([name for name in table.columns if name not in table.key]) | st.text(max_size=5) | st.just("extra")
    record = {name: value for name, value in draw(st.dictionaries(names, VALUES, max_size=6)).items() if name not in table.key}
    keys = {name: draw(st.sampled_from(["a", "b", "ö 🙂", 'it\'s "x"', "\u202e\ufeff"])) for name in table.key}
    return kind, {**keys, **record}


@given(st.lists(records(), max_size=8))
def test_any_field_of_any_value_comes_back_as_it_was(rows: list[tuple[str, dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as place, plain_wheel(Path(place) / "w.db") as wheel:
        expected: dict[tuple[str, ...], dict[str, Any]] = {}
        for kind, record in rows:
            wheel.put(kind, record)
            expected[(kind, *KINDS[kind].keys(record))] = record
        assert {key: wheel.get(*key) for key in expected} == expected
        assert {key: wheel.put(key[0], record) for key, record in expected.items()} == dict.fromkeys(expected, "same")
        assert told(wheel) == told_of_reimport(wheel)


def test_rows_that_other_tools_wrote_oddly_come_out_as_lines_that_come_in(wheel: Wheel) -> None:
    db = sqlite3.connect(wheel.path)
    with db:
        db.execute(
            "INSERT INTO beats (id, title, description, learnings, extra) "
            "VALUES ('b1', x'ff00', 'a' || char(10) || 'b', '{', 'not json')"
        )
        db.execute("INSERT INTO beats (id, ceremonies, act, extra) VALUES ('b2', '[\"\\ud83d\"]', 'three', '[1]')")
        db.execute("INSERT INTO nodes (id, metadata) VALUES ('n1', '{\"a\":NaN}')")
        db.execute(
            "INSERT INTO other_records (file, id, record) VALUES ('notes.jsonl', 'x', '{' || char(10) || '\"id\": \"x\"}')"
        )
    db.close()
    again = told_of_reimport(wheel)
    assert [beat["id"] for beat in again["beat"]] == ["b1", "b2"]
    assert again["beat"][1]["act"] == "three"
    assert again["node"] == [{"id": "n1", "metadata": '{"a":NaN}'}]
    assert json.loads(again["other"][0][2]) == {"id": "x"}


def test_order_is_that_of_first_arrival_also_after_positions_were_moved(wheel: Wheel) -> None:
    for id in ("b", "c", "a"):
        wheel.put("ceremony", {"id": id})
    wheel.put("ceremony", {"id": "b", "type": "smudging"})
    assert [one["id"] for one in told_of_reimport(wheel)["ceremony"]] == ["b", "c", "a"]
    db = sqlite3.connect(wheel.path)
    with db:
        db.execute("UPDATE ceremonies SET position = -5 WHERE id = 'a'")
    db.close()
    assert [one["id"] for one in told_of_reimport(wheel)["ceremony"]] == ["a", "b", "c"]


def test_only_the_wheels_own_files_are_touched(wheel: Wheel, tmp_path: Path) -> None:
    wheel.put("node", {"id": "n1"})
    out = tmp_path / "out"
    out.mkdir()
    kept = {"README.md": "mine", "charts.jsonl": '{"id":"theirs"}\n', ".beats.jsonl.swp": "swap"}
    for name, text in kept.items():
        (out / name).write_text(text)
    (out / "nodes.jsonl").write_text('{"id":"old"}\n')
    export_folder(wheel, out)
    export_folder(wheel, out)
    assert {name: (out / name).read_text() for name in kept} == kept
    assert read(out / "nodes.jsonl") == [{"id": "n1"}]
    assert sorted(os.listdir(out)) == sorted([*kept, *FILES.values()])


@pytest.mark.parametrize("name", ["../escaped.jsonl", "/tmp/escaped.jsonl", "nodes.jsonl", "plain", "a/b.jsonl", ""])
def test_a_name_in_other_records_leads_nowhere_else(wheel: Wheel, tmp_path: Path, name: str) -> None:
    db = sqlite3.connect(wheel.path)
    with db:
        db.execute("INSERT INTO other_records (file, id, record) VALUES (?, 'x', '{}')", (name,))
    db.close()
    with pytest.raises(StoreError, match="other_records names the file"):
        export_folder(wheel, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []
    assert not (tmp_path / "escaped.jsonl").exists()


def test_a_folder_that_cannot_be_made_is_told_in_one_line(wheel: Wheel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match="cannot export to") as error:
            export_folder(wheel, folder)
        assert "\n" not in str(error.value)


def test_progress_counts_every_record(wheel: Wheel, tmp_path: Path) -> None:
    for number in range(3):
        wheel.put("beat", {"id": f"b{number}"})
    calls: list[tuple[str, int, int]] = []
    export_folder(wheel, tmp_path / "out", progress=lambda *call: calls.append(call))
    assert [call for call in calls if call[0] == "beats.jsonl"] == [("beats.jsonl", 0, 3), ("beats.jsonl", 3, 3)]


EXPORTER = """
import resource, signal, sys
from wheelmem.plugins import PluginHost
from wheelmem.store import StoreError, open_wheel
from wheelmem.store.jsonl import export_folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_wheel(sys.argv[1], plugins=PluginHost()) as wheel:
    wheel.count()
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    try:
        export_folder(wheel, sys.argv[2])
    except StoreError as error:
        print(error)
"""


def test_a_full_disk_leaves_the_former_export_whole(wheel: Wheel, tmp_path: Path) -> None:
    assert resource.RLIMIT_FSIZE is not None
    wheel.put("node", {"id": "n1"})
    export_folder(wheel, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    wheel.write(lambda db: [wheel.store(db, "beat", {"id": f"b{n}", "prose": "lantern " * 100}) for n in range(200)])
    wheel.put("node", {"id": "n2"})
    done = subprocess.run(
        [sys.executable, "-c", EXPORTER, str(wheel.path), str(tmp_path / "out"), "65536"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no room left" in done.stdout
    assert done.stdout.count("\n") == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
