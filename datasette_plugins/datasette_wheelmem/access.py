"""Who may see a wheel in Datasette. Nothing here rests on a configuration file.

A database is a wheel when its file says so (SQLite's ``application_id``), whatever its name. Its tables, rows, SQL, queries
and downloads show everything it holds, so they are refused to all but whoever has ``memory-read``. The owner (Datasette's
root actor) has every permission; others have what the ``permissions`` block of the configuration gives them.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from wheelmem.store.schema import APPLICATION_ID

__all__ = [
    "PERMISSIONS",
    "actions",
    "has_wheel",
    "is_wheel",
    "may",
    "refuse_missing",
    "restriction",
    "verdict",
    "wheels",
]

PERMISSIONS = {
    "memory-ask": "Ask the wheel's memory, as far as the policy lets one name scopes",
    "memory-read": "See the whole wheel: its tables, records, counts, health and what waits for providers",
    "memory-write": "Record on the wheel",
    "memory-judge": "Confirm or reject conclusions",
}
# What each database object was found to be: True stays; False holds for as long as its files do not change.
_found: WeakKeyDictionary[Any, tuple[bool, Any]] = WeakKeyDictionary()


def is_one_point_oh(datasette: Any) -> bool:
    """Whether this Datasette asks for permissions the way 1.0 does."""
    return hasattr(datasette, "allowed")


async def may(datasette: Any, actor: Any, action: str) -> bool:
    """Whether an actor has one of the permissions here."""
    if is_one_point_oh(datasette):
        # A permission given to others in the configuration is denied to everybody else there, root included.
        return _is_owner(datasette, actor, action) or bool(await datasette.allowed(action=action, actor=actor))
    return bool(await datasette.permission_allowed(actor, action, default=False))


# --- which databases are wheels ------------------------------------------------------------------------------------


def _stamp(database: Any) -> Any:
    """What changes when a database's files do; None when that cannot be told."""
    if not database.path:
        return None
    found: list[tuple[int, int, int] | None] = []
    for path in (database.path, f"{database.path}-wal"):
        try:
            stat = os.stat(path)
        except FileNotFoundError:
            found.append(None)
        except OSError:
            return None
        else:
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


async def is_wheel(datasette: Any, name: str) -> bool:
    """Whether the database of this name or route (0.65 asks by either) is a wheel; one that cannot be read counts as one."""
    named = [database for key, database in list(datasette.databases.items()) if name in (key, database.name, database.route)]
    return any([await _holds_one(datasette, database) for database in named])


async def _holds_one(datasette: Any, database: Any) -> bool:
    if _cannot_be_one(datasette, database):
        return False
    known = _found.get(database)
    if known is not None and known[0]:
        return True
    stamp = _stamp(database)
    if known is not None and stamp is not None and known[1] == stamp:
        return False
    try:
        number = await database.execute_fn(lambda db: db.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.Error:
        return True
    _found[database] = (number == APPLICATION_ID, stamp)
    return bool(number == APPLICATION_ID)


def _cannot_be_one(datasette: Any, database: Any) -> bool:
    """Datasette's own databases: what they hold is gone with the process."""
    internal = getattr(datasette, "_internal_database", None)
    nameless = not database.path and not database.memory_name
    return database is internal or nameless or (database.is_memory and database.name == "_internal")


async def wheels(datasette: Any) -> list[str]:
    """The names of the databases that are wheels, in the order they are attached."""
    return [name for name in list(datasette.databases) if await is_wheel(datasette, name)]


async def has_wheel(datasette: Any) -> bool:
    """Whether any database is a wheel."""
    return bool(await wheels(datasette))


async def _guarded(datasette: Any) -> list[str]:
    """The wheels, and the database through which SQL could reach them when databases are attached to one another."""
    found = await wheels(datasette)
    return [*found, "_memory"] if found and datasette.crossdb else found


async def shows_a_wheel(datasette: Any, name: str) -> bool:
    """Whether something of a wheel can be seen through the database of this name."""
    if name == "_memory" and datasette.crossdb:
        return await has_wheel(datasette)
    return await is_wheel(datasette, name)


# --- Datasette 0.65 ------------------------------------------------------------------------------------------------


async def verdict(datasette: Any, actor: Any, action: str, resource: Any) -> bool | None:
    """False when an action is refused, True when it is granted, None when it is not ours to say (0.65)."""
    from datasette.utils import actor_matches_allow

    if action in PERMISSIONS:
        if isinstance(actor, dict) and actor.get("id") == "root":
            return True
        allow = (datasette.metadata("permissions") or {}).get(action)
        return None if allow is None else bool(actor_matches_allow(actor, allow))
    database = resource if isinstance(resource, str) else resource[0] if resource else None
    if not isinstance(database, str) or not await shows_a_wheel(datasette, database):
        return None
    return None if await may(datasette, actor, "memory-read") else False


# --- Datasette 1.0 -------------------------------------------------------------------------------------------------


def actions() -> list[Any]:
    """The four permissions as 1.0 declares them."""
    from datasette.permissions import Action

    return [Action(name=name, description=description) for name, description in PERMISSIONS.items()]


async def restriction(datasette: Any, actor: Any, action: str) -> Any:
    """What holds back every action on a wheel's database, tables and queries (1.0).

    Rules about a table stand above rules about its database, so denying would have to name every table there may ever be.
    A restriction is met or not met whatever the rules say. It is intersected, row by row, with those of others (a token's,
    a private query's), which name databases, tables or queries; so ours names each of the three. The rule beside it only
    makes Datasette show the padlock.
    """
    if action in PERMISSIONS or not _about_databases(datasette, action):
        return None
    guarded = await _guarded(datasette)
    if not guarded or await may(datasette, actor, "memory-read"):
        return None
    from datasette.permissions import PermissionSQL

    open_ones = [name for name in datasette.databases if name not in guarded]
    listed = "(SELECT value FROM json_each(:wheelmem_open))"
    return PermissionSQL(
        sql="SELECT value AS parent, NULL AS child, 0 AS allow, 'a wheel is seen with memory-read' AS reason "
        "FROM json_each(:wheelmem_guarded)",
        restriction_sql=f"SELECT value AS parent, NULL AS child FROM json_each(:wheelmem_open) "
        f"UNION SELECT database_name, table_name FROM catalog_tables WHERE database_name IN {listed} "
        f"UNION SELECT database_name, view_name FROM catalog_views WHERE database_name IN {listed} "
        f"UNION SELECT database_name, name FROM queries WHERE database_name IN {listed}",
        params={"wheelmem_open": json.dumps(open_ones), "wheelmem_guarded": json.dumps(guarded)},
    )


def _about_databases(datasette: Any, action: str) -> bool:
    from datasette.resources import DatabaseResource

    known = datasette.actions.get(action)
    resource = known.resource_class if known else None
    return resource is not None and (
        issubclass(resource, DatabaseResource) or issubclass(resource.parent_class or type(None), DatabaseResource)
    )


def _is_owner(datasette: Any, actor: Any, action: str) -> bool:
    """Whether this is Datasette's root, in a request (a token may carry fewer permissions) that has the permission."""
    if not datasette.root_enabled or not isinstance(actor, dict) or actor.get("id") != "root":
        return False
    if actor.get("_r") is None:
        return True
    from datasette.default_permissions import restrictions_allow_action

    return bool(restrictions_allow_action(datasette, actor["_r"], action, None))


# --- both ----------------------------------------------------------------------------------------------------------


async def refuse_missing(datasette: Any, request: Any, exception: Exception) -> Any:
    """The answer of a refusal, for something a wheel does not hold, to those who may not see what it does hold."""
    from datasette.utils.asgi import NotFound

    route = request.url_vars.get("database") if request is not None else None
    if not isinstance(exception, NotFound) or not route:
        return None
    name = next((name for name, database in datasette.databases.items() if _routed(datasette, database) == route), None)
    if name is None or not await shows_a_wheel(datasette, name) or await may(datasette, request.actor, "memory-read"):
        return None
    return await forbidden(datasette, request, f"You do not have permission to view this {_what(request)}")


def _routed(datasette: Any, database: Any) -> str:
    from datasette.utils import tilde_encode

    return str(tilde_encode(database.route if database.route is not None else database.name))


def _what(request: Any) -> str:
    return "table" if request.url_vars.get("table") else "database"


async def forbidden(datasette: Any, request: Any, message: str) -> Any:
    """Datasette's own answer of 403."""
    from datasette.plugins import pm
    from datasette.utils import await_me_maybe

    made: Iterable[Any] = pm.hook.forbidden(datasette=datasette, request=request, message=message)
    for response in made:
        response = await await_me_maybe(response)
        if response is not None:
            return response
    raise AssertionError("Datasette always has an answer")
