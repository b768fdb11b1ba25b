"""The plugin host: what is loaded, what is said of what failed, and that the rest goes on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wheelmem import hookimpl, load_settings, open_wheel
from wheelmem.plugins import PluginHost, load_plugins

DEFAULTS = {"fts5", "hops", "vector", "honcho", "rules"}


@pytest.fixture
def said() -> list[str]:
    return []


def test_the_default_plugins_are_found_by_entry_point(said: list[str]) -> None:
    host = load_plugins(report=said.append)
    assert set(host.origins) >= DEFAULTS
    assert said == []


@pytest.mark.parametrize(("load", "loaded"), [("", set()), ("fts5", {"fts5"}), (" fts5 , rules", {"fts5", "rules"})])
def test_the_environment_names_what_to_load(
    monkeypatch: pytest.MonkeyPatch, said: list[str], load: str, loaded: set[str]
) -> None:
    monkeypatch.setenv("WHEELMEM_LOAD_PLUGINS", load)
    assert set(load_plugins(report=said.append).origins) == loaded


def test_a_distribution_name_loads_all_of_its_plugins(said: list[str]) -> None:
    assert set(load_plugins(load="wheelmem", report=said.append).origins) >= DEFAULTS


def test_a_name_that_is_not_installed_is_said(said: list[str]) -> None:
    host = load_plugins(load="fts5,fts6", report=said.append)
    assert set(host.origins) == {"fts5"}
    assert said == ["wheelmem: plugin fts6 failed in import: LookupError: no plugin of that name is installed"]


def test_single_files_are_plugins_and_a_broken_one_costs_itself_only(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "good.py").write_text(
        "from wheelmem import hookimpl\n"
        "class Arm:\n    name = 'mine'\n    stage = 'find'\n    def retrieve(self, *a): return []\n"
        "@hookimpl\ndef register_arms(register, settings): register(Arm())\n"
    )
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "typo.py").write_text("from wheelmem import hookimpl\n@hookimpl\ndef register_arm(register): pass\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    host = load_plugins(tmp_path, load="", report=said.append)
    assert set(host.origins) == {"good.py"}
    assert [arm.name for arm in host.arms(load_settings(env={}))] == ["mine"]
    assert {failure.name for failure in host.failures} == {"broken.py", "typo.py", "leaves.py"}
    assert len(said) == 3


def arm(arm_name: Any) -> Any:
    return SimpleNamespace(name=arm_name, stage="find")


def test_a_plugin_that_raises_while_registering_is_named_and_the_rest_registers(said: list[str]) -> None:
    class Raises:
        @hookimpl
        def register_arms(self, register: Any, settings: Any) -> None:
            raise RuntimeError("no such\nluck")

    class Fine:
        @hookimpl
        def register_arms(self, register: Any, settings: Any) -> None:
            register(arm("fine"))

    class Nameless:
        @hookimpl
        def register_arms(self, register: Any, settings: Any) -> None:
            register(arm(None))

    host = PluginHost(said.append)
    for name, plugin in (("raises", Raises()), ("fine", Fine()), ("nameless", Nameless())):
        host.add(plugin, name)
    assert [one.name for one in host.arms(load_settings(env={}))] == ["fine"]
    assert "wheelmem: plugin raises failed in register_arms: RuntimeError: no such luck" in said
    assert len(said) == 2
    host.arms(load_settings(env={}))
    assert len(said) == 2, "the same failure is said once"


def test_two_arms_of_one_name_do_not_take_turns(said: list[str]) -> None:
    def plugin() -> Any:
        class Plugin:
            @hookimpl
            def register_arms(self, register: Any, settings: Any) -> None:
                register(arm("same"))

        return Plugin()

    host = PluginHost(said.append)
    host.add(plugin(), "one")
    host.add(plugin(), "two")
    assert len(host.arms(load_settings(env={}))) == 1
    assert len(said) == 1
    assert "'same' is taken by plugin" in said[0]


def test_a_plugins_tables_are_made_once_and_its_failure_undoes_its_part_only(tmp_path: Path, said: list[str]) -> None:
    calls = []

    class Makes:
        @hookimpl
        def prepare_store(self, db: Any) -> None:
            calls.append("makes")
            db.execute("CREATE TABLE IF NOT EXISTS mine (x)")

        @hookimpl
        def record_stored(self, db: Any, kind: str, id: str) -> None:
            db.execute("INSERT INTO mine VALUES (?)", (f"{kind} {id}",))

    class Breaks:
        @hookimpl
        def prepare_store(self, db: Any) -> None:
            db.execute("CREATE TABLE halfway (x)")
            raise ValueError("half way")

        @hookimpl
        def record_stored(self, db: Any, kind: str, id: str) -> None:
            db.execute("DELETE FROM mine")
            raise ValueError("not this one")

    def host() -> PluginHost:
        made = PluginHost(said.append)
        made.add(Makes(), "makes", "1")
        made.add(Breaks(), "breaks", "1")
        return made

    for _ in range(2):
        with open_wheel(tmp_path / "wheel.db", plugins=host()) as wheel:
            wheel.put("node", {"id": f"node:{len(calls)}", "type": "land", "name": "x"})
            with wheel.snapshot() as db:
                rows = [row[0] for row in db.execute("SELECT x FROM mine")]
                assert rows[-1].startswith("node node:")
                assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'halfway'").fetchone() == (0,)
    assert len(rows) == 2
    assert any("breaks failed in prepare_store: ValueError: half way" in line for line in said)
    assert any("breaks failed in record_stored: ValueError: not this one" in line for line in said)


def test_a_plugin_seen_before_is_not_prepared_again(tmp_path: Path, said: list[str]) -> None:
    calls = []

    class Makes:
        @hookimpl
        def prepare_store(self, db: Any) -> None:
            calls.append(1)

    for origin in ("1", "1", "2"):
        host = PluginHost(said.append)
        host.add(Makes(), "makes", origin)
        open_wheel(tmp_path / "wheel.db", plugins=host).close()
    assert len(calls) == 2, "once for each version of the plugin"
