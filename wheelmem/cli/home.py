"""``wheelmem memory``, the memory command of an agent's home, and ``import-home``, which brings a home onto the wheel."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from typing import Any

import click

from ..contract import WheelmemError
from .app import App, pass_app, wheel_options
from .show import counted, print_json

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the commands that work on an agent's home."""
    cli.add_command(memory)
    cli.add_command(import_home)


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


@click.command("import-home")
@click.option("--home", metavar="DIR", help="The home's folder.  [default: $AGENT_HOME]")
@click.option("--name", metavar="NAME", help="The home of this name under ~/.agents.")
@click.option("--config", metavar="FILE", help="The config that says what marks a boundary, as for `memory`.")
@wheel_options
@click.option("--no-deliver", is_flag=True, help="Leave what is owed to providers for later.")
@click.option("--json", "as_json", is_flag=True, help="Print what was new as JSON, for programs.")
@pass_app
def import_home(app: App, home: str | None, name: str | None, config: str | None, no_deliver: bool, as_json: bool) -> None:
    """Bring an agent's home onto the wheel.

    A session under a boundary becomes a ceremony about that boundary, with the agent in it; each capture, also those of
    drained logs, a diary entry. Run again, it adds what is new. Then ask the agent's own past:

    \b
      wheelmem ask "what did I decide about the parser?" --subject ~/src/project
    """
    from ..home.boundary import Boundaries, find_config
    from ..home.cli import find_home
    from ..home.record import Refused
    from ..home.wheel import import_home as bring
    from ..store.writing import get

    def keep(rows: list[tuple[str, dict[str, Any]]]) -> dict[str, int]:
        def store(db: sqlite3.Connection) -> dict[str, int]:
            fresh = [(kind, row) for kind, row in rows if get(db, kind, row["id"]) is None]
            for kind, row in fresh:
                wheel.store(db, kind, row)
            return Counter(kind for kind, _ in fresh)

        count = wheel.write(store)
        bar.update(len(rows))
        return count

    try:
        found = find_home(home, name)
        boundaries = Boundaries(find_config(config))
        if not found.exists():
            raise Refused(f"there is no home at {found.root}")
        wheel = app.wheel(create=True)
        with wheel.snapshot() as db:
            held = {id for (id,) in db.execute("SELECT id FROM diary WHERE id LIKE 'diary:home:%'")}
        # How much is new shows only when it has been read: the bar counts, and does not pretend to know the end.
        with click.progressbar(
            length=0, label=found.name, file=sys.stderr, show_percent=False, show_pos=True, hidden=not sys.stderr.isatty()
        ) as bar:
            new = bring(found, boundaries, held.__contains__, keep)
    except Refused as error:
        if error.code == 2:
            raise click.UsageError(str(error)) from None
        raise WheelmemError(str(error)) from None
    if as_json:
        print_json(new)
    else:
        captures, ceremonies = counted(new["diary"], "capture"), counted(new["ceremony"], "ceremony", "ceremonies")
        click.echo(f"New on the wheel: {captures} in {ceremonies}" if new["diary"] else "Nothing new for the wheel")
    if not no_deliver:
        app.deliver()
