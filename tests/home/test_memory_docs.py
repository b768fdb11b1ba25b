"""docs/memory-command.md says what the command does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from homeworld import World

DOC = Path(__file__).parents[2] / "docs" / "memory-command.md"


def test_its_verbs_are_those_of_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "cogapp", "--check", DOC], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}: run `cog -r {DOC}`"


def test_its_classifier_works(world: World) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    plugins = world.folder / "plugins"
    plugins.mkdir()
    (plugins / "shouting.py").write_text(example)
    world.encode("--body", "MEASURE TWICE")
    world.encode("--body", "quietly")
    world.ok("dream", "--plugins-dir", str(plugins), "--classifier", "shouting")
    assert world.text("PROCEDURAL.md") == f"- measure twice ({world.work})\n"
    assert [record["body"] for record in world.log()] == ["quietly"]


def test_its_config_is_one(world: World) -> None:
    (config,) = re.findall(r"```json\n(.*?)```", DOC.read_text(), re.DOTALL)
    (world.work / "c.json").write_text(config)
    (world.work / "x.room").touch()
    assert world.ok("node", "--json", "--config", "c.json", ".") == f'{{"node":"{world.work}","basis":"*.room"}}\n'
