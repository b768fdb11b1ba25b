"""``init``, ``record``, ``import`` and ``export``: what goes into a wheel and comes out of it."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

import click

from ..contract import ContractError
from ..store.rows import KINDS
from .app import App, pass_app, wheel_options
from .options import parse_json
from .show import holdings, plain, print_json

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the commands that keep."""
    for command in (init, record):
        cli.add_command(command)


@click.command()
@wheel_options
@pass_app
def init(app: App) -> None:
    """Make an empty wheel. One that is there already is left as it is."""
    there = app.path.exists() and app.path.stat().st_size > 0
    wheel = app.wheel(create=True)
    if there:
        click.echo(f"{app.path} is a wheel already: {holdings(wheel.count())}")
    else:
        click.echo(f"made a wheel: {app.path}")


@click.command(epilog="Whatever else a record says is kept as it is. A beat may name ceremonies that are still to come.")
@click.argument("kind", type=click.Choice(["ceremony", "beat", "diary", "node", "edge"]))
@click.argument("json", metavar="JSON|-")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print the record as it was stored, instead of its id.")
@click.option("--no-deliver", is_flag=True, help="Leave it waiting for the providers that receive, such as Honcho.")
@pass_app
def record(app: App, kind: str, json: str, as_json: bool, no_deliver: bool) -> None:
    """Keep one record, given as JSON, and print its id.

    With `-` the JSON is read from standard input. An id is minted and the time stamped unless the JSON has them; under an
    id that is held already the new value stands.

    \b
      ceremony  type; direction, participants, intentions, circle_id, subject_id, episode_path, closes…
      beat      direction, title; description, prose, speaker, witnesses, ceremonies, learnings…
      diary     participant, content; phase, entryType, metadata {"ceremony_id", "tags"}, chronicle…
      node      type, name; description, direction, metadata…
      edge      from_id, to_id, relationship_type; strength (0 to 1), obligations…

    \b
      wheelmem record node '{"type": "human", "name": "Ana"}'
    """
    from ..drafts import draft, draft_warnings

    given = parse_json(_text_of(json), "the record")
    wheel = app.wheel()

    def keep(db: sqlite3.Connection) -> tuple[dict[str, Any], list[str], str]:
        made = draft(kind, given, db)
        warnings = draft_warnings(kind, made, db)
        return made, warnings, wheel.store(db, kind, made)

    made, warnings, outcome = wheel.write(keep)
    if as_json:
        print_json(made)
    else:
        click.echo(" ".join(KINDS[kind].keys(made)))
    for warning in warnings:
        click.echo(f"note: {plain(warning)}", err=True)
    if outcome != "added":
        click.echo("note: it was held already" + ("; the new value stands" if outcome == "changed" else ""), err=True)
    if not no_deliver:
        app.deliver()


def _text_of(argument: str) -> str:
    if argument != "-":
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContractError(f"standard input is no UTF-8 text: {error.reason} at byte {error.start}") from None
