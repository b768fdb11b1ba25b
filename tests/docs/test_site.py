"""The site: it builds with every link good, and what is generated from the code is what the code says now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT

GENERATED = sorted(
    path for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"] if "[[[cog" in path.read_text(encoding="utf-8")
)


def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', page.read_text(encoding="utf-8")):
            if page.name == "404.html" or link.startswith("//"):
                continue
            target = (page.parent / link).resolve()
            assert target.exists(), f"{page.relative_to(tmp_path)} leads to {link}"


@pytest.mark.parametrize("page", GENERATED, ids=lambda path: path.name)
def test_what_is_generated_is_up_to_date(page: Path) -> None:
    command = [sys.executable, "-m", "cogapp", "--check", "--diff", str(page.relative_to(ROOT))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun: cog -r {page.relative_to(ROOT)}"


def test_links_of_the_readme_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert link.startswith("http") or (ROOT / link).exists(), link
