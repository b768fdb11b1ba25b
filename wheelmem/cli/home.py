"""``wheelmem memory``: the memory command of an agent's home, with the rest of the command line handed on as it is."""

from __future__ import annotations

import click

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the command that works on an agent's home."""
    cli.add_command(memory)


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def memory(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """An agent's home: encode, read, dream, and more."""
    from ..home.cli import main

    ctx.exit(main(list(arguments)))
