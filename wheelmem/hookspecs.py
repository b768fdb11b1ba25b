"""The hooks a plugin may implement, marked ``hookspec`` here and ``hookimpl`` there, both named ``wheelmem``.

A plugin is a module (or an object) that a distribution names in the entry-point group ``wheelmem``, or a single file in
the folder given with ``--plugins-dir``. It implements the hooks it wants::

    from wheelmem import hookimpl

    @hookimpl
    def register_arms(register, settings):
        register(MyArm())

A hook that raises is reported by the plugin's name, and costs that plugin's part only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pluggy import HookimplMarker, HookspecMarker

from .contract import ProviderAnswer, ProviderStatus, Question, Reach

if TYPE_CHECKING:
    from click import Group

    from .settings import Settings

hookspec = HookspecMarker("wheelmem")
hookimpl = HookimplMarker("wheelmem")


# --- what a plugin registers ---------------------------------------------------------------------------------------


@runtime_checkable
class ArmReach(Protocol):
    """The reach an arm must keep to, as it stands in the read transaction the arm is given.

    ``places`` are the integer keys (``places.place``) of the ceremonies and chronicles whose records are reached, in
    rising order; ``conclusions`` the ids in ``records`` of the confirmed conclusions whose every source is reached. A
    record is in reach when its ``home`` or one of its places in ``also_in`` is such a place, or it is such a conclusion.
    Arms that would rather join use the TEMP tables ``reach_ceremonies(id)`` and ``reach_records(record_id)``, which are made
    when a statement first mentions them. Use ``db`` in the thread that called, and no other.
    """

    reach: Reach
    places: Sequence[int]
    conclusions: frozenset[int]


class FoundRecord(Protocol):
    """What earlier arms found, fused, best first: handed to arms of stage ``follow`` (what the finders found) and of stage
    ``favour`` (what both found). ``arm`` is the first of those that found it."""

    record_id: int
    score: float
    arm: str


class Arm(Protocol):
    """A way to find records within a reach.

    ``name`` is what ``--arm`` and the settings call it; ``stage`` is ``find`` (from the question alone), ``follow`` (from
    what the finders found) or ``favour`` (some of what was found counts for more).

    The scores of finders and followers may be on any scale: the host takes them as shares of the arm's best. Those of a
    ``favour`` arm are on the scale of the scores it was handed, and are added to them; it adds no records. An arm may have a
    ``weight``, what it counts when neither the settings nor a classifier say otherwise (1.0), and a ``most``, how many
    records it may bring (100).
    """

    name: str
    stage: str

    def retrieve(
        self,
        db: sqlite3.Connection,
        question: Question,
        reach: ArmReach,
        found: Sequence[FoundRecord],
        limit: int,
    ) -> Iterable[tuple[int, float, str | None]]:
        """Yield ``(record id, score, path or None)``, best first, at most ``limit``; the higher the score the better.

        ``record id`` is the integer key of ``records``; ``path`` says how the record was reached, for ``--explain``.
        ``db`` is a connection inside one read transaction; only read, write nothing but TEMP tables, and keep nothing
        from it. When ``question.person`` is set, only records whose speaker is exactly that id are wanted, while
        statistics are still those of the whole reach. No score may depend on a record outside the reach, on a clock, or
        on which other rows happen to lie in memory. Records outside the reach are dropped by the host, with a warning.

        An arm may also have ``ready(db) -> str | None``: None when it can be asked, else why not, in a few words; an arm
        that is not ready is passed over without a note. One with ``take_embedders(embedders)`` is told a function that
        gives the embedders plugins register.
        """
        ...


class Provider(Protocol):
    """Who keeps and reasons over memory outside the wheel.

    Beside these, a provider may have ``about(question) -> ProviderAnswer`` and ``receive(projections)``, which takes what
    the wheel recorded, in batches, and answers for each ``sent``, ``wait`` or ``refused``. All are coroutines. A
    provider that cannot answer raises; the message of the error becomes part of the answer's note, so it must hold
    nothing secret.
    """

    name: str

    async def status(self) -> ProviderStatus: ...

    async def ask(self, question: Question) -> ProviderAnswer: ...

    async def search(self, question: Question) -> ProviderAnswer: ...


class Classifier(Protocol):
    """Tells what a question needs, or where a captured record goes; has ``weigh``, ``route``, or both.

    ``weigh(question) -> Mapping[str, float] | None``: a factor for each arm it names (1.0 leaves an arm as it is), or
    None when it has nothing to say. ``route(record) -> list of {"store", "content"} | None`` for one line of an agent's
    log: the stores (SEMANTIC, PROCEDURAL, EPISODIC) it goes to with the content that lands there; an empty list drops
    it; None says nothing. The first classifier that has something to say decides.
    """

    name: str


class Embedder(Protocol):
    """Text to vectors. ``model`` names what made them, ``dimension`` is their length; ``embed`` gives one vector a text."""

    name: str
    model: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class Policy(Protocol):
    """Who may name which scope, for the doors that have callers.

    ``confine(actor, wheel)`` is a coroutine: None when this actor may name any scope, else the scope beyond which
    nothing may be shown to them. ``wheel`` answers as the object given to ``create_memory`` does.
    """

    name: str

    def confine(self, actor: Mapping[str, Any] | None, wheel: Any) -> Awaitable[Any]: ...


# --- the hooks -----------------------------------------------------------------------------------------------------


@hookspec
def register_providers(register: Callable[[Provider], None], settings: Settings) -> None:
    """Register providers: who keeps and reasons over memory. They are asked in the order of the setting ``providers``,
    then of registration."""


@hookspec
def register_arms(register: Callable[[Arm], None], settings: Settings) -> None:
    """Register arms: ways to find records within a reach."""


@hookspec
def register_classifiers(register: Callable[[Classifier], None], settings: Settings) -> None:
    """Register classifiers: what a question needs, where a captured record goes."""


@hookspec
def register_embedders(register: Callable[[Embedder], None], settings: Settings) -> None:
    """Register embedders: text to vectors, for the vector arm."""


@hookspec
def register_policies(register: Callable[[Policy], None], settings: Settings) -> None:
    """Register policies: who may name which scope, for the doors that have callers."""


@hookspec
def register_commands(cli: Group) -> None:
    """Add commands to the ``wheelmem`` command line; ``cli`` is its click group."""


@hookspec
def prepare_store(db: sqlite3.Connection) -> None:
    """Create the tables, indexes and triggers the plugin needs, on a connection that may write.

    Called when a wheel is opened with a set of plugins it has not been opened with before, inside a transaction of its
    own: it must do nothing the second time (``CREATE … IF NOT EXISTS``). Triggers must need no Python function, so that
    a row changed with any SQLite tool is right in the next search.
    """


@hookspec
def record_stored(db: sqlite3.Connection, kind: str, id: str) -> None:
    """A record (``ceremony``, ``beat``, ``diary``, ``node``, ``edge``) was stored through the wheel.

    Called inside the transaction that stored it, in a savepoint of its own: raising undoes what this plugin did, is
    reported, and the record stands.

    An import calls it for each record of a transaction, once all of them are stored. An implementation that asks for
    neither ``kind`` nor ``id`` has nothing to tell them apart by, and is called once for them all.
    """
