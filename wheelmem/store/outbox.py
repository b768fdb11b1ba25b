"""What is owed to providers that receive, as the store keeps it: deliveries, ids on the other side, conclusions' judgements.

Every record of a kind that leaves the wheel has one row in ``deliveries`` for each provider in ``receivers``, written by a
trigger in the transaction that wrote the record, with whatever tool. Its state is ``waiting``, ``tried`` (it may have
arrived: look before sending again), ``sent`` or ``refused``; ``session_kind`` and ``session_id`` say where it went. The
rows keep the order of first arrival.

``provider_ids`` says what a provider calls the wheel's sessions and peers. A session is ``live``; or ``stale``, when
something that went there has been changed, moved or deleted since, so it must not be asked before it is rebuilt; or
``gone``, taken down at the provider and not yet made again. Triggers here keep to the rules of ``schema``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .rows import KINDS
from .writing import select

if TYPE_CHECKING:
    from .wheel import Wheel

__all__ = [
    "LEAVING",
    "Delivery",
    "adopt",
    "conclusion_nodes",
    "drop",
    "enroll",
    "forgotten",
    "held_back",
    "ids_of",
    "judge",
    "judgements",
    "known_conclusion",
    "mark_stale",
    "owed",
    "owner_of",
    "pulled",
    "queue_again",
    "queue_all",
    "receivers",
    "records_in",
    "settle",
    "stale_sessions",
    "standing",
    "statements",
    "try_now",
    "went_live",
]

LEAVING = ("ceremony", "beat", "diary")
_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One row of ``deliveries``, as a pass needs it."""

    delivery_id: int
    kind: str
    record_id: str
    tried: bool


def statements() -> list[str]:
    """The tables, indexes and triggers."""
    return [
        "CREATE TABLE receivers (provider TEXT PRIMARY KEY, address TEXT NOT NULL, since TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE deliveries (delivery_id INTEGER PRIMARY KEY, provider TEXT NOT NULL, kind TEXT NOT NULL, "
        "record_id TEXT NOT NULL, position INTEGER, state TEXT NOT NULL, since TEXT NOT NULL, error TEXT, "
        "session_kind TEXT, session_id TEXT, UNIQUE (provider, kind, record_id))",
        "CREATE INDEX deliveries_owed ON deliveries (provider, delivery_id) WHERE state IN ('waiting', 'tried')",
        "CREATE INDEX deliveries_refused ON deliveries (provider) WHERE state = 'refused'",
        "CREATE INDEX deliveries_session ON deliveries (provider, session_kind, session_id)",
        "CREATE INDEX deliveries_record ON deliveries (kind, record_id)",
        "CREATE INDEX deliveries_position ON deliveries (kind, position)",
        "CREATE TABLE provider_ids (provider TEXT NOT NULL, what TEXT NOT NULL, kind TEXT NOT NULL, wheel_id TEXT NOT NULL, "
        "remote_id TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'live', PRIMARY KEY (provider, what, kind, wheel_id), "
        "UNIQUE (provider, what, remote_id)) WITHOUT ROWID",
        "CREATE INDEX provider_ids_stale ON provider_ids (provider) WHERE state = 'stale'",
        "CREATE TABLE judgements (judgement_id INTEGER PRIMARY KEY, conclusion_id TEXT NOT NULL, status TEXT NOT NULL, "
        "judged_by TEXT NOT NULL, judged_at TEXT NOT NULL)",
        "CREATE INDEX judgements_conclusion ON judgements (conclusion_id)",
        "CREATE TABLE pulled_conclusions (provider TEXT NOT NULL, remote_id TEXT NOT NULL, conclusion_id TEXT NOT NULL, "
        "PRIMARY KEY (provider, remote_id)) WITHOUT ROWID",
        *(statement for kind in LEAVING for statement in _triggers(kind)),
    ]


def _triggers(kind: str) -> list[str]:
    table = KINDS[kind]
    columns = [f'"{name}"' for name in (*table.columns, "extra", "position")]
    changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in columns)

    def changes(which: str) -> list[str]:
        # Marking comes first: the rows still say where the record went.
        return [
            "UPDATE provider_ids SET state = 'stale' WHERE (provider, what, kind, wheel_id) IN (SELECT provider, 'session', "
            f"session_kind, session_id FROM deliveries WHERE kind = '{kind}' AND ({which}) AND session_kind IS NOT NULL)",
            f"UPDATE deliveries SET state = 'waiting', since = {_NOW}, error = NULL WHERE kind = '{kind}' AND ({which})",
        ]

    def arrival() -> list[str]:
        return [
            f"UPDATE deliveries SET position = CASE WHEN record_id = NEW.id THEN NEW.position END "
            f"WHERE kind = '{kind}' AND (record_id = NEW.id OR position = NEW.position)",
            "INSERT INTO deliveries (provider, kind, record_id, position, state, since) "
            f"SELECT provider, '{kind}', NEW.id, NEW.position, 'waiting', {_NOW} FROM receivers WHERE NOT EXISTS (SELECT 1 "
            f"FROM deliveries d WHERE d.provider = receivers.provider AND d.kind = '{kind}' AND d.record_id = NEW.id)",
        ]

    def trigger(event: str, when: str, body: Sequence[str]) -> str:
        name = f"{table.name}_owed_{event.lower()}"
        return f"CREATE TRIGGER {name} AFTER {event} ON {table.name} WHEN {when} BEGIN {'; '.join(body)}; END"

    anyone = "EXISTS (SELECT 1 FROM receivers)"
    either = "record_id IN (OLD.id, NEW.id) OR position IN (OLD.position, NEW.position)"
    return [
        trigger("INSERT", anyone, [*changes("record_id = NEW.id OR position = NEW.position"), *arrival()]),
        trigger("UPDATE", f"({changed}) AND {anyone}", [*changes(either), *arrival()]),
        trigger("DELETE", anyone, changes("record_id = OLD.id OR position = OLD.position")),
    ]


# --- who receives


def receivers(db: sqlite3.Connection) -> dict[str, str]:
    """The providers that receive, with the address each delivers to."""
    return dict(db.execute("SELECT provider, address FROM receivers"))


def enroll(wheel: Wheel, providers: Iterable[Any]) -> None:
    """From now on every record of the wheel is owed to those of the providers that receive.

    At another ``address`` than before, nothing has been delivered yet.
    """
    wanted = {provider.name: str(getattr(provider, "address", "")) for provider in providers if hasattr(provider, "receive")}
    if wanted:
        known = wheel.read(receivers)
        if any(known.get(name) != address for name, address in wanted.items()):
            wheel.write(lambda db: _enroll(db, wanted))


def _enroll(db: sqlite3.Connection, wanted: Mapping[str, str]) -> None:
    known = receivers(db)
    for provider, address in wanted.items():
        if provider not in known:
            db.execute(f"INSERT INTO receivers VALUES (?, ?, {_NOW})", (provider, address))
        elif known[provider] != address:
            db.execute("UPDATE receivers SET address = ? WHERE provider = ?", (address, provider))
            db.execute("DELETE FROM provider_ids WHERE provider = ?", (provider,))
            db.execute("DELETE FROM deliveries WHERE provider = ? AND state IN ('sent', 'refused')", (provider,))
            db.execute("UPDATE deliveries SET session_kind = NULL, session_id = NULL WHERE provider = ?", (provider,))


# --- what is owed


def owed(db: sqlite3.Connection, provider: str, after: int, limit: int) -> list[Delivery]:
    """The oldest records owed to a provider whose place in the order is beyond ``after``."""
    rows = db.execute(
        "SELECT delivery_id, kind, record_id, state = 'tried' FROM deliveries "
        "WHERE provider = ? AND state IN ('waiting', 'tried') AND delivery_id > ? ORDER BY delivery_id LIMIT ?",
        (provider, after, limit),
    )
    return [Delivery(id, kind, record, bool(tried)) for id, kind, record, tried in rows]


def try_now(db: sqlite3.Connection, deliveries: Iterable[tuple[int, str, str]]) -> None:
    """These (delivery, session's kind, session's id) are about to be sent: from here on they may have arrived."""
    db.executemany(
        "UPDATE deliveries SET state = 'tried', session_kind = ?, session_id = ? WHERE delivery_id = ?",
        ((kind, id, delivery) for delivery, kind, id in deliveries),
    )


def settle(db: sqlite3.Connection, deliveries: Iterable[tuple[int, str, str | None]]) -> None:
    """What became of what was tried: (delivery, ``sent``, ``tried`` or ``refused``, error). A record changed since waits on."""
    db.executemany(
        "UPDATE deliveries SET state = ?, error = ? WHERE delivery_id = ? AND state = 'tried'",
        ((state, error, delivery) for delivery, state, error in deliveries),
    )


def drop(db: sqlite3.Connection, deliveries: Iterable[int]) -> None:
    """These are owed no longer."""
    db.executemany("DELETE FROM deliveries WHERE delivery_id = ?", ((delivery,) for delivery in deliveries))


def queue_all(db: sqlite3.Connection, provider: str) -> int:
    """Owe the provider every record it never had, by time; how many. They are looked for before they are sent."""
    before = db.total_changes
    db.execute(
        f"UPDATE deliveries SET state = 'tried', since = {_NOW}, error = NULL WHERE provider = ? AND state = 'refused'", (provider,)
    )
    db.execute(
        "INSERT INTO deliveries (provider, kind, record_id, position, state, since) "
        f"SELECT ?1, kind, wheel_id, record_id >> 3, 'tried', {_NOW} FROM records r WHERE kind IN ('ceremony', 'beat', 'diary') "
        "AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.provider = ?1 AND d.kind = r.kind AND d.record_id = r.wheel_id) "
        "ORDER BY instant NULLS LAST, record_id & 7, record_id",
        (provider,),
    )
    return db.total_changes - before


def queue_again(db: sqlite3.Connection, providers: Iterable[str], kind: str, id: str) -> None:
    """Owe a record again to these providers, whether or not it has arrived."""
    again = f"UPDATE deliveries SET state = 'tried', since = {_NOW}, error = NULL WHERE provider = ? AND kind = ? AND record_id = ?"
    for provider in providers:
        if db.execute(again, (provider, kind, id)).rowcount == 0:
            db.execute(
                "INSERT INTO deliveries (provider, kind, record_id, position, state, since) "
                f"SELECT ?, ?, id, position, 'tried', {_NOW} FROM {KINDS[kind].name} WHERE id = ?",
                (provider, kind, id),
            )


def standing(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """How the river stands, one object a receiver; what has nothing to say is absent.

    ``pending`` records wait, the oldest since ``since``, because of ``error``; ``refused`` were turned down, the last for
    ``refusal``; ``rebuilding`` sessions are left out of every question until they are made anew.
    """
    out = []
    for provider in sorted(receivers(db)):
        pending, since = db.execute(
            "SELECT count(*), min(since) FROM deliveries WHERE provider = ? AND state IN ('waiting', 'tried')", (provider,)
        ).fetchone()
        row = db.execute(
            "SELECT error FROM deliveries WHERE provider = ? AND state IN ('waiting', 'tried') AND error IS NOT NULL "
            "ORDER BY delivery_id LIMIT 1",
            (provider,),
        ).fetchone()
        refused, refusal = db.execute(
            "SELECT count(*), max(error) FROM deliveries WHERE provider = ? AND state = 'refused'", (provider,)
        ).fetchone()
        (rebuilding,) = db.execute(
            "SELECT count(*) FROM provider_ids WHERE provider = ? AND what = 'session' AND state = 'stale'", (provider,)
        ).fetchone()
        said = {"provider": provider, "pending": pending, "since": since, "error": row and row[0]}
        if refused:
            said |= {"refused": refused, "refusal": refusal}
        if rebuilding:
            said["rebuilding"] = rebuilding
        out.append({name: value for name, value in said.items() if value is not None})
    return out


def held_back(db: sqlite3.Connection, limit: int = 20) -> list[dict[str, Any]]:
    """The oldest records that wait or were refused: provider, kind, id, state, since, error."""
    rows = db.execute(
        "SELECT provider, kind, record_id, CASE state WHEN 'tried' THEN 'waiting' ELSE state END, since, error FROM deliveries "
        "WHERE state IN ('waiting', 'tried', 'refused') ORDER BY delivery_id LIMIT ?",
        (limit,),
    )
    names = ("provider", "kind", "id", "state", "since", "error")
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]


# --- what a provider calls things


def ids_of(
    db: sqlite3.Connection, provider: str, what: str, keys: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """For sessions or peers by (kind, wheel id): the provider's id and the state, for those that are known."""
    found = {}
    for key in keys:
        row = db.execute(
            "SELECT remote_id, state FROM provider_ids WHERE provider = ? AND what = ? AND kind = ? AND wheel_id = ?",
            (provider, what, *key),
        ).fetchone()
        if row:
            found[key] = (row[0], row[1])
    return found


def owner_of(db: sqlite3.Connection, provider: str, what: str, remote_id: str) -> tuple[str, str] | None:
    """The (kind, wheel id) that has this id at the provider."""
    row = db.execute(
        "SELECT kind, wheel_id FROM provider_ids WHERE provider = ? AND what = ? AND remote_id = ?", (provider, what, remote_id)
    ).fetchone()
    return (row[0], row[1]) if row else None


def adopt(db: sqlite3.Connection, provider: str, what: str, kind: str, wheel_id: str, remote_id: str) -> bool:
    """Keep what the provider calls something; False when that id belongs to something else of this wheel."""
    if owner_of(db, provider, what, remote_id) not in (None, (kind, wheel_id)):
        return False
    known = ids_of(db, provider, what, [(kind, wheel_id)])
    if not known:
        db.execute(
            "INSERT INTO provider_ids (provider, what, kind, wheel_id, remote_id) VALUES (?, ?, ?, ?, ?)",
            (provider, what, kind, wheel_id, remote_id),
        )
    elif known[kind, wheel_id][0] != remote_id:
        # What went to the former id is not at this one.
        db.execute(
            "UPDATE provider_ids SET remote_id = ? WHERE provider = ? AND what = ? AND kind = ? AND wheel_id = ?",
            (remote_id, provider, what, kind, wheel_id),
        )
    return True


def went_live(db: sqlite3.Connection, provider: str, sessions: Iterable[tuple[str, str]]) -> None:
    """These sessions, which had been taken down, have been made again."""
    _mark(db, provider, sessions, "live", "state = 'gone'")


def mark_stale(db: sqlite3.Connection, provider: str, sessions: Iterable[tuple[str, str]]) -> None:
    """These sessions do not hold what the wheel holds."""
    _mark(db, provider, sessions, "stale", "state = 'live'")


def _mark(db: sqlite3.Connection, provider: str, sessions: Iterable[tuple[str, str]], state: str, when: str) -> None:
    db.executemany(
        f"UPDATE provider_ids SET state = '{state}' WHERE provider = ? AND what = 'session' AND kind = ? AND wheel_id = ? AND {when}",
        ((provider, *session) for session in sessions),
    )


def stale_sessions(db: sqlite3.Connection, provider: str) -> list[tuple[str, str]]:
    """The sessions to take down: (kind, wheel id)."""
    rows = db.execute(
        "SELECT kind, wheel_id FROM provider_ids WHERE provider = ? AND state = 'stale' AND what = 'session'", (provider,)
    )
    return [(kind, id) for kind, id in rows]


def forgotten(db: sqlite3.Connection, provider: str, sessions: Iterable[tuple[str, str]]) -> None:
    """These sessions have been taken down: all that went there and is still held is owed again, in its old order."""
    for session in sessions:
        db.execute(
            "UPDATE provider_ids SET state = 'gone' WHERE provider = ? AND what = 'session' AND kind = ? AND wheel_id = ?",
            (provider, *session),
        )
        there = "provider = ? AND session_kind = ? AND session_id = ?"
        for kind in LEAVING:
            db.execute(
                f"DELETE FROM deliveries WHERE {there} AND kind = '{kind}' "
                f"AND NOT EXISTS (SELECT 1 FROM {KINDS[kind].name} WHERE id = record_id)",
                (provider, *session),
            )
        db.execute(
            f"UPDATE deliveries SET since = CASE state WHEN 'sent' THEN {_NOW} ELSE since END, state = 'waiting', "
            f"session_kind = NULL, session_id = NULL WHERE {there} AND state <> 'refused'",
            (provider, *session),
        )


def records_in(db: sqlite3.Connection, provider: str, kind: str, wheel_id: str) -> list[tuple[str, str]]:
    """The (kind, id) of the records that were delivered to a session."""
    rows = db.execute(
        "SELECT kind, record_id FROM deliveries WHERE provider = ? AND session_kind = ? AND session_id = ? AND state = 'sent' "
        "ORDER BY delivery_id",
        (provider, kind, wheel_id),
    )
    return [(kind, id) for kind, id in rows]


# --- conclusions


def judge(db: sqlite3.Connection, conclusion: str, status: str, by: str, at: str) -> None:
    """Keep one judgement; those before it stay."""
    db.execute(
        "INSERT INTO judgements (conclusion_id, status, judged_by, judged_at) VALUES (?, ?, ?, ?)", (conclusion, status, by, at)
    )


def judgements(db: sqlite3.Connection, conclusion: str) -> list[Mapping[str, str]]:
    """Every judgement of a conclusion, the first first."""
    rows = db.execute(
        "SELECT status, judged_by, judged_at FROM judgements WHERE conclusion_id = ? ORDER BY judgement_id", (conclusion,)
    )
    return [{"status": status, "judged_by": by, "judged_at": at} for status, by, at in rows]


def conclusion_nodes(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every conclusion held, as its node, in the order of arrival."""
    return select(db, "node", "position IN (SELECT position FROM conclusions)")


def known_conclusion(db: sqlite3.Connection, provider: str, remote_id: str) -> bool:
    """Whether a provider's conclusion has been brought here before."""
    row = db.execute("SELECT 1 FROM pulled_conclusions WHERE provider = ? AND remote_id = ?", (provider, remote_id)).fetchone()
    return row is not None


def pulled(db: sqlite3.Connection, provider: str, remote_id: str, conclusion: str) -> None:
    """A provider's conclusion has been brought here."""
    db.execute("INSERT INTO pulled_conclusions VALUES (?, ?, ?)", (provider, remote_id, conclusion))
