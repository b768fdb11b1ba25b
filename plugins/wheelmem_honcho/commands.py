"""``wheelmem honcho``: what only Honcho has."""

from __future__ import annotations

from typing import Any

import click

from wheelmem import WheelmemError

from . import client_of

__all__ = ["honcho"]


@click.group()
def honcho() -> None:
    """Look after the wheel's Honcho."""


@honcho.command()
@click.pass_obj
def confine(app: Any) -> None:
    """Switch peer cards off in the workspace, so that Honcho can reason within a reach.

    A peer card is made from every session of the workspace, and would be part of every answer. All other configuration of
    the workspace stays as it is.
    """
    client = client_of(app.settings)
    if client is None:
        raise WheelmemError("no Honcho is configured; set HONCHO_URL")
    import asyncio

    changed = asyncio.run(client.switch_cards_off())
    said = "peer cards are off now" if changed else "peer cards were off already"
    click.echo(f"{said} in workspace {client.workspace} at {client.url}")
