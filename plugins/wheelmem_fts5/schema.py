"""The index over ``records``, and what keeps it right whoever changes a row."""

from __future__ import annotations

import sqlite3

__all__ = ["INDEX", "TERMS", "TOKENIZER", "prepare"]

INDEX = "records_fts"
# Every occurrence of every word, as the index has it. The prefix keeps these tables out of Datasette's list.
TERMS = "records_fts_terms"
TOKENIZER = "porter unicode61 remove_diacritics 2"

_TABLES = (
    # Datasette and sqlite-utils know a table's index by content="…", in these very quotes.
    f'CREATE VIRTUAL TABLE {INDEX} USING fts5 (text, content="records", content_rowid="record_id", tokenize=\'{TOKENIZER}\')',
    f"CREATE VIRTUAL TABLE {TERMS} USING fts5vocab ({INDEX}, instance)",
    # Where each record has its home and how long it is, as it was when last sealed: see measures.py.
    "CREATE TABLE records_fts_blocks (kind INTEGER NOT NULL, block INTEGER NOT NULL, homes BLOB NOT NULL, lengths BLOB NOT NULL, "
    "PRIMARY KEY (kind, block))",
    "CREATE TABLE records_fts_seal (stamp BLOB NOT NULL, counts BLOB NOT NULL, totals BLOB NOT NULL)",
    # The records that have changed since.
    "CREATE TABLE records_fts_changed (seq INTEGER PRIMARY KEY, record_id INTEGER NOT NULL)",
)


# An index without content of its own must be told the old text to take it out. These triggers use plain inserts and never
# meet a conflict, since a statement's OR IGNORE, OR REPLACE or OR FAIL holds for the statements in its triggers too.
def _triggers() -> list[str]:
    put = f"INSERT INTO {INDEX} (rowid, text) VALUES (NEW.record_id, NEW.text)"
    take = f"INSERT INTO {INDEX} ({INDEX}, rowid, text) VALUES ('delete', OLD.record_id, OLD.text)"
    new, old = (f"INSERT INTO records_fts_changed (record_id) VALUES ({row}.record_id)" for row in ("NEW", "OLD"))
    return [
        f"CREATE TRIGGER records_fts_insert AFTER INSERT ON records BEGIN {put}; {new}; END",
        f"CREATE TRIGGER records_fts_delete AFTER DELETE ON records BEGIN {take}; {old}; END",
        f"CREATE TRIGGER records_fts_update AFTER UPDATE OF record_id, text, home ON records "
        f"BEGIN {take}; {put}; {old}; {new}; END",
    ]


def prepare(db: sqlite3.Connection) -> None:
    """Make the index where there is none, from the records there are; seal what has changed a lot since it was sealed."""
    from .measures import seal, seal_if_long

    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (INDEX,)).fetchone():
        seal_if_long(db)
        return
    for statement in (*_TABLES, *_triggers()):
        db.execute(statement)
    db.execute(f"INSERT INTO {INDEX} ({INDEX}) VALUES ('rebuild')")
    db.execute("INSERT INTO records_fts_changed (record_id) SELECT record_id FROM records ORDER BY record_id")
    seal(db)
