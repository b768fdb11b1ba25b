"""A JSONL folder comes in: all that is readable, once, and resumably; what is not is told line by line."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from storeworld import FILES, derived, plain_wheel, told, write_folder

from wheelmem import create_memory, open_wheel
from wheelmem.hookspecs import hookimpl
from wheelmem.memory import run
from wheelmem.plugins import PluginHost
from wheelmem.store import StoreError, Wheel, jsonl
from wheelmem.store.jsonl import BadLine, import_folder


@pytest.fixture
def wheel(tmp_path: Path) -> Any:
    with plain_wheel(tmp_path / "w.db") as made:
        yield made


def counts(report: jsonl.ImportReport, file: str) -> tuple[int, int, int, int, int]:
    """lines, added, changed, same, bad"""
    one = next(one for one in report.files if one.file == file)
    return one.lines, one.added, one.changed, one.same, one.bad


def beats(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "beats.jsonl").write_bytes(content)
    return folder


def ids(wheel: Wheel, table: str = "beats") -> list[str]:
    return wheel.read(lambda db: [id for (id,) in db.execute(f"SELECT id FROM {table} ORDER BY position")])


def quarantined(wheel: Wheel) -> list[tuple[Any, ...]]:
    return wheel.read(
        lambda db: db.execute("SELECT file, line, text, reason FROM import_quarantine ORDER BY position").fetchall()
    )


# --- the sample ----------------------------------------------------------------------------------------------------


def test_the_sample_comes_in_whole_but_for_its_half_written_line(shared: Path, tmp_path: Path) -> None:
    sample = shared / "data" / "wheel-sample"
    with open_wheel(tmp_path / "w.db") as wheel:
        report = import_folder(wheel, sample)
        assert [(bad.file, bad.line) for bad in report.quarantined] == [("nodes.jsonl", 11)]
        assert counts(report, "nodes.jsonl") == (11, 9, 1, 0, 1)
        assert wheel.count() == {"nodes": 9, "edges": 6, "ceremonies": 6, "beats": 6, "diary": 3}
        lines = {
            kind: [json.loads(line) for line in (sample / file).read_text().splitlines() if line.endswith("}")]
            for kind, file in FILES.items()
        }
        for kind, records in lines.items():
            key = ("from_id", "to_id", "relationship_type") if kind == "edge" else ("id",)
            latest = {tuple(record[name] for name in key): record for record in records}
            for key_of, record in latest.items():
                assert wheel.get(kind, *key_of) == record
        memory = create_memory(wheel=wheel)

        def found(query: str, **scope: Any) -> set[str]:
            return {str(source.wheel_id) for source in run(memory, memory.search(query=query, scope=scope)).sources}

        assert "beat:east:1773000100000" in found("lantern", circle_id="circle:1772000001000:garden")
        assert "beat:west:1773100200000" in found("surveys", subject_id="pde:7f1c")
        # A name that was written twice is the later one; a closing of the older shape follows what it closes.
        assert "ceremony:1773000000000:g1" in found("Ríos", circle_id="circle:1772000001000:garden")
        assert "ceremony:1773100009000:b1c" in found("piers", ceremonies="ceremony:1773100000000:b1")
        assert "diary:2" in found("élargit", episode_path="2026-03-20-episode-12-footbridge")
        assert found("lantern mill dawn", ceremonies="ceremony:nowhere") == set()


def test_a_second_import_changes_no_row(shared: Path, tmp_path: Path) -> None:
    with open_wheel(tmp_path / "w.db") as wheel:
        import_folder(wheel, shared / "data" / "wheel-sample")
        before = told(wheel), quarantined(wheel)
        db = sqlite3.connect(wheel.path)
        with db:
            db.execute("CREATE TABLE touched (what TEXT)")
            for table in ("nodes", "edges", "ceremonies", "beats", "diary", "other_records", "records", "import_quarantine"):
                for event in ("INSERT", "UPDATE", "DELETE"):
                    body = f"INSERT INTO touched VALUES ('{table} {event}')"
                    db.execute(f"CREATE TRIGGER see_{table}_{event} AFTER {event} ON {table} BEGIN {body}; END")
        report = import_folder(wheel, shared / "data" / "wheel-sample")
        assert db.execute("SELECT what FROM touched").fetchall() == []
        db.close()
        assert (told(wheel), quarantined(wheel)) == before
        assert sum(one.added + one.changed for one in report.files) == 0
        assert [bad.line for bad in report.quarantined] == [11]


# --- lines ---------------------------------------------------------------------------------------------------------

BAD = [
    (b'{"id":"x","title":"half', "no JSON"),
    (b"nonsense", "no JSON"),
    (b'{"id":"x"} {"id":"y"}', "no JSON"),
    (b"\x00\x00\x00\x00", "no JSON"),
    (b'{"id":"x","title":"\xff"}', "no UTF-8"),
    (b'{"id":"x","title":"\xed\xa0\xbd"}', "no UTF-8"),
    (b'{"id":"x","act":NaN}', "no number"),
    (b'{"id":"x","act":-Infinity}', "no number"),
    (b'{"id":"x","learnings":[1e999]}', "no number"),
    (b'{"id":"x","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
    (b'{"id":"x","act":' + b"9" * 5000 + b"}", "no JSON"),
    (b'{"title":"no key"}', "needs id"),
    (b'{"id":7}', "needs id"),
    (b'{"id":"  "}', "needs id"),
    (b'{"id":null}', "needs id"),
    (b'{"id":"a\\u0000b"}', "no id can hold"),
    (b'{"id":"a\\ud83d"}', "no id can hold"),
    (b'["id","x"]', "must be a JSON object"),
    (b'"x"', "must be a JSON object"),
    (b"17", "must be a JSON object"),
    (b"null", "must be a JSON object"),
]


@pytest.mark.parametrize(("line", "reason"), BAD, ids=[line[:28].decode("latin-1") for line, _ in BAD])
def test_a_line_that_is_no_record_is_set_aside_and_the_rest_goes_on(
    wheel: Wheel, tmp_path: Path, line: bytes, reason: str
) -> None:
    folder = beats(tmp_path / "in", b'{"id":"b1"}\n' + line + b'\n{"id":"b2"}\n')
    for _ in range(2):
        report = import_folder(wheel, folder)
        (bad,) = report.quarantined
        assert (bad.file, bad.line) == ("beats.jsonl", 2)
        assert reason in bad.reason
        assert "\n" not in bad.reason
        assert len(bad.reason) < 200
        assert ids(wheel) == ["b1", "b2"]
        ((file, number, text, why),) = quarantined(wheel)
        assert (file, number, why) == ("beats.jsonl", 2, bad.reason)
        assert (text if isinstance(text, bytes) else text.encode()) == line


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"id":"b1"}\n{"id":"b2"}\n',
        b'{"id":"b1"}\r\n{"id":"b2"}\r\n',
        b'\n\n  \n{"id":"b1"}\n\t\n{"id":"b2"}\n\n',
        b'{"id":"b1"}\n{"id":"b2"}',
        b' { "id" : "b1" } \n{"id":"b2"}\n',
    ],
    ids=["BOM", "CRLF", "blank lines", "no last newline", "spaces"],
)
def test_ways_to_write_two_lines(wheel: Wheel, tmp_path: Path, content: bytes) -> None:
    report = import_folder(wheel, beats(tmp_path / "in", content))
    assert counts(report, "beats.jsonl") == (2, 2, 0, 0, 0)
    assert ids(wheel) == ["b1", "b2"]


def test_a_line_of_megabytes_comes_in_and_one_beyond_the_limit_is_set_aside(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "LONGEST_LINE", 8 << 20)
    long, longer = ({"id": id, "prose": "lantern " * count} for id, count in (("b1", 1 << 19), ("b2", 5 << 20)))
    folder = write_folder(tmp_path / "in", beat=[long, longer, {"id": "b3"}])
    report = import_folder(wheel, folder)
    assert [(bad.line, "longer than 8 MB" in bad.reason) for bad in report.quarantined] == [(2, True)]
    assert ids(wheel) == ["b1", "b3"]
    assert wheel.get("beat", "b1") == long


def test_a_line_that_comes_again_keeps_its_place_and_takes_the_later_value(wheel: Wheel, tmp_path: Path) -> None:
    many = [{"id": f"b{number}"} for number in range(5, jsonl.BATCH_LINES + 10)]
    lines = [
        {"id": "b1", "title": "old"},
        {"id": "b2", "title": "kept"},
        {"id": "b3", "title": "old"},
        {"id": "b3", "title": "new"},
    ]
    folder = write_folder(tmp_path / "in", beat=[*lines, *many, {"id": "b1", "title": "new"}, {"id": "b2", "title": "kept"}])
    report = import_folder(wheel, folder)
    total = len(lines) + len(many) + 2
    assert counts(report, "beats.jsonl") == (total, total - 3, 2, 1, 0)
    assert ids(wheel)[:4] == ["b1", "b2", "b3", "b5"]
    assert [wheel.get("beat", id) for id in ("b1", "b3")] == [{"id": "b1", "title": "new"}, {"id": "b3", "title": "new"}]
    assert wheel.read(lambda db: db.execute("SELECT text FROM records WHERE wheel_id = 'b1'").fetchone()) == ("new",)
    before = told(wheel)
    assert counts(import_folder(wheel, folder), "beats.jsonl") == (total, 0, 0, total, 0)
    assert told(wheel) == before


def test_a_row_changed_since_takes_the_folders_value_again(wheel: Wheel, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "in", ceremony=[{"id": "c1"}], beat=[{"id": "b1", "title": "lantern", "ceremonies": ["c1"]}])
    import_folder(wheel, folder)
    before = told(wheel)
    wheel.put("beat", {"id": "b1", "title": "heron"})
    assert counts(import_folder(wheel, folder), "beats.jsonl") == (1, 0, 1, 0, 0)
    assert told(wheel) == before


def test_rows_that_come_in_are_derived_as_rows_that_are_put(tmp_path: Path) -> None:
    records = {
        "node": [{"id": "n1", "type": "human"}, {
            "id": "k1", "type": "knowledge", "description": "they meet", "metadata": {
                "kind": "memory_projection", "status": "confirmed", "derived_by": "n1", "source_event_ids": ["b1", "c1"]}}],
        "ceremony": [{"id": "c0", "type": "closing", "research_context": "c1"}, {"id": "c1", "participants": ["Ana", "n1"]}],
        "beat": [{"id": "b1", "ceremonies": ["c1", "c0", "c1"], "witnesses": "n1"}, {"id": "b2", "ceremonies": ["c0"]}],
        "diary": [{"id": "d1", "chronicle": "chronicle:e", "content": "x"}, {"id": "d2", "metadata": {"ceremony_id": "c1"}}],
    }  # fmt: skip
    with plain_wheel(tmp_path / "put.db") as put, plain_wheel(tmp_path / "in.db") as brought:
        for kind, rows in reversed(records.items()):
            for row in rows:
                put.put(kind, row)
        import_folder(brought, write_folder(tmp_path / "in", **records))
        assert brought.read(derived) == put.read(derived)
        assert len(brought.read(derived)["records"]) == 7
        assert brought.read(lambda db: db.execute("SELECT paused FROM deriving").fetchall()) == [(0,)]


# --- other files ---------------------------------------------------------------------------------------------------


def test_other_files_records_are_kept_as_they_are_written(wheel: Wheel, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "in", node=[])
    lines = [
        '{"id":"x","n":1}', '{"n": 2.50}', '{"id":5}', '{"id":"5"}', '{"id":"x","n":3}', '{"n": 2.50}', '{"id":"\\u0000"}',
        '{"id":"\\ud83d"}', '{"id":""}',
    ]  # fmt: skip
    (folder / "charts.jsonl").write_text("\n".join([*lines, '{"id": "half']) + "\n")
    (folder / "notes.txt").write_text("not a record")
    (folder / "odd.jsonl").mkdir()
    (folder / "._charts.jsonl").write_bytes(b"\x00\x05\x16\x07")
    report = import_folder(wheel, folder)
    assert [one.file for one in report.files] == ["nodes.jsonl", "charts.jsonl"]
    assert report.quarantined == (BadLine("charts.jsonl", 10, report.quarantined[0].reason),)
    kept = wheel.read(lambda db: [row for (row,) in db.execute("SELECT record FROM other_records ORDER BY position")])
    assert kept == [lines[4], *lines[1:4], *lines[6:]]
    again = import_folder(wheel, folder)
    assert counts(again, "charts.jsonl") == (10, 0, 0, 9, 1)


# --- interrupted ---------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


def stop_after(file: str, calls: int) -> Any:
    left = [calls]

    def progress(name: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        if name == file:
            left[0] -= 1
            if left[0] < 0:
                raise Stop

    return progress


@pytest.fixture
def long_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jsonl, "BATCH_LINES", 10)
    nodes = [{"id": f"n{number}", "type": "human", "name": f"N{number}"} for number in range(25)]
    rows = [{"id": f"b{number}", "title": f"t{number}"} for number in range(95)]
    return write_folder(
        tmp_path / "in", node=nodes, beat=[*rows, {"id": "b0", "title": "later"}, {"id": "b50", "title": "later"}]
    )


def test_an_interrupted_import_goes_on_where_it_stopped(wheel: Wheel, long_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        import_folder(wheel, long_folder, progress=stop_after("beats.jsonl", 4))
    held = ids(wheel)
    assert len(held) == 40
    # What has come in is not read again: it could be gone from the wheel by now for a reason.
    wheel.delete("beat", "b3")
    report = import_folder(wheel, long_folder)
    nodes, rest = report.files
    assert (nodes.lines, nodes.resumed_after) == (0, 25)
    assert (rest.lines, rest.added, rest.changed, rest.same, rest.resumed_after) == (57, 55, 2, 0, 40)
    assert list(ids(wheel)) == [f"b{number}" for number in range(95) if number != 3]
    # A finished one leaves no position: the next reads it all.
    report = import_folder(wheel, long_folder)
    assert counts(report, "beats.jsonl") == (97, 1, 0, 96, 0)
    assert [one.resumed_after for one in report.files] == [0, 0]
    assert wheel.read(lambda db: db.execute("SELECT count(*) FROM imports").fetchone()) == (0,)
    assert wheel.read(lambda db: db.execute("SELECT count(*) FROM import_changes").fetchone()) == (0,)


def test_an_interrupted_import_of_a_file_that_changed_begins_again(wheel: Wheel, long_folder: Path) -> None:
    with pytest.raises(Stop):
        import_folder(wheel, long_folder, progress=stop_after("beats.jsonl", 4))
    with (long_folder / "beats.jsonl").open("a") as file:
        file.write('{"id":"b999"}\n')
    report = import_folder(wheel, long_folder)
    assert [one.resumed_after for one in report.files] == [25, 0]
    assert ids(wheel) == [*(f"b{number}" for number in range(95)), "b999"]


@pytest.mark.parametrize("stop", range(12))
def test_wherever_it_stops_the_whole_comes_out_the_same(long_folder: Path, tmp_path: Path, stop: int) -> None:
    with plain_wheel(tmp_path / "whole.db") as whole, plain_wheel(tmp_path / "parts.db") as parts:
        for wheel in (whole, parts):
            wheel.put("beat", {"id": "b50", "title": "earlier"})
            wheel.put("beat", {"id": "b7", "title": "earlier"})
        import_folder(whole, long_folder)
        try:
            import_folder(parts, long_folder, progress=stop_after("beats.jsonl", stop))
        except Stop:
            pass
        import_folder(parts, long_folder)
        assert told(parts) == told(whole)


# --- plugins -------------------------------------------------------------------------------------------------------


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    @hookimpl
    def prepare_store(self, db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE IF NOT EXISTS heard (kind TEXT, id TEXT)")

    @hookimpl
    def record_stored(self, db: sqlite3.Connection, kind: str, id: str) -> None:
        db.execute("INSERT INTO heard VALUES (?, ?)", (kind, id))
        if id == "b2":
            raise RuntimeError("not this one")


class Counter:
    calls = 0

    @hookimpl
    def record_stored(self, db: sqlite3.Connection) -> None:
        self.calls += 1


def test_plugins_are_told_of_every_record_an_import_stores(tmp_path: Path) -> None:
    host = PluginHost(report=lambda line: None)
    counter = Counter()
    host.add(Listener(), "listener")
    host.add(counter, "counter")
    with open_wheel(tmp_path / "w.db", plugins=host) as wheel:
        edge = {"from_id": "n1", "to_id": "n2", "relationship_type": "knows"}
        folder = write_folder(
            tmp_path / "in", node=[{"id": "n1"}], edge=[edge], beat=[{"id": f"b{number}"} for number in range(5)]
        )

        def heard() -> list[tuple[str, str]]:
            rows = wheel.write(lambda db: db.execute("SELECT kind, id FROM heard").fetchall())
            wheel.write(lambda db: db.execute("DELETE FROM heard"))
            return rows

        import_folder(wheel, folder)
        # The one it failed at is stored all the same, without what the plugin made of it.
        assert ids(wheel) == ["b0", "b1", "b2", "b3", "b4"]
        expected = [("node", "n1"), ("edge", "n1 n2 knows"), *(("beat", f"b{number}") for number in (0, 1, 3, 4))]
        assert heard() == expected
        assert [failure.name for failure in host.failures] == ["listener"]
        # Who asks for no record is told once a transaction.
        assert counter.calls == 3
        import_folder(wheel, folder)
        assert heard() == []
        write_folder(folder, beat=[{"id": "b4", "title": "new"}])
        import_folder(wheel, folder)
        assert heard() == [("beat", "b4")]


# --- what is no folder to bring in -----------------------------------------------------------------------------------


def one_line(error: pytest.ExceptionInfo[StoreError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_folder_that_is_none_is_refused_in_one_line(wheel: Wheel, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        import_folder(wheel, tmp_path / "nowhere")
    assert "no folder at" in one_line(error)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as error:
        import_folder(wheel, tmp_path / "file")
    assert "is a file" in one_line(error)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "other.jsonl").write_text('{"id":1}\n')
    with pytest.raises(StoreError) as error:
        import_folder(wheel, tmp_path / "empty")
    assert "is no wheel" in one_line(error)
    assert wheel.read(lambda db: db.execute("SELECT count(*) FROM other_records").fetchone()) == (0,)


def test_a_file_that_cannot_be_read_stops_the_import_before_it_begins(wheel: Wheel, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "in", node=[{"id": "n1"}])
    (folder / "zzz.jsonl").symlink_to(tmp_path / "gone")
    with pytest.raises(StoreError) as error:
        import_folder(wheel, folder)
    assert "zzz.jsonl cannot be read" in one_line(error)
    (folder / "zzz.jsonl").unlink()
    os.mkfifo(folder / "zzz.jsonl")
    with pytest.raises(StoreError) as error:
        import_folder(wheel, folder)
    assert "no regular file" in one_line(error)
    (folder / "zzz.jsonl").unlink()
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl")).write_text("")
    with pytest.raises(StoreError) as error:
        import_folder(wheel, folder)
    assert "rename" in one_line(error)
    assert ids(wheel, "nodes") == []


def test_the_report_of_a_file_of_nothing_but_bad_lines_stays_small(wheel: Wheel, tmp_path: Path) -> None:
    report = import_folder(wheel, beats(tmp_path / "in", b"bad\n" * 12_345))
    assert counts(report, "beats.jsonl") == (12_345, 0, 0, 0, 12_345)
    assert len(report.quarantined) == jsonl.LISTED
    assert len(quarantined(wheel)) == 12_345


IMPORTER = """
import resource, sys
from wheelmem.plugins import load_plugins
from wheelmem.store import open_wheel
from wheelmem.store.jsonl import import_folder
import wheelmem.store.jsonl
with open_wheel(sys.argv[1], plugins=load_plugins(load="fts5")) as wheel:
    import_folder(wheel, sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_stays_bounded_whatever_the_size(tmp_path: Path) -> None:
    def peak(lines: int) -> int:
        folder = tmp_path / f"in{lines}"
        folder.mkdir()
        with (folder / "beats.jsonl").open("w") as file:
            for number in range(lines):
                file.write(json.dumps({"id": f"b{number}", "prose": f"{number} lantern heron " * 40}) + "\n")
        done = subprocess.run(
            [sys.executable, "-c", IMPORTER, f"{folder}.db", folder], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    small, large = peak(12_000), peak(60_000)
    # 60,000 lines are 60 MB; held at once they would be that and more.
    assert large < small + 40, (small, large)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0
