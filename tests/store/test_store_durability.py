"""What a write acknowledged is there: after kill -9, on a full disk, beside other writers and a long import."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from storeworld import REPEATS, keyword, plain_wheel, told, told_of_reimport

from wheelmem.plugins import PluginHost
from wheelmem.store import StoreError, Wheel, jsonl, open_wheel
from wheelmem.store.jsonl import import_folder

WORKER = Path(__file__).with_name("storeworker.py")


def worker(*arguments: object, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE)


def acknowledged(output: bytes) -> list[tuple[str, str]]:
    """What whole lines of a writer's output say was kept."""
    lines = output.decode().split("\n")[:-1]
    return [(kind, id) for kind, _, id in (line.partition(" ") for line in lines) if kind in ("ceremony", "beat")]


def assert_sound(path: Path, kept: list[tuple[str, str]]) -> None:
    """The wheel opens, SQLite finds no fault in it, all that was acknowledged is held, derived and found by its words."""
    with open_wheel(path, plugins=keyword()) as wheel:
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.execute("INSERT INTO records_fts (records_fts, rank) VALUES ('integrity-check', 1)")
        held = {("ceremony", id) for (id,) in db.execute("SELECT id FROM ceremonies")}
        held |= {("beat", id) for (id,) in db.execute("SELECT id FROM beats")}
        assert set(kept) <= held
        assert held == set(db.execute("SELECT kind, wheel_id FROM records"))
        db.close()
        assert wheel.put("node", {"id": "after", "name": str(time.time())}) in ("added", "changed")


@contextmanager
def room(tmp_path: Path, size: str) -> Iterator[Path]:
    """A disk of its own, of so many bytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no disk of one's own may be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


# --- kill -9 -------------------------------------------------------------------------------------------------------


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    rng = random.Random()
    within = 0
    kept: list[tuple[str, str]] = []
    path = tmp_path / "w.db"
    for number in range(REPEATS):
        if number % 20 == 0:
            # Now and then a new wheel, so that some kills fall into its making.
            path, kept = tmp_path / f"w{number}.db", []
        log = tmp_path / "log"
        with log.open("wb") as file:
            process = worker("write", path, f"r{number}", stdout=file)
            begun = time.monotonic()
            while log.stat().st_size == 0 and process.poll() is None and time.monotonic() - begun < 60:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.6))
            running = process.poll() is None
            process.kill()
            process.wait()
        said = acknowledged(log.read_bytes())
        assert process.stderr is not None
        assert running, process.stderr.read()
        # The writer never ends of itself, so a kill after its first word is one between that and the end.
        within += bool(said)
        kept += said
        assert_sound(path, kept)
    print(f"{within} of {REPEATS} kills fell after the first acknowledgement; {len(kept)} records in the last wheel")
    assert within * 2 >= REPEATS


def folder_of(path: Path, lines: int) -> Path:
    path.mkdir()
    with (path / "beats.jsonl").open("w") as file:
        for number in range(lines):
            record = {"id": f"beat:in:{number}", "title": f"heron {number}", "ceremonies": [f"ceremony:in:{number // 50}"]}
            file.write(json.dumps(record) + "\n")
        file.write(json.dumps({"id": "beat:in:0", "title": "heron again"}) + "\n")
    with (path / "ceremonies.jsonl").open("w") as file:
        for number in range(lines // 50):
            file.write(json.dumps({"id": f"ceremony:in:{number}", "type": "opening"}) + "\n")
    return path


def test_a_killed_import_goes_on_where_it_was(tmp_path: Path) -> None:
    rng = random.Random()
    folder = folder_of(tmp_path / "in", 40_000)
    resumed = 0
    for number in range(max(1, REPEATS // 4)):
        path = tmp_path / f"w{number}.db"
        process = worker("import", path, folder)
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        time.sleep(rng.uniform(0.3, 3))
        process.kill()
        process.wait()
        with open_wheel(path, plugins=keyword()) as wheel:
            report = import_folder(wheel, folder)
            resumed += any(one.resumed_after for one in report.files)
            assert wheel.count()["beats"] == 40_000
            first = wheel.get("beat", "beat:in:0")
            assert first is not None
            assert first["title"] == "heron again"
        assert_sound(path, [("beat", f"beat:in:{n}") for n in range(40_000)])
        path.unlink()
    print(f"{resumed} of {max(1, REPEATS // 4)} killed imports were taken up again")


# --- a full disk ---------------------------------------------------------------------------------------------------


def test_a_file_that_may_grow_no_further_loses_nothing_acknowledged(tmp_path: Path) -> None:
    for number in range(REPEATS):
        path = tmp_path / f"w{number}.db"
        # SQLite's log grows to some 4 MB before it is carried over; the wheel itself stays smaller.
        done = worker("fill", path, 1_000_000 + number % 40 * 70_000)
        out, err = done.communicate(timeout=300)
        assert (done.returncode, err) == (0, b"")
        last = out.decode().splitlines()[-1]
        assert last.startswith("error")
        assert str(path) in last
        said = acknowledged(out)
        assert len(said) > 5
        assert_sound(path, said)


def test_a_full_disk_loses_nothing_acknowledged_and_is_told_in_one_line(tmp_path: Path) -> None:
    with room(tmp_path, "6m") as disk:
        done = worker("write", disk / "w.db", "full")
        out, err = done.communicate(timeout=300)
        assert (done.returncode, err) == (0, b"")
        assert "no room left on the disk" in out.decode().splitlines()[-1]
        said = acknowledged(out)
        assert len(said) > 100
        # It is read as it stands; and with room again, written.
        with open_wheel(disk / "w.db", plugins=keyword()) as wheel:
            assert wheel.count()["beats"] == sum(kind == "beat" for kind, _ in said)
        copy = tmp_path / "copy"
        shutil.copytree(disk, copy)
        assert_sound(copy / "w.db", said)


def test_an_import_that_fills_the_disk_keeps_what_came_and_goes_on_with_more_room(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", 40_000)
    with room(tmp_path, "6m") as disk:
        with open_wheel(disk / "w.db", plugins=keyword()) as wheel, pytest.raises(StoreError) as error:
            import_folder(wheel, folder)
        assert "no room left" in str(error.value)
        assert "\n" not in str(error.value)
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        with open_wheel(disk / "w.db", plugins=keyword()) as wheel:
            report = import_folder(wheel, folder)
            assert any(one.resumed_after for one in report.files)
            assert wheel.count()["beats"] == 40_000
        assert_sound(disk / "w.db", [])


# --- many at once --------------------------------------------------------------------------------------------------


def test_two_writers_and_ten_readers_beside_an_import_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    lines = 100_000 if REPEATS >= 20 else 20_000
    folder = folder_of(tmp_path / "in", lines)
    open_wheel(path, plugins=keyword()).close()
    importer = worker("import", path, folder)
    assert importer.stdout is not None
    assert importer.stdout.readline() == b"open\n"
    readers = [worker("read", path) for _ in range(10)]
    logs = [tmp_path / f"log{number}" for number in range(2)]
    writers = [worker("write", path, f"w{number}", 60, stdout=log.open("wb")) for number, log in enumerate(logs)]
    out, err = importer.communicate(timeout=900)
    assert (importer.returncode, out, err) == (0, b"imported\n", b"")
    # They did get in between.
    during = [len(acknowledged(log.read_bytes())) for log in logs]
    assert min(during) > 0
    said: list[tuple[str, str]] = []
    for writer, log in zip(writers, logs, strict=True):
        _, err = writer.communicate(timeout=900)
        assert (writer.returncode, err) == (0, b"")
        assert b"error" not in log.read_bytes()
        said += acknowledged(log.read_bytes())
    times = []
    for reader in readers:
        out, err = reader.communicate(timeout=300)
        assert (reader.returncode, err) == (0, b"")
        times.append(int(out.splitlines()[-1]))
    assert min(times) > 0
    print(f"{during} records were put while the import ran; {sum(times)} searches")
    assert len(said) == 2 * 66
    assert_sound(path, [*said, *(("beat", f"beat:in:{number}") for number in range(lines))])


def test_threads_that_write_one_wheel_wait_for_each_other(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with plain_wheel(tmp_path / "w.db") as wheel, ThreadPoolExecutor(8) as pool:

        def put(number: int) -> str:
            outcome = wheel.put("beat", {"id": f"b{number}", "title": f"t{number}"})
            assert wheel.get("beat", f"b{number}") is not None
            return outcome

        assert list(pool.map(put, range(400))) == ["added"] * 400
        assert told(wheel) == told_of_reimport(wheel)


def test_a_writer_that_does_not_finish_is_told_in_one_line_and_nothing_is_lost(tmp_path: Path) -> None:
    with open_wheel(tmp_path / "w.db", plugins=PluginHost(), busy_timeout=0.2) as wheel:
        wheel.put("node", {"id": "n1"})
        other = sqlite3.connect(wheel.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process") as error:
            wheel.put("node", {"id": "n2"})
        assert "\n" not in str(error.value)
        assert "locked" not in str(error.value)
        assert wheel.get("node", "n1") is not None
        other.execute("ROLLBACK")
        other.close()
        assert wheel.put("node", {"id": "n2"}) == "added"


def test_a_write_that_fails_halfway_leaves_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:

        def half(db: sqlite3.Connection) -> Any:
            wheel.store(db, "node", {"id": "n1"})
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            wheel.write(half)
        assert wheel.count()["nodes"] == 0
        assert wheel.put("node", {"id": "n1"}) == "added"


def test_an_import_that_fails_within_a_batch_leaves_deriving_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path / "in", 100)
    with plain_wheel(tmp_path / "w.db") as wheel:

        def fail(*_: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(jsonl, "derive", fail)
            with pytest.raises(StoreError):
                import_folder(wheel, folder)
        assert wheel.read(lambda db: db.execute("SELECT paused FROM deriving").fetchall()) == [(0,)]
        assert sum(wheel.count().values()) == 0
        import_folder(wheel, folder)
        assert told(wheel) == told_of_reimport(wheel)


def used(wheel: Wheel) -> int:
    return sum(os.stat(path).st_size for path in wheel.path.parent.glob(wheel.path.name + "*"))


def test_an_import_leaves_no_log_of_its_own_size_behind(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", 20_000)
    with open_wheel(tmp_path / "w.db", plugins=keyword()) as wheel:
        import_folder(wheel, folder)
        wheel.put("node", {"id": "n"})
    assert used(wheel) == wheel.path.stat().st_size
