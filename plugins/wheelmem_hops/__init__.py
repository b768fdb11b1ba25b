"""The hops arm: from what was found, along the wheel's own relations, never out of the reach."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wheelmem.hookspecs import hookimpl

if TYPE_CHECKING:
    from wheelmem.settings import Settings

# Relation → (weight, what leads where). ``before`` to ``answer`` weigh lent words, the others what a found record passes on.
RELATIONS = {
    "before": (0.5, "a turn's words, for the turn after it"),
    "after": (0.4, "a turn's words, for the turn before it"),
    "answer": (1.0, "the words of a turn that asks, for the turn after it"),
    "closing": (0.5, "a ceremony and its closing"),
    "diary": (0.5, "a turn and a diary entry of the same ceremony and day"),
    "witness": (0.5, "a turn and the next one by somebody who witnessed it"),
    "part": (0.5, "a turn and the turns it is made up of"),
    "honoured": (0.3, "turns that honour the same relation"),
    "named": (0.3, "a record and those by or about who, or what, it names"),
    "edge": (0.3, "an edge laid down in a ceremony of the reach"),
}


@hookimpl
def register_arms(register: Callable[[Any], None], settings: Settings) -> None:
    from .arm import HopsArm

    register(
        HopsArm(
            depth=settings.define("hops.depth", 2, "how many relations are followed, one after another"),
            decay=settings.define("hops.decay", 0.7, "what each step further keeps, 0 to 1"),
            turns=settings.define("hops.turns", 5, "how many turns each way a turn lends its words"),
            asking=settings.define("hops.asking", 0.75, "what a turn keeps that itself asks, 0 to 1"),
            weights={
                name: settings.define(f"hops.{name}", weight, f"what a relation passes on: {what}")
                for name, (weight, what) in RELATIONS.items()
            },
        )
    )


@hookimpl
def prepare_store(db: sqlite3.Connection) -> None:
    from .schema import prepare

    prepare(db)
