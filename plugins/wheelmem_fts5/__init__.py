"""The keyword arm: SQLite FTS5, ranked by a BM25 that knows nothing but the reach.

For arms that build on words (see ``wheelmem_fts5.within``)::

    from wheelmem_fts5.words import read_query
    from wheelmem_fts5.within import within

    inside = within(db, reach)
    for term in read_query(db, question.query).terms:
        postings = inside.postings(term)            # the records of the reach that hold it
        weights = inside.weights(postings)          # what each would score, in the same order as postings.ids
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wheelmem.hookspecs import hookimpl

if TYPE_CHECKING:
    from wheelmem.settings import Settings


@hookimpl
def register_arms(register: Callable[[Any], None], settings: Settings) -> None:
    from .arm import KeywordArm

    k1 = settings.define("keyword.k1", 0.9, "how soon a word's repetitions within a record stop counting (BM25's k1)")
    b = settings.define("keyword.b", 0.4, "how much a record's length counts against it, 0 to 1 (BM25's b)")
    register(KeywordArm(k1, b))


@hookimpl
def prepare_store(db: sqlite3.Connection) -> None:
    from .schema import prepare

    prepare(db)


@hookimpl
def record_stored(db: sqlite3.Connection) -> None:
    from .measures import seal_if_long

    seal_if_long(db)
