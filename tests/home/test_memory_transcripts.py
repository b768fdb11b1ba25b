"""What the original tool does, call by call, and what it makes of a sample home; both live outside the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from homeworld import COMMAND, SHARED, World

# Where we do better on purpose: a markdown log without sections is kept, not migrated to nothing.
BETTER = {"migrate: no sections, step 1"}


def test_every_recorded_call_gives_the_same(tmp_path: Path) -> None:
    script = SHARED / "transcripts" / "transcripts.py"
    if not script.exists():
        pytest.skip(f"the recorded transcripts are not here: {script}")
    done = subprocess.run(
        [sys.executable, script, "check", " ".join(COMMAND), script.parent / "golden.json"],
        capture_output=True,
        text=True,
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert "steps the same" in done.stdout, done.stderr
    different = set(re.findall(r"^(\S.*, step \d+):", done.stdout, re.MULTILINE))
    assert different == BETTER, done.stdout


@pytest.fixture
def sample(world: World) -> World:
    if not (SHARED / "data" / "home-sample").exists():
        pytest.skip("the sample home is not here")
    shutil.copytree(SHARED / "data" / "home-sample", world.home)
    for path in world.home.iterdir():
        path.chmod(0o644)
    world.home.chmod(0o755)
    return world


def test_the_sample_audits_as_expected(sample: World) -> None:
    done = sample.run("audit")
    expected = (sample.home / "expected.md").read_text().split("```\n")[1]
    assert (done.returncode, done.stdout.decode()) == (1, expected)


def test_the_sample_folds_as_foreign(sample: World) -> None:
    assert re.findall('"node":"(.*?)","basis":"(.*?)"', sample.ok("fold")) == [
        ("legacy", "no-cwd"),
        ("/srv/work/bridge", "foreign-cwd"),
        ("/srv/work/bridge/docs", "foreign-cwd"),
        ("/home/ana/garden", "foreign-cwd"),
        ("/srv/work/bridge", "foreign-cwd"),
    ]


def test_the_sample_migrates_to_six_items(sample: World) -> None:
    sample.ok("migrate", sample.home / "EPISODIC.md", sample.home / "EPISODIC.jsonl", "--overwrite")
    assert [(r["body"]["section"], r["body"]["text"]) for r in sample.log()] == [  # type: ignore[index]
        ("Next steps (carried)", "- Ask the mill owner\n  about the east bank"),
        (
            "Next steps (carried)",
            "- Measure the flood line:\n\n  ```sh\n  ## not a heading\n  - not a bullet\n  survey --line\n  ```",
        ),
        ("Stream", "Prose that belongs to no bullet is kept."),
        ("Stream", "- 2026-03-08: the lantern is teal"),
        ("Stream", "* stars are bullets too"),
        ("Stream", "- a second section of the same name"),
    ]


def test_the_torn_sample_reads_past_its_torn_line(sample: World) -> None:
    shutil.copy(sample.home / "EPISODIC.torn.jsonl", sample.home / "EPISODIC.jsonl")
    done = sample.run("read")
    assert done.stdout.count(b"\n") == 2
    assert done.stderr.count(b"\n") == 1
    assert b"line 3" in done.stderr
