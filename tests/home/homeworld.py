"""A world to run the `memory` command in: a home for the user, one for the agent, and no session but those a test names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from wheelmem.home.folder import Home
from wheelmem.home.log import Log

COMMAND = [sys.executable, "-m", "wheelmem.home.cli"]
SHARED = Path(__file__).parents[2].parent / "shared"


def clean_env(user: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_", "CLAUDE_", "WHEELMEM_"))}
    return kept | {"HOME": str(user), "LC_ALL": "C.UTF-8", **more}


class World:
    """`run` calls the command as a process of its own; `ok` also asserts that it exits 0, and gives what it printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "agent"
        self.user = folder / "user"
        self.work = folder / "work"
        self.user.mkdir()
        self.work.mkdir()

    def run(
        self,
        *argv: str | bytes | Path,
        stdin: bytes = b"",
        session: str | None = "s1",
        cwd: Path | None = None,
        home: bool = True,
        preexec: Callable[[], object] | None = None,
        **env: str,
    ) -> subprocess.CompletedProcess[bytes]:
        if session is not None:
            env["AGENT_SESSION_ID"] = session
        if home:
            env.setdefault("AGENT_HOME", str(self.home))
        return subprocess.run(
            [*COMMAND, *argv],
            input=stdin,
            capture_output=True,
            cwd=cwd or self.work,
            env=clean_env(self.user, **env),
            timeout=60,
            preexec_fn=preexec,
        )

    def ok(self, *argv: str | bytes | Path, **options: object) -> str:
        done = self.run(*argv, **options)  # type: ignore[arg-type]
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def refused(self, *argv: str | bytes | Path, code: int = 1, **options: object) -> str:
        """The one line on stderr of a call that is refused with this code, prints nothing, and changes nothing."""
        before = snapshot(self.home)
        done = self.run(*argv, **options)  # type: ignore[arg-type]
        said = done.stderr.decode()
        assert done.returncode == code, said
        assert done.stdout == b""
        assert said.count("\n") == 1, said
        assert said.endswith("\n")
        assert "Traceback" not in said
        assert snapshot(self.home) == before
        return said

    def encode(self, *argv: str | bytes | Path, **options: object) -> str:
        return self.ok("encode", *argv, **options).strip()

    def log(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.text("EPISODIC.jsonl").splitlines()]

    def text(self, name: str) -> str:
        path = self.home / name
        return path.read_bytes().decode() if path.exists() else ""

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def archives(self) -> list[str]:
        return [path.read_bytes().decode() for path in sorted(self.home.glob(".bak/EPISODIC.*.jsonl"))]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but the lock's own, with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".log.lock"
    }


def line(number: int, session: str = "s1", body: object = None, **more: object) -> str:
    """A log line with a fixed id."""
    record = {"id": f"01HX{number:022d}", "session": session, "host": "elm", "cwd": "/srv", "body": body or f"body {number}"}
    return json.dumps(record | more, ensure_ascii=False, separators=(",", ":"))


def whole(home: Path) -> tuple[list[str], list[str]]:
    """The ids in the log and in its archives, after checking that nothing is torn, and the log's ids increase."""
    opened = Home(str(home))
    log = [record["id"] for _, record in Log(opened).read()]
    assert log == sorted(set(log)), "ids must increase down the log"
    assert len((home / "EPISODIC.jsonl").read_bytes().splitlines()) == len(log) if log else True
    archived = []
    for path in sorted(home.glob(".bak/EPISODIC.*.jsonl")):
        archived += [json.loads(raw)["id"] for raw in path.read_bytes().splitlines()]
    assert not (home / ".txn" / "journal").exists()
    return log, archived
