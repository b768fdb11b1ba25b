"""``wheelmem mcp``: the wheel's memory for an agent, over the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..contract import Scope, WheelmemError
from .app import App, pass_app, wheel_options
from .options import parse_json

if TYPE_CHECKING:
    from ..mcp.house import House

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the command that serves agents."""
    cli.add_command(mcp)


@click.command()
@wheel_options
@click.option("--url", metavar="URL", help="Work on the wheel that is served there.  [default: $MW_API_URL, else the file]")
@click.option("--token", metavar="TOKEN", help="Sent to that address as a bearer token.  [default: $WHEELMEM_API_TOKEN]")
@click.option("--scope", "scope_json", metavar="JSON", help="Pin the scope: whatever is asked, nothing beyond it is reached.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP on this machine, instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the loopback address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="With --http: its port; 0 takes a free one."
)
@pass_app
def mcp(app: App, url: str | None, token: str | None, scope_json: str | None, http: bool, host: str, port: int) -> None:
    """Give an agent this memory, over the Model Context Protocol.

    Name this command in the agent host's configuration: `wheelmem mcp --db wheel.db`. It needs the extra mcp
    (`wheelmem install 'wheelmem[mcp]'`).
    """
    if url and app.db:
        raise click.UsageError("--url works on a wheel that is served, --db on a file: give one of them.")
    pin = None if scope_json is None else Scope.from_json(parse_json(scope_json, "--scope"))
    try:
        import anyio

        from ..mcp import create_server, serve_http, serve_stdio
    except ImportError as error:
        if error.name is None or error.name.startswith("wheelmem"):
            raise
        raise WheelmemError("wheelmem mcp needs the extra mcp; run: wheelmem install 'wheelmem[mcp]'") from None

    async def serve() -> None:
        house = _house(app, url, token, pin)
        server = create_server(house)
        if http:
            await serve_http(server, host, port, lambda address: click.echo(f"Serving MCP at {address}", err=True))
        else:
            await serve_stdio(server)

    anyio.run(serve)


def _house(app: App, url: str | None, token: str | None, pin: Scope | None) -> House:
    from ..mcp.house import FileHouse, ServedHouse

    # A file named on the command line goes before an address in the settings.
    address = url or ("" if app.db else app.settings["api_url"])
    if address:
        from ..client import AsyncWheelClient

        return ServedHouse(AsyncWheelClient(address, token=token or app.settings["api_token"] or None), pin)
    return FileHouse(app.wheel(), app.settings, pin)
