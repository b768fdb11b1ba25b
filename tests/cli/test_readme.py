"""What the README shows is what happens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from wheelmem.demo import FERRY

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_the_transcript_is_that_of_the_demo():
    done = subprocess.run([sys.executable, "-m", "cogapp", "--check", "--diff", README], capture_output=True, text=True)
    assert done.returncode == 0, f"run: cog -r README.md\n{done.stdout}"


async def test_the_lines_of_python_run(demo):
    (lines,) = [block for block in blocks("python") if "open_wheel" in block]
    lines = lines.replace('"wheel.db"', repr(str(demo))).replace("circle:…", FERRY)
    names: dict = {}
    exec("async def main():\n" + textwrap.indent(lines + "return wheel, answer", "    "), names)
    wheel, answer = await names["main"]()
    wheel.close()
    assert answer.sources[0].wheel_id.startswith(("beat:", "ceremony:"))


def test_the_plugin_of_one_file_works(cli, demo, tmp_path):
    (lines,) = [block for block in blocks("python") if "hookimpl" in block]
    (tmp_path / "latest.py").write_text(lines)
    found = cli("search", "lantern", "--circle", FERRY, "--arm", "latest", "--plugins-dir", tmp_path, "--json").out
    times = [source["at"] for source in json.loads(found)["sources"]]
    assert times == sorted(times, reverse=True)
    assert len(times) > 3


@pytest.mark.parametrize("block", blocks("sh"))
def test_every_command_it_names_is_one(cli, block, machine):
    for command in re.findall(r"(?:^|&& \S*/)wheelmem ([a-z]+)", block, re.M):
        assert "Usage: wheelmem " in cli(command, "--help").out
