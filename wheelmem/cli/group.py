"""The ``wheelmem`` command group, which imports a command's module when that command is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from .. import __version__
from .app import App, wheel_options

__all__ = ["SECTIONS", "WheelmemGroup", "cli"]

# The commands as the help shows them, each with the module of this package whose ``register(cli)`` adds it. What is not
# here comes from plugins, which are loaded only to find it.
SECTIONS: dict[str, dict[str, str]] = {
    "Ask": {"ask": "asking", "search": "asking", "about": "asking", "reach": "asking"},
    "Keep": {
        "init": "storing",
        "record": "storing",
        "import": "storing",
        "export": "storing",
        "demo": "demo",
        "memory": "home",
    },
    "Look and set up": {
        "status": "asking",
        "settings": "setup",
        "plugins": "setup",
        "arms": "setup",
        "providers": "setup",
        "classifiers": "setup",
        "install": "setup",
        "uninstall": "setup",
    },
}
MODULES = {name: module for section in SECTIONS.values() for name, module in section.items()}


class WheelmemGroup(click.Group):
    """A group that knows its own commands by name alone, and asks plugins only for names it does not know."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._registered: set[str] = set()
        self._by_plugin: dict[str, str] = {}
        self._plugin: str | None = None
        self._asked_plugins = False

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        name = name or cmd.name
        assert name is not None
        if self._plugin is not None:
            if name in MODULES or name in self.commands:
                raise ValueError(f"there is a command {name!r} already")
            self._by_plugin[name] = self._plugin
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._ask_plugins(ctx)
        return [*MODULES, *sorted(self._by_plugin)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = MODULES.get(cmd_name)
        if module is None:
            self._ask_plugins(ctx)
        elif module not in self._registered:
            self._registered.add(module)
            import_module(f"wheelmem.cli.{module}").register(self)
        return self.commands.get(cmd_name)

    def _ask_plugins(self, ctx: click.Context) -> None:
        if self._asked_plugins:
            return
        self._asked_plugins = True
        host = ctx.ensure_object(App).plugins
        for name, register_commands in host.implementations("register_commands"):
            self._plugin = name
            try:
                register_commands(cli=self)
            except Exception as error:
                host.fail(name, "register_commands", error)
            finally:
                self._plugin = None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name in self._by_plugin:
            ctx.ensure_object(App).running = (self._by_plugin[name], name)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> None:
        # What a command returns is not the process's exit code.
        super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        sections = {title: list(commands) for title, commands in SECTIONS.items()}
        sections["From plugins"] = [name for name in names if name in self._by_plugin]
        width = max(map(len, names))
        for title, commands in sections.items():
            found = [(name, self.get_command(ctx, name)) for name in commands]
            limit = formatter.width - 6 - width
            rows = [(name.ljust(width), command.get_short_help_str(limit)) for name, command in found if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


@click.group(
    cls=WheelmemGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Completion in the shell: eval "$(_WHEELMEM_COMPLETE=bash_source wheelmem)" (or zsh_source, fish_source).',
)
@click.version_option(__version__, prog_name="wheelmem", message="%(prog)s %(version)s")
@wheel_options
def cli() -> None:
    """Memory for people and agents who sit in circles.

    A question is asked within a scope (a circle, a ceremony, a person…), and the answer draws on nothing else. Try
    `wheelmem demo` first.
    """
