"""Scope markers in the prose stores: paths, branches, issues and project names that belong to one place, not to the agent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .boundary import MARKERS, Config, user_home
from .dream import CEILING, FILES
from .folder import Home
from .log import Log
from .record import Refused

OWED = 12  # records waiting in the log before a dream is owed

_NAME = "[A-Za-z0-9._-]+"
_DIRECT = (
    ("workspace-path", re.compile(rf"(?:~|/Users/{_NAME}|/home/{_NAME})/workspaces/{_NAME}", re.ASCII)),
    ("plan-path", re.compile(rf"\bplans/{_NAME}", re.ASCII)),
    ("branch-ref", re.compile(r"\b(?:origin|refs/heads)/[A-Za-z0-9._/-]+", re.ASCII)),
    ("issue-ref", re.compile(r"(?<![\w&#])#\d+\b|\b(?:pull|issues)/\d+\b", re.ASCII)),
)
_AROUND = "`'\"()[]{}<>,.;:!?*"
_GIT_WORD = re.compile(r"branch(?:es)?|checkout|merge[ds]?|rebase[ds]?|push(?:e[ds])?|pull|prs?|mrs?", re.ASCII | re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE)
_SLASHED = re.compile(r"[A-Za-z][A-Za-z0-9._-]*/[A-Za-z0-9._/-]+")
_FOLDERS = frozenset(
    {
        "agents",
        "apps",
        "dist",
        "docs",
        "ideas",
        "node_modules",
        "packages",
        "plans",
        "skills",
        "src",
        "test",
        "tests",
        "toolkit",
        "workspaces",
    }
)  # ordinary folders: no branches
_NEAR = 3  # tokens


class Finding(NamedTuple):
    file: str
    line: int
    kind: str
    match: str


class Report(NamedTuple):
    findings: list[Finding]
    pinned: list[Finding]
    unused: list[str]  # pins that silenced nothing
    scanned: int
    over: list[tuple[str, int]]  # stores over the watermark, with their bytes


def markers(line: str, keys: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """(kind, text) of each scope marker of a line, each once; `keys` are project names."""
    found: dict[tuple[str, str], None] = {}
    for kind, pattern in _DIRECT:
        found.update(dict.fromkeys((kind, m[0]) for m in pattern.finditer(line)))
    found.update(dict.fromkeys(("branch-ref", token) for token in _branches(line)))
    for key in keys:
        word = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])", re.ASCII | re.IGNORECASE)
        found.update(dict.fromkeys(("repo-key", m[0]) for m in word.finditer(line)))
    yield from found


def _branches(line: str) -> Iterator[str]:
    """Slash tokens that stand near a git word or a commit hash."""
    if "/" not in line:
        return
    tokens = [token.strip(_AROUND) for token in line.split()]
    git = [i for i, token in enumerate(tokens) if _GIT_WORD.fullmatch(token) or _COMMIT.fullmatch(token)]
    for i, token in enumerate(tokens):
        if not _SLASHED.fullmatch(token):
            continue
        parts = token.split("/")
        if parts[0] in _FOLDERS or all(_GIT_WORD.fullmatch(part) for part in parts):
            continue
        if any(0 < abs(i - j) <= _NEAR for j in git):
            yield token


def audit(home: Home, pins: Iterable[str] = (), keys: Iterable[str] = ()) -> Report:
    """Look through SEMANTIC and PROCEDURAL, those that are there; a pin silences exactly its text."""
    pins, keys = list(dict.fromkeys(pins)), list(dict.fromkeys(keys))
    report = Report([], [], [], 0, [])
    scanned, used = 0, set()
    for name in FILES.values():
        try:
            with open(home.path(name), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            continue
        scanned += 1
        if len(data) > CEILING:
            report.over.append((name, len(data)))
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            for kind, match in markers(line, keys):
                if match in pins:
                    used.add(match)
                    report.pinned.append(Finding(name, number, kind, match))
                else:
                    report.findings.append(Finding(name, number, kind, match))
    return report._replace(scanned=scanned, unused=[pin for pin in pins if pin not in used])


def project_keys(config: Config) -> list[str]:
    """The projects a config names; its own folder too, when that bears a boundary marker and is not the user's home."""
    keys = list(config.projects)
    if config.path is not None:
        folder = os.path.dirname(config.path)
        if os.path.realpath(folder) != user_home() and any(os.path.exists(os.path.join(folder, m)) for m in MARKERS):
            keys.insert(0, os.path.basename(folder))
    return [key for key in keys if key]


def entries(path: str) -> list[str]:
    """The lines of a file of pins or keys, trimmed, blank ones dropped."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise Refused(f"{path}: {reason}") from None
    return [line.strip() for line in text.split("\n") if line.strip()]


def owed(log: Log) -> bool:
    """Whether enough records wait that a dream is owed."""
    return sum(1 for _ in log.read()) >= OWED
