"""The boundary a path belongs to: the nearest folder upward that holds a marker, and what that rests on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from .folder import check_words
from .record import Refused, parse_json, short_host

MARKERS = (".git", "package.json", "pyproject.toml", "Cargo.toml", "go.mod", "PLAN.md")
CONFIG_NAME = ".cratylus.memory.json"

Boundary = tuple[str, str]  # (node, basis)


class Config:
    """What a config file tells: more markers, the homes of other hosts, projects. Refused when it is no such file."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        value: Any = {}
        if path is not None:
            try:
                with open(path, "rb") as file:
                    value = parse_json(file.read().decode("utf-8"))
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
                raise Refused(f"config {path}: {reason}") from None
        top = self._part(value, "", dict)
        hosts = self._part(top.get("host", {}), "host", dict)
        projects = self._part(top.get("projects", []), "projects", list, dict)
        memory = self._part(top.get("memory", {}), "memory", dict)
        globs = self._part(memory.get("scopeMarkers", []), "memory.scopeMarkers", list)
        self.globs = [glob for glob in globs if isinstance(glob, str)]
        self.projects = [name for name in projects if isinstance(name, str) and name]
        self.homes = {
            name: host["homedir"].rstrip("/") or "/"
            for name, host in hosts.items()
            if isinstance(host, dict) and isinstance(host.get("homedir"), str) and host["homedir"]
        }

    def _part(self, value: Any, name: str, *kinds: type) -> Any:
        if not isinstance(value, kinds):
            what = " or ".join("an object" if kind is dict else "a list" for kind in kinds)
            raise Refused(f"config {self.path}: {name + ' ' if name else ''}must be {what}")
        return value


def find_config(flag: str | None) -> Config:
    """The config of this call: the one named by flag or environment, else the nearest one upward, else the user's."""
    for given in (flag, os.environ.get("AGENT_MEMORY_CONFIG")):
        if given:
            return Config(os.path.abspath(check_words("--config", given)))
    folders = list(_upward(os.getcwd()))
    user = user_home()
    for folder in [*folders, *([user] if user else [])]:
        path = os.path.join(folder, CONFIG_NAME)
        if os.path.isfile(path):
            return Config(path)
    return Config(None)


def user_home() -> str | None:
    home = os.environ.get("HOME") or os.path.expanduser("~")
    return os.path.realpath(home) if os.path.isabs(home) else None


class Boundaries:
    """Finds boundaries, each place looked at once: the same files give the same answers, fast, for a whole log."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.host = short_host()
        self.user = user_home()
        self._paths: dict[str, Boundary] = {}
        self._folders: dict[str, Boundary | None] = {}
        self._records: dict[tuple[str, str], Boundary] = {}

    def of_record(self, record: dict[str, Any]) -> Boundary:
        """Where a record was captured; `legacy` when that cannot be told."""
        cwd = record.get("cwd")
        if not isinstance(cwd, str) or not cwd:
            return "legacy", "no-cwd"
        host = record.get("host")
        if not isinstance(host, str):
            host = self.host
        key = host, cwd
        found = self._records.get(key)
        if found is None:
            found = self._records[key] = self.of_path(cwd) if host == self.host else self._foreign(host, cwd)
        return found

    def _foreign(self, host: str, cwd: str) -> Boundary:
        home = self.config.homes.get(host)
        return (home, "$HOME") if home is not None and below(cwd, home) else (cwd, "foreign-cwd")

    def of_path(self, path: str) -> Boundary:
        found = self._paths.get(path)
        if found is None:
            found = self._paths[path] = self._look(path)
        return found

    def _look(self, path: str) -> Boundary:
        if not os.path.isabs(path) or "\0" in path:
            return "legacy", "vanished-cwd"  # a record that says so; a path given to a verb is absolute by now
        try:
            real = os.path.realpath(path)
            there = os.path.exists(real)
        except (OSError, ValueError):
            return "legacy", "vanished-cwd"
        for folder in _upward(real):
            if folder == self.user:
                found: Boundary | None = (folder, "$HOME") if there else None
                if found is None:
                    break
            else:
                found = self._marked(folder)
            if found is not None:
                return found
        return (real, "markerless") if there else ("legacy", "vanished-cwd")

    def _marked(self, folder: str) -> Boundary | None:
        if folder not in self._folders:
            self._folders[folder] = self._markers(folder)
        return self._folders[folder]

    def _markers(self, folder: str) -> Boundary | None:
        for marker in MARKERS:
            if os.path.exists(os.path.join(folder, marker)):
                primary = _primary(os.path.join(folder, marker)) if marker == ".git" else None
                return (primary, ".git-file") if primary else (folder, marker)
        if self.config.globs:
            from fnmatch import fnmatchcase

            try:
                names = os.listdir(folder)
            except OSError:
                return None
            for glob in self.config.globs:
                if any(fnmatchcase(name, glob) for name in names):
                    return folder, glob
        return None


def _primary(git: str) -> str | None:
    """The checkout that a `.git` file (of a worktree or submodule) leads to, when there is one."""
    if not os.path.isfile(git):
        return None
    try:
        with open(git, "rb") as file:
            text = file.read(65536).decode("utf-8")
    except (OSError, ValueError):
        return None
    if not text.startswith("gitdir:"):
        return None
    given = text.removeprefix("gitdir:").split("\n")[0].strip()
    if not given or "\0" in given:
        return None
    real = os.path.realpath(os.path.join(os.path.dirname(git), given)) + "/"
    checkout, found, _ = real.rpartition("/.git/")
    return (checkout or "/") if found and os.path.isdir(checkout or "/") else None


def _upward(path: str) -> Iterator[str]:
    while True:
        yield path
        parent = os.path.dirname(path)
        if parent == path:
            return
        path = parent


def below(path: str, folder: str) -> bool:
    """Whether path is that folder or in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
