"""What every command works with: the settings, the plugins, the wheel and the memory, each made when first used."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..memory import Memory
    from ..plugins import PluginHost
    from ..settings import Settings
    from ..store import Wheel

__all__ = ["App", "pass_app", "wheel_options"]

F = TypeVar("F", bound="Callable[..., Any]")


class App:
    """One run of the command line; a plugin's command gets it with ``@click.pass_obj``."""

    def __init__(self) -> None:
        self.db: str | None = None
        self.plugins_dir: str | None = None
        # The plugin whose command runs, and the command: whose fault a failure is.
        self.running: tuple[str, str] | None = None
        # The commands that plugins bring, by name, with the plugin's name; None until somebody asks for one.
        self.commands: dict[str, tuple[str, click.Command]] | None = None
        self._wheel: Wheel | None = None

    @cached_property
    def settings(self) -> Settings:
        """The settings of this user."""
        from ..settings import load_settings

        return load_settings()

    @cached_property
    def plugins(self) -> PluginHost:
        """Every plugin that is installed or in ``--plugins-dir``."""
        from ..plugins import load_plugins

        return load_plugins(self.plugins_dir, report=lambda line: click.echo(line, err=True))

    @property
    def path(self) -> Path:
        """The wheel's file: ``--db``, else ``$WHEELMEM_DB``, else the setting ``db``, else the application folder's."""
        if self.db:
            return Path(self.db)
        given = self.settings["db"]
        if given:
            return Path(given).expanduser()
        from ..settings import app_folder

        return app_folder() / "wheel.db"

    def wheel(self, create: bool = False) -> Wheel:
        """The wheel, opened once and closed at the end of the run."""
        if self._wheel is None:
            from ..store import StoreError, open_wheel

            if self.path.is_dir():
                raise StoreError(f"{self.path} is a folder; a wheel is one file, such as {self.path / 'wheel.db'}")
            self._wheel = open_wheel(self.path, plugins=self.plugins, create=create, busy_timeout=self.settings["busy_timeout"])
            click.get_current_context().find_root().call_on_close(self._wheel.close)
            if self.receivers:
                from ..store.outbox import enroll

                enroll(self._wheel, self.receivers)
        return self._wheel

    @cached_property
    def receivers(self) -> list[Any]:
        """The providers that receive what the wheel records."""
        return [provider for provider in self.plugins.providers(self.settings) if hasattr(provider, "receive")]

    def deliver(self, seconds: float = 2.0) -> None:
        """After a write has answered: send what waits to the providers that receive, for as long as this; the rest waits."""
        if not self.receivers:
            return
        import asyncio

        from ..contract import WheelmemError
        from ..river import River

        sys.stdout.flush()
        try:
            passes = asyncio.run(River(self.wheel(), self.receivers).deliver(seconds))
        except WheelmemError as error:
            click.echo(f"note: nothing was delivered: {error}", err=True)
            return
        for line in (line for done in passes for line in done.lines()):
            click.echo(f"note: {line}", err=True)

    @cached_property
    def memory(self) -> Memory:
        """The memory over the wheel, with every plugin's arms, providers and classifiers."""
        from ..memory import create_memory

        return create_memory(wheel=self.wheel(), settings=self.settings)

    def run(self, coroutine: Any) -> Any:
        """What a coroutine of the memory gives."""
        from ..memory import run

        return run(self.memory, coroutine)


pass_app = click.make_pass_decorator(App, ensure=True)


def _keep(name: str) -> Callable[..., Any]:
    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            setattr(ctx.ensure_object(App), name, value)

    return callback


def wheel_options(command: F) -> F:
    """``--db`` and ``--plugins-dir``, which may stand before the command's name or after it."""
    for option in (
        click.option(
            "--plugins-dir",
            metavar="FOLDER",
            expose_value=False,
            is_eager=True,
            callback=_keep("plugins_dir"),
            help="Also load each *.py in this folder as a plugin.",
        ),
        click.option(
            "--db",
            metavar="PATH",
            expose_value=False,
            is_eager=True,
            callback=_keep("db"),
            help="The wheel's file.  [default: $WHEELMEM_DB, else the setting db, else wheel.db in the application folder]",
        ),
    ):
        command = option(command)
    return command
