"""Consolidation: where each record's content goes, landed in the prose stores while the log is compacted, as one change.

Pass 1 finds the boundary of each record, pass 2 asks classifiers for targets. A record with no decision stays.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from .boundary import Boundaries
from .folder import Home
from .log import Log, archive
from .record import ROUTABLE, Refused, with_routes

CEILING = 8000  # bytes of a prose store: it is read whole, each time an agent wakes
FILES = {"SEMANTIC": "SEMANTIC.md", "PROCEDURAL": "PROCEDURAL.md"}

Target = dict[str, Any]  # {"store", "content"}; EPISODIC needs no content
Decisions = dict[str, list[Target]]  # by record id; no target at all drops the record


class Classifier(Protocol):
    """What `dream` asks: targets for a record, an empty list to drop it, None when there is nothing to say."""

    @property
    def name(self) -> str: ...

    def route(self, record: dict[str, Any]) -> list[Target] | None: ...


# --- the prose stores --------------------------------------------------------------------------------------------------


def store_file(store: str) -> str:
    """The file of a prose store; refused for the log and for what is no store."""
    if store in FILES:
        return FILES[store]
    if store == "EPISODIC":
        raise Refused("EPISODIC is the log, not a store to take whole: use read, or drain", code=2)
    raise Refused(f"unknown store {store!a}: SEMANTIC or PROCEDURAL")


def get(home: Home, store: str) -> bytes:
    """The text of a store as it is on disk; nothing when it is absent."""
    try:
        with open(home.path(store_file(store)), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def text_hash(text: bytes) -> str:
    """What `get --hash` prints and `replace --if-match` compares: SHA-256 in hex."""
    return hashlib.sha256(text).hexdigest()


def replace(home: Home, store: str, text: bytes, if_match: str | None = None) -> int:
    """Put a text in place of a whole store, and keep the one before it in `.bak/`; the new size in bytes.

    Refused when the store's hash is no longer `if_match`, and over the ceiling unless the store gets smaller.
    """
    name = store_file(store)
    if not text.endswith(b"\n"):
        text += b"\n"
    with home.exclusive():
        before = get(home, store)
        if if_match is not None and text_hash(before) != if_match.strip().lower():
            raise Refused(f"{name} has changed since you read it (its hash is {text_hash(before)}): get it again, then replace")
        if len(text) > CEILING and len(text) >= len(before):
            raise Refused(_over(name, len(text)))
        files = {name: text}
        if before:
            files = {f".bak/{store}.{Log(home).new_id()}.md": before} | files
        home.commit(files)
    return len(text)


def _over(name: str, size: int) -> str:
    return f"{name} would be {size} bytes, {size - CEILING} over its ceiling of {CEILING}: shorten it with `memory replace` first"


# --- decisions ---------------------------------------------------------------------------------------------------------


def check_decisions(value: Any) -> Decisions:
    """Decisions from `[{"id", "targets": [{"store", "content"}]}]`; refused as a whole when one is wrong."""
    if not isinstance(value, list):
        raise Refused('routes must be a JSON list of {"id", "targets"}', code=2)
    decisions: Decisions = {}
    for item in value:
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            raise Refused('each of the routes needs an "id" and "targets"', code=2)
        if not isinstance(item.get("targets"), list):
            raise Refused(f'the route of {item["id"]!a} needs a list of "targets"', code=2)
        decisions[item["id"]] = check_targets(item["targets"])
    return decisions


def check_targets(targets: list[Any]) -> list[Target]:
    for target in targets:
        if not isinstance(target, dict):
            raise Refused(f'a target is {{"store", "content"}}, not {target!a}', code=2)
        store, content = target.get("store"), target.get("content")
        if store not in ROUTABLE:
            raise Refused(f"unknown store {store!a}: {', '.join(ROUTABLE)}")
        if store != "EPISODIC":
            if not isinstance(content, str) or not content.strip():
                raise Refused(f"a target in {store} needs content, as text")
            try:
                content.encode("utf-8")
            except UnicodeEncodeError:
                raise Refused(f"the content for {store} is no Unicode text: {content!a}") from None
    return targets


class Landed(NamedTuple):
    decisions: int
    consumed: int
    retained: int
    stores: int

    def __str__(self) -> str:
        return (
            f"applied {self.decisions} decision(s): {self.consumed} consumed, {self.retained} retained, "
            f"{self.stores} home(s) landed"
        )


def land(log: Log, decisions: Decisions) -> Landed:
    """Append contents to their stores, in the log's order, and take consumed records out of the log into an archive.

    Everything is checked before anything is written, and written together or not at all.
    """
    home = log.home
    with home.exclusive():
        lines = log.load()
        unknown = decisions.keys() - {record["id"] for _, record in lines}
        if unknown:
            raise Refused(f"no record of the log has the id {min(unknown)!a}", code=2)
        stay: list[bytes] = []
        gone: list[bytes] = []
        contents: dict[str, list[str]] = {}
        for raw, record in lines:
            targets = decisions.get(record["id"], [{"store": "EPISODIC"}])
            stores = list(dict.fromkeys(target["store"] for target in targets))
            for target in targets:
                if target["store"] != "EPISODIC":
                    contents.setdefault(target["store"], []).append(target["content"])
            if "EPISODIC" in stores:
                stay.append(with_routes(raw, stores))
            else:
                gone.append(raw)
        files = {FILES[store]: _appended(home, store, contents[store]) for store in FILES if store in contents}
        if gone:
            name, data = archive(log, gone)
            files[name] = data
        if files or stay != [raw for raw, _ in lines]:
            log.change(stay, files)
    return Landed(len(decisions), len(gone), len(stay), len(contents))


def _appended(home: Home, store: str, contents: list[str]) -> bytes:
    text = get(home, store)
    if text and not text.endswith(b"\n"):
        text += b"\n"
    for content in contents:
        text += content.encode("utf-8") + (b"" if content.endswith("\n") else b"\n")
    if len(text) > CEILING:
        raise Refused(_over(FILES[store], len(text)))
    return text


# --- dream -------------------------------------------------------------------------------------------------------------


def route(log: Log, boundaries: Boundaries, classifiers: Sequence[Classifier]) -> Decisions:
    """What the classifiers decide for the records of the log, in its order; the first with something to say decides.

    A classifier is given the record as it is in the log, with its `node` and `basis`. One that raises or answers
    nonsense is named on stderr and left out for that record.
    """
    decisions: Decisions = {}
    for _, record in log.read():
        node, basis = boundaries.of_record(record)
        targets = _ask(classifiers, {**record, "node": node, "basis": basis})
        if targets is not None:
            decisions[record["id"]] = targets
    return decisions


def _ask(classifiers: Iterable[Classifier], record: dict[str, Any]) -> list[Target] | None:
    for classifier in classifiers:
        try:
            targets = classifier.route(record)
            if targets is None:
                continue
            if not isinstance(targets, list):
                raise TypeError(f"it answered {targets!a}, no list of targets")
            return check_targets(targets)
        except Exception as error:
            said = " ".join(str(error).split()) or type(error).__name__
            print(f"classifier {classifier.name} failed on {record['id']}: {said}", file=sys.stderr)
    return None
