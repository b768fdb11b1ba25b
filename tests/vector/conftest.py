"""A tiny model made for the tests, and a user's machine that is set up to use it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("model2vec")

# The model and the server are those of the tests of finding.
sys.path.insert(0, str(Path(__file__).parent.parent / "finding"))

from models import make_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_model(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The application folder; nothing of the machine the tests run on shows."""
    for name in list(os.environ):
        if name.startswith(("WHEELMEM_", "HONCHO_", "MW_", "HF_")) and name != "WHEELMEM_TEST_REPEATS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("WHEELMEM_USER_PATH", str(tmp_path / "user"))
    # No test fetches a model: a cache that is empty, and no way out.
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "user").mkdir()
    return tmp_path / "user"
