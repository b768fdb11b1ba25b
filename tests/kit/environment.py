"""A temporary environment: packages built from their folders and installed beside wheelmem, which it sees as installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"


class Environment:
    """A virtual environment in which the given folders' packages are installed, and nothing else is new."""

    def __init__(self, folder: Path, packages: Iterable[Path]) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")])
        self.python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        there = run([self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        # addsitedir, so that editable installs of this environment are seen as well.
        here = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        Path(there, "zz_wheelmem_of_the_tests.pth").write_text(here)
        for package in packages:
            self.install(package)

    def install(self, package: Path) -> Path:
        """Build a wheel of the package in a copy of its folder, and install that; the wheel."""
        built = self.folder / "dist" / package.name
        run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(built), str(package)])
        (wheel,) = built.glob("*.whl")
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
        return wheel

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """``python`` of the environment with these arguments, away from the checkout."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=clean_env(self.folder, env),
        )

    def wheelmem(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """``wheelmem`` in the environment."""
        return self.run("-m", "wheelmem", *arguments, env=env)


def clean_env(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process's environment without what would set wheelmem up otherwise."""
    ours = ("WHEELMEM_", "HONCHO_", "MW_", "PYTHONPATH", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": str(home), "WHEELMEM_USER_PATH": str(home / "wheelmem"), "NO_COLOR": "1", **(more or {})}


def run(command: list[str | Path]) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout
