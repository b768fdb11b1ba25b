"""The plugin host: finds plugins, registers them, and asks them one by one so that a failing one costs its own part only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from . import hookspecs
from .contract import WheelmemError
from .settings import Settings

__all__ = ["PluginFailure", "PluginHost", "load_plugins"]

GROUP = "wheelmem"
HOOKS = ("register_providers", "register_arms", "register_classifiers", "register_embedders", "register_policies")


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """A plugin that failed: its name, while doing what (``import``, or a hook's name), and the error in one line."""

    name: str
    doing: str
    error: str

    def __str__(self) -> str:
        return f"plugin {self.name} failed in {self.doing}: {self.error}"


class PluginHost:
    """Plugins by name, what they register, and which of them failed."""

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self.manager = pluggy.PluginManager(GROUP)
        self.manager.add_hookspecs(hookspecs)
        self.failures: list[PluginFailure] = []
        self.origins: dict[str, str] = {}
        self._report = report or (lambda line: print(line, file=sys.stderr))

    def add(self, plugin: object, name: str, origin: str = "given") -> None:
        """Register a plugin object or module. ``origin`` says where it came from."""
        try:
            self.manager.register(plugin, name)
            self.manager.check_pending()
        except Exception as error:
            if self.manager.get_plugin(name) is not None:
                self.manager.unregister(name=name)
            self.fail(name, "registering", error)
            return
        self.origins[name] = origin

    def fail(self, name: str, doing: str, error: BaseException) -> None:
        """Note that a plugin failed, and say so once."""
        text = " ".join(str(error).split()) or type(error).__name__
        failure = PluginFailure(name, doing, text if isinstance(error, WheelmemError) else f"{type(error).__name__}: {text}")
        if failure not in self.failures:
            self.failures.append(failure)
            self._report(f"wheelmem: {failure}")

    def call(self, hook: str, **arguments: Any) -> Iterator[tuple[str, Any]]:
        """Ask each plugin that implements ``hook``; yields (plugin's name, result). One that raises is noted."""
        for name, ask in self.implementations(hook):
            try:
                result = ask(**arguments)
            except Exception as error:
                self.fail(name, hook, error)
                continue
            yield name, result

    def implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """The plugins that implement ``hook``, by name, each as a function of keyword arguments; for who must wrap each call."""
        made = []
        for implementation in reversed(getattr(self.manager.hook, hook).get_hookimpls()):

            def ask(implementation: Any = implementation, **arguments: Any) -> Any:
                return implementation.function(*(arguments[name] for name in implementation.argnames))

            made.append((implementation.plugin_name, ask))
        return made

    def wants(self, name: str, hook: str) -> frozenset[str]:
        """The arguments of ``hook`` that this plugin's implementation asks for."""
        found = getattr(self.manager.hook, hook).get_hookimpls()
        return frozenset(wanted for one in found if one.plugin_name == name for wanted in one.argnames)

    def registered(self, hook: str, settings: Settings) -> list[tuple[str, Any]]:
        """What plugins register through ``hook``, with the plugin's name; of two with one name the first stays."""
        found: dict[str, tuple[str, Any]] = {}
        for plugin, ask in self.implementations(hook):

            def register(item: Any, plugin: str = plugin) -> None:
                name = getattr(item, "name", None)
                if not isinstance(name, str) or not name:
                    raise TypeError(f"what {hook} registers needs a name; {type(item).__name__} has none")
                if name in found and found[name][0] != plugin:
                    raise ValueError(f"the name {name!r} is taken by plugin {found[name][0]}")
                found[name] = (plugin, item)

            try:
                ask(register=register, settings=settings)
            except Exception as error:
                self.fail(plugin, hook, error)
        return list(found.values())

    def items(self, hook: str, settings: Settings) -> list[Any]:
        """What plugins register through ``hook``, without the plugins' names."""
        return [item for _, item in self.registered(hook, settings)]

    def arms(self, settings: Settings) -> list[Any]:
        """Every arm, in the order of the stages, else by name."""
        arms: list[Any] = self.items("register_arms", settings)
        for arm in arms:
            if hasattr(arm, "take_embedders"):
                arm.take_embedders(lambda: self.items("register_embedders", settings))
        stages = {"find": 0, "follow": 1, "favour": 2}
        return sorted(arms, key=lambda arm: (stages.get(getattr(arm, "stage", "find"), 1), arm.name))

    def providers(self, settings: Settings) -> list[Any]:
        """Every provider, in the order they are asked."""
        order = {name: place for place, name in enumerate(settings["providers"])}
        return sorted(self.items("register_providers", settings), key=lambda item: order.get(item.name, len(order)))

    def classifiers(self, settings: Settings) -> list[Any]:
        """Every classifier, in the order they are asked."""
        return self.items("register_classifiers", settings)

    def hooks_of(self, name: str) -> list[str]:
        """The hooks a plugin implements, sorted."""
        callers = self.manager.get_hookcallers(self.manager.get_plugin(name)) or ()
        return sorted(caller.name for caller in callers)

    def fingerprints(self) -> list[str]:
        """Each plugin with where it came from, as ``name=origin``: what a wheel was prepared for."""
        return sorted(f"{name}={origin}" for name, origin in self.origins.items())


def load_plugins(
    plugins_dir: str | Path | None = None,
    load: str | None = None,
    report: Callable[[str], None] | None = None,
) -> PluginHost:
    """The host with every plugin that is installed, and each ``*.py`` of ``plugins_dir``.

    ``load`` (else ``$WHEELMEM_LOAD_PLUGINS``) names the only ones wanted, by plugin or distribution name, separated by
    commas; empty means none at all. A plugin that cannot be imported is noted in ``failures`` and reported; the rest goes on.
    """
    host = PluginHost(report)
    wanted = os.environ.get("WHEELMEM_LOAD_PLUGINS") if load is None else load
    names = None if wanted is None else {name.strip() for name in wanted.split(",") if name.strip()}
    if names != set():
        from importlib.metadata import distributions

        seen: set[str] = set()
        entries = (
            (entry.name, distribution, entry)
            for distribution in distributions()
            for entry in distribution.entry_points
            if entry.group == GROUP
        )
        for name, distribution, entry in sorted(entries, key=lambda item: item[0]):
            if name in seen:
                continue
            seen.add(name)
            project = distribution.metadata["Name"]
            if names is not None and name not in names and project not in names:
                continue
            try:
                plugin = entry.load()
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                host.fail(name, "import", error)
                continue
            host.add(plugin, name, f"{project} {distribution.version}")
        for name in sorted(names - seen - set(host.origins)) if names is not None else ():
            if not any(origin.split()[0] == name for origin in host.origins.values()):
                host.fail(name, "import", LookupError("no plugin of that name is installed"))
    if plugins_dir is not None:
        _load_folder(host, Path(plugins_dir))
    return host


def _load_folder(host: PluginHost, folder: Path) -> None:
    if not folder.is_dir():
        raise WheelmemError(f"no folder of plugins at {folder}")
    for path in sorted(folder.glob("*.py")):
        module = ModuleType(f"wheelmem_plugin_{path.stem}")
        module.__file__ = str(path)
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            host.fail(path.name, "import", error)
            continue
        # A file has no version; when it was changed stands for one.
        host.add(module, path.name, f"{path} {path.stat().st_mtime_ns}")
