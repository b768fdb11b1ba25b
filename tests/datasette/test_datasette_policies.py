"""What a policy holds back does not show: in no answer, page, picker, error or count, for wheels and actors at random."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable
from difflib import ndiff
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from houses import cookies, make_datasette, with_permissions
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelmem import load_plugins, open_wheel
from wheelmem.reach import resolve_reach

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
PEOPLE = [f"node:human:17000000000{n}:p{n}" for n in range(4)]
CIRCLES = [f"circle:17000000000{n}:c{n}" for n in range(3)]
EPISODES = ["2026-01-01-episode-1-rain", "2026-02-02-episode-2-snow"]
SUBJECTS = ["review:a", "review:b"]
ALL = {"memory_ask": {"id": "*"}, "memory_write": {"id": "*"}, "memory_judge": {"id": "*"}}


class World:
    """A wheel at random. Each record holds a word of its own, so that any sight of it can be told."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.words: dict[tuple[str, str], str] = {}
        for n, person in enumerate(PEOPLE):
            self.rows.append(("node", {"id": person, "type": "human", "name": f"Person{n}"}))
        for n, circle in enumerate(CIRCLES):
            self.rows.append(("node", {"id": circle, "type": "circle", "name": f"Circle{n}"}))
            for person in random.sample(PEOPLE, random.randint(0, 2)):
                self.rows.append(("edge", {"from_id": person, "to_id": circle, "relationship_type": "member_of"}))
        self.ceremonies: list[dict[str, Any]] = []
        for n in range(random.randint(3, 8)):
            id = f"ceremony:{self.word()}"
            ceremony: dict[str, Any] = {
                "id": id,
                "type": random.choice(["opening", "talking_circle", "closing"]),
                "direction": random.choice(["east", "south", "west", "north"]),
                "timestamp": f"2026-03-{n + 1:02}T10:00:00Z",
                "participants": random.sample(PEOPLE, random.randint(0, 2)),
                "intentions": [f"lantern {self.marked('ceremony', id)}"],
            }
            if random.random() < 0.6:
                ceremony["circle_id"] = random.choice(CIRCLES)
            if random.random() < 0.4:
                ceremony["subject_id"] = random.choice(SUBJECTS)
            if random.random() < 0.4:
                ceremony["episode_path"] = random.choice(EPISODES)
            if self.ceremonies and random.random() < 0.3:
                ceremony["closes"] = random.choice(self.ceremonies)["id"]
            self.ceremonies.append(ceremony)
            self.rows.append(("ceremony", ceremony))
        ids = [one["id"] for one in self.ceremonies]
        self.homes: dict[tuple[str, str], list[str]] = {("ceremony", id): [id] for id in ids}
        for n in range(random.randint(6, 16)):
            id = f"beat:{self.word()}"
            homes = random.sample(ids, random.choice([1, 1, 1, 2]))
            beat = {
                "id": id,
                "direction": "south",
                "title": f"lantern {self.marked('beat', id)}",
                "description": "the lantern colour",
                "ceremonies": homes,
                "speaker": random.choice(PEOPLE),
                "timestamp": f"2026-03-{n + 1:02}T11:00:00Z",
                "witnesses": random.sample(PEOPLE, 1),
            }
            self.homes["beat", id] = homes
            self.rows.append(("beat", beat))
        self.own: dict[tuple[str, str], str] = {}
        for n in range(random.randint(2, 6)):
            id = f"diary:{self.word()}"
            entry: dict[str, Any] = {
                "id": id,
                "participant": random.choice(PEOPLE),
                "content": f"lantern {self.marked('diary', id)}",
                "timestamp": f"2026-03-{n + 1:02}T12:00:00Z",
            }
            if random.random() < 0.5:
                entry["metadata"] = {"ceremony_id": random.choice(ids)}
                self.homes["diary", id] = [entry["metadata"]["ceremony_id"]]
            else:
                entry["chronicle"] = f"chronicle:{random.choice(EPISODES)}"
                self.homes["diary", id] = []
                self.own["diary", id] = entry["participant"]
            self.rows.append(("diary", entry))
        self.conclusions: dict[str, list[tuple[str, str]]] = {}
        for _ in range(random.randint(1, 4)):
            sources = random.sample(sorted(self.homes), random.randint(1, 2))
            id = f"node:knowledge:memory_projection:{self.word()}"
            metadata = {
                "kind": "memory_projection",
                "projection_kind": "pattern",
                "status": random.choice(["inferred", "confirmed", "rejected"]),
                "source_event_ids": [id for _, id in sources],
                "about": random.choice(PEOPLE),
                "generated_at": "2026-03-05T10:00:00Z",
            }
            self.conclusions[id] = sources
            words = f"lantern {self.marked('conclusion', id)}"
            self.rows.append(("node", {"id": id, "type": "knowledge", "name": words, "description": words, "metadata": metadata}))

    def word(self) -> str:
        return "".join(self.random.choices("bcdfghjklmnpqrstvwxz", k=12))

    def marked(self, kind: str, id: str) -> str:
        """A word for this record alone."""
        self.words[kind, id] = self.word()
        return self.words[kind, id]

    def seats(self) -> list[dict[str, str]]:
        return [{"person_id": row["from_id"], "circle_id": row["to_id"]} for kind, row in self.rows if kind == "edge"]

    def reached(self, scopes: list[dict[str, Any]]) -> set[str]:
        return {id for scope in scopes for id in resolve_reach(scope, self.ceremonies, self.seats()).ceremonies}

    def forbidden(self, scopes: list[dict[str, Any]], person: str | None) -> dict[str, str]:
        """What must not show for an actor with these scopes: words, and ids, by the record's id."""
        inside = self.reached(scopes)
        episodes = {path for scope in scopes for path in ([scope["episode_path"]] if "episode_path" in scope else [])}
        out: dict[str, str] = {}
        seen = set()
        for key, homes in self.homes.items():
            chronicle = next((row.get("chronicle", "") for kind, row in self.rows if (kind, row.get("id", "")) == key), "")
            if inside & set(homes) or (
                not homes and (self.own[key] == person or chronicle.removeprefix("chronicle:") in episodes)
            ):
                seen.add(key)
        for key, word in self.words.items():
            kind, id = key
            if kind == "conclusion":
                visible = {
                    source for source in self.conclusions[id] if source in seen and not (not self.homes[source] and not episodes)
                }
                if set(self.conclusions[id]) <= visible:
                    continue
            elif key in seen:
                continue
            out[id] = word
        return out


def scopes_at_random(world: World) -> list[dict[str, Any]]:
    random = world.random
    kinds: list[Callable[[], dict[str, Any]]] = [
        lambda: {"circle_id": random.choice(CIRCLES)},
        lambda: {"ceremonies": [random.choice(world.ceremonies)["id"]]},
        lambda: {"participant": random.choice(PEOPLE)},
        lambda: {"subject_id": random.choice(SUBJECTS)},
        lambda: {"episode_path": random.choice(EPISODES)},
    ]
    return [random.choice(kinds)() for _ in range(random.randint(1, 2))]


async def with_world(seed: int, policy: str, check: Callable[..., Awaitable[None]]) -> None:
    world = World(seed)
    person = world.random.choice(PEOPLE)
    scopes = [{"participant": person}] if policy == "seated" else scopes_at_random(world)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "house.db"
        with open_wheel(path, plugins=load_plugins()) as wheel:
            for kind, record in world.rows:
                wheel.put(kind, record)
        config = with_permissions(policy, {"guest": {"wheel_id": person, "scopes": scopes}}, **ALL)
        ds = make_datasette([path], config)
        try:
            await ds.invoke_startup()
            await check(world, ds, scopes, person if policy == "seated" else None)
        finally:
            for database in ds.databases.values():
                database.close()


def everything_to_read(world: World) -> list[tuple[str, str, Any]]:
    """(method, address, body) of what could show something: every door and page, for every id there is and one there is not."""
    asks: list[tuple[str, str, Any]] = []
    wide: list[dict[str, Any]] = [
        {"ceremonies": [one["id"] for one in world.ceremonies]},
        {"circle_id": CIRCLES},
        {"subject_id": SUBJECTS, "episode_path": EPISODES},
        *({"participant": person} for person in PEOPLE),
    ]
    for scope in wide:
        asks += [
            ("POST", "/api/memory/ask", {"question": "what colour is the lantern", "scope": scope, "limit": 50, "explain": True}),
            ("POST", "/api/memory/search", {"query": "lantern", "scope": scope, "limit": 50}),
            ("POST", "/api/memory/about", {"person": world.random.choice(PEOPLE), "scope": scope, "limit": 50}),
        ]
        flat = dict(scope)
        asks += [
            ("GET", "/-/memory?" + urlencode({"q": "lantern", **flat}, doseq=True), None),
            ("GET", "/-/memory?" + urlencode({"go": "reach", **flat}, doseq=True), None),
        ]
    for text in ("ceremony", "Circle", "Person", "episode", "review", "2026", "opening", "lantern", "a", "e"):
        asks += [("GET", f"/-/memory/pick?find={text}", None), ("GET", f"/-/memory?go=find&find={text}", None)]
    asks += [("GET", "/-/memory", None), ("GET", "/api/memory", None), ("GET", "/api/health", None)]
    for path in ("nodes", "edges", "ceremonies", "narrative/beats", "diary"):
        asks.append(("GET", f"/api/{path}?limit=all", None))
    for person in PEOPLE:
        asks.append(("GET", f"/-/memory/people/{quote(person, safe='')}", None))
    for kind, id in world.words:
        path = {"ceremony": "ceremonies", "beat": "narrative/beats", "diary": "diary", "conclusion": "nodes"}[kind]
        asks.append(("GET", f"/api/{path}/{quote(id, safe='')}", None))
    asks += [
        ("GET", path, None) for path in ("/house", "/house/records.json", "/house.db", "/-/databases.json", "/-/metadata.json")
    ]
    return asks


@settings(max_examples=3 * REPEATS)
@given(seed=st.integers(0, 10**9), policy=st.sampled_from(["seated", "scopes"]))
def test_nothing_forbidden_shows(seed: int, policy: str) -> None:
    async def check(world: World, ds: Any, scopes: list[dict[str, Any]], person: str | None) -> None:
        forbidden = world.forbidden(scopes, person)
        sent = {"cookies": cookies(ds, id="guest")}
        for method, address, body in everything_to_read(world):
            given = {"json": body} if body is not None else {}
            response = await ds.client.request(method, address, **given, **sent)
            assert response.status_code != 500, (address, response.text)
            # What they themselves named may be said back to them.
            named = json.dumps(body) if body is not None else address
            for id, word in forbidden.items():
                assert word not in response.text, (method, address, body, id, response.text[:2000])
                if (
                    id not in named
                    and quote(id, safe="") not in named
                    and quote(id) not in named
                    and urlencode({"": id}) not in named
                ):
                    assert id not in response.text, (method, address, body, id)
            if address.startswith("/api/memory/") and method == "POST":
                assert response.json()["note"].endswith("this answer draws on no more than you may see here")

    asyncio.run(with_world(seed, policy, check))


@settings(max_examples=3 * REPEATS)
@given(seed=st.integers(0, 10**9), policy=st.sampled_from(["seated", "scopes"]))
def test_unknown_and_forbidden_are_alike(seed: int, policy: str) -> None:
    async def check(world: World, ds: Any, scopes: list[dict[str, Any]], person: str | None) -> None:
        inside = world.reached(scopes)
        sent = {"cookies": cookies(ds, id="guest")}

        async def said(method: str, path: str, id: str, body: Any = None) -> tuple[int, str]:
            # The unknown ids are as long as the known ones, so what is said back is the same length.
            text = json.loads(json.dumps(body).replace("ID", id)) if body is not None else None
            given = {"json": text} if text is not None else {}
            response = await ds.client.request(method, path.replace("ID", quote(id, safe="")), **given, **sent)
            html = re.sub(r'(name="csrftoken" value=)"[^"]*"', r"\1", response.text)
            return response.status_code, html.replace(id, "ID").replace(quote(id, safe=""), "ID").replace(quote(id), "ID")

        for kind, id in world.words:
            if kind == "conclusion":
                if id not in world.forbidden(scopes, person):
                    continue
            elif set(world.homes[kind, id]) & inside or not world.homes[kind, id]:
                continue
            unknown = id[:-12] + world.word()
            calls: list[tuple[str, str, Any]] = []
            if kind == "ceremony":
                scope = {"ceremonies": ["ID"]}
                calls = [
                    ("GET", "/-/memory/ceremonies/ID", None),
                    ("GET", "/-/memory?q=lantern&ceremonies=ID", None),
                    ("POST", "/api/memory/search", {"query": "lantern", "scope": scope}),
                    ("POST", "/api/memory/ask", {"question": "lantern", "scope": {**scope, "exclude_ceremonies": ["ID"]}}),
                    ("POST", "/api/narrative/beats", {"direction": "east", "title": "x", "ceremonies": ["ID"]}),
                    ("POST", "/api/diary", {"participant": PEOPLE[0], "content": "x", "ceremony_id": "ID"}),
                    ("POST", "/api/diary", {"participant": PEOPLE[0], "content": "x", "metadata": {"ceremony_id": "ID"}}),
                    ("POST", "/api/ceremonies", {"type": "closing", "closes": "ID"}),
                    ("DELETE", "/api/ceremonies/ID", None),
                ]
            elif kind == "beat":
                calls = [("PATCH", "/api/narrative/beats/ID", {"speaker": "x"})]
            elif kind == "conclusion":
                calls = [("PATCH", "/api/memory/conclusions/ID", {"status": "confirmed"}), ("DELETE", "/api/nodes/ID", None)]
            if kind in ("beat", "diary", "ceremony"):
                conclusion = {"about": PEOPLE[0], "content": "x", "kind": "pattern", "source_event_ids": ["ID"]}
                calls += [
                    ("POST", "/api/memory/conclusions", conclusion),
                    ("POST", "/api/memory/resend", {"kind": kind, "id": "ID"}),
                ]
            for method, path, body in calls:
                one, other = await said(method, path, id, body), await said(method, path, unknown, body)
                differs = [line for line in ndiff(one[1].splitlines(), other[1].splitlines()) if line[0] in "+-"]
                assert one == other, (method, path, body, differs)

    asyncio.run(with_world(seed, policy, check))


@settings(max_examples=3 * REPEATS)
@given(seed=st.integers(0, 10**9))
def test_an_open_policy_lets_any_scope_be_named_and_nothing_raw_be_read(seed: int) -> None:
    async def check(world: World, ds: Any, scopes: list[dict[str, Any]], person: str | None) -> None:
        sent = {"cookies": cookies(ds, id="guest")}
        scope = {"ceremonies": [one["id"] for one in world.ceremonies]}
        response = await ds.client.post("/api/memory/search", json={"query": "lantern", "scope": scope, "limit": 50}, **sent)
        found = {source["wheel_id"] for source in response.json()["sources"]}
        assert found >= {id for (kind, id), homes in world.homes.items() if homes and kind != "ceremony"}
        assert "draws on no more" not in response.json().get("note", "")
        assert (await ds.client.get("/api/nodes", **sent)).status_code == 403

    asyncio.run(with_world(seed, "open", check))


@pytest.mark.parametrize("policy", ["owner", "no such policy", "seated", "scopes"])
async def test_who_is_let_reach_nothing_is_refused(policy: str, wheel_file: Path, make: Any) -> None:
    ds = make([wheel_file], with_permissions(policy, **ALL))
    await ds.invoke_startup()
    for address, body in (("/api/memory/search", {"query": "lantern", "scope": {"participant": PEOPLE[0]}}), ("/-/memory", None)):
        method = "POST" if body else "GET"
        response = await ds.client.request(
            method, address, **({"json": body} if body else {}), cookies=cookies(ds, id="stranger")
        )
        assert response.status_code == 403
        assert "lantern" not in response.text


async def test_what_seated_people_may_write(wheel_file: Path, make: Any) -> None:
    from wheelmem import demo

    ds = make([wheel_file], with_permissions("seated", {"yuki": {"wheel_id": demo.YUKI}}, **ALL))
    await ds.invoke_startup()
    sent = {"cookies": cookies(ds, id="yuki")}
    ferry, orchard = "ceremony:demo:f1", "ceremony:demo:o1"
    beat = {"direction": "east", "title": "Quillwort", "ceremonies": [ferry]}
    entry = {"participant": demo.YUKI, "content": "Quillwort"}
    for path, body, status in (
        ("narrative/beats", beat, 201),
        ("narrative/beats", {**beat, "ceremonies": [ferry, orchard]}, 404),
        ("narrative/beats", {**beat, "ceremonies": []}, 400),
        ("narrative/beats", {**beat, "id": "beat:demo:1"}, 403),
        ("diary", entry, 201),
        ("diary", {**entry, "participant": demo.MIRA}, 403),
        ("diary", {**entry, "ceremony_id": ferry}, 201),
        ("diary", {**entry, "metadata": {"ceremony_id": ferry}, "ceremony_id": orchard}, 404),
        ("nodes", {"type": "human", "name": "Eve"}, 403),
        ("edges", {"from_id": demo.YUKI, "to_id": demo.ORCHARD, "relationship_type": "member_of"}, 403),
        ("ceremonies", {"type": "opening", "participants": [demo.YUKI], "id": orchard}, 403),
    ):
        response = await ds.client.post(f"/api/{path}", json=body, **sent)
        assert response.status_code == status, (path, body, response.text)
    mine = await ds.client.get(f"/-/memory/people/{quote(demo.YUKI, safe='')}", **sent)
    assert mine.text.count("Quillwort") >= 3
