"""The tables of a wheel, and the triggers that derive everything else from five of them.

The triggers need no Python function, so a row changed with any SQLite tool is right in the next search. Three rules keep
them right under every conflict clause:

- A statement's ``OR REPLACE`` deletes rows without firing delete triggers, and its policy overrides that of the statements
  in a trigger. So what is derived from a row is looked up and taken away by the row's id and by its position, after the
  row itself is in place, and is then put in with plain inserts that meet no conflict.
- ``OR IGNORE`` fires BEFORE triggers for rows that never arrive. So there are no BEFORE triggers.
- A bulk import sets ``deriving.paused`` inside its transaction, derives all of its rows at once with the very same
  expressions, and takes the flag back before it commits.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from ..contract import WheelmemError
from . import outbox
from .rows import TABLES, Table

__all__ = ["APPLICATION_ID", "CODES", "SCHEMA_VERSION", "StoreError", "check", "derive", "migrate"]

APPLICATION_ID = 0x77686C6D  # "whlm"
SCHEMA_VERSION = 1
# A record's key is its row's position and its kind in one number, so that it never changes while the row stays.
CODES = {"ceremony": 0, "beat": 1, "diary": 2, "conclusion": 3}


class StoreError(WheelmemError):
    """A file that cannot be opened as a wheel, or a wheel that cannot be written; says which and why."""


def _listed(column: str) -> str:
    """A JSON list column as ``json_each`` reads it, also when it holds one bare string, or text that is no JSON."""
    return (
        f"json_each(CASE WHEN {column} IS NULL OR {column} = '' THEN '[]' WHEN NOT json_valid({column}) THEN json_array({column}) "
        f"WHEN json_type({column}) = 'array' THEN {column} "
        f"WHEN json_type({column}) = 'text' THEN json_array(json_extract({column}, '$')) "
        f"WHEN json_type({column}) = 'null' THEN '[]' ELSE json_array(CAST({column} AS TEXT)) END)"
    )


def _inside(column: str, path: str) -> str:
    """A text inside a JSON object column, NULL where there is none or it is blank."""
    return (
        f"CASE WHEN json_valid({column}) THEN CASE WHEN json_type({column}, '{path}') = 'text' "
        f"THEN nullif(json_extract({column}, '{path}'), '') END END"
    )


def _joined(column: str, separator: str) -> str:
    """The items of a JSON list column, in its order, as one text; NULL when there are none."""
    return (
        f"CASE WHEN {column} <> '[]' THEN (SELECT group_concat(value, {separator}) FROM (SELECT value FROM {_listed(column)} "
        "WHERE value IS NOT NULL AND value <> '' ORDER BY key)) END"
    )


def _line(expression: str, label: str = "") -> str:
    return f"coalesce(char(10) || '{label}' || nullif({expression}, ''), '')"


def _instant(column: str) -> str:
    """Days as SQLite counts them, to the millisecond; NULL for what is no date. ('now' must not become a clock.)"""
    return f"CASE WHEN {column} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' THEN julianday({column}) END"


EPISODE = (
    "CASE WHEN {t}.episode_path <> '' THEN {t}.episode_path WHEN json_valid({t}.research_context) THEN coalesce("
    + ", ".join(
        f"CASE WHEN json_type({{t}}.research_context, '$.{key}') = 'text' "
        f"THEN nullif(json_extract({{t}}.research_context, '$.{key}'), '') END"
        for key in ("episode_path", "episodePath")
    )
    + ") END"
)
CLOSES = "CASE WHEN {t}.closes <> '' THEN {t}.closes WHEN {t}.type = 'closing' THEN {t}.research_context END"


def ceremony_text(t: str) -> str:
    closing = f"{t}.type = 'closing' AND EXISTS (SELECT 1 FROM ceremonies named WHERE named.id = {t}.research_context)"
    bare_id = f"{t}.research_context LIKE 'ceremony:%' AND instr({t}.research_context, ' ') = 0"
    context = f"CASE WHEN json_valid({t}.research_context) OR ({bare_id}) OR ({closing}) THEN NULL ELSE {t}.research_context END"
    return (
        f"'Ceremony:' || coalesce(' ' || nullif({t}.type, ''), '') || coalesce(' (' || nullif({t}.direction, '') || ')', '')"
        f" || {_line(_joined(f'{t}.participants', chr(39) + ', ' + chr(39)), 'Participants: ')}"
        f" || {_line(_joined(f'{t}.intentions', chr(39) + '; ' + chr(39)), 'Intentions: ')}"
        f" || {_line(context, 'Context: ')}"
    )


def beat_text(t: str) -> str:
    return (
        f"ltrim(coalesce('[' || nullif({t}.direction, '') || '] ', '') || coalesce({t}.title, '')"
        f" || {_line(f'{t}.description')}"
        f" || CASE WHEN {t}.prose IS {t}.description THEN '' ELSE {_line(f'{t}.prose')} END"
        f" || {_line(_joined(f'{t}.learnings', 'char(10)'))}, char(10))"
    )


def diary_text(t: str) -> str:
    phase, entry = f"nullif({t}.phase, '')", f'{t}."entryType"'
    return (
        f"coalesce('[' || {phase} || coalesce(' · ' || nullif({entry}, ''), '') || '] ', '[' || nullif({entry}, '') || '] ', '')"
        f" || coalesce({t}.content, '')"
    )


def _kind_rows(kind: str, t: str) -> tuple[str, str, str, str, str]:
    """For the row ``t`` of a kind: when it is a record at all, its speaker, text and instant, and its first place (a scalar)."""

    def place(kind: str, id: str) -> str:
        return f"(SELECT place FROM places WHERE places.kind = '{kind}' AND places.id = {id})"

    if kind == "ceremony":
        return "1", "'medicine-wheel'", ceremony_text(t), f"{t}.timestamp", place("ceremony", f"{t}.id")
    if kind == "beat":
        home = (
            f"(SELECT place FROM {_listed(f'{t}.ceremonies')} listed JOIN places ON places.kind = 'ceremony' "
            "AND places.id = CAST(listed.value AS TEXT) WHERE listed.value <> '' ORDER BY listed.key LIMIT 1)"
        )
        return "1", f"nullif({t}.speaker, '')", beat_text(t), f"{t}.timestamp", home
    if kind == "diary":
        ceremony = _inside(f"{t}.metadata", "$.ceremony_id")
        home = f"CASE WHEN {ceremony} IS NOT NULL THEN {place('ceremony', ceremony)} ELSE {place('chronicle', f'{t}.chronicle')} END"
        return "1", f"nullif({t}.participant, '')", diary_text(t), f"{t}.timestamp", home
    meta = f"{t}.metadata"
    confirmed = (
        f"{t}.type = 'knowledge' AND {_inside(meta, '$.kind')} = 'memory_projection' AND {_inside(meta, '$.status')} = 'confirmed'"
    )
    by = _inside(meta, "$.derived_by")
    return (
        confirmed,
        f"(SELECT id FROM nodes author WHERE author.id = {by})",
        f"coalesce({_inside(meta, '$.projection_kind')} || ': ', '') || coalesce({t}.description, '')",
        _inside(meta, "$.generated_at"),
        "NULL",
    )


def _named_places(kind: str, t: str, rows: str) -> list[str]:
    """Queries of (kind, id): every place that rows ``t`` name."""
    single = rows or "WHERE 1"
    if kind == "ceremony":
        return [f"SELECT 'ceremony' AS kind, {t}.id AS id {single}"]
    if kind == "beat":
        each = _with_list(rows, _listed(f"{t}.ceremonies"))
        return [f"SELECT DISTINCT 'ceremony' AS kind, CAST(listed.value AS TEXT) AS id {each} AND listed.value <> ''"]
    ceremony = _inside(f"{t}.metadata", "$.ceremony_id")
    return [
        f"SELECT DISTINCT 'ceremony' AS kind, {ceremony} AS id {single} AND {ceremony} IS NOT NULL",
        f"SELECT DISTINCT 'chronicle' AS kind, {t}.chronicle AS id {single} AND {ceremony} IS NULL AND {t}.chronicle <> ''",
    ]


def _with_list(rows: str, listed: str) -> str:
    """``rows`` (``FROM … t WHERE …``, or nothing for a trigger's own row) with each item of a list beside its row."""
    return rows.replace(" WHERE ", f", {listed} listed WHERE ") if rows else f"FROM {listed} listed WHERE 1"


def _key(kind: str, t: str) -> str:
    return f"{t}.position * 8 + {CODES[kind]}"


RECORD_COLUMNS = "record_id, kind, wheel_id, home, speaker, at, instant, text"


def _derivation(kind: str, t: str, rows: str = "") -> list[str]:
    """The statements that derive what follows from rows ``t`` of a kind that have nothing derived yet.

    In a trigger ``t`` is ``NEW`` and ``rows`` is empty; set-wise ``rows`` is the FROM and WHERE that give the rows.
    """
    where, speaker, text, at, home = _kind_rows(kind, t)
    statements = []
    if kind != "conclusion":
        statements += [
            f"INSERT INTO places (kind, id) SELECT kind, id FROM ({named}) wanted "
            "WHERE NOT EXISTS (SELECT 1 FROM places held WHERE held.kind = wanted.kind AND held.id = wanted.id)"
            for named in _named_places(kind, t, rows)
        ]
    statements.append(
        f"INSERT INTO records ({RECORD_COLUMNS}) SELECT {_key(kind, t)}, '{kind}', {t}.id, {home}, {speaker}, {at}, "
        f"{_instant(at)}, {text} {rows or 'WHERE 1'} AND {where}"
    )
    if kind == "beat":
        listed = _listed(f"{t}.ceremonies")
        statements.append(
            f"INSERT INTO also_in (record_id, place, ord) SELECT {_key(kind, t)}, places.place, min(listed.key) "
            + _with_list(rows, listed).replace(" WHERE ", " JOIN places ON places.kind = 'ceremony' AND places.id = CAST(listed.value AS TEXT) WHERE ")
            # Where nothing parts two items there is but one.
            + f" AND instr({t}.ceremonies, ',') > 0 AND listed.value <> '' GROUP BY {t}.position, places.place "
            f"HAVING min(listed.key) > (SELECT min(first.key) FROM {listed} first WHERE first.value <> '')"
        )
        statements.append(_link("beat_witnesses", "beat_id, witness, ord", f"{t}.id", f"{t}.witnesses", rows))
    if kind == "ceremony":
        statements.append(_link("ceremony_participants", "ceremony_id, participant, ord", f"{t}.id", f"{t}.participants", rows))
    if kind == "conclusion":
        sources = _listed(f"CASE WHEN json_valid({t}.metadata) THEN json_extract({t}.metadata, '$.source_event_ids') END")
        statements.append(
            f"INSERT INTO conclusion_sources (record_id, source_id) SELECT DISTINCT {_key(kind, t)}, CAST(listed.value AS TEXT) "
            f"{_with_list(rows, sources)} AND {where} AND listed.value IS NOT NULL"
        )
    return statements


def _link(table: str, columns: str, id: str, column: str, rows: str) -> str:
    listed = _listed(column)
    return (
        f"INSERT INTO {table} ({columns}) SELECT {id}, CAST(listed.value AS TEXT), min(listed.key) {_with_list(rows, listed)} "
        f"AND {column} <> '[]' AND listed.value <> '' GROUP BY {id}, listed.value"
    )


def _removal(kind: str, id: str, position: str) -> list[str]:
    """The statements that take away what was derived from the row with this id, or at this position."""
    statements = [
        f"DELETE FROM records WHERE wheel_id = {id} AND kind = '{kind}'",
        f"DELETE FROM records WHERE record_id = {position} * 8 + {CODES[kind]}",
    ]
    return statements


def _triggers() -> list[str]:
    made = []
    running = "(SELECT paused FROM deriving) = 0"

    def trigger(name: str, event: str, body: list[str], when: str = running) -> None:
        made.append(f"CREATE TRIGGER {name} AFTER {event} WHEN {when} BEGIN {'; '.join(body)}; END")

    for kind, table in (("ceremony", "ceremonies"), ("beat", "beats"), ("diary", "diary"), ("conclusion", "nodes")):
        taken = [*_removal(kind, "OLD.id", "OLD.position"), *_removal(kind, "NEW.id", "NEW.position")]
        # What a rename or a replacement leaves behind goes first; then the row is derived anew.
        trigger(f"{table}_derive_insert", f"INSERT ON {table}", _removal(kind, "NEW.id", "NEW.position") + _derivation(kind, "NEW"))
        trigger(f"{table}_derive_update", f"UPDATE ON {table}", taken + _derivation(kind, "NEW"))
        trigger(f"{table}_derive_delete", f"DELETE ON {table}", _removal(kind, "OLD.id", "OLD.position"), "1")
    # What hangs on a record goes with it, whoever takes the record away.
    made.append(
        "CREATE TRIGGER records_gone AFTER DELETE ON records BEGIN "
        "DELETE FROM also_in WHERE record_id = OLD.record_id; "
        "DELETE FROM ceremony_participants WHERE OLD.kind = 'ceremony' AND ceremony_id = OLD.wheel_id; "
        "DELETE FROM beat_witnesses WHERE OLD.kind = 'beat' AND beat_id = OLD.wheel_id; "
        "DELETE FROM conclusion_sources WHERE OLD.kind = 'conclusion' AND record_id = OLD.record_id; END"
    )
    # A closing's text says its context unless that is the id of a ceremony the wheel holds, so it follows arrivals and departures.
    for event, row in (("INSERT", "NEW"), ("DELETE", "OLD")):
        trigger(
            f"records_closing_{event.lower()}",
            f"{event} ON records",
            [
                f"UPDATE records SET text = (SELECT {ceremony_text('c')} FROM ceremonies c WHERE c.id = records.wheel_id) "
                "WHERE record_id IN (SELECT c.position * 8 FROM ceremonies c "
                f"WHERE c.type = 'closing' AND c.research_context = {row}.wheel_id)"
            ],
            f"{row}.kind = 'ceremony'",
        )
    # A conclusion's speaker is who derived it, while the wheel holds that node. A node may also go without a word, replaced by
    # another at its position; so what came in makes every such speaker be looked for again.
    # (An index on an expression serves only a value without a column's affinity, which the plus takes away.)
    derived_by = _inside("c.metadata", "$.derived_by")
    arrived = (
        "UPDATE records SET speaker = NEW.id WHERE kind = 'conclusion' AND record_id IN "
        f"(SELECT c.position * 8 + 3 FROM nodes c WHERE c.type = 'knowledge' AND {derived_by} = +NEW.id)"
    )
    vanished = (
        "UPDATE records SET speaker = NULL WHERE kind = 'conclusion' AND speaker IN (SELECT DISTINCT author.speaker FROM records author "
        "WHERE author.kind = 'conclusion' AND author.speaker IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = author.speaker))"
    )
    trigger("nodes_author_insert", "INSERT ON nodes", [arrived], "1")
    trigger("nodes_author_replace", "INSERT ON nodes", [vanished])
    trigger("nodes_author_update", "UPDATE OF id, position ON nodes", [arrived, vanished])
    trigger(
        "nodes_author_delete",
        "DELETE ON nodes",
        ["UPDATE records SET speaker = NULL WHERE kind = 'conclusion' AND speaker = OLD.id"],
        "1",
    )
    return made


TAKEN_AS_THEY_ARE = ("name", "speaker", "participant", "timestamp")


def _table_sql(table: Table) -> str:
    types = {"text": "TEXT", "context": "TEXT", "list": "TEXT", "object": "TEXT", "flag": "INTEGER", "number": ""}
    columns = []
    for name, kind in table.columns.items():
        column = f'"{name}" {types[kind]}'.strip() + (" NOT NULL" if name in table.key else "")
        # A BLOB is equal to no text; where it stood for an id, a name or a time, everything that reads these would trip over it.
        columns.append(f"{column} CHECK (typeof(\"{name}\") <> 'blob')" if name in (*table.key, *TAKEN_AS_THEY_ARE) else column)
    unique = f"UNIQUE ({', '.join(table.key)})"
    # Eight keys are made of each position, so it must leave room for them.
    position = "position INTEGER PRIMARY KEY CHECK (position BETWEEN -(1 << 59) AND 1 << 59)"
    return f"CREATE TABLE {table.name} ({position}, {', '.join(columns)}, extra TEXT, {unique})"


def _statements() -> list[str]:
    author = _inside("metadata", "$.derived_by")
    return [
        *(_table_sql(table) for table in TABLES.values()),
        "CREATE TABLE other_records (position INTEGER PRIMARY KEY, file TEXT NOT NULL, id TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (file, id))",
        "CREATE TABLE wheel (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
        "CREATE TABLE deriving (paused INTEGER NOT NULL)",
        "INSERT INTO deriving VALUES (0)",
        "CREATE TABLE imports (folder TEXT NOT NULL, file TEXT NOT NULL, stamp TEXT NOT NULL, offset INTEGER NOT NULL, line INTEGER NOT NULL, "
        "PRIMARY KEY (folder, file)) WITHOUT ROWID",
        "CREATE TABLE import_changes (folder TEXT NOT NULL, file TEXT NOT NULL, key TEXT NOT NULL, offset INTEGER NOT NULL, "
        "PRIMARY KEY (folder, file, offset), UNIQUE (folder, file, key)) WITHOUT ROWID",
        "CREATE TABLE import_quarantine (position INTEGER PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL, "
        "reason TEXT NOT NULL, UNIQUE (file, line, text))",
        "CREATE TABLE places (place INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, UNIQUE (kind, id))",
        "CREATE TABLE records (record_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, wheel_id TEXT NOT NULL, "
        "home INTEGER REFERENCES places (place), speaker TEXT, at TEXT, instant REAL, text TEXT NOT NULL, UNIQUE (wheel_id, kind))",
        "CREATE INDEX records_home ON records (home)",
        "CREATE INDEX records_speaker ON records (speaker) WHERE speaker IS NOT NULL",
        "CREATE INDEX records_author ON records (speaker) WHERE kind = 'conclusion' AND speaker IS NOT NULL",
        "CREATE TABLE also_in (record_id INTEGER NOT NULL REFERENCES records (record_id), place INTEGER NOT NULL REFERENCES places (place), "
        "ord INTEGER NOT NULL, PRIMARY KEY (record_id, place)) WITHOUT ROWID",
        "CREATE INDEX also_in_place ON also_in (place)",
        "CREATE TABLE ceremony_participants (ceremony_id TEXT NOT NULL REFERENCES ceremonies (id), participant TEXT NOT NULL, ord INTEGER NOT NULL, "
        "PRIMARY KEY (ceremony_id, participant)) WITHOUT ROWID",
        "CREATE INDEX ceremony_participants_who ON ceremony_participants (participant)",
        "CREATE TABLE beat_witnesses (beat_id TEXT NOT NULL REFERENCES beats (id), witness TEXT NOT NULL, ord INTEGER NOT NULL, "
        "PRIMARY KEY (beat_id, witness)) WITHOUT ROWID",
        "CREATE INDEX beat_witnesses_who ON beat_witnesses (witness)",
        "CREATE TABLE conclusion_sources (record_id INTEGER NOT NULL REFERENCES records (record_id), source_id TEXT NOT NULL, "
        "PRIMARY KEY (record_id, source_id)) WITHOUT ROWID",
        "CREATE INDEX conclusion_sources_source ON conclusion_sources (source_id)",
        "CREATE INDEX nodes_type ON nodes (type)",
        f"CREATE INDEX nodes_author ON nodes ({author}) WHERE type = 'knowledge'",
        "CREATE INDEX edges_to ON edges (to_id)",
        "CREATE INDEX ceremonies_circle ON ceremonies (circle_id) WHERE circle_id IS NOT NULL",
        "CREATE INDEX ceremonies_subject ON ceremonies (subject_id) WHERE subject_id IS NOT NULL",
        f"CREATE INDEX ceremonies_episode ON ceremonies ({EPISODE.replace('{t}.', '')})",
        f"CREATE INDEX ceremonies_closes ON ceremonies ({CLOSES.replace('{t}.', '')})",
        "CREATE INDEX ceremonies_context ON ceremonies (research_context) WHERE type = 'closing'",
        "CREATE VIEW beat_ceremonies AS SELECT b.id AS beat_id, p.id AS ceremony_id, l.ord FROM ("
        "SELECT record_id, home AS place, 0 AS ord FROM records WHERE kind = 'beat' AND home IS NOT NULL "
        "UNION ALL SELECT record_id, place, ord FROM also_in) l "
        "JOIN records b_r ON b_r.record_id = l.record_id JOIN beats b ON b.id = b_r.wheel_id JOIN places p ON p.place = l.place",
        "CREATE VIEW seats AS SELECT from_id AS person_id, to_id AS circle_id FROM edges WHERE relationship_type = 'member_of' "
        f"UNION SELECT {_inside('metadata', '$.facilitator_id')}, id FROM nodes WHERE type = 'circle' "
        f"AND {_inside('metadata', '$.facilitator_id')} IS NOT NULL",
        "CREATE VIEW conclusions AS SELECT position, id, name, description AS content, "
        + ", ".join(
            f"{_inside('metadata', f'$.{key}')} AS {key}"
            for key in ("about", "projection_kind", "status", "generated_at", "derived_by", "source")
        )
        + f" FROM nodes WHERE type = 'knowledge' AND {_inside('metadata', '$.kind')} = 'memory_projection'",
        "CREATE VIEW sat_together AS SELECT a.participant AS person, b.participant AS other, count(*) AS ceremonies "
        "FROM ceremony_participants a JOIN ceremony_participants b ON a.ceremony_id = b.ceremony_id AND a.participant < b.participant "
        "GROUP BY a.participant, b.participant",
        f"CREATE VIEW open_ceremonies AS SELECT c.* FROM ceremonies c WHERE coalesce(c.type, '') <> 'closing' "
        f"AND NOT EXISTS (SELECT 1 FROM ceremonies d WHERE {CLOSES.format(t='d')} = +c.id)",
        *_triggers(),
        *outbox.statements(),
        "INSERT INTO wheel VALUES ('uuid', lower(hex(randomblob(16))))",
    ]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a wheel (or an empty file) up to this version. Each step is one transaction; applied steps are recorded."""
    import sqlite_utils
    from sqlite_utils.migrations import Migrations

    steps = Migrations("wheelmem")

    @steps()
    def tables_and_triggers(db: Any) -> None:
        for statement in _statements():
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    steps.apply(sqlite_utils.Database(connection, use_counts_table=False))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def check(connection: sqlite3.Connection, path: object) -> bool:
    """Whether the file is a wheel that needs nothing; False for an empty or an older one that ``migrate`` brings up.

    Raises StoreError for a file that is no database, something else's database, or a wheel from a newer wheelmem.
    """
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error) or "malformed" in str(error):
            raise StoreError(f"{path} is no SQLite database: {error}") from None
        raise
    if tables == 0:
        return False
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is a SQLite database, but no wheel; name another file")
    if version > SCHEMA_VERSION:
        raise StoreError(f"{path} was written by a newer wheelmem (format {version}; this one knows {SCHEMA_VERSION}): upgrade wheelmem")
    return bool(version == SCHEMA_VERSION)


def derive(connection: sqlite3.Connection, table: str, after: int) -> None:
    """Derive all rows of ``table`` whose position is beyond ``after``, set-wise, while ``deriving.paused``."""
    kinds = {"ceremonies": "ceremony", "beats": "beat", "diary": "diary", "nodes": "conclusion"}
    if table not in kinds:
        return
    for statement in _derivation(kinds[table], "t", f"FROM {table} t WHERE t.position > {int(after)}"):
        connection.execute(statement)
