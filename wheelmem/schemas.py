"""JSON Schema of the contract's classes, made from the classes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from .contract import LEVELS, MODES

__all__ = ["schema_of"]

_ALLOWED: dict[str, tuple[str, ...]] = {"mode": MODES, "level": LEVELS}
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(contract: type) -> dict[str, Any]:
    """The JSON Schema of what ``to_json`` of a contract's class gives; its description is the class's docstring."""
    hints = get_type_hints(contract)
    properties, required = {}, []
    for field in fields(contract):
        found = _schema(hints[field.name])
        if field.name in _ALLOWED:
            found = {**found, "enum": list(_ALLOWED[field.name])}
        properties[field.name] = found
        # What is never None is always written.
        if field.default is MISSING or field.default is not None:
            required.append(field.name)
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        made["required"] = required
    described = " ".join((contract.__doc__ or "").split()).replace("``", "`")
    return {"description": described, **made} if described else made


def _schema(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return schema_of(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        # None means absent, which is for ``required`` to say.
        kinds = [_schema(kind) for kind in get_args(hint) if kind is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if origin is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object"}
    raise TypeError(f"no schema is known for {hint!r}")
