"""``wheelmem demo``: a small wheel to try things on, and the same question asked in two of its circles."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ..contract import WheelmemError
from .app import App, pass_app, wheel_options
from .show import show_answer

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the demo."""
    cli.add_command(demo)


@click.command()
@wheel_options
@click.option("--serve", is_flag=True, help="Then serve it in the browser, as `wheelmem serve` does.")
@pass_app
def demo(app: App, serve: bool) -> None:
    """Make a small wheel, and ask it in two scopes.

    Three circles, each with a lantern of its own. The wheel is demo.db in the application folder unless --db names another
    file; running it again changes nothing.
    """
    from .. import demo as made
    from ..memory import create_memory
    from ..settings import app_folder

    # Never the wheel that the environment or the settings name: that one is somebody's own.
    app.db = app.db or str(app_folder() / "demo.db")
    # Nor is anybody sent what the demo holds.
    app.receivers = []
    wheel = app.wheel(create=True)
    made.build(wheel)
    counts = wheel.count()
    click.echo(
        f"A wheel of three circles: {counts['ceremonies']} ceremonies, {counts['beats']} turns and "
        f"{counts['diary']} diary entries, by four people and an agent."
    )
    memory = create_memory(wheel=wheel, providers=[], settings=app.settings)
    for circle in (made.ORCHARD, made.FERRY):
        click.echo()
        click.secho(f'$ wheelmem ask "{made.QUESTION}" --circle {circle} --limit 2', bold=True)
        from ..memory import run

        show_answer(run(memory, memory.ask(question=made.QUESTION, scope={"circle_id": circle}, limit=2)), made.QUESTION)
    click.echo()
    if serve:
        _serve()
        return
    click.echo("The same words, two answers: each from its own circle, and nothing from the others. Now try:")
    click.echo()
    click.echo(f"export WHEELMEM_DB={shlex.quote(str(Path(app.path).absolute()))}")
    for line in (
        f"wheelmem reach --participant {made.MIRA}",
        f"wheelmem search lanterne --circle {made.KITCHEN} --explain",
        f"wheelmem about {made.HERON} --circle {made.FERRY}",
        'wheelmem record node \'{"type": "human", "name": "You"}\'',
        "wheelmem --help",
    ):
        click.echo(line)


def _serve() -> None:
    """Hand over to the command that serves a wheel, which a plugin brings."""
    ctx = click.get_current_context()
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    command = root.command.get_command(root, "serve")
    if command is None:
        raise WheelmemError("no plugin that is loaded brings the command serve; see: wheelmem plugins")
    ctx.invoke(command)
