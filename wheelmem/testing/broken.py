"""An arm that fails, for testing that the rest goes on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["BrokenArm"]

_ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


class BrokenArm:
    """An arm that fails in one way.

    ``raises`` an error; answers ``nonsense``; returns records ``outside`` the reach; ``hangs`` in SQL, which the host
    interrupts; ``sleeps`` in Python, which the host leaves behind.
    """

    WAYS = ("raises", "nonsense", "outside", "hangs", "sleeps")
    stage = "find"

    def __init__(self, way: str = "raises", name: str = "broken") -> None:
        if way not in self.WAYS:
            raise ValueError(f"an arm breaks in one of these ways: {', '.join(self.WAYS)}; not {way!r}")
        self.way = way
        self.name = name

    def retrieve(self, db: sqlite3.Connection, question: Any, reach: Any, found: Sequence[Any], limit: int) -> Iterable[Any]:
        if self.way == "raises":
            raise RuntimeError("broken on purpose")
        if self.way == "nonsense":
            return ["nonsense"]
        if self.way == "hangs":
            return db.execute(_ENDLESS).fetchall()
        if self.way == "sleeps":
            time.sleep(600)
        return [(id, 1.0, None) for (id,) in db.execute("SELECT record_id FROM records ORDER BY record_id LIMIT 100")]
