"""A wheel in Datasette: who may see it, HTTP doors for programs, and pages to ask on.

This module holds nothing but Datasette's hooks; each asks the module that knows. It works on Datasette 0.65 and on the 1.0
alphas: hooks that only one of them has are optional.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

# The same marker as ``datasette.hookimpl``, without importing the whole of Datasette where only the command line runs.
from pluggy import HookimplMarker

hookimpl = HookimplMarker("datasette")

__all__: list[str] = []


@hookimpl(hookwrapper=True, optionalhook=True)
def permission_allowed(datasette: Any, actor: Any, action: str, resource: Any) -> Generator[None, Any, None]:
    """0.65: the last word on everything that shows a wheel."""
    from . import access

    outcome = yield
    outcome.force_result([*outcome.get_result(), access.verdict(datasette, actor, action, resource)])


@hookimpl(optionalhook=True)
def permission_resources_sql(datasette: Any, actor: Any, action: str) -> Any:
    """1.0: no rule, however narrow, opens a wheel to somebody without ``memory-read``."""
    from . import access

    return access.restriction(datasette, actor, action)


@hookimpl(optionalhook=True)
def register_actions(datasette: Any) -> list[Any]:
    """1.0: the four permissions."""
    from . import access

    return access.actions()


@hookimpl
def register_routes(datasette: Any) -> list[tuple[str, Callable[..., Any]]]:
    from . import routes

    return routes.routes()


@hookimpl
def skip_csrf(datasette: Any, scope: dict[str, Any]) -> bool | None:
    """0.65: the doors for programs judge by the request's origin headers, as 1.0 does for everything."""
    from . import web

    return True if web.judged_by_origin(datasette, scope) else None


@hookimpl(tryfirst=True)
def handle_exception(datasette: Any, request: Any, exception: Exception) -> Any:
    """A row or table that is not there is refused like one that is, so that nothing can be told from the difference."""
    from . import access

    return access.refuse_missing(datasette, request, exception)


@hookimpl
def menu_links(datasette: Any, actor: Any, request: Any) -> Any:
    from . import access

    async def links() -> list[dict[str, str]]:
        if not await access.has_wheel(datasette) or not await access.may(datasette, actor, "memory-ask"):
            return []
        return [{"href": datasette.urls.path("/-/memory"), "label": "Memory"}]

    return links


@hookimpl
def startup(datasette: Any) -> Any:
    from . import background

    return background.prepare(datasette)


@hookimpl(optionalhook=True)
def shutdown(datasette: Any) -> Any:
    from . import background

    return background.stopped(datasette)


@hookimpl
def asgi_wrapper(datasette: Any) -> Callable[[Any], Any]:
    """0.65 has no background tasks of its own: they follow the server's start and stop."""
    from . import background

    return background.follow_lifespan(datasette)


@hookimpl
def render_cell(value: Any, column: str, table: str | None, database: str, datasette: Any) -> Any:
    from . import cells

    return cells.render(datasette, database, table, column, value)
