"""The configuration that comes with wheelmem, for a wheel under any name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["packaged", "read"]

HERE = Path(__file__).parent
# The name under which the packaged files describe a wheel.
NAME = "wheel"


@cache
def read(name: str) -> dict[str, Any]:
    """One of the packaged files, ``metadata.yml`` or ``datasette.yml``: inside the package, or beside it in a checkout."""
    from datasette.utils import parse_metadata

    for folder in (HERE, HERE.parent.parent):
        if (folder / name).is_file():
            return dict(parse_metadata((folder / name).read_text(encoding="utf-8")))
    raise FileNotFoundError(f"{name} is missing from this installation of wheelmem")


def _named(values: Mapping[str, Any], database: str) -> dict[str, Any]:
    """The values, with what they say of the wheel said of the database of this name."""
    databases = dict(values.get("databases") or {})
    if NAME in databases:
        databases = {database: databases.pop(NAME), **databases}
    return {**values, "databases": databases}


def _over(base: Any, more: Any) -> Any:
    """``more`` laid over ``base``, object by object."""
    if isinstance(base, Mapping) and isinstance(more, Mapping):
        return {**base, **{key: _over(base.get(key), value) for key, value in more.items()}}
    return more


def packaged(folder: Path, database: str, more: Path | None) -> list[tuple[str, Path]]:
    """Files for a start of Datasette, written into ``folder``, each with the option that takes it."""
    import json

    from datasette.app import Datasette

    given: dict[str, Any] = {}
    if more is not None:
        from datasette.utils import parse_metadata

        given = parse_metadata(more.read_text(encoding="utf-8"))
    described, configured = _named(read("metadata.yml"), database), _named(read("datasette.yml"), database)
    if hasattr(Datasette, "allowed"):
        files = [("--metadata", "metadata.json", described), ("--config", "datasette.json", _over(configured, given))]
    else:
        files = [("--metadata", "metadata.json", _over(described, given))]
    made = []
    for option, name, values in files:
        (folder / name).write_text(json.dumps(values), encoding="utf-8")
        made.append((option, folder / name))
    return made
