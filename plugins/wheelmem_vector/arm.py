"""The arm: exact search over the vectors of a reach, with numpy."""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from wheelmem.contract import Question, WheelmemError
from wheelmem.hookspecs import ArmReach, Embedder

from .schema import BLOCKS
from .store import held_model, vectors_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wheelmem.settings import Settings

__all__ = ["VectorArm", "chosen"]

# Question vectors kept, since a server takes its time.
ASKED = 128


def chosen(settings: Settings, embedders: Iterable[Embedder]) -> Embedder:
    """The embedder that the settings name; raises WheelmemError when there is none."""
    wanted = settings["vector.embedder"] or ("openai" if settings["vector.url"] else "model2vec")
    by_name = {embedder.name: embedder for embedder in embedders}
    if wanted not in by_name:
        raise WheelmemError(f"no embedder is named {wanted!r}; there are: {', '.join(sorted(by_name)) or 'none'}")
    return by_name[wanted]


class VectorArm:
    """Records whose vector points where the question's does. Scores are cosines, to the sixth digit; only those above zero."""

    name = "vector"
    stage = "find"
    # A model tells less than the words where there are words (measured beside hops), and what it tells fades slowly.
    weight = 1.8
    most = 200

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
        try:
            embedder = self.embedder()
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (BLOCKS,)).fetchone():
                return "the wheel has no place for vectors, and could not be given one; open it once where it can be written"
            held = held_model(db)
            if held is None:
                return "nothing is embedded yet; run wheelmem embed"
            # Only now, when there is something to search: it may mean loading a model.
            import numpy  # noqa: F401

            model = embedder.model
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

        from .search import held

        vectors, allowed = held(db, reach)
        if not len(vectors):
            return []
        asked = self._vector(question.query)
        if len(asked) != vectors.dimension:
            raise WheelmemError("the question's vector has another length than the wheel's; run wheelmem embed")
        near = vectors.near(db, asked)
        if question.person is not None:
            theirs = [id for (id,) in db.execute("SELECT record_id FROM records WHERE speaker = ?", (question.person,))]
            allowed = allowed & np.isin(vectors.ids, np.asarray(theirs, dtype=np.int64))
        places = np.flatnonzero(allowed & (near > -vectors.slack))
        if len(places) > limit:
            least = np.partition(near[places], len(places) - limit)[len(places) - limit]
            places = places[near[places] >= least - 2 * vectors.slack]
        scores = dict(zip(vectors.ids[places].tolist(), vectors.scores(places, asked), strict=True))
        return [(id, score, None) for id, score in _ranked(db, scores)][:limit]

    def _vector(self, text: str) -> NDArray[np.float64]:
        embedder = self.embedder()
        key = (embedder.model, text)
        with self._lock:
            if key in self._asked:
                self._asked.move_to_end(key)
                return self._asked[key]
        vector: NDArray[np.float64] = vectors_of(embedder, [text])[0]
        with self._lock:
            self._asked[key] = vector
            if len(self._asked) > ASKED:
                self._asked.popitem(last=False)
        return vector


def _ranked(db: sqlite3.Connection, scores: dict[int, float]) -> list[tuple[int, float]]:
    order = db.execute(
        "SELECT r.record_id FROM json_each(?) wanted JOIN records r ON r.record_id = wanted.value "
        "ORDER BY r.instant DESC NULLS LAST, r.kind, r.wheel_id",
        (json.dumps(list(scores)),),
    )
    ranked = [(id, scores[id]) for (id,) in order if scores[id] > 0]
    ranked.sort(key=lambda item: -item[1])
    return ranked
