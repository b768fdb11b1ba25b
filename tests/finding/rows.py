"""Records for tests, with what they need and no more."""

from __future__ import annotations

from typing import Any

Row = tuple[str, dict[str, Any]]


def ceremony(id: str, **more: Any) -> Row:
    return "ceremony", {"id": id, "type": "talking_circle", "timestamp": "2026-03-08T18:00:00Z", **more}


def turn(id: str, text: str, ceremony: str | list[str] = "ceremony:1", minute: int = 0, **more: Any) -> Row:
    ceremonies = [ceremony] if isinstance(ceremony, str) else ceremony
    at = f"2026-03-08T18:{minute:02}:00Z"
    return "beat", {"id": id, "description": text, "ceremonies": ceremonies, "timestamp": at, **more}
