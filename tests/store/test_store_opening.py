"""Opening: a wheel, a new one, and everything that is none of these."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storeworld import REPEATS, plain_wheel

from wheelmem.store import BadRecord, StoreError, open_wheel
from wheelmem.store.rows import KINDS
from wheelmem.store.schema import SCHEMA_VERSION


def refused(path: Path, create: bool = True) -> str:
    from wheelmem.plugins import PluginHost

    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as error:
        open_wheel(path, plugins=PluginHost(), create=create)
    assert (path.read_bytes() if path.is_file() else None) == before
    text = str(error.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_what_is_no_wheel_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at " * 100)
    assert "no SQLite database" in refused(tmp_path / "text.db")
    (tmp_path / "short.db").write_text("short")
    assert "no SQLite database" in refused(tmp_path / "short.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE notes (x)")
    other.close()
    assert "no wheel" in refused(tmp_path / "other.db")
    assert "no wheel at" in refused(tmp_path / "missing.db", create=False)
    assert not (tmp_path / "missing.db").exists()
    assert "no wheel at" in refused(tmp_path / "nowhere" / "missing.db", create=False)
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder")
    refused(tmp_path / "folder", create=False)
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file" / "below.db")


def test_a_wheel_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    plain_wheel(tmp_path / "w.db").close()
    db = sqlite3.connect(tmp_path / "w.db")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    assert "newer" in refused(tmp_path / "w.db")


def test_a_damaged_wheel_is_told_as_such(tmp_path: Path) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        for number in range(200):
            wheel.put("beat", {"id": f"b{number}", "prose": "lantern " * 50})
    sqlite3.connect(tmp_path / "w.db").execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((tmp_path / "w.db").read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    (tmp_path / "w.db").write_bytes(content)
    with pytest.raises(StoreError) as error, plain_wheel(tmp_path / "w.db") as wheel:
        wheel.count()
    assert "damaged" in str(error.value) or "no SQLite database" in str(error.value)


def test_an_empty_file_becomes_a_wheel_and_folders_are_made(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_bytes(b"")
    assert "no wheel at" in refused(tmp_path / "empty.db", create=False)
    for path in (tmp_path / "empty.db", tmp_path / "a" / "b" / "new ?#%.db"):
        with plain_wheel(path) as wheel:
            wheel.put("node", {"id": "n1"})
        with plain_wheel(path) as wheel:
            assert wheel.count()["nodes"] == 1
            assert len(wheel.uuid) == 32


def test_what_was_put_is_there_for_another_process_at_once(tmp_path: Path) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        wheel.put("node", {"id": "n1", "name": "Ana"})
        code = (
            "import sys; from wheelmem.store import open_wheel; from wheelmem.plugins import PluginHost\n"
            "print(open_wheel(sys.argv[1], plugins=PluginHost()).get('node', 'n1')['name'])"
        )
        done = subprocess.run([sys.executable, "-c", code, wheel.path], capture_output=True, text=True)
        assert done.stdout == "Ana\n", done.stderr


CREATOR = """
import sys
from wheelmem.plugins import load_plugins
from wheelmem.store import open_wheel
host = load_plugins(load="fts5")
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
with open_wheel(sys.argv[1], plugins=host) as wheel:
    wheel.put("node", {"id": sys.argv[2]})
    print(wheel.uuid)
"""


def test_processes_that_make_the_same_wheel_at_once_get_one_wheel(tmp_path: Path) -> None:
    for round in range(REPEATS):
        path = tmp_path / f"w{round}.db"
        made = [
            subprocess.Popen(
                [sys.executable, "-c", CREATOR, path, f"n{number}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for number in range(3)
        ]  # fmt: skip
        for process in made:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in made:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        ends = [process.communicate(timeout=120) for process in made]
        assert [err for _, err in ends] == [""] * 3
        assert len({out for out, _ in ends}) == 1
        with plain_wheel(path) as wheel:
            assert wheel.count()["nodes"] == 3


# --- as somebody who may not write -----------------------------------------------------------------------------------

READER = """
import os, sys, tempfile
from pathlib import Path
from wheelmem.plugins import load_plugins
from wheelmem.store import StoreError, open_wheel
from wheelmem import create_memory
from wheelmem.memory import run
host = load_plugins(load="fts5")

def use(path):
    try:
        wheel = open_wheel(path, plugins=host, busy_timeout=5)
        memory = create_memory(wheel=wheel)
        answer = run(memory, memory.search(query="lantern", scope={"ceremonies": "c1"}))
        print([source.wheel_id for source in answer.sources])
        try:
            print(wheel.put("node", {"id": "n9"}))
        except StoreError as error:
            print(error)
    except StoreError as error:
        print(error)

with tempfile.TemporaryDirectory() as place:
    # Python's own files may lie where nobody reads: what is imported late is imported now.
    use(Path(place) / "w.db")
print("now as nobody")
os.setgroups([]); os.setgid(65534); os.setuid(65534)
use(sys.argv[1])
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others reach too, as pytest's own are not."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# Settings are looked for where anybody may look.
HOMELESS = {
    **{name: value for name, value in os.environ.items() if not name.startswith("WHEELMEM_")},
    "WHEELMEM_USER_PATH": "/nowhere",
}


def as_nobody(path: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", READER, path], capture_output=True, text=True, cwd="/", env=HOMELESS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.partition("now as nobody\n")[2].splitlines()


@pytest.mark.parametrize("state", ["closed", "open", "killed"])
@pytest.mark.parametrize(
    "modes", [(0o555, 0o444), (0o755, 0o644), (0o777, 0o444)], ids=["folder and file", "others'", "file alone"]
)
def test_a_wheel_that_cannot_be_written_is_read_and_says_so(open_folder: Path, modes: tuple[int, int], state: str) -> None:
    from storeworld import keyword

    path = open_folder / "w.db"
    wheel = open_wheel(path, plugins=keyword())
    wheel.put("ceremony", {"id": "c1"})
    wheel.put("beat", {"id": "b1", "title": "the lantern", "ceremonies": ["c1"]})
    if state == "closed":
        wheel.close()
    elif state == "killed":
        (open_folder / "copy").mkdir(mode=0o755)
        for file in open_folder.glob("w.db*"):
            shutil.copy(file, open_folder / "copy")
        path = open_folder / "copy" / "w.db"
        path.with_name("w.db-shm").unlink()
    folder, file = modes
    for one in path.parent.glob("w.db*"):
        one.chmod(file)
    path.parent.chmod(folder)
    lines = as_nobody(path)
    wheel.close()
    if state == "killed" and not folder & 0o002:
        # What lies in the log cannot be read without writing beside it; better no answer than an older state.
        assert len(lines) in (1, 2)
        return
    assert lines[0] == "['b1']", lines
    assert "read-only" in lines[1] or "cannot be written" in lines[1] or "unable" in lines[1], lines


def test_a_file_that_may_not_be_read_is_told(open_folder: Path) -> None:
    plain_wheel(open_folder / "w.db").close()
    (open_folder / "w.db").chmod(0o600)
    (line,) = as_nobody(open_folder / "w.db")
    assert str(open_folder / "w.db") in line


# --- ids -----------------------------------------------------------------------------------------------------------


@given(st.text(st.characters(), min_size=1), st.sampled_from(list(KINDS)))
def test_any_unicode_is_an_id_but_what_no_column_can_hold(id: str, kind: str) -> None:
    with tempfile.TemporaryDirectory() as place, plain_wheel(Path(place) / "w.db") as wheel:
        record = dict.fromkeys(KINDS[kind].key, id)
        if "\x00" in id or any(0xD800 <= ord(letter) < 0xE000 for letter in id):
            with pytest.raises(BadRecord, match="no id can hold"):
                wheel.put(kind, record)
        elif not id.strip():
            with pytest.raises(BadRecord, match="needs"):
                wheel.put(kind, record)
        else:
            assert wheel.put(kind, record) == "added"
            assert wheel.get(kind, *record.values()) == record
            assert wheel.put(kind, record) == "same"
            return
        assert sum(wheel.count().values()) == 0


@pytest.mark.parametrize("id", ["a\x00b", "a\ud83d", "\udcff"])
def test_looking_for_an_id_that_cannot_be_finds_nothing(tmp_path: Path, id: str) -> None:
    with plain_wheel(tmp_path / "w.db") as wheel:
        wheel.put("node", {"id": "a"})
        assert wheel.get("node", id) is None
