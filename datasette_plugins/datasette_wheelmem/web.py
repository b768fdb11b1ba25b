"""What every door does alike: JSON in and out, one line that says what was wrong, and who may call from where."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from wheelmem.contract import ContractError, NotHeldError, WheelmemError
from wheelmem.store import BadRecord, StoreError

__all__ = [
    "MAX_BODY",
    "Refusal",
    "answer",
    "check_origin",
    "door",
    "error_of",
    "judged_by_origin",
    "path_id",
    "read_json",
]

MAX_BODY = 1024 * 1024
HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}
_log = logging.getLogger("wheelmem")
_DOORS = re.compile(r"api/(memory|health|nodes|edges|ceremonies|narrative/beats|diary|openapi\.json)(/|$)")


class Refusal(WheelmemError):
    """An answer that is not 200: its status, and what to do in one line."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """A JSON response that nobody keeps and no other site can read."""
    from datasette.utils.asgi import Response

    body = json.dumps(value, separators=(",", ":"))
    return Response(body, status, {**HEADERS, **(headers or {})}, "application/json; charset=utf-8")


def error_of(error: Exception) -> Refusal:
    """What an error means to whoever called; an unexpected one is logged, and only its kind is told."""
    if isinstance(error, Refusal):
        return error
    text = " ".join(str(error).split())
    if isinstance(error, NotHeldError):
        return Refusal(404, text)
    if isinstance(error, ContractError | BadRecord):
        return Refusal(400, text)
    if isinstance(error, StoreError):
        return Refusal(503, text)
    if isinstance(error, sqlite3.OperationalError) and re.search("readonly|read-only|full|locked|busy|disk I/O", text):
        return Refusal(503, f"the wheel cannot be written now ({text}); nothing was recorded")
    if isinstance(error, WheelmemError):
        return Refusal(400, text)
    _log.error("a door failed", exc_info=error)
    return Refusal(500, f"a fault of wheelmem's own ({type(error).__name__}); the server's log says where")


Handler = Callable[[Any, Any], Awaitable[Any]]


def door(**handlers: Handler) -> Callable[..., Awaitable[Any]]:
    """A view of the given methods (``GET=…``); each gets (datasette, request) and gives a response or a JSON value."""
    allowed = ", ".join(sorted({*handlers, *(["HEAD"] if "GET" in handlers else [])}))

    async def view(datasette: Any, request: Any) -> Any:
        method = "GET" if request.method == "HEAD" else request.method
        try:
            if method not in handlers:
                raise Refusal(405, f"{request.method} is not for this address; it takes {allowed}", {"allow": allowed})
            check_origin(request)
            given = await handlers[method](datasette, request)
        except Exception as error:
            refusal = error_of(error)
            return answer({"error": str(refusal)}, refusal.status, refusal.headers)
        return given if hasattr(given, "asgi_send") else answer(given)

    return view


def path_id(request: Any) -> str:
    """The id at the end of the address, percent-decoded."""
    return unquote(request.url_vars["id"])


# --- bodies --------------------------------------------------------------------------------------------------------


async def read_body(request: Any) -> bytes:
    """The body of a request, at most 1 MB; a longer one is refused without being kept."""
    too_long = Refusal(413, f"the body is longer than {MAX_BODY:,} bytes; send less")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY:
        raise too_long
    parts: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] != "http.request":
            raise Refusal(400, "the body did not arrive whole")
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise too_long
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


async def read_json(request: Any) -> dict[str, Any]:
    """The JSON object in a request's body."""
    if (
        "cookie" in request.headers
        and request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json"
    ):
        # A form on another site can send anything but this.
        raise Refusal(415, "send JSON with content-type: application/json")
    body = await read_body(request)
    if not body.strip():
        raise Refusal(400, "the body is empty; send a JSON object")
    try:
        value = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is no JSON: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the body must be a JSON object")
    return value


# --- from where ----------------------------------------------------------------------------------------------------


def judged_by_origin(datasette: Any, scope: Mapping[str, Any]) -> bool:
    """Whether a request goes to one of the doors here, which call ``check_origin`` themselves."""
    base = datasette.setting("base_url")
    path = scope.get("path", "")
    return path.startswith(base) and _DOORS.match(path[len(base) :]) is not None


def check_origin(request: Any, navigable: bool = False) -> None:
    """Refuse what another site's page has a browser send with our cookies, to write or to read.

    ``navigable`` pages may be opened by following a link. A request without cookies carries nothing a browser adds by
    itself, so a token in it was put there on purpose.
    """
    headers = request.headers
    if "cookie" not in headers:
        return
    site = headers.get("sec-fetch-site")
    if site is not None:
        followed = navigable and request.method in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
        if site in ("same-origin", "none") or followed:
            return
        raise Refusal(403, "another site may not do this in your name")
    origin = headers.get("origin")
    if origin is not None and _authority(origin) != _authority(f"//{request.host}"):
        raise Refusal(403, "another site may not do this in your name")


def _authority(address: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(address)
        return parts.hostname, None if parts.port in (80, 443) else parts.port
    except ValueError:
        return None, -1
