"""The vector arm: records whose meaning is near the question's, by vectors kept in the wheel's own file.

Off until it is set up: set ``vector.model`` (a model2vec folder or name) or ``vector.url`` with ``vector.model`` (any server
with ``/v1/embeddings``), then run ``wheelmem embed``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wheelmem.hookspecs import hookimpl

if TYPE_CHECKING:
    from wheelmem.settings import Settings


def _define(settings: Settings) -> None:
    for name, default, help in (
        ("vector.model", "", "the embedding model: a model2vec folder or name, or a server's name for it; empty means none"),
        ("vector.embedder", "", "the embedder by name; empty means openai when vector.url is set, else model2vec"),
        ("vector.url", "", "base address of a server with /v1/embeddings, such as http://localhost:11434"),
        ("vector.timeout", 4.0, "seconds that server may take to embed a question; ten times as long to embed records"),
    ):
        settings.define(name, default, help)
    settings.define("vector.key", "", "sent to that server as a bearer token", secret=True)


@hookimpl
def register_arms(register: Callable[[Any], None], settings: Settings) -> None:
    from .arm import VectorArm

    _define(settings)
    register(VectorArm(settings))


@hookimpl
def register_embedders(register: Callable[[Any], None], settings: Settings) -> None:
    from .embedders import Model2VecEmbedder, OpenAIEmbedder

    _define(settings)
    register(Model2VecEmbedder(settings["vector.model"]))
    register(OpenAIEmbedder(settings["vector.url"], settings["vector.model"], settings["vector.key"], settings["vector.timeout"]))


@hookimpl
def register_commands(cli: Any) -> None:
    """``wheelmem embed``."""
    from .commands import embed

    cli.add_command(embed)


@hookimpl
def prepare_store(db: sqlite3.Connection) -> None:
    from .schema import prepare

    prepare(db)
