"""Which session a call belongs to, and which sessions are live: one small JSON file each, in `sessions/`."""

from __future__ import annotations

import os
import time
from typing import Any

from .folder import Home, check_words, make_folder, replace_file
from .record import Refused, dump, parse_json, short_host

STALE_MS = 2 * 60 * 60 * 1000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def check_id(id: str) -> str:
    """The id when it is one path segment, else refused: it names a file."""
    if not id or id in (".", "..") or "/" in id or "\\" in id:
        raise Refused(f"a session id is one path segment, not {id!a}")
    check_words("the session id", id)
    if len(id.encode("utf-8")) > 240:
        raise Refused(f"the session id is {len(id.encode('utf-8'))} bytes long; at most 240 fit a file name")
    return id


def named(flag: str | None) -> str | None:
    """The session that the call or its environment names; None when neither does."""
    if flag is not None:
        return check_id(flag)
    env = os.environ
    for name in ("CLAUDE_SESSION_ID", "AGENT_SESSION_ID", env.get("AGENT_SESSION_ID_FROM", "")):
        if name and env.get(name):
            return check_id(env[name])
    return None


def current(home: Home, flag: str | None) -> str | None:
    """The named session, else the only live registered one; None when there is none, or more than one."""
    id = named(flag)
    if id is not None:
        return id
    live = live_ids(home)
    return live.pop() if len(live) == 1 else None


def required(home: Home, flag: str | None) -> str:
    """As `current`, but refused when the session cannot be told."""
    id = current(home, flag)
    if id is not None:
        return id
    live = sorted(live_ids(home))
    what = f"{len(live)} sessions are live ({', '.join(live)})" if live else "no session is live"
    raise Refused(f"whose capture is it? {what}: give --session ID or set $AGENT_SESSION_ID")


# --- the registry ------------------------------------------------------------------------------------------------------


def entry(home: Home, id: str) -> dict[str, Any] | None:
    """The registered session, None when there is none (or its file says nothing)."""
    try:
        with open(home.path(f"sessions/{check_id(id)}.json"), "rb") as file:
            value = parse_json(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and value.get("id") == id else None


def register(home: Home, id: str, owner: int | None = None) -> None:
    """Register a session, or register it again: it is live from now; when it was first registered stays."""
    check_id(id)
    if owner is not None and _started(owner) is None:
        raise Refused(f"no process {owner} runs here to own session {id}")
    with home.exclusive():
        known = entry(home, id) or {}
        now = now_ms()
        value = {
            **known,
            "id": id,
            "host": short_host(),
            "pid": os.getpid() if owner is None else owner,
            "registeredAt": known.get("registeredAt", now),
            "lastBeat": now,
        }
        value.pop("released", None)
        if owner is not None:
            value |= {"owner": owner, "ownerStarted": _started(owner)}
        _write(home, value)


def heartbeat(home: Home, id: str) -> None:
    """Refused when the session is unknown; does not revive a released one."""
    _change(home, id, {"lastBeat": now_ms()}, f"unknown session: {id}")


def release(home: Home, id: str) -> bool:
    try:
        _change(home, id, {"released": True}, "")
    except LookupError:
        return False
    return True


def _change(home: Home, id: str, changes: dict[str, Any], unknown: str) -> None:
    check_id(id)
    known = entry(home, id) if home.exists() else None
    if known is not None:
        with home.exclusive():
            known = entry(home, id)
            if known is not None:
                _write(home, known | changes)
                return
    if unknown:
        raise Refused(unknown)
    raise LookupError(id)


def _write(home: Home, value: dict[str, Any]) -> None:
    path = home.path(f"sessions/{value['id']}.json")
    make_folder(os.path.dirname(path))
    replace_file(path, (dump(value) + "\n").encode("utf-8"))


def _started(pid: int) -> str | None:
    """When a running process began, as the system says it, so that a pid used again is not taken for it; None if gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except (PermissionError, OverflowError):
        pass
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return "unknown" if not os.path.isdir("/proc/self") else None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


# --- liveness ----------------------------------------------------------------------------------------------------------


def state(value: dict[str, Any] | None, stale: int = STALE_MS) -> str:
    """`live`, `completed` or `absent`."""
    if value is None:
        return "absent"
    beat = value.get("lastBeat")
    if value.get("released") or not isinstance(beat, int | float) or now_ms() - beat >= stale:
        return "completed"
    owner = value.get("owner")
    if isinstance(owner, int) and value.get("host") == short_host():
        started = _started(owner)
        if started is None or started != value.get("ownerStarted", started):
            return "completed"
    return "live"


def status(home: Home, id: str, stale: int = STALE_MS) -> dict[str, Any]:
    value = entry(home, check_id(id))
    told = {"id": id, "state": state(value, stale)}
    if value is not None and "lastBeat" in value:
        told["lastBeat"] = value["lastBeat"]
    return told | {"released": bool(value and value.get("released"))}


def ids(home: Home) -> list[str]:
    """The registered sessions, by id."""
    try:
        names = os.listdir(home.path("sessions"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = sorted(name[:-5] for name in names if name.endswith(".json"))
    return [id for id in found if _is_id(id) and entry(home, id) is not None]


def _is_id(id: str) -> bool:
    try:
        check_id(id)
    except Refused:
        return False
    return True


def live_ids(home: Home, stale: int = STALE_MS) -> set[str]:
    return {id for id in ids(home) if state(entry(home, id), stale) == "live"}


def new_id() -> str:
    import uuid

    return str(uuid.uuid4())
