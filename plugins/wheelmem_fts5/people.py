"""Who is called what: names as they are now, so that a node that is renamed needs no index to follow."""

from __future__ import annotations

import re
import sqlite3
from typing import Self

from wheelmem.text import fold

__all__ = ["People"]

_WORDS = re.compile(r"[^\W_]+")
# Those who may speak or sit; circles and conclusions do not.
_TYPES = ("human", "agent", "ancestor", "spirit", "future", "land")
WHEEL = "medicine-wheel"

# Every speaker once, by leaps over the index; those that are ids of nodes are passed over in one leap, nodes have names.
_PLAIN_SPEAKERS = """
WITH RECURSIVE leap (speaker) AS (
    SELECT min(speaker) FROM records WHERE speaker IS NOT NULL
    UNION ALL
    SELECT (SELECT min(r.speaker) FROM records r WHERE r.speaker >
        CASE WHEN leap.speaker >= 'node:' AND leap.speaker < 'node;' THEN 'node:' || char(1114111) ELSE leap.speaker END)
    FROM leap WHERE leap.speaker IS NOT NULL
)
SELECT speaker FROM leap WHERE speaker IS NOT NULL AND NOT (speaker >= 'node:' AND speaker < 'node;')
"""


class People:
    """The words of every name, each with the ids it may mean: of nodes, and speakers that are plain names."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._by_word: dict[str, list[str]] = {}
        types = ", ".join("?" * len(_TYPES))
        named = db.execute(f"SELECT id, name FROM nodes WHERE type IN ({types}) AND name <> '' ORDER BY position", _TYPES)
        for id, name in named:
            self._add(id, name)
        for (speaker,) in db.execute(_PLAIN_SPEAKERS):
            if speaker != WHEEL:
                self._add(speaker, speaker)

    def _add(self, id: str, name: str) -> None:
        for word in dict.fromkeys(_WORDS.findall(fold(name))):
            self._by_word.setdefault(word, []).append(id)

    @classmethod
    def of(cls, db: sqlite3.Connection) -> Self:
        """The people of this snapshot, read once for as long as the file does not change."""
        cache = getattr(db, "cache", {})
        found: Self | None = cache.get("keyword.people")
        if found is None:
            found = cache["keyword.people"] = cls(db)
        return found

    def called(self, word: str) -> tuple[str, ...]:
        """The ids of those whose name holds this word, as ``fold`` gives it."""
        return tuple(self._by_word.get(word, ()))
