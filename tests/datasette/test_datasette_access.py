"""A wheel's tables, rows, SQL, queries and files are for those who may read it, however it is served."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from houses import ONE_POINT_OH, cookies, with_permissions

from wheelmem import demo, load_plugins, open_wheel

SQL = "select+text+from+records"
QUERY = "/{db}/-/query?sql=" if ONE_POINT_OH else "/{db}?sql="
# What Datasette can show of a database named {db}, in each of the ways it has.
EVERYTHING = [
    "/{db}",
    "/{db}.json",
    "/{db}/records",
    "/{db}/records.json",
    "/{db}/records.json?_shape=array&_size=max",
    "/{db}/records.csv",
    "/{db}/records.csv?_stream=1",
    "/{db}/records.json?_search=lantern",
    "/{db}/records.json?_facet=speaker",
    "/{db}/records/8",
    "/{db}/records/8.json",
    "/{db}/nodes",
    "/{db}/open_ceremonies",
    "/{db}/open_ceremonies.json",
    "/{db}/records/8.blob?_blob_column=text",
    QUERY + SQL,
    QUERY.replace("?", ".json?") + SQL,
    QUERY.replace("?", ".csv?") + SQL,
    "/{db}/keepers_own",
    "/{db}/keepers_own.json",
    "/{db}.db",
    "/{db}/-/schema.json",
    "/{db}/records/-/schema.json",
]
WORDS = ("lantern", "Mira", "harvest")


def opened_by_mistake(db: str) -> dict[str, Any]:
    """Every rule of Datasette's that opens things, down to the single table."""
    yes: dict[str, Any] = {"allow": True}
    return {
        "allow": True,
        "allow_sql": True,
        "permissions": dict.fromkeys(("view-database", "view-table", "execute-sql", "view-query"), True),
        "databases": {
            db: {
                **yes,
                "allow_sql": True,
                "permissions": dict.fromkeys(("view-database", "view-table", "execute-sql", "view-database-download"), True),
                "tables": {
                    name: {**yes, "permissions": {"view-table": True}} for name in ("records", "nodes", "open_ceremonies")
                },
                "queries": {"keepers_own": {"sql": "select text from records", **yes}},
            }
        },
    }


async def read_all(ds: Any, db: str, **options: Any) -> dict[str, Any]:
    return {path: await ds.client.get(path.format(db=db), **options) for path in EVERYTHING}


def assert_refused(responses: dict[str, Any]) -> None:
    for path, response in responses.items():
        assert response.status_code in (403, 404), (path, response.status_code, response.text[:200])
        assert not any(word in response.text for word in WORDS), path


@pytest.mark.parametrize("immutable", [False, True], ids=["mutable", "immutable"])
@pytest.mark.parametrize("configured", [False, True], ids=["no configuration", "all opened"])
@pytest.mark.parametrize("actor", [None, {"id": "ana"}, {"id": "ana", "wheel_id": demo.MIRA}], ids=["anonymous", "ana", "mira"])
async def test_a_wheel_of_any_name_is_refused(wheel_file: Path, make: Any, immutable: bool, configured: bool, actor: Any) -> None:
    config = opened_by_mistake("hearth") if configured else {}
    ds = make([] if immutable else [wheel_file], config, **({"immutables": [str(wheel_file)]} if immutable else {}))
    await ds.invoke_startup()
    sent = {"cookies": cookies(ds, **actor)} if actor else {}
    assert_refused(await read_all(ds, "hearth", **sent))
    home = await ds.client.get("/", **sent)
    assert home.status_code == 200
    assert "hearth" not in home.text


async def test_the_owner_sees_it(wheel_file: Path, make: Any) -> None:
    ds = make(
        [],
        {"databases": {"hearth": {"queries": {"keepers_own": {"sql": "select text from records"}}}}},
        immutables=[str(wheel_file)],
    )
    await ds.invoke_startup()
    responses = await read_all(ds, "hearth", cookies=cookies(ds, id="root"))
    refused = {path: response.status_code for path, response in responses.items() if response.status_code != 200}
    assert not {path for path in refused if "schema" not in path and "blob" not in path and "8" not in path}, refused
    assert "lantern" in responses["/{db}/records.csv"].text


async def test_whoever_has_memory_read_sees_it(wheel_file: Path, make: Any) -> None:
    ds = make([wheel_file], with_permissions(memory_read={"id": "keeper"}))
    await ds.invoke_startup()
    for actor, status in (("keeper", 200), ("ana", 403)):
        response = await ds.client.get("/hearth/records.json", cookies=cookies(ds, id=actor))
        assert response.status_code == status


async def test_root_is_the_owner_only_where_datasette_says_so(wheel_file: Path, make: Any) -> None:
    if not ONE_POINT_OH:
        pytest.skip("0.65 has no switch for root")
    ds = make([wheel_file])
    ds.root_enabled = False
    await ds.invoke_startup()
    assert (await ds.client.get("/hearth/records.json", cookies=cookies(ds, id="root"))).status_code == 403


async def test_other_databases_stay_as_they_are(wheel_file: Path, other_file: Path, make: Any) -> None:
    queries = {"all_apples": {"sql": "select name from apples"}}
    ds = make([wheel_file, other_file], {"databases": {"apples": {"queries": queries}}})
    await ds.invoke_startup()
    for path in (
        "/apples",
        "/apples/apples.json",
        "/apples/apples/1",
        "/apples/all_apples.json",
        QUERY.format(db="apples") + "select+1",
    ):
        response = await ds.client.get(path)
        assert response.status_code == 200, path
    missing = await ds.client.get("/apples/nothing_here")
    assert missing.status_code == 404
    assert "apples" in (await ds.client.get("/")).text


async def test_what_is_missing_is_refused_like_what_is_there(wheel_file: Path, make: Any) -> None:
    ds = make([wheel_file])
    await ds.invoke_startup()
    for there, missing in (("/hearth/records/8", "/hearth/records/9999992"), ("/hearth/records.json", "/hearth/recordings.json")):
        one, other = await ds.client.get(there), await ds.client.get(missing)
        assert (one.status_code, one.text) == (403, other.text.replace("recordings", "records"))
        assert other.status_code == 403


async def test_sql_across_databases_does_not_reach_it(wheel_file: Path, other_file: Path, make: Any) -> None:
    ds = make(
        [wheel_file, other_file], {"allow_sql": True, "databases": {"_memory": {"allow": True, "allow_sql": True}}}, crossdb=True
    )
    await ds.invoke_startup()
    sql = "select+text+from+[hearth].records"
    path = QUERY.format(db="_memory").replace("?", ".json?") + sql
    assert (await ds.client.get(path)).status_code == 403
    assert "lantern" in (await ds.client.get(path, cookies=cookies(ds, id="root"))).text


async def test_a_route_of_another_name_opens_nothing(wheel_file: Path, make: Any) -> None:
    from datasette.database import Database

    ds = make([])
    ds.add_database(Database(ds, path=str(wheel_file), is_mutable=False), name="hidden", route="shown")
    await ds.invoke_startup()
    assert_refused(await read_all(ds, "shown"))


async def test_a_file_that_becomes_a_wheel_is_refused_from_then_on(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "later.db"
    sqlite3.connect(path).close()
    path.touch()
    ds = make([path])
    await ds.invoke_startup()
    assert (await ds.client.get("/later")).status_code == 200
    with open_wheel(path, plugins=load_plugins()) as wheel:
        demo.build(wheel)
    assert_refused(await read_all(ds, "later"))


async def test_pages_about_the_server_are_for_those_who_may_read(wheel_file: Path, make: Any) -> None:
    ds = make(
        [wheel_file],
        with_permissions("scopes", {"ana": {"scopes": [{"ceremonies": "ceremony:demo:o1"}]}}, memory_ask={"id": "ana"}),
    )
    await ds.invoke_startup()
    pages = (
        "/-/metadata.json",
        "/-/config.json",
        "/-/databases.json",
        "/-/threads.json",
        "/-/metadata",
        "/-/config",
        "/-/databases",
        "/-/threads",
    )
    for page in pages:
        assert (await ds.client.get(page, cookies=cookies(ds, id="ana"))).status_code == 403, page
        assert (await ds.client.get(page, cookies=cookies(ds, id="root"))).status_code in (200, 301, 302, 404), page


@pytest.mark.skipif(not ONE_POINT_OH, reason="the write API came with 1.0")
async def test_no_rule_lets_others_write_rows(wheel_file: Path, make: Any) -> None:
    yes = {
        name: {"id": "ana"}
        for name in ("insert-row", "update-row", "delete-row", "drop-table", "create-table", "execute-write-sql")
    }
    ds = make(
        [wheel_file],
        {"permissions": yes, "databases": {"hearth": {"permissions": yes, "tables": {"nodes": {"permissions": yes}}}}},
    )
    await ds.invoke_startup()
    sent = {"cookies": cookies(ds, id="ana")}
    for path, body in (
        ("/hearth/nodes/-/insert", {"row": {"id": "x"}}),
        ("/hearth/nodes/1/-/update", {"update": {"name": "x"}}),
        ("/hearth/nodes/1/-/delete", {}),
        ("/hearth/nodes/-/drop", {"confirm": True}),
        ("/hearth/-/create", {"table": "x", "row": {"id": 1}}),
        ("/hearth/-/execute-write", {"sql": "delete from nodes"}),
    ):
        response = await ds.client.post(path, json=body, **sent)
        assert response.status_code in (403, 404), (path, response.text)


@pytest.mark.skipif(not ONE_POINT_OH, reason="tokens came with 1.0")
async def test_a_token_that_is_restricted_stays_so(wheel_file: Path, other_file: Path, make: Any) -> None:
    ds = make([wheel_file, other_file])
    await ds.invoke_startup()

    async def status(path: str, restrictions: dict[str, Any]) -> int:
        token = ds.sign({"a": "root", "t": 1, "d": None, "_r": restrictions}, "token")
        headers = {"authorization": f"Bearer dstok_{token}"}
        return int((await ds.client.get(path, headers=headers)).status_code)

    assert await status("/apples/apples.json", {"r": {"apples": {"apples": ["vt"]}}}) == 200
    assert await status("/hearth/records.json", {"r": {"hearth": {"records": ["vt"]}}}) == 403
    assert await status("/hearth/records.json", {"a": ["vt", "memory-read"]}) == 200
    assert await status("/api/health", {"a": ["vt"]}) == 403
    assert await status("/api/health", {"a": ["memory-read"]}) == 200
