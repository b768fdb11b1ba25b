"""The arm: exact search over the vectors of a reach, with numpy."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any

from wheelmem_fts5.within import within

from wheelmem.contract import Question, WheelmemError
from wheelmem.hookspecs import ArmReach, Embedder

from .schema import BLOCKS
from .store import held_model, ids_of, stale, text_of, unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wheelmem.settings import Settings

__all__ = ["VectorArm", "chosen"]

# The documented digit: scores are rounded to it.
DIGITS = 6
# More than the product in single precision can be off, for vectors of length one and any dimension in use.
SLACK = 1e-4
# Matrices of the process, by what is in them; a search in the same reach finds its own again.
KEPT = 2
# Question vectors kept, since a server takes its time.
ASKED = 128


def chosen(settings: Settings, embedders: Iterable[Embedder]) -> Embedder:
    """The embedder that the settings name; raises WheelmemError when there is none."""
    wanted = settings["vector.embedder"] or ("openai" if settings["vector.url"] else "model2vec")
    by_name = {embedder.name: embedder for embedder in embedders}
    if wanted not in by_name:
        raise WheelmemError(f"no embedder is named {wanted!r}; there are: {', '.join(sorted(by_name)) or 'none'}")
    return by_name[wanted]


@dataclass(frozen=True)
class _Held:
    """The vectors of a reach: record ids, and a row of single precision for each."""

    ids: NDArray[np.int64]
    rows: NDArray[np.float32]


class VectorArm:
    """Records whose vector points where the question's does. Scores are cosines, to the sixth digit; only those above zero."""

    name = "vector"
    stage = "find"
    # A model tells less than the words where there are words: measured beside hops.
    weight = 1.2

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._embedders: Callable[[], Sequence[Embedder]] = list
        self._embedder: Embedder | None = None
        self._asked: OrderedDict[tuple[str, str], NDArray[np.float64]] = OrderedDict()
        self._lock = Lock()

    def take_embedders(self, embedders: Callable[[], Sequence[Embedder]]) -> None:
        """Told by the host: a function that gives the embedders that plugins register."""
        self._embedders = embedders

    def embedder(self) -> Embedder:
        """The embedder that the settings name, the same one every time."""
        if self._embedder is None:
            self._embedder = chosen(self._settings, self._embedders())
        return self._embedder

    def ready(self, db: sqlite3.Connection) -> str | None:
        """None when a model is set up and has embedded this wheel."""
        if not self._settings["vector.model"] and not self._settings["vector.embedder"]:
            return "no embedding model is set; set vector.model, then run wheelmem embed"
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (BLOCKS,)).fetchone():
            return "the wheel has no place for vectors, and could not be given one; open it once where it can be written"
        held = held_model(db)
        if held is None:
            return "nothing is embedded yet; run wheelmem embed"
        try:
            model = self.embedder().model
            import numpy  # noqa: F401
        except ImportError:
            return 'numpy is not installed; run: pip install "wheelmem[vector]"'
        except WheelmemError as error:
            return str(error)
        if held[0] != model:
            return f"the wheel's vectors are those of {held[0]}, not of {model}; run wheelmem embed"
        return None

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: ArmReach, found: Sequence[Any], limit: int
    ) -> Iterable[tuple[int, float, str | None]]:
        """At most ``limit`` records, best first; equal scores by the later instant, then kind, then id."""
        import numpy as np

        held = _held(db, reach)
        if not len(held.ids):
            return []
        asked = self._vector(question.query)
        if asked.shape[0] != held.rows.shape[1]:
            raise WheelmemError("the question's vector has another length than the wheel's; run wheelmem embed")
        near: NDArray[np.float32] = held.rows @ asked.astype(np.float32)
        # The product finds who is near; how near exactly is told row by row, so that no other row has a part in it.
        allowed = np.ones(len(held.ids), dtype=bool)
        if question.person is not None:
            theirs = [id for (id,) in db.execute("SELECT record_id FROM records WHERE speaker = ?", (question.person,))]
            allowed = np.isin(held.ids, np.asarray(theirs, dtype=np.int64))
        old = stale(db, held.ids.tolist() if _any_changed(db) else ())
        if old:
            allowed &= ~np.isin(held.ids, np.asarray(sorted(old), dtype=np.int64))
        places = np.flatnonzero(allowed & (near > -SLACK))
        if len(places) > limit:
            least = np.partition(near[places], len(places) - limit)[len(places) - limit]
            places = places[near[places] >= least - 2 * SLACK]
        scores = {int(held.ids[at]): _cosine(held.rows[at], asked) for at in places}
        return [(id, score, None) for id, score in _ranked(db, scores)][:limit]

    def _vector(self, text: str) -> NDArray[np.float64]:
        embedder = self.embedder()
        key = (embedder.model, text)
        with self._lock:
            if key in self._asked:
                self._asked.move_to_end(key)
                return self._asked[key]
        vector: NDArray[np.float64] = unit(embedder.embed([text_of(text)]))[0]
        with self._lock:
            self._asked[key] = vector
            if len(self._asked) > ASKED:
                self._asked.popitem(last=False)
        return vector


def _cosine(row: NDArray[np.float32], asked: NDArray[np.float64]) -> float:
    """The product of two vectors, summed exactly, to the documented digit."""
    return round(math.fsum((row.astype(asked.dtype) * asked).tolist()), DIGITS)


def _any_changed(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM vector_changed LIMIT 1").fetchone() is not None


def _ranked(db: sqlite3.Connection, scores: dict[int, float]) -> list[tuple[int, float]]:
    order = db.execute(
        "SELECT r.record_id FROM json_each(?) wanted JOIN records r ON r.record_id = wanted.value "
        "ORDER BY r.instant DESC NULLS LAST, r.kind, r.wheel_id",
        (json.dumps(list(scores)),),
    )
    ranked = [(id, scores[id]) for (id,) in order if scores[id] > 0]
    ranked.sort(key=lambda item: -item[1])
    return ranked


# --- the vectors of a reach, held in memory --------------------------------------------------------------------------

_matrices: OrderedDict[bytes, _Held] = OrderedDict()
_holding = Lock()


def _held(db: sqlite3.Connection, reach: ArmReach) -> _Held:
    cache: dict[Any, Any] = getattr(db, "cache", {})
    key = ("vector.held", tuple(reach.places), reach.conclusions)
    found: _Held | None = cache.get(key)
    if found is None:
        for old in [old for old in cache if isinstance(old, tuple) and old[0] == "vector.held"]:
            del cache[old]
        found = cache[key] = _find(db, reach)
    return found


def _find(db: sqlite3.Connection, reach: ArmReach) -> _Held:
    """The matrix of a reach: from the process's own, when every block it is made of is as it was, else read."""
    import numpy as np

    inside = within(db, reach)
    wanted: dict[int, list[int]] = {}
    known = blake2b(digest_size=16)
    for block, stamp, ids in db.execute(f"SELECT block, stamp, ids FROM {BLOCKS} ORDER BY block"):
        of_block = ids_of(block, ids)
        # A vector may be left of a record that is gone, so each is looked up, not indexed.
        places = [at for at, id in enumerate(of_block) if id in inside]
        if places:
            wanted[block] = places
            known.update(stamp)
            known.update(np.asarray([block, *places], dtype=np.int64).tobytes())
    name = known.digest()
    with _holding:
        if name in _matrices:
            _matrices.move_to_end(name)
            return _matrices[name]
    held = _read(db, wanted)
    with _holding:
        _matrices[name] = held
        while len(_matrices) > KEPT:
            _matrices.popitem(last=False)
    return held


def _read(db: sqlite3.Connection, wanted: dict[int, list[int]]) -> _Held:
    import numpy as np

    model = held_model(db)
    dimension = model[1] if model else 0
    total = sum(map(len, wanted.values()))
    ids = np.empty(total, dtype=np.int64)
    rows = np.empty((total, dimension), dtype=np.float32)
    at = 0
    for block, places in wanted.items():
        id_bytes, blob = db.execute(f"SELECT ids, vectors FROM {BLOCKS} WHERE block = ?", (block,)).fetchone()
        vectors = np.frombuffer(blob, dtype="<f2").reshape(-1, dimension)
        end = at + len(places)
        whole = len(places) == len(vectors)
        rows[at:end] = vectors if whole else vectors[places]
        ids[at:end] = np.asarray(ids_of(block, id_bytes), dtype=np.int64)[places]
        at = end
    return _Held(ids, rows)
