"""A wheel under a name of its own, in whichever Datasette is installed."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from houses import make_datasette

from wheelmem import demo, load_plugins, open_wheel

# With rich installed, Datasette prints every error's frames; 0.65 fails at that for an address nobody answers.
sys.modules["datasette.handle_exception"].rich = None  # type: ignore[attr-defined]


@pytest.fixture
def wheel_file(tmp_path: Path) -> Path:
    """The demo wheel, in a file that is not named wheel.db."""
    path = tmp_path / "hearth.sqlite"
    with open_wheel(path, plugins=load_plugins()) as wheel:
        demo.build(wheel)
    return path


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    """A database that is no wheel."""
    path = tmp_path / "apples.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE apples (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO apples (name) VALUES ('Antonovka')")
    return path


@pytest.fixture
def make() -> Iterator[Callable[..., Datasette]]:
    """Datasettes that let go of their files at the end of the test."""
    made = []

    def one(*arguments: Any, **options: Any) -> Datasette:
        made.append(make_datasette(*arguments, **options))
        return made[-1]

    yield one
    for ds in made:
        for database in ds.databases.values():
            database.close()


@dataclass(frozen=True)
class House:
    """A wheel that ``wheelmem serve`` serves in a process of its own; ``cookie`` is that of its owner."""

    url: str
    wheel: Path
    cookie: str
    process: subprocess.Popen[str]


@pytest.fixture
def house(wheel_file: Path, tmp_path: Path) -> Iterator[House]:
    """The demo wheel, served, and its owner signed in with the link that was printed."""
    with serving(wheel_file, tmp_path) as found:
        yield found


@contextmanager
def serving(wheel: Path, folder: Path, *more: str, **variables: str) -> Iterator[House]:
    """A served wheel; ``folder`` takes its output."""
    import httpx

    log = folder / "served.log"
    env = {**os.environ, "WHEELMEM_USER_PATH": str(folder / "user"), "PYTHONUNBUFFERED": "1", **variables}
    command = [sys.executable, "-m", "wheelmem", "serve", str(wheel), "--port", "0", *more]
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env, text=True) as process,
    ):
        try:
            for _ in range(600):
                text = log.read_text()
                if "Uvicorn running" in text or process.poll() is not None:
                    break
                time.sleep(0.1)
            link = re.search(r"http://\S+/-/auth-token\?token=\S+", text)
            assert link, text
            url = link[0].partition("/-/")[0]
            signed_in = httpx.get(link[0])
            yield House(url, wheel, signed_in.cookies["ds_actor"], process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
