"""Settings: built-in defaults, then ``wheelmem.toml``, then the environment, then a block handed in (Datasette's).

Plugins declare theirs with ``settings.define(...)`` in the hook that hands them the settings, under a name with a dot
(``hops.depth``); in ``wheelmem.toml`` the part before the dot is a table, in the environment the name is
``WHEELMEM_HOPS_DEPTH``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .contract import WheelmemError

__all__ = ["Setting", "Settings", "SettingsError", "app_folder", "load_settings"]

FILE_NAME = "wheelmem.toml"


class SettingsError(WheelmemError):
    """A setting whose value cannot be read; the message names it, where it came from and what it should be."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, default (whose type is the setting's), what it is for, and other variables that set it."""

    name: str
    default: Any
    help: str
    env: tuple[str, ...] = ()
    secret: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, the first that is set wins."""
        return ("WHEELMEM_" + self.name.replace(".", "_").replace("-", "_").upper(), *self.env)


BUILT_IN = (
    Setting("db", "", "the wheel's file; empty means wheel.db in the application folder"),
    Setting("limit", 12, "how many sources an answer shows when none is asked for (at most 50)"),
    Setting("arms", (), "the arms to ask; empty means every arm that is ready"),
    Setting("providers", (), "the order in which providers are asked; those not named come after"),
    Setting("weights", {}, "how much each arm counts, by name; 1.0 unless set"),
    Setting("arm_timeout", 5.0, "seconds one arm may take before it is left behind"),
    Setting("provider_timeout", 30.0, "seconds a provider may take to search"),
    Setting("reasoning_timeout", 90.0, "seconds a provider may take to reason"),
    Setting("status_timeout", 5.0, "seconds a provider may take to say how it is"),
    Setting("busy_timeout", 60.0, "seconds a write waits for another writer"),
    Setting("data_dir", "", "the folder of a wheel's JSONL files, for import and export", env=("MW_DATA_DIR",)),
    Setting("api_url", "", "address of a served wheel, for the client and MCP", env=("MW_API_URL",)),
    Setting("api_token", "", "bearer token sent to that address", secret=True),
)


def app_folder() -> Path:
    """Where wheelmem keeps its settings and its default wheel: ``$WHEELMEM_USER_PATH``, else the user's own folder."""
    given = os.environ.get("WHEELMEM_USER_PATH")
    if given:
        return Path(given)
    from click import get_app_dir

    return Path(get_app_dir("wheelmem"))


class Settings:
    """Values by name; ``settings["arm_timeout"]``. Unknown names raise KeyError: a setting must be defined to be read."""

    def __init__(
        self,
        file: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        block: Mapping[str, Any] | None = None,
        file_name: str = FILE_NAME,
    ) -> None:
        self._file = file or {}
        self._env = env or {}
        self._block = block or {}
        self._file_name = file_name
        self._known = {setting.name: setting for setting in BUILT_IN}

    def define(self, name: str, default: Any, help: str, env: tuple[str, ...] = (), secret: bool = False) -> Any:
        """Declare a setting, and return its value. Declaring it again replaces the declaration."""
        self._known[name] = Setting(name, default, help, env, secret)
        return self[name]

    def with_block(self, block: Mapping[str, Any]) -> Settings:
        """The same settings with a block of values that go before all others."""
        made = Settings(self._file, self._env, {**self._block, **block}, self._file_name)
        made._known = dict(self._known)
        return made

    def __getitem__(self, name: str) -> Any:
        return self.look_up(name)[0]

    def __iter__(self) -> Iterator[Setting]:
        return iter(sorted(self._known.values(), key=lambda setting: setting.name))

    def look_up(self, name: str) -> tuple[Any, str]:
        """A setting's value and where it came from: ``default``, the file's name, ``$VARIABLE`` or ``block``."""
        setting = self._known[name]
        value = _dotted(self._block, name)
        if value is not None:
            return _cast(setting, value, "block"), "block"
        for variable in setting.variables:
            text = self._env.get(variable)
            if text:
                return _cast(setting, text, f"${variable}"), f"${variable}"
        value = _dotted(self._file, name)
        if value is not None:
            return _cast(setting, value, self._file_name), self._file_name
        return setting.default, "default"


def _dotted(values: Mapping[str, Any], name: str) -> Any:
    if name in values:
        return values[name]
    table, _, rest = name.partition(".")
    inner = values.get(table)
    return inner.get(rest) if rest and isinstance(inner, Mapping) else None


def _cast(setting: Setting, value: Any, source: str) -> Any:
    """``value`` as the type of the setting's default; text is read as the environment gives it."""
    default = setting.default
    try:
        if isinstance(default, bool):
            if isinstance(value, str):
                return {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}[
                    value.strip().lower()
                ]
            if isinstance(value, bool):
                return value
            raise ValueError
        if isinstance(default, int):
            if isinstance(value, float | bool):
                raise ValueError
            return int(value)
        if isinstance(default, float):
            number = float(value)
            if number != number:
                raise ValueError
            return number
        if isinstance(default, tuple):
            items = value.split(",") if isinstance(value, str) else value
            return tuple(item.strip() for item in items if item.strip())
        if isinstance(default, dict):
            if isinstance(value, str):
                pairs = (part.partition("=") for part in value.split(",") if part.strip())
                return {key.strip(): float(number) for key, _, number in pairs}
            return {str(key): float(number) for key, number in value.items()}
        return str(value)
    except (ValueError, KeyError, TypeError, AttributeError):
        kind = {bool: "true or false", int: "a whole number", float: "a number", tuple: "a list of names"}.get(
            type(default), "name=number pairs"
        )
        shown = "a value" if setting.secret else repr(value)
        raise SettingsError(f"setting {setting.name} must be {kind}, not {shown} (from {source})") from None


def load_settings(folder: Path | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """The settings of this user: the file in ``folder`` (the application folder), and the environment."""
    env = os.environ if env is None else env
    path = (folder or app_folder()) / FILE_NAME
    values: Mapping[str, Any] = {}
    if path.exists():
        import tomllib

        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} is no TOML: {error}") from None
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    return Settings(values, env, file_name=str(path))
