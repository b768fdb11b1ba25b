"""The ``wheelmem`` command group, which imports a command's module when that command is asked for."""

from __future__ import annotations

from collections.abc import Container
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
        "import-home": "home",
    },
    "Send and conclude": {
        "deliver": "delivering",
        "resend": "delivering",
        "conclude": "concluding",
        "judge": "concluding",
        "conclusions": "concluding",
    },
    "Serve": {"mcp": "mcp"},
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


class _Offered(click.Group):
    """The group a plugin adds its commands to: it takes no name that is taken."""

    def __init__(self, taken: Container[str]) -> None:
        super().__init__("wheelmem")
        self._taken = taken

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        name = name or cmd.name
        if name in MODULES or name in self._taken:
            raise ValueError(f"there is a command {name!r} already")
        super().add_command(cmd, name)


class WheelmemGroup(click.Group):
    """A group that knows its own commands by name alone, and asks plugins only for names it does not know."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._registered: set[str] = set()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*MODULES, *sorted(self._from_plugins(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = MODULES.get(cmd_name)
        if module is None:
            return self._from_plugins(ctx).get(cmd_name, (None, None))[1]
        if module not in self._registered:
            self._registered.add(module)
            import_module(f"wheelmem.cli.{module}").register(self)
        return self.commands.get(cmd_name)

    def _from_plugins(self, ctx: click.Context) -> dict[str, tuple[str, click.Command]]:
        """The commands of this run's plugins, with the plugin's name."""
        app = ctx.ensure_object(App)
        if app.commands is None:
            app.commands = {}
            for plugin, register_commands in app.plugins.implementations("register_commands"):
                offered = _Offered(app.commands)
                try:
                    register_commands(cli=offered)
                except Exception as error:
                    app.plugins.fail(plugin, "register_commands", error)
                app.commands |= {name: (plugin, command) for name, command in offered.commands.items()}
        return app.commands

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name not in MODULES and command is not None:
            ctx.ensure_object(App).running = (self._from_plugins(ctx)[name][0], name)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> None:
        # What a command returns is not the process's exit code.
        super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        sections = {title: list(commands) for title, commands in SECTIONS.items()}
        sections["From plugins"] = [name for name in names if name not in MODULES]
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
