"""wheelmem: memory for people and agents who sit in circles.

In five lines::

    from wheelmem import create_memory, open_wheel

    memory = create_memory(wheel=open_wheel("wheel.db"))
    answer = await memory.search(query="lantern", scope={"circle_id": "circle:1772000001000:garden"}, limit=12)
    print(answer.sources[0].wheel_id, answer.to_json())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .contract import Answer as Answer
    from .contract import ArmReport as ArmReport
    from .contract import ContractError as ContractError
    from .contract import Explain as Explain
    from .contract import NotHeldError as NotHeldError
    from .contract import ProviderAnswer as ProviderAnswer
    from .contract import ProviderStatus as ProviderStatus
    from .contract import Question as Question
    from .contract import Reach as Reach
    from .contract import Record as Record
    from .contract import Scope as Scope
    from .contract import Source as Source
    from .contract import WheelmemError as WheelmemError
    from .hookspecs import hookimpl as hookimpl
    from .hookspecs import hookspec as hookspec
    from .memory import Memory as Memory
    from .memory import create_memory as create_memory
    from .plugins import load_plugins as load_plugins
    from .reach import is_empty_scope as is_empty_scope
    from .reach import resolve_reach as resolve_reach
    from .settings import load_settings as load_settings
    from .store import Wheel as Wheel
    from .store import open_wheel as open_wheel
    from .text import excerpt_around as excerpt_around
    from .text import match_records as match_records
    from .text import query_terms as query_terms

# Each name is imported when it is first asked for: the contract alone is cheap, plugins and the store are not.
_WHERE = {
    "Answer": "contract",
    "ArmReport": "contract",
    "ContractError": "contract",
    "Explain": "contract",
    "NotHeldError": "contract",
    "ProviderAnswer": "contract",
    "ProviderStatus": "contract",
    "Question": "contract",
    "Reach": "contract",
    "Record": "contract",
    "Scope": "contract",
    "Source": "contract",
    "WheelmemError": "contract",
    "hookimpl": "hookspecs",
    "hookspec": "hookspecs",
    "Memory": "memory",
    "create_memory": "memory",
    "load_plugins": "plugins",
    "is_empty_scope": "reach",
    "resolve_reach": "reach",
    "load_settings": "settings",
    "Wheel": "store",
    "open_wheel": "store",
    "excerpt_around": "text",
    "match_records": "text",
    "query_terms": "text",
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
