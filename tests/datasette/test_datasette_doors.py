"""The HTTP doors, as a program meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from houses import cookies, with_permissions

from wheelmem import demo

ORCHARD = {"circle_id": demo.ORCHARD}


class Program:
    """A client that carries the owner's cookie, and answers with (status, JSON)."""

    def __init__(self, ds: Any, **actor: Any) -> None:
        self.ds = ds
        self.sent = {"cookies": cookies(ds, **(actor or {"id": "root"}))}

    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        given = {"json": body} if body is not None else {}
        response = await self.ds.client.request(method, path, **given, **self.sent, **options)
        assert "no-store" in response.headers["cache-control"]
        return response.status_code, response.json()


@pytest.fixture
async def owner(wheel_file: Path, make: Any) -> Program:
    ds = make([wheel_file])
    await ds.invoke_startup()
    return Program(ds)


async def test_ask_search_and_about(owner: Program) -> None:
    status, found = await owner("POST", "/api/memory/ask", {"question": demo.QUESTION, "scope": ORCHARD, "limit": 2})
    assert status == 200
    assert found["mode"] == "matched"
    assert len(found["sources"]) == 2
    assert {source["ceremony_id"] for source in found["sources"]} <= set(found["reach"]["ceremonies"])
    status, found = await owner("POST", "/api/memory/search", {"query": "lantern", "scope": ORCHARD, "explain": True})
    assert status == 200
    assert "explain" in found["sources"][0]
    status, found = await owner("POST", "/api/memory/about", {"person": demo.MIRA, "scope": ORCHARD})
    assert {source["speaker"] for source in found["sources"]} == {demo.MIRA}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("ask", {"scope": {}}, "question must be some words"),
        ("ask", {"question": " ", "scope": {}}, "question must be some words"),
        ("search", {"scope": {}}, "query must be some words"),
        ("about", {"scope": {}}, "person must be some words"),
        ("ask", {"question": "x" * 10_001, "scope": {}}, "10,001 characters"),
        ("ask", {"question": "x"}, "scope must be an object"),
        ("ask", {"question": "x", "scope": ["circle"]}, "scope must be an object"),
        ("ask", {"question": "x", "scope": {"circle_id": 5}}, "scope.circle_id must be a string or a list of strings"),
        ("ask", {"question": "x", "scope": {"circles": []}}, "scope does not know circles"),
        ("ask", {"question": "x", "scope": {}, "reasoning_level": "huge"}, "reasoning_level"),
        ("ask", {"question": "x", "scope": {}, "peer": 1}, "peer must be a string"),
        ("ask", {"question": "x", "scope": {}, "explain": "yes"}, "explain must be true or false"),
        ("search", {"query": "x", "scope": {}, "arms": "fts5"}, "arms must be a list of strings"),
        ("search", {"query": "x", "scope": {}, "arms": ["nobody"]}, "no arm is named"),
    ],
)
async def test_what_does_not_fit_is_400_and_says_why(owner: Program, path: str, body: Any, said: str) -> None:
    status, found = await owner("POST", f"/api/memory/{path}", body)
    assert status == 400
    assert list(found) == ["error"]
    assert said in found["error"]


@pytest.mark.parametrize("limit", [0, -1, 1.5, "many", True, None, []])
async def test_a_limit_that_is_none_counts_as_not_given(owner: Program, limit: Any) -> None:
    status, found = await owner(
        "POST", "/api/memory/search", {"query": "lantern", "scope": {"participant": demo.MIRA}, "limit": limit}
    )
    assert status == 200
    assert found["sources"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"a": NaN}', b"[" * 100_000, b"9" * 5000])
async def test_a_body_that_is_no_object_is_400(owner: Program, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    response = await owner.ds.client.post("/api/memory/ask", content=body, headers=headers, **owner.sent)
    assert response.status_code == 400
    assert "error" in response.json()


async def test_bodies_up_to_one_megabyte(owner: Program) -> None:
    small = {"question": "lantern", "scope": {"circle_id": [demo.ORCHARD, *("x" * 100 for _ in range(9_500))]}}
    assert 950_000 < len(json.dumps(small)) < 1_048_576
    assert (await owner("POST", "/api/memory/ask", small))[0] == 200
    large = {"type": "human", "name": "x" * 1_100_000}
    assert (await owner("POST", "/api/nodes", large))[0] == 413
    headers = {"content-type": "application/json", "content-length": "5"}
    lying = await owner.ds.client.post("/api/nodes", content=json.dumps(large).encode(), headers=headers, **owner.sent)
    assert lying.status_code == 413
    assert (await owner("GET", "/api/health"))[1]["counts"]["nodes"] == 10


async def test_health_and_status(owner: Program) -> None:
    status, found = await owner("GET", "/api/health")
    assert status == 200
    assert {"status": "healthy", "provider": "sqlite", "honcho": {"enabled": False}}.items() <= found.items()
    assert found["counts"]["ceremonies"] == 12
    status, found = await owner("GET", "/api/memory")
    assert [one["provider"] for one in found["providers"]] == ["wheel"]
    assert "river" in found


async def test_wrong_methods_are_told_which_are_right(owner: Program) -> None:
    response = await owner.ds.client.put("/api/nodes", json={}, **owner.sent)
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD, POST"


async def test_nodes(owner: Program) -> None:
    status, made = await owner("POST", "/api/nodes", {"type": "human", "name": "Ida", "direction": "east"})
    assert (status, made["success"], made["provider"]) == (201, True, "sqlite")
    node = made["node"]
    path = f"/api/nodes/{quote(node['id'], safe='')}"
    assert (await owner("GET", path))[1] == {"node": node}
    status, found = await owner("GET", "/api/nodes?type=human&limit=1")
    assert found["nodes"] == [node]
    assert (found["count"], found["matched"], found["total"], found["truncated"]) == (1, 5, 11, True)
    status, found = await owner("GET", "/api/nodes?limit=all")
    assert (found["count"], found["truncated"], "matched" in found) == (11, False, False)
    status, found = await owner("PATCH", path, {"direction": None, "description": "who came late"})
    assert "direction" not in found["node"]
    assert found["node"]["description"] == "who came late"
    assert found["node"]["created_at"] == node["created_at"]
    assert (await owner("PATCH", path, {"type": "robot"}))[0] == 400
    assert (await owner("POST", "/api/edges", {"from_id": node["id"], "to_id": demo.FERRY, "relationship_type": "member_of"}))[
        0
    ] == 201
    assert (await owner("DELETE", path))[0] == 409
    assert (await owner("DELETE", f"/api/edges?from={node['id']}&to={demo.FERRY}"))[0] == 200
    assert (await owner("DELETE", path))[0] == 200
    assert (await owner("DELETE", path))[0] == 404
    assert (await owner("GET", path))[0] == 404


async def test_edges(owner: Program) -> None:
    edge = {"from_id": demo.MIRA, "to_id": demo.FERRY, "relationship_type": "visits"}
    status, made = await owner("POST", "/api/edges", edge)
    assert (status, made["replaced"], made["edge"]["strength"]) == (201, False, 0.5)
    assert (await owner("POST", "/api/edges", {**edge, "strength": 1}))[1]["replaced"] is True
    status, found = await owner("GET", f"/api/edges?from={demo.MIRA}&to={demo.FERRY}")
    assert [one["relationship_type"] for one in found] == ["visits"]
    status, found = await owner("PATCH", f"/api/edges?from={demo.MIRA}&to={demo.FERRY}", {"obligations": ["listen"]})
    assert (found["edge"]["obligations"], found["edge"]["strength"]) == (["listen"], 1)
    for body, status in (
        ({**edge, "to_id": demo.MIRA}, 400),
        ({**edge, "to_id": "nobody"}, 404),
        ({**edge, "strength": 2}, 400),
        ({"from_id": demo.MIRA}, 400),
    ):
        assert (await owner("POST", "/api/edges", body))[0] == status
    assert (await owner("DELETE", "/api/edges?from=x"))[0] == 400
    assert (await owner("DELETE", "/api/edges?from=x&to=y"))[0] == 404
    assert (await owner("PATCH", "/api/edges?from=x&to=y", {}))[0] == 404


async def test_ceremonies(owner: Program) -> None:
    body = {
        "type": "talking_circle",
        "research_context": {"episode_path": "2026-04-01-episode-004-thaw"},
        "circle_id": demo.FERRY,
    }
    status, made = await owner("POST", "/api/ceremonies", body)
    assert status == 201
    id = made["ceremony"]["id"]
    status, found = await owner("GET", "/api/ceremonies?episode_path=2026-04-01-episode-004-thaw")
    assert [one["id"] for one in found["ceremonies"]] == [id]
    assert (await owner("GET", "/api/ceremonies?limit=1"))[1]["ceremonies"][0]["id"] == id
    status, closing = await owner("POST", "/api/ceremonies", {"type": "closing", "closes": id})
    assert status == 201
    assert (await owner("GET", f"/api/ceremonies?closes={id}"))[1]["matched"] == 1
    status, found = await owner("DELETE", f"/api/ceremonies/{id}")
    assert (status, "1 closing" in found["error"]) == (409, True)
    assert (await owner("DELETE", f"/api/ceremonies/{closing['ceremony']['id']}"))[0] == 200
    for body, wanted in (
        ({"type": "closing", "closes": "ceremony:none"}, 404),
        ({"type": "opening", "circle_id": "circle:none"}, 404),
        ({"type": "opening", "episode_path": "soon"}, 400),
        ({"type": "party"}, 400),
        ({}, 400),
    ):
        assert (await owner("POST", "/api/ceremonies", body))[0] == wanted


async def test_turns(owner: Program) -> None:
    status, beats = await owner("GET", "/api/narrative/beats")
    assert len(beats) == 20
    assert [beat["timestamp"] for beat in beats] == sorted((beat["timestamp"] for beat in beats), reverse=True)
    status, some = await owner("GET", "/api/narrative/beats?ceremony=ceremony:demo:o2&limit=2")
    assert len(some) == 2
    assert {beat["ceremonies"][0] for beat in some} == {"ceremony:demo:o2"}
    status, beat = await owner("POST", "/api/narrative/beats", {"direction": "east", "title": "Dawn"})
    assert (status, beat["act"], bool(beat["warnings"])) == (201, 1, True)
    assert (await owner("POST", "/api/narrative/beats", {"direction": "up", "title": "Dawn"}))[0] == 400
    path = f"/api/narrative/beats/{quote(beat['id'])}"
    assert "warnings" not in (await owner("GET", path))[1]
    await owner("PATCH", path, {"witnesses": [demo.MIRA]})
    status, found = await owner("PATCH", path, {"witnesses": [demo.TOMAS, demo.MIRA], "speaker": demo.YUKI})
    assert (found["witnesses"], found["speaker"]) == ([demo.MIRA, demo.TOMAS], demo.YUKI)
    assert (await owner("PATCH", path, {"title": "Dusk"}))[0] == 400
    assert (await owner("PATCH", "/api/narrative/beats/none", {"speaker": "x"}))[0] == 404


async def test_diary(owner: Program) -> None:
    status, found = await owner("GET", "/api/diary")
    assert [entry["timestamp"] for entry in found["entries"]] == sorted(entry["timestamp"] for entry in found["entries"])
    entry = {"participant": demo.MIRA, "content": "It held.", "phase": "ningwaab", "metadata": {"tags": ["bridge", "spring"]}}
    status, made = await owner("POST", "/api/diary", entry)
    assert status == 201
    id = made["entry"]["id"]
    for query in ("tag=bridge", "tag=bridge&tag=spring", f"participant={demo.MIRA}&phase=ningwaab&tag=spring"):
        assert [one["id"] for one in (await owner("GET", f"/api/diary?{query}"))[1]["entries"]] == [id]
    assert (await owner("GET", "/api/diary?tag=bridge&tag=autumn"))[1]["matched"] == 0
    assert (await owner("POST", "/api/diary", {**entry, "ceremony_id": "ceremony:none"}))[0] == 404
    assert (await owner("POST", "/api/diary", {**entry, "phase": "tuesday"}))[0] == 400
    assert (await owner("DELETE", f"/api/diary/{id}"))[0] == 200
    assert (await owner("GET", f"/api/diary/{id}"))[0] == 404


async def test_what_was_recorded_is_found_at_once(owner: Program) -> None:
    beat = {"direction": "south", "title": "A word like quillwort", "ceremonies": ["ceremony:demo:o2"]}
    _, made = await owner("POST", "/api/narrative/beats", beat)
    _, found = await owner("POST", "/api/memory/search", {"query": "quillwort", "scope": ORCHARD})
    assert found["sources"][0]["wheel_id"] == made["id"]


async def test_conclusions_are_kept_and_judged_by_the_actor(wheel_file: Path, make: Any) -> None:
    ds = make([wheel_file], with_permissions(memory_judge={"id": "keeper"}, memory_read={"id": "keeper"}))
    await ds.invoke_startup()
    owner, keeper = Program(ds), Program(ds, id="keeper", wheel_id=demo.MIRA)
    body = {"about": demo.MIRA, "content": "likes lanterns", "kind": "preference", "source_event_ids": ["beat:demo:3"]}
    status, made = await owner("POST", "/api/memory/conclusions", body)
    assert (status, made["node"]["metadata"]["status"]) == (201, "inferred")
    path = f"/api/memory/conclusions/{quote(made['node']['id'], safe='')}"
    status, found = await keeper("PATCH", path, {"status": "confirmed", "by": demo.TOMAS})
    assert status == 200
    assert (found["node"]["metadata"]["status"], found["node"]["metadata"]["judged_by"]) == ("confirmed", demo.MIRA)
    assert found["node"]["metadata"]["judged_at"]
    assert (await owner("PATCH", "/api/memory/conclusions/" + quote(demo.MIRA), {"status": "confirmed"}))[0] == 404
    assert (await owner("PATCH", path, {"status": "true"}))[0] == 400
    assert (await owner("POST", "/api/memory/conclusions", {**body, "source_event_ids": ["beat:none"]}))[0] == 404
    assert (await owner("POST", "/api/memory/conclusions", {**body, "kind": "fact"}))[0] == 400
    assert (await Program(ds, id="ana")("PATCH", path, {"status": "rejected"}))[0] == 403


async def test_resend_without_a_provider(owner: Program) -> None:
    assert (await owner("POST", "/api/memory/resend", {"kind": "beat", "id": "beat:demo:3"}))[0] == 409
    assert (await owner("POST", "/api/memory/resend", {"kind": "beat"}))[0] == 400


async def test_without_a_wheel_it_says_how_to_get_one(other_file: Path, make: Any) -> None:
    ds = make([other_file])
    await ds.invoke_startup()
    status, found = await Program(ds)("GET", "/api/health")
    assert (status, "wheelmem serve" in found["error"]) == (503, True)


async def test_the_setting_database_names_the_wheel(wheel_file: Path, tmp_path: Path, make: Any) -> None:
    from wheelmem import load_plugins, open_wheel

    second = tmp_path / "second.db"
    open_wheel(second, plugins=load_plugins()).close()
    for name, ceremonies in (("second", 0), ("hearth", 12)):
        ds = make([wheel_file, second], {"plugins": {"wheelmem": {"database": name}}})
        await ds.invoke_startup()
        assert (await Program(ds)("GET", "/api/health"))[1]["counts"]["ceremonies"] == ceremonies
    ds = make([wheel_file], {"plugins": {"wheelmem": {"database": "third"}}})
    await ds.invoke_startup()
    assert "third" in (await Program(ds)("GET", "/api/health"))[1]["error"]


async def test_an_immutable_wheel_is_read_and_not_written(wheel_file: Path, make: Any) -> None:
    ds = make([], immutables=[str(wheel_file)])
    await ds.invoke_startup()
    owner = Program(ds)
    assert (await owner("POST", "/api/memory/search", {"query": "lantern", "scope": ORCHARD}))[0] == 200
    status, found = await owner("POST", "/api/nodes", {"type": "human", "name": "Ida"})
    assert (status, "read-only" in found["error"]) == (403, True)


# --- from another site ----------------------------------------------------------------------------------------------

ASK = {"question": "lantern", "scope": ORCHARD}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "authorization": "Bearer nonsense"},
    ],
)
async def test_cookies_do_nothing_from_another_site(owner: Program, headers: dict[str, str]) -> None:
    for method, path, body in (
        ("POST", "/api/memory/ask", ASK),
        ("POST", "/api/nodes", {"type": "human", "name": "Eve"}),
        ("DELETE", "/api/diary/diary:demo:1", None),
        ("GET", "/api/nodes", None),
    ):
        given = {"json": body} if body is not None else {}
        response = await owner.ds.client.request(method, path, headers=headers, **given, **owner.sent)
        if method == "GET" and "sec-fetch-site" not in headers:
            headers_seen = response.headers
            assert response.status_code == 403 or "access-control-allow-origin" not in headers_seen
            continue
        assert response.status_code == 403, (method, path)
        assert "lantern" not in response.text
    assert (await owner("GET", "/api/health"))[1]["counts"]["nodes"] == 10


async def test_a_form_on_another_site_is_no_json(owner: Program) -> None:
    for type in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"content-type": type} if type else {}
        response = await owner.ds.client.post(
            "/api/nodes", content=b'{"type":"human","name":"Eve"}', headers=headers, **owner.sent
        )
        assert response.status_code in (403, 415)
    assert (await owner("GET", "/api/health"))[1]["counts"]["nodes"] == 10


@pytest.mark.parametrize(
    "headers", [{"origin": "http://localhost"}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {}]
)
async def test_cookies_work_on_the_same_site(owner: Program, headers: dict[str, str]) -> None:
    assert (await owner("POST", "/api/memory/ask", ASK, headers=headers))[0] == 200


async def test_bearer_tokens_work(wheel_file: Path, make: Any) -> None:
    from houses import ONE_POINT_OH

    config: dict[str, Any] = with_permissions("open", memory_ask={"id": "program"}, memory_write={"id": "program"})
    if not ONE_POINT_OH:
        pytest.importorskip("datasette_auth_tokens")
        config["plugins"]["datasette-auth-tokens"] = {"tokens": [{"token": "sesame", "actor": {"id": "program"}}]}
    ds = make([wheel_file], config)
    await ds.invoke_startup()
    token = ds.sign({"a": "program", "t": 1, "d": None}, "token") if ONE_POINT_OH else "sesame"
    headers = {"authorization": f"Bearer {'dstok_' if ONE_POINT_OH else ''}{token}"}
    response = await ds.client.post("/api/memory/ask", json=ASK, headers=headers)
    assert response.status_code == 200
    assert response.json()["sources"]
    assert (await ds.client.post("/api/nodes", json={"type": "human", "name": "Ida"}, headers=headers)).status_code == 201
    assert (await ds.client.get("/api/nodes", headers=headers)).status_code == 403
    assert (await ds.client.post("/api/memory/ask", json=ASK, headers={"authorization": "Bearer wrong"})).status_code == 403
