"""The wheel that a Datasette serves: opened once, with its memory, its policy and its river."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from wheelmem.contract import WheelmemError
from wheelmem.memory import Memory, create_memory
from wheelmem.plugins import PluginHost, load_plugins
from wheelmem.river import River
from wheelmem.settings import Settings, load_settings
from wheelmem.store import Wheel, open_wheel
from wheelmem.store.connections import ReadConnection, transaction
from wheelmem.store.outbox import enroll

from . import access
from .web import Refusal

__all__ = ["PLUGIN", "Served", "close", "configuration", "served"]

T = TypeVar("T")
PLUGIN = "wheelmem"
_all: WeakKeyDictionary[Any, Served]
_locks: WeakKeyDictionary[Any, asyncio.Lock] = WeakKeyDictionary()


class Served:
    """One Datasette's wheel. Reads run on the wheel's own connections, writes on Datasette's write thread for the file."""

    def __init__(self, datasette: Any, database: Any, wheel: Wheel, settings: Settings) -> None:
        self.datasette = datasette
        self.database = database
        self.wheel = wheel
        self.settings = settings
        self.providers = wheel.plugins.providers(settings)
        self.memory: Memory = create_memory(wheel=wheel, providers=self.providers, settings=settings)
        self.policies = {policy.name: policy for policy in wheel.plugins.items("register_policies", settings)}
        self.actors: Mapping[str, Any] = configuration(datasette).get("actors") or {}
        self.river = River(wheel, self.providers, write=self.write)
        self._busy = int(settings["busy_timeout"] * 1000)

    async def read(self, fn: Callable[[ReadConnection], T]) -> T:
        """``fn(db)`` in one snapshot of the wheel, on a thread that is none of Datasette's."""
        return await asyncio.to_thread(self.wheel.read, fn)

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """``fn(db)`` in one transaction on Datasette's write thread, on disk when this returns."""
        if not self.database.is_mutable:
            raise Refusal(403, f"{self.database.name} is served read-only; start without -i/--immutable to record on it")

        def job(db: sqlite3.Connection) -> tuple[Any, BaseException | None]:
            # Errors are handed back, not raised: Datasette would print each on its standard error.
            factories = db.row_factory, db.text_factory
            db.row_factory, db.text_factory = None, str
            try:
                if db.in_transaction:
                    db.commit()
                db.execute("PRAGMA synchronous = FULL")
                db.execute(f"PRAGMA busy_timeout = {self._busy}")
                with transaction(db):
                    return fn(db), None
            except Exception as error:
                return None, error
            finally:
                db.row_factory, db.text_factory = factories

        options = {"transaction": False} if access.is_one_point_oh(self.datasette) else {}
        result, error = await self.database.execute_write_fn(job, **options)
        if error is not None:
            raise error
        self.river.wake()
        return result  # type: ignore[no-any-return]

    def policy(self) -> Any:
        """The policy that the settings name; None when no plugin registers it, and then nobody is let in by it."""
        return self.policies.get(self.settings["policy"])


def configuration(datasette: Any) -> dict[str, Any]:
    """The plugin's block, ``plugins: wheelmem:``."""
    return dict(datasette.plugin_config(PLUGIN) or {})


async def _find(datasette: Any, wanted: str) -> Any:
    """The database object to serve."""
    names = await access.wheels(datasette)
    if wanted:
        if wanted not in datasette.databases:
            there = ", ".join(name for name in datasette.databases if not name.startswith("_"))
            raise Refusal(503, f"the setting database names {wanted!r}; attached are: {there or 'none'}")
        if wanted not in names:
            raise Refusal(503, f"the database {wanted} (setting database) is no wheel")
        return datasette.databases[wanted]
    if not names:
        raise Refusal(503, "no database attached here is a wheel; start with: wheelmem serve WHEEL.db")
    return datasette.databases[names[0]]


def _open(path: str, block: Mapping[str, Any]) -> tuple[Wheel, Settings]:
    settings = load_settings().with_block({name: value for name, value in block.items() if name != "actors"})
    log = logging.getLogger("wheelmem")
    host: PluginHost = load_plugins(report=log.warning)
    wheel = open_wheel(Path(path), plugins=host, create=False, busy_timeout=settings["busy_timeout"])
    # Declares the settings of this plugin, and of those it asks.
    host.items("register_policies", settings)
    return wheel, settings


async def served(datasette: Any) -> Served:
    """The wheel of this Datasette, opened when first asked for; raises a Refusal that says what is missing."""
    found = _all.get(datasette)
    if found is not None and datasette.databases.get(found.database.name) is found.database:
        return found
    async with _locks.setdefault(datasette, asyncio.Lock()):
        found = _all.get(datasette)
        if found is not None and datasette.databases.get(found.database.name) is found.database:
            return found
        if found is not None:
            await close(datasette)
        block = configuration(datasette)
        database = await _find(datasette, str(block.get("database") or load_settings_database()))
        if not database.path:
            raise Refusal(503, f"the wheel {database.name} lies in memory; serve it from a file")
        wheel, settings = await asyncio.to_thread(_open, database.path, block)
        made = await asyncio.to_thread(partial(Served, datasette, database, wheel, settings))
        if database.is_mutable:
            try:
                await asyncio.to_thread(enroll, wheel, made.providers)
            except WheelmemError as error:
                logging.getLogger("wheelmem").warning("the river is closed: %s", error)
        _all[datasette] = made
        return made


def load_settings_database() -> str:
    """The setting ``database`` from outside Datasette's configuration."""
    settings = load_settings()
    return str(settings.define("database", "", DATABASE_HELP))


DATABASE_HELP = "under Datasette, which attached database is the wheel; empty means the first that is one"


async def close(datasette: Any) -> None:
    """Let go of the wheel."""
    found = _all.pop(datasette, None)
    if found is not None:
        await asyncio.to_thread(found.wheel.close)


_all = WeakKeyDictionary()
