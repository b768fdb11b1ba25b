"""Settings, plugins, and what plugins bring to the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from wheelmem.demo import FERRY

GREETING = """
import click
from wheelmem import hookimpl

class Finder:
    name = "finder"
    stage = "find"
    def __init__(self, token): pass
    def retrieve(self, db, question, reach, found, limit): return []
    def ready(self, db): return None if db.execute("SELECT count(*) FROM beats").fetchone()[0] else "no turns to find"

class Keeper:
    name = "keeper"
    async def ask(self, question): ...

class Router:
    name = "router"
    def route(self, record): return None

@hookimpl
def register_arms(register, settings):
    register(Finder(settings.define("finder.token", "", "what opens the finder", secret=True)))

@hookimpl
def register_providers(register, settings):
    register(Keeper())

@hookimpl
def register_classifiers(register, settings):
    register(Router())

@hookimpl
def register_commands(cli):
    @cli.command()
    @click.argument("name")
    @click.pass_obj
    def greet(app, name):
        "Greet somebody."
        if name == "nobody":
            raise ZeroDivisionError("nobody is there")
        click.echo(f"{name}: {app.wheel().count()['nodes']} nodes")
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "greeting.py").write_text(GREETING)
    return folder


def test_a_plugin_s_parts_are_listed_and_its_command_runs(cli, demo, folder):
    where = ["--plugins-dir", folder]
    assert "greeting.py" in cli("plugins", *where).out
    assert {"name": "finder", "stage": "find", "plugin": "greeting.py", "ready": True} in json.loads(
        cli("arms", "--json", *where).out
    )
    assert {"name": "keeper", "plugin": "greeting.py", "does": ["ask"]} in json.loads(cli("providers", "--json", *where).out)
    assert {"name": "router", "plugin": "greeting.py", "does": ["route"]} in json.loads(cli("classifiers", "--json", *where).out)
    for command in ("arms", "providers", "classifiers"):
        assert "greeting.py" in cli(command, *where).out
    assert "Greet somebody." in cli(*where, "--help").out
    assert cli(*where, "greet", "Ana").out == "Ana: 10 nodes\n"


def test_an_arm_that_is_not_ready_says_why(cli, machine, folder):
    cli("init")
    assert "not ready: no turns to find" in cli("arms", "--plugins-dir", folder).out


def test_a_plugin_s_command_that_crashes_is_named(cli, demo, folder):
    result = cli("--plugins-dir", folder, "greet", "nobody", code=1)
    assert result.err == "Error: plugin greeting.py failed in its command greet: ZeroDivisionError: nobody is there\n"


def test_a_plugin_cannot_take_the_place_of_a_command(cli, demo, folder):
    (folder / "greeting.py").write_text(GREETING.replace("def greet(", "def search("))
    result = cli("--plugins-dir", folder, "no-such-command", code=2)
    assert "there is a command 'search' already" in result.err
    assert "QUERY" in cli("--plugins-dir", folder, "search", "--help").out


@pytest.mark.parametrize("text", ["1 / 0", "raise SystemExit('bye')", "def broken(:", "import nowhere_to_be_found"])
def test_a_plugin_that_fails_is_named_and_the_rest_goes_on(cli, demo, folder, text):
    (folder / "aaa.py").write_text(text)
    result = cli("plugins", "--plugins-dir", folder)
    assert "aaa.py" in result.err
    assert "FAILED in import" in " ".join(result.out.split())
    assert "greeting.py" in result.out
    failed = [one for one in json.loads(cli("plugins", "--json", "--plugins-dir", folder).out) if "failed" in one]
    assert [one["name"] for one in failed] == ["aaa.py"]


def test_a_folder_of_plugins_that_is_none(cli, demo, tmp_path):
    assert "no folder of plugins" in cli("plugins", "--plugins-dir", tmp_path / "gone", code=1).err


def test_settings_say_where_each_value_comes_from(cli, machine, folder):
    machine.mkdir()
    (machine / "wheelmem.toml").write_text('limit = 3\n[finder]\ntoken = "hush-hush"\n')
    env = {"WHEELMEM_ARM_TIMEOUT": "7.5"}
    shown = cli("settings", "--plugins-dir", folder, env=env)
    assert "hush" not in shown.out
    found = {one["name"]: one for one in json.loads(cli("settings", "--json", "--plugins-dir", folder, env=env).out)}
    assert found["limit"]["value"] == 3
    assert found["limit"]["from"] == str(machine / "wheelmem.toml")
    assert (found["arm_timeout"]["value"], found["arm_timeout"]["from"]) == (7.5, "$WHEELMEM_ARM_TIMEOUT")
    assert (found["busy_timeout"]["value"], found["busy_timeout"]["from"]) == (60.0, "default")
    assert found["finder.token"]["value"] == "********"


def test_a_setting_that_cannot_be_read_is_named(cli, demo):
    env = {"WHEELMEM_ARM_TIMEOUT": "soon"}
    assert "arm_timeout must be a number" in " ".join(cli("settings", env=env).out.split())
    assert "arm_timeout must be a number" in cli("search", "x", "--circle", FERRY, env=env, code=1).err


def test_settings_that_are_no_toml_are_named(cli, machine):
    machine.mkdir()
    (machine / "wheelmem.toml").write_text("limit =")
    assert "wheelmem.toml is no TOML" in cli("settings", code=1).err


def test_install_and_uninstall_are_pip_in_this_environment(cli, process, monkeypatch):
    done = process("install", "--dry-run", "pluggy", text=True)
    assert (done.returncode, "already satisfied: pluggy" in done.stdout) == (0, True)
    assert process("install", "--no-index", "a-plugin-that-is-nowhere").returncode == 1
    called = []
    monkeypatch.setattr(subprocess, "call", lambda command: called.append(command) or 3)
    cli("install", "-U", "-e", ".", code=3)
    cli("uninstall", "-y", "some-plugin", code=3)
    assert called == [
        [sys.executable, "-m", "pip", "install", "-U", "-e", "."],
        [sys.executable, "-m", "pip", "uninstall", "-y", "some-plugin"],
    ]


def test_an_agent_s_home_gets_its_arguments_untouched(cli, tmp_path, process):
    home = tmp_path / "heron"
    assert process("memory", "init", "--home", home).returncode == 0
    assert process("memory", "encode", "--home", home, "--session", "s", "--body", "--json is no option of ours").returncode in (
        0,
        2,
    )
    encoded = process("memory", "encode", "--home", home, "--session", "s", "--body=seen from the bank")
    assert encoded.returncode == 0
    assert b"seen from the bank" in process("memory", "read", "--home", home).stdout
    assert process("memory", "no-such-verb").returncode == 2
    assert b"encode" in process("memory", "--help").stdout
