"""What runs beside the requests: the river, from the server's start to its stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from wheelmem.contract import WheelmemError

from . import access
from .served import close, served

__all__ = ["follow_lifespan", "prepare", "stopped"]

_log = logging.getLogger("wheelmem")
_rivers: WeakKeyDictionary[Any, asyncio.Task[None]] = WeakKeyDictionary()


async def _flow(datasette: Any) -> None:
    """Deliver what is owed until cancelled. A Datasette without a wheel, or a wheel nobody receives from, has nothing to do."""
    try:
        house = await served(datasette)
    except WheelmemError as error:
        if await access.has_wheel(datasette):
            _log.warning("%s", error)
        return
    if house.river.providers and house.database.is_mutable:
        await house.river.run(report=_log.warning)


def prepare(datasette: Any) -> None:
    """When Datasette starts up (1.0 supervises the task; 0.65 has nothing for it)."""
    if hasattr(datasette, "add_background_task"):
        datasette.add_background_task(_flow, name="wheelmem-river")


async def stopped(datasette: Any) -> None:
    """When Datasette shuts down."""
    await close(datasette)


def follow_lifespan(datasette: Any) -> Callable[[Any], Any]:
    """Middleware that starts the river when the server has started, and ends it before the server stops (0.65)."""

    def wrap(app: Any) -> Any:
        if hasattr(datasette, "add_background_task"):
            return app

        async def wrapped(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
            if scope["type"] != "lifespan":
                await app(scope, receive, send)
                return

            async def heard() -> Any:
                message = await receive()
                if message["type"] == "lifespan.shutdown":
                    await _end(datasette)
                return message

            async def told(message: Any) -> None:
                await send(message)
                if message["type"] == "lifespan.startup.complete":
                    _rivers[datasette] = asyncio.create_task(_flow(datasette), name="wheelmem-river")

            await app(scope, heard, told)

        return wrapped

    return wrap


async def _end(datasette: Any) -> None:
    task = _rivers.pop(datasette, None)
    if task is not None:
        task.cancel()
        await asyncio.wait({task}, timeout=5)
    await close(datasette)
