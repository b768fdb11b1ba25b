"""Queries for keepers."""

from typing import Any


def queries_for(datasette: Any, database: str) -> Any:
    return {}
