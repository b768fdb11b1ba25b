"""The wheel's ids as Honcho's, which know only letters, digits, ``-`` and ``_``."""

from __future__ import annotations

import hashlib
import re

from wheelmem.ids import MAX_ID, fold_id

__all__ = ["candidates", "fold_id", "is_id"]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,512}")


def candidates(kind: str, wheel_id: str, wheel: str = "") -> tuple[str, ...]:
    """The Honcho ids to try for something, best first: the plain one, one told apart by kind and id, one by wheel too.

    Different wheel ids can fold to the same plain id; the others end in a hash and do not collide.
    """
    plain = fold_id(wheel_id)
    made = [plain]
    for text in (f"{kind}\0{wheel_id}", f"{kind}\0{wheel_id}\0{wheel}"):
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        made.append(f"{plain[: MAX_ID - 13]}-{digest}")
    return tuple(made)


def is_id(text: object) -> bool:
    """Whether Honcho would read this as one id (and not, say, as a ``*`` that means everything)."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None
