"""``wheelmem embed``: fill the wheel with vectors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from wheelmem.cli.app import wheel_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmem.hookspecs import Embedder
    from wheelmem.store import Wheel

__all__ = ["embed", "embed_wheel"]


@click.command()
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, for programs.")
@click.pass_obj
def embed(app: Any, as_json: bool) -> None:
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
    wheel = app.wheel()
    if hasattr(embedder, "fetch"):
        embedder.fetch()
    model, dimension = embedder.model, embedder.dimension
    bar: Any = None
    made = 0

    def progress(done: int, total: int) -> None:
        nonlocal bar, made
        made += done
        if bar is None and not as_json:
            bar = click.progressbar(length=total, label="embedding", file=sys.stderr)
            bar.__enter__()
        if bar is not None:
            bar.update(done)

    try:
        embed_wheel(wheel, embedder, progress)
    except (KeyboardInterrupt, WheelmemError):
        if bar is not None:
            bar.__exit__(None, None, None)
            bar = None
        if made:
            click.echo(f"stopped; {made:,} record(s) are embedded, and wheelmem embed goes on from there", err=True)
        raise
    finally:
        if bar is not None:
            bar.__exit__(None, None, None)
    if as_json:
        from json import dumps

        click.echo(dumps({"model": model, "dimension": dimension, "embedded": made}, ensure_ascii=False, indent=2))
    else:
        click.echo(f"{made:,} record(s) embedded with {model}" if made else f"every record is embedded with {model}")


def embed_wheel(wheel: Wheel, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> int:
    """Embed what is missing, a block at a time, each in a transaction of its own; returns how many vectors were made.

    ``progress`` is told, once that many more are kept, how many, and how many there are to make in all.
    """
    import json

    from wheelmem.contract import WheelmemError

    from .store import hash_of, keep, missing, text_of, vectors_of

    model, dimension = embedder.model, embedder.dimension
    blocks, total = wheel.read(lambda db: missing(db, model, dimension))
    made = 0
    for number, block in enumerate(blocks):
        texts: list[tuple[int, str]] = wheel.read(
            lambda db, block=block: db.execute(  # type: ignore[misc]
                "SELECT record_id, text FROM records WHERE record_id IN (SELECT value FROM json_each(?))",
                (json.dumps(block.records),),
            ).fetchall()
        )
        embedded: dict[int, tuple[bytes, Any]] = {}
        if texts:
            vectors = vectors_of(embedder, [text for _, text in texts])
            if vectors.shape[1] != dimension:
                raise WheelmemError(f"embedder {embedder.name} gave vectors of {vectors.shape[1]} numbers, not of {dimension}")
            embedded = {id: (hash_of(text_of(text)), vector) for (id, text), vector in zip(texts, vectors, strict=True)}
        made += wheel.write(
            lambda db, number=number, block=block, embedded=embedded: keep(  # type: ignore[misc]
                db, model, dimension, block.block, embedded, first=number == 0
            )
        )
        if progress is not None and texts:
            progress(len(texts), total)
    return made
