"""What would be uploaded: the sdist and the wheel."""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import wheelmem


@pytest.fixture
def wheel(distributions: Path) -> zipfile.ZipFile:
    (path,) = distributions.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_version_comes_from_one_place(wheel: zipfile.ZipFile, distributions: Path) -> None:
    metadata = email.message_from_bytes(wheel.read(f"wheelmem-{wheelmem.__version__}.dist-info/METADATA"))
    assert metadata["Version"] == wheelmem.__version__
    assert [path.name for path in distributions.glob("*.tar.gz")] == [f"wheelmem-{wheelmem.__version__}.tar.gz"]


def test_the_metadata_is_what_an_index_wants(wheel: zipfile.ZipFile, distributions: Path) -> None:
    metadata = email.message_from_bytes(wheel.read(f"wheelmem-{wheelmem.__version__}.dist-info/METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert {"mcp", "vector"} <= set(metadata.get_all("Provides-Extra", []))
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions.glob("wheelmem-*"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_what_is_imported_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    tops = {name.partition("/")[0] for name in names}
    plugins = {f"wheelmem_{name}" for name in ("fts5", "hops", "vector", "honcho", "rules")}
    assert tops == {"wheelmem", "datasette_wheelmem", f"wheelmem-{wheelmem.__version__}.dist-info", *plugins}
    assert "wheelmem/py.typed" in names
    assert not [name for name in names if "test" in name and not name.startswith("wheelmem/testing/")]
    entry_points = wheel.read(f"wheelmem-{wheelmem.__version__}.dist-info/entry_points.txt").decode()
    for line in ("wheelmem = wheelmem.cli:main", "memory = wheelmem.home.cli:main", "fts5 = wheelmem_fts5"):
        assert line in entry_points


def test_the_sdist_builds_what_it_says(distributions: Path) -> None:
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "wheelmem/py.typed", "metadata.yml"} <= names
    assert not [name for name in names if name.startswith((".venv", "site/", ".hypothesis"))]
