"""Datasettes for tests, the same on both versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from datasette.app import Datasette

ONE_POINT_OH = hasattr(Datasette, "allowed")
OPEN_TO_ALL = {"memory-ask": {"unauthenticated": True, "id": "*"}}


def cookies(ds: Datasette, **actor: Any) -> dict[str, str]:
    """What a browser of this actor sends."""
    return {"ds_actor": ds.sign({"a": actor}, "actor")}


def make_datasette(files: list[Path], config: dict[str, Any] | None = None, **options: Any) -> Datasette:
    """A Datasette over files, with the same configuration on both versions, and a root who is the owner."""
    given: dict[str, Any] = {"config" if ONE_POINT_OH else "metadata": config or {}}
    ds = Datasette([str(path) for path in files], **given, **options)
    if ONE_POINT_OH:
        ds.root_enabled = True
    return ds


def with_permissions(policy: str = "owner", actors: dict[str, Any] | None = None, **permissions: Any) -> dict[str, Any]:
    """A configuration; permissions by name with ``_`` for ``-``."""
    return {
        "permissions": {name.replace("_", "-"): allow for name, allow in permissions.items()},
        "plugins": {"wheelmem": {"policy": policy, "actors": actors or {}}},
    }
