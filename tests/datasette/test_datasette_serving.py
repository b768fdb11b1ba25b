"""``wheelmem serve``, and a wheel in Datasette with the files that come with wheelmem."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import House, serving
from datasette.utils import parse_metadata
from houses import ONE_POINT_OH, cookies

from wheelmem import demo, load_plugins, open_wheel

TOP = Path(__file__).resolve().parent.parent.parent
METADATA = parse_metadata((TOP / "metadata.yml").read_text())
CONFIG = parse_metadata((TOP / "datasette.yml").read_text())


def test_the_owner_signs_in_with_the_link_and_nobody_else_is_let_in(house: House) -> None:
    assert httpx.get(f"{house.url}/-/memory").status_code == 403
    assert httpx.get(f"{house.url}/hearth/records.json").status_code == 403
    with httpx.Client(base_url=house.url, cookies={"ds_actor": house.cookie}) as owner:
        assert owner.get("/-/memory").status_code == 200
        assert "lantern" in owner.get("/hearth/records.json?_search=lantern").text
        page = owner.get("/hearth").text
        assert METADATA["databases"]["wheel"]["title"] in page
        assert "Ceremonies that nothing closes" in page
    assert house.url.startswith("http://127.0.0.1:")


def test_it_stops_when_told_to(house: House) -> None:
    house.process.send_signal(signal.SIGINT)
    assert house.process.wait(timeout=20) in (0, 130, -2)


def test_a_configuration_is_laid_over_the_one_that_comes_along(wheel_file: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.yml"
    own.write_text(f"""
permissions:
  memory-ask: true
plugins:
  wheelmem:
    policy: scopes
    actors:
      "None": {{}}
databases:
  hearth:
    title: Our hearth
title: {demo.ORCHARD}
""")
    with serving(wheel_file, tmp_path, "--config", str(own)) as house:
        body = {"query": "lantern", "scope": {"circle_id": demo.ORCHARD}}
        refused = httpx.post(f"{house.url}/api/memory/search", json=body)
        assert refused.status_code == 403
        assert "policy scopes" in refused.json()["error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.db"], "no wheel at none.db"),
        (["text.txt"], "is no SQLite database"),
        (["apples.db"], "no wheel"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "text.txt").write_text("x" * 5000)
    with sqlite3.connect(tmp_path / "apples.db") as db:
        db.execute("CREATE TABLE apples (id)")
    env = {**os.environ, "WHEELMEM_USER_PATH": str(tmp_path)}
    command = [sys.executable, "-m", "wheelmem", "serve", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert said in last
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said_in_one_line(house: House, tmp_path: Path) -> None:
    port = house.url.rpartition(":")[2]
    command = [sys.executable, "-m", "wheelmem", "serve", str(house.wheel), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


# --- the files that come along --------------------------------------------------------------------------------------


def test_every_table_and_column_is_described(tmp_path: Path) -> None:
    described = METADATA["databases"]["wheel"]["tables"]
    # What plugins add is theirs to describe; the list of applied migrations is nobody's to read.
    open_wheel(tmp_path / "bare.db", plugins=load_plugins(load="")).close()
    with sqlite3.connect(tmp_path / "bare.db") as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        ours = [name for name in names if not name.startswith(("sqlite_", "_sqlite"))]
        missing = [name for name in ours if name not in described]
        for name in ours:
            columns = {row[1] for row in db.execute(f"PRAGMA table_info({name})")}
            missing += [f"{name}.{column}" for column in columns - set(described.get(name, {}).get("columns", {}))]
            wrong = set(described.get(name, {}).get("columns", {})) - columns
            assert not wrong, f"{name} has no {wrong}"
            more = described.get(name, {})
            assert {*more.get("facets", []), *filter(None, [more.get("sort_desc"), more.get("label_column")])} <= columns
    assert not missing
    assert all(table.get("description") for table in described.values())


def test_both_files_have_the_same_queries() -> None:
    assert METADATA["databases"]["wheel"]["queries"] == CONFIG["databases"]["wheel"]["queries"]


async def test_the_keepers_queries_run(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "wheel.db"
    with open_wheel(path, plugins=load_plugins()) as wheel:
        demo.build(wheel)
    ds = make([path], CONFIG if ONE_POINT_OH else METADATA, **({"metadata": METADATA} if ONE_POINT_OH else {}))
    await ds.invoke_startup()
    sent = {"cookies": cookies(ds, id="root")}
    for name in CONFIG["databases"]["wheel"]["queries"]:
        assert (await ds.client.get(f"/wheel/{name}")).status_code == 403
        response = await ds.client.get(f"/wheel/{name}.json?_shape=array", **sent)
        assert response.status_code == 200, (name, response.text)
    together = (await ds.client.get("/wheel/who_sat_with_whom.json?_shape=array", **sent)).json()
    assert {"person": "Mira Oyelaran", "other": "Tomas Lindqvist", "ceremonies": 3} in together


async def test_tables_show_names_instead_of_ids(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "wheel.db"
    with open_wheel(path, plugins=load_plugins()) as wheel:
        demo.build(wheel)
    ds = make([path], {} if ONE_POINT_OH else METADATA, **({"metadata": METADATA} if ONE_POINT_OH else {}))
    await ds.invoke_startup()
    page = (await ds.client.get("/wheel/ceremony_participants", cookies=cookies(ds, id="root"))).text
    assert ">Mira Oyelaran</a>" in page
    assert "/-/memory/ceremonies/ceremony%3Ademo%3Ao1" in page
