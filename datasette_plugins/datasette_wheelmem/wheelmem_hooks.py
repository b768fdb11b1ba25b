"""What this plugin adds to wheelmem itself: the policies, and ``wheelmem serve``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wheelmem.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from wheelmem.settings import Settings

__all__ = ["register_commands", "register_policies"]


@hookimpl
def register_policies(register: Callable[[Any], None], settings: Settings) -> None:
    from .policies import POLICIES
    from .served import DATABASE_HELP

    settings.define("policy", "owner", "under Datasette, how far others than the owner reach: owner, open, seated, scopes")
    settings.define("database", "", DATABASE_HELP)
    for policy in POLICIES:
        register(policy())


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .serve import serve

    cli.add_command(serve)
