"""A Honcho to test against: version 3's HTTP behaviour on a loopback port, kept in memory.

``Double()`` starts a server in a thread; ``filters=False`` makes it the older kind, which neither describes nor
obeys ``filters`` in chat and representation. What it is sent is kept in ``requests``, what its model was given in
``prompts``. Every request and answer is checked against Honcho's published description where that file is at hand;
what does not fit lands in ``violations``. ``faults`` break answers, once or for long, before or after the request has
had its effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

ID = re.compile(r"[a-zA-Z0-9_-]{1,512}\Z")
MAX_CONTENT = 25_000
DESCRIPTION = Path(__file__).parents[3] / "shared" / "honcho" / "openapi-v3.json"


class Refused(Exception):
    """An answer other than success: a status and FastAPI's ``detail``."""

    def __init__(self, status: int, detail: Any) -> None:
        self.status, self.detail = status, detail


def invalid(where: list[Any], message: str, given: Any, kind: str = "value_error") -> Refused:
    return Refused(422, [{"type": kind, "loc": ["body", *where], "msg": message, "input": given}])


@dataclass
class Fault:
    """How an answer is broken.

    ``kind``: ``status`` (with ``status``), ``slow`` (``seconds``, then the answer), ``hang``, ``close`` (the
    connection, without an answer), ``half`` (half of a JSON body, then the connection closes), ``html``. ``match`` is
    searched for in ``METHOD path``. With ``after`` the request takes effect before its answer is broken.
    """

    kind: str
    match: str = ""
    times: int = 1_000_000
    status: int = 500
    seconds: float = 0.3
    after: bool = False
    hit: int = 0


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    body: Any
    query: dict[str, str]
    headers: dict[str, str]
    status: int | None = None

    @property
    def call(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Session:
    id: str
    metadata: dict[str, Any]
    configuration: dict[str, Any]
    created_at: str
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    gone_at: float | None = None


@dataclass
class Workspace:
    id: str
    metadata: dict[str, Any]
    configuration: dict[str, Any]
    created_at: str
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    conclusions: list[dict[str, Any]] = field(default_factory=list)
    cards: dict[str, list[str]] = field(default_factory=dict)


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class Broken(Response):
    """An answer that never arrives whole."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.fault.kind == "hang":
            await asyncio.sleep(3600)
        elif self.fault.kind == "half":
            headers = [(b"content-type", b"application/json"), (b"content-length", b"400")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"id": "half-an-ans', "more_body": True})
            await asyncio.sleep(0.01)
        receive.__self__.transport.close()


class ClosingResponse(JSONResponse):
    """A 500: the answer arrives, and the connection is closed although nothing said so."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await super().__call__(scope, receive, send)
        receive.__self__.transport.close()


class Description:
    """The published description, and whether a request or an answer fits it."""

    def __init__(self, path: Path) -> None:
        self.document = json.loads(path.read_text(encoding="utf-8"))
        self._validators: dict[int, Any] = {}

    def _validator(self, schema: dict[str, Any]) -> Any:
        from jsonschema import Draft202012Validator, FormatChecker
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT202012

        key = id(schema)
        if key not in self._validators:
            resource = Resource.from_contents(self.document, default_specification=DRAFT202012)
            registry: Any = Registry().with_resource("urn:honcho", resource)
            absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:honcho#/'))
            self._validators[key] = Draft202012Validator(
                absolute, registry=registry, format_checker=FormatChecker()
            )
        return self._validators[key]

    def fits(self, schema: dict[str, Any] | None, value: Any) -> str | None:
        """None when ``value`` fits, else where it does not."""
        if not schema:
            return None
        for error in self._validator(schema).iter_errors(value):
            return f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        return None

    def request_schema(self, method: str, template: str) -> dict[str, Any] | None:
        operation = self.document["paths"].get(template, {}).get(method.lower(), {})
        content = operation.get("requestBody", {}).get("content", {})
        found: dict[str, Any] | None = content.get("application/json", {}).get("schema")
        return found

    def answer_schema(self, method: str, template: str, status: int) -> dict[str, Any] | None:
        answers = self.document["paths"].get(template, {}).get(method.lower(), {}).get("responses", {})
        answer = answers.get(str(status)) or next(
            (a for s, a in answers.items() if status < 300 and s[0] == "2"), {}
        )
        found: dict[str, Any] | None = answer.get("content", {}).get("application/json", {}).get("schema")
        return found


class Double:
    """The server and what it holds. Use as a context manager, or call ``stop()``."""

    def __init__(
        self,
        *,
        filters: bool = True,
        check: bool = True,
        api_key: str | None = None,
        deletion: float = 0.0,
        derive: bool = True,
    ) -> None:
        self.filters = filters
        self.api_key = api_key
        self.deletion = deletion  # seconds until a deleted session's id can be had again
        self.derive = derive
        self.model_down = False
        self.workspaces: dict[str, Workspace] = {}
        self.requests: list[Seen] = []
        self.prompts: list[str] = []
        self.violations: list[str] = []
        self.faults: list[Fault] = []
        self.keep_requests = True
        self.description = Description(DESCRIPTION) if check and DESCRIPTION.exists() else None
        self._socket: socket.socket | None = None
        self.port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.app = self._app()
        self.start()

    # --- running

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen (again, on the same port)."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port))
        self.port = sock.getsockname()[1]
        config = uvicorn.Config(self.app, log_level="critical", access_log=False, lifespan="off", http="h11")
        self._server = server = uvicorn.Server(config)
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        self._thread.start()
        for _ in range(1000):
            if server.started:
                return
            time.sleep(0.005)
        raise RuntimeError("the double did not start")

    def stop(self) -> None:
        """Close the port; what is held stays."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = self._server.force_exit = True
            self._thread.join(10)
            self._server = self._thread = None

    def __enter__(self) -> Double:
        return self

    def __exit__(self, *args: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def fault(self, kind: str, match: str = "", **more: Any) -> Iterator[Fault]:
        """A fault for as long as the block runs."""
        made = Fault(kind, match, **more)
        self.faults.append(made)
        try:
            yield made
        finally:
            self.faults.remove(made)

    # --- looking

    def calls(self, pattern: str = "") -> list[Seen]:
        """The requests so far whose ``METHOD path`` matches."""
        return [seen for seen in list(self.requests) if re.search(pattern, seen.call)]

    def messages(self, session: str, workspace: str = "medicine-wheel") -> list[dict[str, Any]]:
        """A session's messages in order; none when there is no such session."""
        held = self.workspaces.get(workspace)
        found = self._live(held, session) if held else None
        return list(found.messages) if found else []

    def session_of(self, wheel_id: str, workspace: str = "medicine-wheel") -> list[str]:
        """The sessions that hold a message of a wheel record."""
        held = self.workspaces[workspace].sessions.values() if workspace in self.workspaces else ()
        return [
            s.id
            for s in held
            if s.gone_at is None and any(m["metadata"].get("wheel_id") == wheel_id for m in s.messages)
        ]

    # --- the application

    def _app(self) -> Starlette:
        w, s = "/v3/workspaces/{workspace_id}", "/v3/workspaces/{workspace_id}/sessions/{session_id}"
        p = w + "/peers/{peer_id}"
        table: list[tuple[str, str, Callable[..., Any]]] = [
            ("GET", "/health", lambda c: (200, {"status": "ok"})),
            ("GET", "/openapi.json", self.openapi),
            ("POST", "/v3/workspaces", self.workspace_create),
            ("POST", "/v3/workspaces/list", self.workspace_list),
            ("PUT", w, self.workspace_update),
            ("DELETE", w, self.workspace_delete),
            ("POST", w + "/search", self.search),
            ("GET", w + "/queue/status", self.queue_status),
            ("POST", w + "/peers/list", self.peer_list),
            ("POST", w + "/peers", self.peer_create),
            ("PUT", p, self.peer_update),
            ("POST", p + "/sessions", self.peer_sessions),
            ("POST", p + "/chat", self.chat),
            ("POST", p + "/representation", self.representation),
            ("GET", p + "/card", self.card_get),
            ("PUT", p + "/card", self.card_put),
            ("POST", p + "/search", self.search),
            ("POST", w + "/sessions/list", self.session_list),
            ("POST", w + "/sessions", self.session_create),
            ("PUT", s, self.session_update),
            ("DELETE", s, self.session_delete),
            ("POST", s + "/peers", self.session_peers_add),
            ("PUT", s + "/peers", self.session_peers_set),
            ("DELETE", s + "/peers", self.session_peers_remove),
            ("GET", s + "/peers", self.session_peers),
            ("GET", s + "/peers/{peer_id}/config", self.session_peer_config),
            ("POST", s + "/search", self.search),
            ("POST", s + "/messages", self.message_create),
            ("POST", s + "/messages/list", self.message_list),
            ("GET", s + "/messages/{message_id}", self.message_get),
            ("POST", w + "/conclusions", self.conclusion_create),
            ("POST", w + "/conclusions/list", self.conclusion_list),
            ("POST", w + "/conclusions/query", self.conclusion_query),
        ]
        return Starlette(
            routes=[Route(path, self._endpoint(path, work), methods=[method]) for method, path, work in table]
        )

    def _endpoint(self, template: str, work: Callable[..., Any]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            raw = await request.body()
            try:
                body = json.loads(raw) if raw else None
            except ValueError:
                body = raw.decode("utf-8", "replace")
            seen = Seen(
                request.method, request.url.path, body, dict(request.query_params), dict(request.headers)
            )
            if self.keep_requests:
                self.requests.append(seen)
            fault = next((f for f in self.faults if f.hit < f.times and re.search(f.match, seen.call)), None)
            if fault:
                fault.hit += 1
                if fault.kind == "slow":
                    await asyncio.sleep(fault.seconds)
                elif not fault.after:
                    return self._broken(fault, body)
            if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
                return JSONResponse({"detail": "No access token provided"}, 401)
            schema = self.description and self.description.request_schema(request.method, template)
            if self.description and schema and (wrong := self.description.fits(schema, body)):
                self.violations.append(f"request {seen.call}: {wrong}")
            try:
                result = work(
                    _Call(request.path_params, body if isinstance(body, dict | list) else {}, seen.query)
                )
                if asyncio.iscoroutine(result):
                    result = await result
                if isinstance(result, Response):
                    return result
                status, data = result
            except Refused as refused:
                status, data = refused.status, {"detail": refused.detail}
            seen.status = status
            if fault and fault.after and fault.kind != "slow":
                return self._broken(fault, body)
            if self.description and status < 300:
                wrong = self.description.fits(
                    self.description.answer_schema(request.method, template, status), data
                )
                if wrong:
                    self.violations.append(f"answer {status} {seen.call}: {wrong}")
            if status == 204:
                return Response(status_code=204)
            return (ClosingResponse if status == 500 else JSONResponse)(data, status)

        return endpoint

    def _broken(self, fault: Fault, body: Any) -> Response:
        if fault.kind == "html":
            return HTMLResponse("<html><body><h1>Sign in to the hotel's network</h1></body></html>")
        if fault.kind == "status":
            detail: Any = "An unexpected error occurred"
            if fault.status == 422:
                detail = [{"type": "value_error", "loc": ["body"], "msg": "not to my taste", "input": body}]
            return (ClosingResponse if fault.status == 500 else JSONResponse)(
                {"detail": detail}, fault.status
            )
        return Broken(fault)

    # --- workspaces

    def openapi(self, call: _Call) -> tuple[int, Any]:
        if DESCRIPTION.exists():
            document = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
        else:
            options = {"properties": {"query": {}, "filters": {}}}
            schemas = {"DialecticOptions": options, "PeerRepresentationGet": copy.deepcopy(options)}
            document = {"info": {"version": "3.0.12"}, "components": {"schemas": schemas}}
        if not self.filters:
            document["info"]["version"] = "3.0.11"
            for name in ("DialecticOptions", "PeerRepresentationGet"):
                document["components"]["schemas"][name]["properties"].pop("filters", None)
        return 200, document

    def _workspace(self, id: str) -> Workspace:
        if id not in self.workspaces:
            self.workspaces[id] = Workspace(id, {}, {}, now())
        return self.workspaces[id]

    def workspace_create(self, call: _Call) -> tuple[int, Any]:
        id = call.id()
        status = 200 if id in self.workspaces else 201
        if status == 201:
            made = Workspace(id, call.body.get("metadata") or {}, call.body.get("configuration") or {}, now())
            self.workspaces[id] = made
        return status, _shown(self.workspaces[id])

    def workspace_list(self, call: _Call) -> tuple[int, Any]:
        return 200, call.page([_shown(w) for w in self.workspaces.values() if call.keeps(_shown(w))])

    def workspace_update(self, call: _Call) -> tuple[int, Any]:
        held = self._workspace(call.path["workspace_id"])
        if call.body.get("metadata") is not None:
            held.metadata = call.body["metadata"]
        # Top-level keys are replaced whole; a null changes nothing.
        held.configuration.update(
            {k: v for k, v in (call.body.get("configuration") or {}).items() if v is not None}
        )
        return 200, _shown(held)

    def workspace_delete(self, call: _Call) -> tuple[int, Any]:
        if self.workspaces.pop(call.path["workspace_id"], None) is None:
            raise Refused(404, "Workspace not found")
        return 202, {"message": "Workspace deletion accepted"}

    def queue_status(self, call: _Call) -> tuple[int, Any]:
        names = ("total_work_units", "completed_work_units", "in_progress_work_units", "pending_work_units")
        return 200, dict.fromkeys(names, 0)

    # --- peers

    def _peer(self, workspace: Workspace, id: str) -> dict[str, Any]:
        if id not in workspace.peers:
            peer = {
                "id": id,
                "workspace_id": workspace.id,
                "metadata": {},
                "configuration": {},
                "created_at": now(),
            }
            workspace.peers[id] = peer
        return workspace.peers[id]

    def peer_create(self, call: _Call) -> tuple[int, Any]:
        held = self._workspace(call.path["workspace_id"])
        id = call.id()
        status = 200 if id in held.peers else 201
        return status, self._change(self._peer(held, id), call)

    def peer_update(self, call: _Call) -> tuple[int, Any]:
        return 200, self._change(
            self._peer(self._workspace(call.path["workspace_id"]), call.path["peer_id"]), call
        )

    def _change(self, held: dict[str, Any], call: _Call) -> dict[str, Any]:
        for name in ("metadata", "configuration"):
            if call.body.get(name) is not None:
                held[name] = call.body[name]
        return held

    def peer_list(self, call: _Call) -> tuple[int, Any]:
        peers = self._workspace(call.path["workspace_id"]).peers.values()
        return 200, call.page([peer for peer in peers if call.keeps(peer)])

    def peer_sessions(self, call: _Call) -> tuple[int, Any]:
        held = self._workspace(call.path["workspace_id"])
        found = [
            self._session_shown(held, s) for s in held.sessions.values() if call.path["peer_id"] in s.peers
        ]
        return 200, call.page([s for s in found if s["is_active"] and call.keeps(s)])

    def card_get(self, call: _Call) -> tuple[int, Any]:
        return 200, {"peer_card": self._workspace(call.path["workspace_id"]).cards.get(call.path["peer_id"])}

    def card_put(self, call: _Call) -> tuple[int, Any]:
        self._workspace(call.path["workspace_id"]).cards[call.path["peer_id"]] = list(call.body["peer_card"])
        return self.card_get(call)

    # --- sessions

    def _live(self, workspace: Workspace, id: str) -> Session | None:
        """The session unless there is none; Refused while it is being deleted."""
        found = workspace.sessions.get(id)
        if found is not None and found.gone_at is not None:
            if time.monotonic() < found.gone_at:
                raise Refused(404, f"Session {id} not found in workspace {workspace.id}")
            del workspace.sessions[id]
            workspace.conclusions = [c for c in workspace.conclusions if c["session_id"] != id]
            return None
        return found

    def _session(self, workspace: Workspace, id: str) -> Session:
        found = self._live(workspace, id)
        if found is None:
            found = workspace.sessions[id] = Session(id, {}, {}, now())
        return found

    def _held(self, call: _Call) -> tuple[Workspace, Session]:
        workspace = self._workspace(call.path["workspace_id"])
        found = self._live(workspace, call.path["session_id"])
        if found is None:
            raise Refused(404, f"Session {call.path['session_id']} not found in workspace {workspace.id}")
        return workspace, found

    def _session_shown(self, workspace: Workspace, session: Session) -> dict[str, Any]:
        return {
            "id": session.id,
            "is_active": session.gone_at is None,
            "workspace_id": workspace.id,
            "metadata": session.metadata,
            "configuration": session.configuration,
            "created_at": session.created_at,
        }

    def session_create(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        id = call.id()
        status = 201 if self._live(workspace, id) is None else 200
        session = self._session(workspace, id)
        if call.body.get("metadata") is not None:
            session.metadata = call.body["metadata"]
        session.configuration.update(call.body.get("configuration") or {})
        self._seat(workspace, session, call.body.get("peers") or {})
        return status, self._session_shown(workspace, session)

    def session_update(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        session = self._session(workspace, call.path["session_id"])
        if call.body.get("metadata") is not None:
            session.metadata = call.body["metadata"]
        session.configuration.update(call.body.get("configuration") or {})
        return 200, self._session_shown(workspace, session)

    def session_delete(self, call: _Call) -> tuple[int, Any]:
        _, session = self._held(call)
        session.gone_at = time.monotonic() + self.deletion
        return 202, {"message": "Session deletion accepted"}

    def session_list(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        found = [self._session_shown(workspace, s) for s in workspace.sessions.values()]
        return 200, call.page([s for s in found if s["is_active"] and call.keeps(s)])

    def _seat(self, workspace: Workspace, session: Session, peers: dict[str, Any]) -> None:
        for id, configuration in peers.items():
            if not ID.match(id):
                raise invalid(["peers", id], "String should match pattern '^[a-zA-Z0-9_-]+$'", id)
            self._peer(workspace, id)
            session.peers[id] = configuration

    def session_peers_add(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        session = self._session(workspace, call.path["session_id"])
        self._seat(workspace, session, call.body)
        return 200, self._session_shown(workspace, session)

    def session_peers_set(self, call: _Call) -> tuple[int, Any]:
        workspace, session = self._held(call)
        session.peers.clear()
        self._seat(workspace, session, call.body)
        return 200, self._session_shown(workspace, session)

    def session_peers_remove(self, call: _Call) -> tuple[int, Any]:
        workspace, session = self._held(call)
        for id in call.body:
            session.peers.pop(id, None)
        return 200, self._session_shown(workspace, session)

    def session_peers(self, call: _Call) -> tuple[int, Any]:
        workspace, session = self._held(call)
        return 200, call.page([workspace.peers[id] for id in session.peers])

    def session_peer_config(self, call: _Call) -> tuple[int, Any]:
        return 200, self._held(call)[1].peers.get(call.path["peer_id"], {})

    # --- messages

    def message_create(self, call: _Call) -> tuple[int, Any]:
        batch = call.body.get("messages")
        if not isinstance(batch, list) or not 1 <= len(batch) <= 100:
            raise invalid(
                ["messages"], "List should have at least 1 and at most 100 items", batch, "too_long"
            )
        made = []
        for place, message in enumerate(batch):
            content, peer = message.get("content"), message.get("peer_id")
            where = ["messages", place]
            if not isinstance(content, str) or len(content) > MAX_CONTENT:
                kind = "string_too_long"
                raise invalid(
                    [*where, "content"], "String should have at most 25000 characters", content, kind
                )
            if not isinstance(peer, str) or not ID.match(peer):
                raise invalid([*where, "peer_id"], "String should match pattern '^[a-zA-Z0-9_-]+$'", peer)
            at = message.get("created_at")
            if at is not None:
                try:
                    moment = datetime.fromisoformat(at)
                except (TypeError, ValueError):
                    raise invalid([*where, "created_at"], "Input should be a valid datetime", at) from None
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
                at = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
            metadata = message.get("metadata") or {}
            made.append((content.replace("\0", ""), peer, metadata, at or now()))
        workspace = self._workspace(call.path["workspace_id"])
        session = self._session(workspace, call.path["session_id"])
        answer = []
        for content, peer, metadata, at in made:
            self._peer(workspace, peer)
            session.peers.setdefault(peer, {})
            stored = {
                "id": secrets.token_urlsafe(16),
                "content": content,
                "peer_id": peer,
                "session_id": session.id,
                "metadata": metadata,
                "created_at": at,
                "workspace_id": workspace.id,
                "token_count": len(content) // 4 + 1,
            }
            session.messages.append(stored)
            answer.append(stored)
            if self.derive and session.peers[peer].get("observe_me") is not False:
                self._conclude(workspace, session.id, peer, f"said: {content}")
        return 201, answer

    def _conclude(
        self, workspace: Workspace, session: str | None, peer: str, content: str, level: str = "explicit"
    ) -> dict[str, Any]:
        made = {
            "id": secrets.token_urlsafe(16),
            "content": content,
            "observer_id": peer,
            "observed_id": peer,
            "session_id": session,
            "level": level,
            "created_at": now(),
        }
        workspace.conclusions.append(made)
        return made

    def message_list(self, call: _Call) -> tuple[int, Any]:
        _, session = self._held(call)
        return 200, call.page([m for m in session.messages if call.keeps(m)])

    def message_get(self, call: _Call) -> tuple[int, Any]:
        found = [m for m in self._held(call)[1].messages if m["id"] == call.path["message_id"]]
        if not found:
            raise Refused(404, "Message not found")
        return 200, found[0]

    def search(self, call: _Call) -> tuple[int, Any]:
        query = call.text("query")
        limit = call.body.get("limit", 10)
        if not isinstance(limit, int) or not 1 <= limit <= 100:
            raise invalid(["limit"], "Input should be less than or equal to 100", limit)
        if sum(1.0 if ord(c) > 127 else 0.25 for c in query) > 8192:
            raise Refused(422, "Query exceeds maximum token limit of 8192.")
        if self.model_down:
            raise Refused(500, "An unexpected error occurred")
        workspace = self._workspace(call.path["workspace_id"])
        sessions = [s for s in workspace.sessions.values() if s.gone_at is None]
        if "session_id" in call.path:
            sessions = [s for s in sessions if s.id == call.path["session_id"]]
        wanted = (call.body.get("filters") or {}).get("session_id")
        if isinstance(wanted, dict) and len(wanted.get("in") or ()) >= 65_000:
            raise Refused(500, "An unexpected error occurred")
        found = [m for s in sessions for m in s.messages if call.keeps(m)]
        if "peer_id" in call.path:
            found = [m for m in found if m["peer_id"] == call.path["peer_id"]]
        # What does not match fills the rest: there is no cut-off.
        found.sort(key=lambda m: -_score(query, m["content"]))
        return 200, found[:limit]

    # --- reasoning

    def _allowed(self, call: _Call) -> set[str] | None:
        """The sessions recall is kept to, or None for all; an older server does not look at ``filters``."""
        filters = call.body.get("filters")
        if not self.filters or filters is None:
            return None
        unknown = set(filters) - {"session_id"}
        if unknown or "session_id" not in filters:
            raise Refused(422, f"Unsupported filter key(s) for this endpoint: {sorted(unknown)}.")
        value = filters["session_id"]
        ids = value.get("in") if isinstance(value, dict) else [value] if isinstance(value, str) else value
        if not isinstance(ids, list):
            raise Refused(
                422, "filters.session_id must be a session id, a list of session ids, or {'in': [...]}"
            )
        if len(ids) > 1000:
            raise Refused(422, "filters.session_id supports at most 1000 sessions per request")
        for id in ids:
            if not isinstance(id, str) or not ID.match(id):
                raise Refused(422, f"Invalid session id in filters.session_id: {id!r}.")
        if call.body.get("session_id") and call.body["session_id"] not in ids:
            raise Refused(422, "session_id must be included in filters.session_id")
        return set(ids)

    def _recall(self, workspace: Workspace, peer: str, allowed: set[str] | None, query: str) -> list[str]:
        def kept(session: str | None) -> bool:
            if allowed is None:
                held = workspace.sessions.get(session or "")
                return held is None or held.gone_at is None
            return session in allowed and workspace.sessions[str(session)].gone_at is None

        facts = [
            c["content"] for c in workspace.conclusions if c["observed_id"] == peer and kept(c["session_id"])
        ]
        said = [
            m["content"]
            for s in workspace.sessions.values()
            if kept(s.id)
            for m in s.messages
            if _score(query, m["content"])
        ]
        return facts + said

    async def chat(self, call: _Call) -> Any:
        query = call.text("query")
        if call.body.get("reasoning_level", "low") not in ("minimal", "low", "medium", "high", "max"):
            raise invalid(
                ["reasoning_level"], "Input should be 'minimal', 'low', …", call.body["reasoning_level"]
            )
        allowed = self._allowed(call)
        workspace = self._workspace(call.path["workspace_id"])
        target = call.body.get("target")
        if target and target not in workspace.peers:
            raise Refused(404, f"Peer {target} not found")
        if call.body.get("session_id") and self._live(workspace, call.body["session_id"]) is None:
            raise Refused(404, "Session not found")
        peer = call.path["peer_id"]
        self._peer(workspace, peer)
        if self.model_down:
            await asyncio.sleep(0.2)
            raise Refused(500, "An unexpected error occurred")
        lines = self._recall(workspace, target or peer, allowed, query)
        if (workspace.configuration.get("peer_card") or {}).get("use") is not False:
            card = workspace.cards.get(target or peer)
            if card:
                lines.insert(0, "<peer_card>" + " ".join(card) + "</peer_card>")
        self.prompts.append("\n".join(lines))
        content = "What I know: " + " | ".join(lines) if lines else "I have nothing to answer from."
        if call.body.get("stream"):

            async def events() -> Any:
                for part in (content[: len(content) // 2], content[len(content) // 2 :]):
                    yield f"data: {json.dumps({'delta': {'content': part}, 'done': False})}\n\n"
                yield f"data: {json.dumps({'done': True})}\n\n"

            return StreamingResponse(events(), media_type="text/event-stream")
        return 200, {"content": content}

    def representation(self, call: _Call) -> tuple[int, Any]:
        allowed = self._allowed(call)
        workspace = self._workspace(call.path["workspace_id"])
        peer = call.body.get("target") or call.path["peer_id"]
        if self.model_down or peer not in workspace.peers:
            return 200, {"representation": ""}
        facts = self._recall(workspace, peer, allowed, "")
        return 200, {"representation": "\n".join(facts)}

    # --- conclusions

    def conclusion_create(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        made = []
        for given in call.body["conclusions"]:
            one = self._conclude(workspace, given.get("session_id"), given["observed_id"], given["content"])
            one["observer_id"] = given["observer_id"]
            made.append(one)
        return 201, made

    def conclusion_list(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        return 200, call.page([c for c in workspace.conclusions if call.keeps(c)])

    def conclusion_query(self, call: _Call) -> tuple[int, Any]:
        workspace = self._workspace(call.path["workspace_id"])
        found = [c for c in workspace.conclusions if call.keeps(c)]
        found.sort(key=lambda c: -_score(call.body["query"], c["content"]))
        return 200, found[: call.body.get("top_k", 10)]


def _shown(workspace: Workspace) -> dict[str, Any]:
    return {
        "id": workspace.id,
        "metadata": workspace.metadata,
        "configuration": workspace.configuration,
        "created_at": workspace.created_at,
    }


def _score(query: str, text: str) -> int:
    text = text.lower()
    return sum(1 for word in set(re.findall(r"\w{3,}", query.lower())) if word in text)


class _Call:
    """One call: what stands in the path, the body and the query string."""

    def __init__(self, path: dict[str, str], body: Any, query: dict[str, str]) -> None:
        self.path, self.body, self.query = path, body, query

    def id(self) -> str:
        given = self.body.get("id")
        if not isinstance(given, str) or not ID.match(given):
            raise invalid(
                ["id"], "String should match pattern '^[a-zA-Z0-9_-]+$'", given, "string_pattern_mismatch"
            )
        return given

    def text(self, name: str) -> str:
        given = self.body.get(name)
        if not isinstance(given, str) or not 1 <= len(given) <= 10_000:
            raise invalid([name], "String should have at most 10000 characters", given, "string_too_long")
        return given

    def page(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        page, size = int(self.query.get("page", 1)), int(self.query.get("size", 50))
        if size > 100:
            raise Refused(
                422,
                [{"type": "less_than_equal", "loc": ["query", "size"], "msg": "at most 100", "input": size}],
            )
        if self.query.get("reverse") == "true":
            items = items[::-1]
        pages = -(-len(items) // size)
        part = items[(page - 1) * size : page * size]
        return {"items": part, "total": len(items), "page": page, "size": size, "pages": pages}

    def keeps(self, item: dict[str, Any]) -> bool:
        filters = self.body.get("filters") if isinstance(self.body, dict) else None
        return _matches(filters, item) if filters else True


def _matches(filters: dict[str, Any], item: dict[str, Any]) -> bool:
    for key, wanted in filters.items():
        if key == "AND":
            ok = all(_matches(one, item) for one in wanted)
        elif key == "OR":
            ok = any(_matches(one, item) for one in wanted)
        elif key == "NOT":
            ok = not any(_matches(one, item) for one in wanted)
        elif key == "metadata" and isinstance(wanted, dict):
            ok = all(_fits((item.get("metadata") or {}).get(name), value) for name, value in wanted.items())
        elif key not in item:
            raise Refused(422, f"Column '{key}' is not allowed to be filtered on or does not exist")
        else:
            ok = _fits(item[key], wanted)
        if not ok:
            return False
    return True


def _fits(value: Any, wanted: Any) -> bool:
    if wanted == "*":
        return True
    if isinstance(wanted, list):
        wanted = {"in": wanted}
    if isinstance(wanted, dict):
        for operator, operand in wanted.items():
            if operator == "in":
                # A star in the list reads as everything.
                if "*" not in operand and value not in operand:
                    return False
            elif operator == "ne":
                if value == operand:
                    return False
            else:
                raise Refused(422, f"unsupported operator {operator!r}")
        return True
    return bool(value == wanted)
