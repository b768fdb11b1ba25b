"""Every address the plugin answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import access, asking, openapi, pages, records

__all__ = ["routes"]


async def _about_the_server(datasette: Any, request: Any, send: Any) -> Any:
    """Datasette's pages on its own configuration, files and threads: with a wheel attached, for those who may see the wheel.

    They show who is let in how far, and how large the files are.
    """
    if await access.has_wheel(datasette) and not await access.may(datasette, request.actor, "memory-read"):
        return await access.forbidden(datasette, request, "This needs the permission memory-read")
    path = request.scope.get("route_path") or request.scope["path"]
    for pattern, view in datasette._routes():
        found = None if ABOUT_THE_SERVER in pattern.pattern else pattern.match(path)
        if found is not None:
            request.scope = {**request.scope, "url_route": {"kwargs": found.groupdict()}}
            return await view(request, send)
    from datasette.utils.asgi import NotFound

    raise NotFound("404")


ABOUT_THE_SERVER = r"^/-/(metadata|config|databases|threads)(\.(?P<format>json))?$"


def routes() -> list[tuple[str, Callable[..., Any]]]:
    """(pattern, view) of each."""
    return [*asking.ROUTES, *records.ROUTES, *openapi.ROUTES, *pages.ROUTES, (ABOUT_THE_SERVER, _about_the_server)]
