"""A user's machine in a folder: an application folder of its own, a demo wheel, and the command line to run on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from wheelmem.cli.running import run as run_cli


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """The application folder; nothing of the machine the tests run on shows."""
    for name in list(os.environ):
        if name.startswith(("WHEELMEM_", "HONCHO_", "MW_")) or name in ("NO_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("WHEELMEM_USER_PATH", str(tmp_path / "user"))
    return tmp_path / "user"


class Cli:
    """Runs the command line in this process, with its own streams, through the very function the console script calls."""

    def __call__(self, *arguments: str, input: str | bytes | None = None, code: int = 0, env: dict | None = None):
        runner = CliRunner()
        with runner.isolation(input=input, env=env) as (out, err, _):
            exit_code = run_cli([str(one) for one in arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            result = SimpleNamespace(
                exit_code=exit_code, out=out.getvalue().decode("utf-8", "surrogateescape"), err=err.getvalue().decode()
            )
        assert "Traceback" not in result.err
        assert result.exit_code == code, (result.exit_code, result.out, result.err)
        return result


@pytest.fixture
def cli() -> Cli:
    return Cli()


@pytest.fixture
def demo(cli, machine) -> Path:
    """The demo wheel's file, which is also the default one."""
    path = machine / "wheel.db"
    cli("demo", "--db", path)
    return path


@pytest.fixture
def process(machine):
    """Runs ``python -m wheelmem`` as a process of its own."""

    def start(*arguments: str, **options):
        options.setdefault("capture_output", True)
        options.setdefault("timeout", 60)
        return subprocess.run([sys.executable, "-m", "wheelmem", *map(str, arguments)], **options)

    return start
