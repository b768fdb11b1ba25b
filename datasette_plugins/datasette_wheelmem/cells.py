"""Labels instead of ids in Datasette's tables: who a person is and which ceremony it was, each a link to its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from wheelmem.contract import WheelmemError
from wheelmem.store import listing, reading
from wheelmem.store.connections import ReadConnection

from . import access
from .served import served

__all__ = ["render"]

PEOPLE = {"speaker", "participant", "witness", "from_id", "to_id", "person", "other", "person_id", "about"} | {
    "derived_by",
    "judged_by",
}
CIRCLES = {"circle_id"}
CEREMONIES = {"ceremony_id", "closes"}
SUBJECTS = {"subject_id"}


def render(datasette: Any, database: str, table: str | None, column: str, value: Any) -> Any:
    """A cell's content, or a coroutine that gives it; None leaves the cell as it is."""
    id = value.get("value") if isinstance(value, dict) else value
    if table is None or not isinstance(id, str) or not id or column not in PEOPLE | CIRCLES | CEREMONIES | SUBJECTS:
        return None
    return _render(datasette, database, column, id)


async def _render(datasette: Any, database: str, column: str, id: str) -> Any:
    if not await access.is_wheel(datasette, database):
        return None
    try:
        house = await served(datasette)
    except WheelmemError:
        return None
    if house.database.name != database:
        return None
    look: Callable[[ReadConnection], str | None] = lambda db: _label(db, column, id)  # noqa: E731
    label = await house.read(look)
    if label is None:
        return None
    page = datasette.urls.path("/-/memory")
    if column in CEREMONIES:
        href = f"{page}/ceremonies/{quote(id, safe='')}"
    elif column in PEOPLE and not id.startswith("circle:"):
        href = f"{page}/people/{quote(id, safe='')}"
    else:
        href = f"{page}?{'subject_id' if column in SUBJECTS else 'circle_id'}={quote(id, safe='')}"
    return Markup('<a href="{}" title="{}">{}</a>').format(href, id, label)


def _label(db: ReadConnection, column: str, id: str) -> str | None:
    key = ("label", column in CEREMONIES, id)
    if key not in db.cache:
        if column in CEREMONIES:
            found = listing.marks(db, [id], 1)
            db.cache[key] = found[0].name if found else None
        else:
            db.cache[key] = reading.names(db, [id]).get(id)
    label: str | None = db.cache[key]
    return label
