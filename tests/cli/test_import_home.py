"""An agent's home comes onto the wheel from the command line, and answers for the boundary it was captured under."""

from __future__ import annotations

import json
import os


def capture(process, home, body, session="s1"):
    return process("memory", "encode", "--home", home, "--session", session, "--body", body).stdout.decode().strip()


def test_a_home_comes_onto_the_wheel_once_and_is_asked_by_its_boundary(process, tmp_path, monkeypatch):
    (tmp_path / "work" / "inner").mkdir(parents=True)
    (tmp_path / "work" / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "work" / "inner")
    home, db = tmp_path / "agent", tmp_path / "wheel.db"
    first = capture(process, home, "the parser keeps spans")
    capture(process, home, "a sibling session says otherwise about spans", "s2")

    def bring():
        return json.loads(process("import-home", "--home", home, "--db", db, "--json").stdout)

    assert bring() == {"node": 1, "ceremony": 2, "diary": 2}
    assert bring() == {"node": 0, "ceremony": 0, "diary": 0}
    process("memory", "drain", "--home", home)
    capture(process, home, "spans are half open")
    assert bring() == {"node": 0, "ceremony": 0, "diary": 1}
    assert b"Nothing new" in process("import-home", "--home", home, "--db", db).stdout

    def found(*scope):
        asked = process("search", "spans", "--db", db, "--json", *scope)
        return {
            source["ceremony_id"].split(":")[3]
            for source in json.loads(asked.stdout)["sources"]
            if source["wheel_kind"] == "diary"
        }

    assert found("--subject", tmp_path / "work") == {"s1", "s2"}
    assert found("--subject", "..") == {"s1", "s2"}
    assert found("--subject", tmp_path) == set()
    answer = json.loads(process("search", "spans", "--db", db, "--json", "--subject", "..").stdout)
    sibling = next(one["ceremony_id"] for one in answer["sources"] if ":s2:" in (one["ceremony_id"] or ""))
    assert found("--subject", "..", "--exclude", sibling) == {"s1"}
    assert f"diary:home:{first}" in {source["wheel_id"] for source in answer["sources"]}


def test_a_home_that_is_not_there_is_one_line(cli, tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_HOME", raising=False)
    said = cli("import-home", "--home", tmp_path / "nobody", "--db", tmp_path / "wheel.db", code=1).err
    assert said == f"Error: there is no home at {tmp_path / 'nobody'}\n"
    assert not os.path.exists(tmp_path / "wheel.db")
    assert "which home?" in cli("import-home", "--db", tmp_path / "wheel.db", code=1).err
    assert "--home is empty" in cli("import-home", "--home", "", "--db", tmp_path / "wheel.db", code=2).err
