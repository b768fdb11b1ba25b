"""``wheelmem serve``: Datasette on this machine, with the wheel and a sign-in link for its owner."""

from __future__ import annotations

import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from wheelmem.cli.app import App, pass_app, wheel_options
from wheelmem.contract import WheelmemError

__all__ = ["serve"]


@click.command()
@click.argument("wheel", metavar="[DB]", required=False, type=click.Path(dir_okay=False, path_type=str))
@click.option("--port", "-p", default=8001, show_default=True, help="The port to listen on; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--config",
    "-c",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own configuration for Datasette (YAML or JSON), laid over the one that comes with wheelmem.",
)
@click.option("--open", "-o", "browse", is_flag=True, help="Open the sign-in link in the browser.")
@wheel_options
@pass_app
def serve(app: App, wheel: str | None, port: int, host: str, config: Path | None, browse: bool) -> None:
    """Serve a wheel with Datasette, and print a one-time link that signs its owner in.

    DB is the wheel's file (else as --db says). Only the owner is let in, until a policy and permissions in a configuration
    say otherwise.
    """
    if wheel is not None:
        app.db = wheel
    # Brings an older wheel up to date, and says plainly what is wrong with a file that is none.
    app.wheel().close()
    from .keeping import packaged

    path = app.path.absolute()
    port = _free(host, port)
    with TemporaryDirectory(prefix="wheelmem-") as folder:
        arguments = ["serve", str(path), "--host", host, "--port", str(port), "--root"]
        for option, file in packaged(Path(folder), path.stem, config):
            arguments += [option, str(file)]
        if browse:
            arguments.append("--open")
        click.echo(f"{path.name}: sign in with the link below, then ask at http://{host}:{port}/-/memory (Ctrl-C stops)")
        from datasette.cli import cli

        # What Datasette's command returns, or exits with, is its own.
        run: Any = cli.main
        run(args=arguments, prog_name="datasette", standalone_mode=False)


def _free(host: str, port: int) -> int:
    """The port, or a free one for 0; raises a plain error when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise WheelmemError(f"cannot listen on {host}:{port} ({error.strerror}); choose another: --port 0") from None
        return int(probe.getsockname()[1])
