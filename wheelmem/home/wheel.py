"""An agent's home as rows of a wheel: its sessions are ceremonies, their boundaries subjects, its captures diary entries.

One ceremony for each session and each boundary it worked under, so that a question asked of a boundary reaches what was
captured there and nothing else. The ids follow from the records alone, and a capture that the wheel holds is left as it
is: importing again adds what is new, and a folder that has vanished since doubles nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from .boundary import Boundaries
from .folder import Home
from .log import Log, archives
from .record import Refused, body_text, short_host, ulid_ms

Row = dict[str, Any]
# So many rows go into one transaction of the wheel: other writers get in between.
BATCH = 1000
_LAST_MS = 253402300799999  # the last moment of the year 9999


def agent_of(home: Home) -> str:
    """The agent's name as ids have it: the letters and digits of the home's name, lower case."""
    agent = "".join(c for c in home.name.lower() if c.isalnum())
    if not agent:
        raise Refused(f"the home {home.root} has no letter or digit in its name to call its agent by")
    return agent


def boundary_subject(path: str, host: str | None = None) -> str:
    """The subject id of a boundary: of this machine, its path absolute and symlinks resolved, unless a host is given."""
    return f"boundary:{host}:{path}" if host is not None else f"boundary:{short_host()}:{os.path.realpath(path)}"


def ceremony_id(agent: str, session: str | None, host: str, boundary: str) -> str:
    """The ceremony of a session under a boundary of a host."""
    digest = hashlib.sha256(f"{host}\0{boundary}".encode()).hexdigest()[:16]
    return f"ceremony:home:{agent}:{session or 'none'}:{digest}"


def home_rows(
    home: Home,
    boundary_of: Callable[[Row], tuple[str, str]],
    held: Callable[[str], object] = lambda diary_id: None,
) -> Iterator[tuple[str, Row]]:
    """(kind, row) of what a wheel should hold of a home, kinds being `node`, `ceremony` and `diary`, in a wheel's own shapes.

    Drained logs come first, then the log, in file order; what is no record is left out. `boundary_of(record)` gives
    (boundary, basis); a capture for which `held(diary_id)` is true is passed over. The agent's node and each ceremony
    come before the first capture that needs them, and are meant to be stored only where the wheel holds none of that id.
    """
    agent = agent_of(home)
    node = f"node:agent:0:{agent}"
    names = [os.path.join(".bak", os.path.basename(path)) for path in archives(home)]
    told: set[str] = set()
    at = _timestamp(0)
    for name in [*names, "EPISODIC.jsonl"]:
        for raw, record in Log(home, name).read():
            ms = ulid_ms(record["id"])
            at = at if ms is None else _timestamp(ms)  # an id that tells no time stands at its neighbour's
            id = f"diary:home:{_storable(record['id'])}"
            if id in told or held(id):
                continue
            if node not in told:
                yield "node", _node(node, home.name, at)
            host = _storable(record["host"]) if isinstance(record.get("host"), str) else short_host()
            session = _storable(record["session"]) if isinstance(record.get("session"), str) else None
            boundary = _storable(boundary_of(record)[0])
            ceremony = ceremony_id(agent, session, host, boundary)
            if ceremony not in told:
                yield "ceremony", _ceremony(ceremony, node, boundary_subject(boundary, host), at)
            told |= {node, ceremony, id}
            yield "diary", _entry(id, node, at, _storable(body_text(raw, record)), ceremony, record.get("tags"))


def import_home(
    home: Home,
    boundaries: Boundaries,
    held: Callable[[str], object],
    keep: Callable[[list[tuple[str, Row]]], Mapping[str, int]],
) -> dict[str, int]:
    """Bring a home onto a wheel; how many rows of each kind were new.

    `held(diary_id)` tells whether the wheel holds a capture; `keep(rows)` stores some of the rows in one transaction, those
    aside whose id the wheel holds, and says how many of each kind it stored. An import that is cut off adds the rest when
    it is run again.
    """
    if not home.exists():
        raise Refused(f"there is no home at {home.root}")
    new = {"node": 0, "ceremony": 0, "diary": 0}
    rows = home_rows(home, boundaries.of_record, held)
    while batch := list(islice(rows, BATCH)):
        for kind, count in keep(batch).items():
            new[kind] += count
    return new


def _node(id: str, name: str, at: str) -> Row:
    return {"id": id, "type": "agent", "name": name, "metadata": {}, "created_at": at, "updated_at": at}


def _ceremony(id: str, node: str, subject: str, at: str) -> Row:
    return {
        "id": id,
        "type": "talking_circle",
        "direction": "east",
        "participants": [node],
        "medicines_used": [],
        "intentions": [],
        "timestamp": at,
        "subject_id": subject,
    }


def _entry(id: str, node: str, at: str, content: str, ceremony: str, tags: object) -> Row:
    metadata: Row = {"ceremony_id": ceremony}
    if tags:
        metadata["tags"] = _storable(tags)
    return {
        "id": id,
        "timestamp": at,
        "participant": node,
        "phase": "nindokendaan",
        "entryType": "observation",
        "content": content,
        "metadata": metadata,
    }


def _storable(value: Any) -> Any:
    """The value with lone surrogates, which no database of UTF-8 text can hold, as U+FFFD."""
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _timestamp(ms: int) -> str:
    ms = min(ms, _LAST_MS)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"
