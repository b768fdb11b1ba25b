"""wheelmem: memory for people and agents who sit in circles together.

Everything public is here, and imported when it is first named::

    from wheelmem import create_memory, open_wheel

    wheel = open_wheel("wheel.db")
    memory = create_memory(wheel=wheel)
    answer = await memory.search(query="lantern", scope={"circle_id": "circle:1"}, limit=12)
    answer.sources[0].wheel_id
    answer.to_json()
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .contract import (
        Answer,
        ContractError,
        NotHeldError,
        ProviderAnswer,
        ProviderStatus,
        Question,
        Reach,
        Record,
        Scope,
        Source,
        WheelmemError,
    )
    from .hookspecs import hookimpl, hookspec
    from .memory import Memory, create_memory
    from .reach import is_empty_scope, resolve_reach
    from .settings import load_settings
    from .store import StoreError, Wheel, open_wheel
    from .text import excerpt_around, match_records, query_terms

_WHERE = {
    "contract": (
        "Answer ContractError NotHeldError ProviderAnswer ProviderStatus Question Reach Record Scope Source WheelmemError"
    ),
    "hookspecs": "hookimpl hookspec",
    "memory": "Memory create_memory",
    "reach": "is_empty_scope resolve_reach",
    "settings": "load_settings",
    "store": "StoreError Wheel open_wheel",
    "text": "excerpt_around match_records query_terms",
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}

__all__ = [
    "Answer",
    "ContractError",
    "Memory",
    "NotHeldError",
    "ProviderAnswer",
    "ProviderStatus",
    "Question",
    "Reach",
    "Record",
    "Scope",
    "Source",
    "StoreError",
    "Wheel",
    "WheelmemError",
    "create_memory",
    "excerpt_around",
    "hookimpl",
    "hookspec",
    "is_empty_scope",
    "load_settings",
    "match_records",
    "open_wheel",
    "query_terms",
    "resolve_reach",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'wheelmem' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
