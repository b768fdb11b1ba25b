"""Counts how often records of each kind were kept, and shows it: `wheelmem kept`."""

import click

from wheelmem import hookimpl


@hookimpl
def prepare_store(db):
    db.execute("CREATE TABLE IF NOT EXISTS kept (kind TEXT PRIMARY KEY, times INTEGER NOT NULL)")


@hookimpl
def record_stored(db, kind, id):
    db.execute("INSERT INTO kept VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1", (kind,))


@hookimpl
def register_commands(cli):
    @cli.command()
    @click.pass_obj
    def kept(app):
        """How often records of each kind were kept."""
        for kind, times in app.wheel().read(lambda db: db.execute("SELECT * FROM kept ORDER BY kind").fetchall()):
            click.echo(f"{kind} {times}")
