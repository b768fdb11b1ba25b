"""``wheelmem serve``: Datasette on this machine, with the wheel and a sign-in link for its owner."""

from __future__ import annotations

import click

__all__ = ["serve"]


@click.command()
def serve() -> None:
    """Serve the wheel."""
