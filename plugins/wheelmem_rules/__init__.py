"""Classifiers that need no model: where a captured record goes, told by what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wheelmem import hookimpl


@hookimpl
def register_classifiers(register: Callable[[Any], None]) -> None:
    from .routing import RulesRouter

    register(RulesRouter())
