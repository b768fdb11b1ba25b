"""``wheelmem embed``: fill the wheel with vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmem.hookspecs import Embedder
    from wheelmem.store import Wheel

__all__ = ["embed", "embed_wheel"]


@click.command()
@click.pass_obj
def embed(app: Any) -> None:
    """Make the vectors that the vector arm needs, for records that are new or have changed.

    May be stopped at any moment, and goes on from there when it is run again. Set vector.model first: a model2vec folder or
    name, or, with vector.url, the name of a model on a server with /v1/embeddings.
    """
    from wheelmem.contract import WheelmemError

    from .arm import chosen

    embedder = chosen(app.settings, app.plugins.items("register_embedders", app.settings))
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise WheelmemError('numpy is not installed; run: pip install "wheelmem[vector]"') from None
    model = embedder.model
    wheel = app.wheel()
    bar: Any = None

    def progress(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = click.progressbar(length=total, label="embedding")
            bar.__enter__()
        bar.update(done)

    try:
        made = embed_wheel(wheel, embedder, progress)
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
    click.echo(f"{made:,} record(s) embedded with {model}" if made else f"every record is embedded with {model}")


def embed_wheel(wheel: Wheel, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
    """Embed what is missing, a block at a time, each in a transaction of its own; returns how many vectors were made.

    ``progress`` is told (how many more are done, how many there are in all).
    """
    import json

    from .store import hash_of, keep, missing, text_of, unit

    model = embedder.model
    blocks, total = wheel.read(lambda db: missing(db, model))
    made = 0
    for number, block in enumerate(blocks):
        texts: list[tuple[int, str]] = wheel.read(
            lambda db, block=block: db.execute(  # type: ignore[misc]
                "SELECT record_id, text FROM records WHERE record_id IN (SELECT value FROM json_each(?))",
                (json.dumps(block.records),),
            ).fetchall()
        )
        said = [(id, text_of(text)) for id, text in texts]
        vectors: Any = unit(embedder.embed([text for _, text in said])) if said else []
        embedded = {id: (hash_of(text), vector) for (id, text), vector in zip(said, vectors, strict=True)}
        dimension = len(vectors[0]) if len(vectors) else embedder.dimension
        made += wheel.write(
            lambda db, number=number, block=block, dimension=dimension, embedded=embedded: keep(  # type: ignore[misc]
                db, model, dimension, block.block, embedded, first=number == 0
            )
        )
        if progress is not None and total:
            progress(len(said), total)
    return made
