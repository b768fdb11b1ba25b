"""What the wheel's own tables have no index for: which turn is part of which, and what each honours."""

from __future__ import annotations

import sqlite3

__all__ = ["LINKS", "prepare"]

LINKS = "hops_links"


def _targets(column: str, found: str) -> str:
    """The texts of a JSON list, or one bare text, in a column of the row ``b`` (``extra`` for what has no column)."""
    return (
        f"json_each(CASE WHEN {column} IS NULL OR {column} = '' THEN '[]' "
        f"WHEN NOT json_valid({column}) THEN json_array({column}) "
        f"WHEN json_type({column}{found}) = 'array' THEN json_extract({column}{found}) "
        f"WHEN json_type({column}{found}) = 'text' THEN json_array(json_extract({column}{found})) ELSE '[]' END)"
    )


def _rows(where: str) -> str:
    """The links of beats ``b``: (record, how it is linked, to what)."""

    def one(link: str, targets: str) -> str:
        return (
            f"SELECT b.position * 8 + 1, '{link}', CAST(t.value AS TEXT) FROM beats b, {targets} t "
            f"WHERE {where} AND t.type = 'text' AND t.value <> ''"
        )

    extra = "(CASE WHEN json_valid(b.extra) THEN b.extra END)"
    return " UNION ALL ".join(
        (
            one("honours", _targets("b.relations_honored", ", '$'")),
            one("part of", _targets(extra, ", '$.parent_beat_id'")),
            one("whole of", _targets(extra, ", '$.sub_beats'")),
        )
    )


def prepare(db: sqlite3.Connection) -> None:
    """Make the table and its triggers where there are none, from the turns there are.

    The triggers hang on ``records``, which is rewritten whenever a turn's row changes, whatever changed it; they meet no
    conflict, since a statement's OR IGNORE or OR REPLACE would hold for them too.
    """
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (LINKS,)).fetchone():
        return
    db.execute(f"CREATE TABLE {LINKS} (record_id INTEGER NOT NULL, link TEXT NOT NULL, target TEXT NOT NULL)")
    db.execute(f"CREATE INDEX {LINKS}_target ON {LINKS} (target, link)")
    db.execute(f"CREATE INDEX {LINKS}_record ON {LINKS} (record_id)")
    take = f"DELETE FROM {LINKS} WHERE record_id = "
    put = f"INSERT INTO {LINKS} (record_id, link, target) {_rows('b.position = NEW.record_id / 8')}"
    beat = "kind = 'beat'"
    db.execute(
        f"CREATE TRIGGER {LINKS}_insert AFTER INSERT ON records WHEN NEW.{beat} BEGIN {take} NEW.record_id; {put}; END"
    )
    db.execute(
        f"CREATE TRIGGER {LINKS}_update AFTER UPDATE OF record_id ON records WHEN NEW.{beat} "
        f"BEGIN {take} OLD.record_id; {take} NEW.record_id; {put}; END"
    )
    db.execute(f"CREATE TRIGGER {LINKS}_delete AFTER DELETE ON records WHEN OLD.{beat} BEGIN {take} OLD.record_id; END")
    db.execute(f"INSERT INTO {LINKS} (record_id, link, target) {_rows('1')}")
