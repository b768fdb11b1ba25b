"""The commands of a page, run one after the other as somebody copying them would, in one shell's state."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What is minted anew each time: ids made of the time and chance.
MINTED = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
FENCE = re.compile(r"^(```+)(\w*)\s*$")
RUN = ("console", "sh", "bash")


@dataclass(frozen=True)
class Step:
    """A command of a page, with the output the page shows for it (None when it shows none)."""

    line: int
    command: str
    expected: tuple[str, ...] | None = None


def blocks(text: str) -> list[tuple[int, str, list[str]]]:
    """Every fenced block: line of its first content, language, lines."""
    found: list[tuple[int, str, list[str]]] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        opened = FENCE.match(line.strip()) if not fence else None
        if opened:
            fence = opened[1]
            found.append((number + 1, opened[2], []))
        elif fence and line.strip() == fence:
            fence = ""
        elif fence:
            found[-1][2].append(line)
    return found


def steps(text: str) -> list[Step]:
    """Every command of a page: lines after ``$`` in console blocks, all lines of sh blocks."""
    found: list[Step] = []
    for start, language, lines in blocks(text):
        if language not in RUN:
            continue
        number = 0
        while number < len(lines):
            line, at = lines[number], start + number
            number += 1
            if language == "console":
                if not line.startswith("$ "):
                    raise AssertionError(f"line {at}: a console block begins with a command, not {line!r}")
                line = line[2:]
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            while line.endswith("\\") and number < len(lines):
                line += "\n" + lines[number].removeprefix("> ")
                number += 1
            shown = []
            while language == "console" and number < len(lines) and not lines[number].startswith("$ "):
                shown.append(lines[number])
                number += 1
            found.append(Step(at, line, tuple(shown) or None))
    return found


def agrees(expected: Sequence[str], found: Sequence[str]) -> bool:
    """Whether output is what a page shows. A line ``…`` stands for any lines, an ``…`` within a line for anything."""
    if not expected:
        return not any(line.strip() for line in found)
    first, rest = expected[0], expected[1:]
    if first.strip() == "…":
        return any(agrees(rest, found[skipped:]) for skipped in range(len(found) + 1))
    if not found:
        return not any(line.strip() for line in expected)
    pattern = ".*".join(re.escape(part) for part in MINTED.sub("…", first).rstrip().split("…"))
    return re.fullmatch(pattern, found[0].rstrip()) is not None and agrees(rest, found[1:])


@dataclass
class Shell:
    """A shell whose variables and folder last from one command to the next.

    ``instead`` are texts of a page that stand for something of the reader's own, with what stands for it here. A command
    that one of ``servers`` matches is left running until the shell is closed, once it has printed what the pattern is given.
    """

    folder: Path
    path: Sequence[Path] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    servers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = self.folder / ".shell"
        self.home = self.folder / "home"
        self.state.mkdir(parents=True)
        self.home.mkdir()
        self.work = self.folder / "work"
        self.work.mkdir()
        (self.state / "cwd").write_text(str(self.work))
        (self.state / "env").write_text("")
        self.running: list[subprocess.Popen[str]] = []

    def environment(self) -> dict[str, str]:
        ours = ("WHEELMEM_", "HONCHO_", "MW_", "PYTHONPATH", "PYTEST_", "AGENT_", "VIRTUAL_ENV", "COV_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        first = os.pathsep.join(str(folder) for folder in self.path)
        return {
            **kept,
            "HOME": str(self.home),
            "WHEELMEM_USER_PATH": str(self.home / "wheelmem"),
            "PATH": first + os.pathsep + kept["PATH"] if first else kept["PATH"],
            "NO_COLOR": "1",
            "COLUMNS": "80",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TZ": "UTC",
            **self.env,
        }

    def put(self, command: str) -> str:
        """A command with what stands here for the reader's own."""
        for text, here in self.instead.items():
            command = command.replace(text, here)
        return command

    def run(self, step: Step) -> None:
        """Run a step; raises AssertionError when it fails, or shows something else than its page."""
        command = self.put(step.command)
        for pattern, ready in self.servers.items():
            if re.search(pattern, command):
                self.serve(step, command, ready)
                return
        script = (
            f'. {self.state}/env; cd "$(cat {self.state}/cwd)"\n{command}\ncode=$?\n'
            f"export -p > {self.state}/env; declare -p CONCLUSION hash 2>/dev/null >> {self.state}/env\n"
            f"pwd > {self.state}/cwd; exit $code"
        )
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
        said = f"line {step.line}: {command}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, f"exit code {done.returncode}; {said}"
        assert "Traceback" not in done.stderr, said
        if step.expected is not None:
            expected = [self.put(line) for line in step.expected]
            shown = (done.stdout + done.stderr).rstrip("\n").splitlines()
            assert agrees(expected, shown), f"{said}\nbut the page shows:\n" + "\n".join(expected)

    def serve(self, step: Step, command: str, ready: str) -> None:
        self.close()  # a person has one terminal for it, and ends what ran there
        script = f'. {self.state}/env; cd "$(cat {self.state}/cwd)"; exec {command.partition("  #")[0].removesuffix("&")}'
        process = subprocess.Popen(
            ["bash", "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**self.environment(), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        self.running.append(process)
        lines: list[str] = []

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)

        threading.Thread(target=read, daemon=True).start()
        for _ in range(600):
            if any(re.search(ready, line) for line in lines):
                return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"line {step.line}: {command}\ndid not say {ready!r}:\n{''.join(lines)}")

    def close(self) -> None:
        """End what still runs."""
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.running.clear()
