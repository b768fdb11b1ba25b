"""Wheel ids as plain names of letters, digits, ``-`` and ``_``, for whoever knows no others."""

from __future__ import annotations

import re
from unicodedata import combining, normalize

__all__ = ["MAX_ID", "fold_id"]

MAX_ID = 512
_OTHERS = re.compile("[^a-zA-Z0-9_-]+")
_HYPHENS = re.compile("-{2,}")


def fold_id(wheel_id: str) -> str:
    """``wheel_id`` with accents removed and each run of other characters one ``-``; at most 512 characters, never empty."""
    text = "".join(c for c in normalize("NFKD", wheel_id) if not combining(c))
    text = _HYPHENS.sub("-", _OTHERS.sub("-", text)).strip("-")
    return text[:MAX_ID] or "unnamed"
