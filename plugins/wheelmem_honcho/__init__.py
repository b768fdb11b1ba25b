"""Honcho as a keeper of memory: it receives every record, reasons over them within a reach, and what it concludes returns.

Set ``HONCHO_URL`` (and ``HONCHO_WORKSPACE_ID``, ``HONCHO_API_KEY``) to use it. In Python::

    from wheelmem_honcho import honcho_from_env, honcho_provider

    memory = create_memory(wheel=wheel, providers=[honcho_provider(honcho_from_env())])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wheelmem import hookimpl

if TYPE_CHECKING:
    from .client import HonchoClient as HonchoClient
    from .client import HonchoError as HonchoError
    from .client import honcho_from_env as honcho_from_env
    from .provider import honcho_provider as honcho_provider

__all__ = ["HonchoClient", "HonchoError", "honcho_from_env", "honcho_provider"]

WORKSPACE = "medicine-wheel"
# Who has no Honcho pays nothing for it: the client is imported when an address is set, or somebody asks for it.
_WHERE = {"HonchoClient": "client", "HonchoError": "client", "honcho_from_env": "client", "honcho_provider": "provider"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_WHERE[name]}", __name__), name)


def client_of(settings: Any) -> HonchoClient | None:
    """The client that the settings describe; None when no address is set."""
    url = settings.define("honcho.url", "", "base address of a Honcho server; empty means none", env=("HONCHO_URL",))
    workspace = settings.define("honcho.workspace", WORKSPACE, "the workspace there", env=("HONCHO_WORKSPACE_ID",))
    key = settings.define("honcho.api_key", "", "sent as a bearer token", env=("HONCHO_API_KEY",), secret=True)
    settings.define(
        "honcho.retry_interval_ms",
        300_000,
        "milliseconds between passes over what waits, in a server",
        env=("HONCHO_RETRY_INTERVAL_MS",),
    )
    settings.define(
        "honcho.confine", False, "switch peer cards off in the workspace, so that it can reason", env=("HONCHO_CONFINE",)
    )
    if not url.strip():
        return None
    from .client import HonchoClient

    return HonchoClient(url, workspace, key, reasoning_timeout=settings["reasoning_timeout"])


@hookimpl
def register_providers(register: Any, settings: Any) -> None:
    """Honcho, when an address is set."""
    client = client_of(settings)
    if client is not None:
        from .provider import honcho_provider

        interval = max(1.0, settings["honcho.retry_interval_ms"] / 1000)
        register(honcho_provider(client, confine=settings["honcho.confine"], interval=interval))


@hookimpl
def register_commands(cli: Any) -> None:
    """``wheelmem honcho``."""
    from .commands import honcho

    cli.add_command(honcho)
