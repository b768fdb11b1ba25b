"""The examples that are one file each, loaded with ``--plugins-dir``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from environment import EXAMPLES, clean_env

from wheelmem import demo, load_plugins, open_wheel
from wheelmem.settings import Settings

FILES = EXAMPLES / "single-files"


def wheelmem(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "wheelmem", "--plugins-dir", str(FILES), "--db", str(folder / "wheel.db"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_env(folder), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_table_kept_up_to_date_and_a_command_that_shows_it(tmp_path: Path) -> None:
    wheelmem(tmp_path, "init")
    for n in range(2):
        wheelmem(tmp_path, "record", "node", f'{{"id": "circle:{n}", "type": "circle", "name": "Garden"}}')
    wheelmem(tmp_path, "record", "ceremony", '{"type": "opening", "direction": "east"}')
    assert wheelmem(tmp_path, "kept") == "ceremony 1\nnode 2\n"


def test_the_embedder() -> None:
    (found,) = [one for one in load_plugins(FILES, load="").items("register_embedders", Settings()) if one.name == "letters"]
    vectors = found.embed(["aab", ""])
    assert [len(vector) for vector in vectors] == [found.dimension] * 2
    assert vectors[0][:3] == [2 / 3, 1 / 3, 0.0]


async def test_the_policy(tmp_path: Path) -> None:
    (policy,) = load_plugins(FILES, load="").items("register_policies", Settings())
    with open_wheel(tmp_path / "wheel.db") as wheel:
        demo.build(wheel)
        assert await policy.confine(None, wheel) == {}
        assert await policy.confine({"id": "root"}, wheel) == {}
        reached = await policy.confine({"id": "x", "wheel_id": demo.TOMAS}, wheel)
        assert set(reached["circle_id"]) == {demo.ORCHARD, demo.FERRY}
