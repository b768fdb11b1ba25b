"""``deliver`` and ``resend``: sending what the wheel owes to the providers that receive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..contract import WheelmemError
from .app import App, pass_app, wheel_options
from .show import plain, print_json

if TYPE_CHECKING:
    from ..river import Delivered, River

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the commands that deliver."""
    for command in (deliver, resend):
        cli.add_command(command)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also every record that a provider never had.")
@click.option("--provider", metavar="NAME", help="With --all: this provider only.")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, for programs.")
@pass_app
def deliver(app: App, everything: bool, provider: str | None, as_json: bool) -> None:
    """Send what waits to the providers that receive, such as Honcho.

    A wheel that was there before its Honcho is sent whole with --all. What was changed, moved or deleted since it was sent
    is put right there as well.
    """
    river = _river(app)
    if everything:
        queued = river.queue_all(provider)
        if not as_json:
            click.echo(f"{queued:,} record(s) never had are queued")
    _run(river, as_json)


@click.command()
@click.argument("kind", type=click.Choice(["ceremony", "beat", "diary"]))
@click.argument("id")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, for programs.")
@pass_app
def resend(app: App, kind: str, id: str, as_json: bool) -> None:
    """Send one record again, unless it is there already. One that was refused goes again too."""
    river = _river(app)
    river.resend(kind, id)
    _run(river, as_json)


def _river(app: App) -> River:
    from ..river import River

    if not app.receivers:
        raise WheelmemError("no provider that receives is configured (for Honcho, set HONCHO_URL)")
    return River(app.wheel(), app.receivers)


def _run(river: River, as_json: bool) -> None:
    """One pass, with a bar where somebody watches; exit code 1 when something still waits or was refused."""
    import asyncio

    pending = river.status()["pending"]
    if as_json or not pending:
        passes = asyncio.run(river.deliver())
    else:
        with click.progressbar(length=pending, label="delivering") as bar:
            passes = asyncio.run(river.deliver(progress=bar.update))
    if not passes and pending:
        raise WheelmemError("another process is delivering; what waits goes with it")
    if as_json:
        print_json({"delivered": [_json(done) for done in passes], **river.status()})
    else:
        for done in passes:
            parts = [f"{done.sent:,} sent"]
            parts += [f"{number:,} {word}" for number, word in ((done.refused, "refused"), (done.dropped, "dropped")) if number]
            if done.rebuilt:
                parts.append(f"{done.rebuilt:,} session(s) made anew")
            if done.pending:
                parts.append(f"{done.pending:,} waiting")
            click.echo(f"{done.provider}: {', '.join(parts)}")
            for line in done.lines():
                click.echo(f"note: {plain(line)}", err=True)
    if any(done.pending or done.refused for done in passes):
        click.get_current_context().exit(1)


def _json(done: Delivered) -> dict[str, Any]:
    out = {
        "provider": done.provider,
        "sent": done.sent,
        "refused": done.refused,
        "dropped": done.dropped,
        "rebuilt": done.rebuilt,
        "pending": done.pending,
        "errors": done.errors or None,
        "away": done.away,
    }
    return {name: value for name, value in out.items() if value is not None}
