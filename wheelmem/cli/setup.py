"""What is set up: settings, plugins and what they bring; installing more."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import click

from ..contract import WheelmemError
from .app import App, pass_app, wheel_options
from .show import plain, print_json, screen_width, show_table, wrap

__all__ = ["register"]

F = Any


def register(cli: click.Group) -> None:
    """Add the commands that show and change what is set up."""
    for command in (settings, plugins, arms, providers, classifiers, install, uninstall):
        cli.add_command(command)


def json_option(command: F) -> F:
    """``--json`` for a list."""
    return click.option("--json", "as_json", is_flag=True, help="Print it as JSON, for programs.")(command)


def _declared(app: App) -> None:
    """Let every plugin register, which is where it declares its settings and where it may fail."""
    from ..plugins import HOOKS

    for hook in HOOKS:
        app.plugins.registered(hook, app.settings)


@click.command()
@wheel_options
@json_option
@pass_app
def settings(app: App, as_json: bool) -> None:
    """List each setting with its value and where it came from.

    Set them in wheelmem.toml in the application folder, or in the environment: arm_timeout is WHEELMEM_ARM_TIMEOUT, and
    hops.depth (`depth` in the table `[hops]`) WHEELMEM_HOPS_DEPTH.
    """
    from ..settings import FILE_NAME, SettingsError, app_folder

    _declared(app)
    found = []
    for setting in app.settings:
        try:
            value, source = app.settings.look_up(setting.name)
        except SettingsError as error:
            value, source = None, str(error)
        if setting.secret and value:
            value = "********"
        found.append({"name": setting.name, "value": value, "from": source, "help": setting.help})
    if as_json:
        print_json(found)
        return
    for one in found:
        source = "" if one["from"] == "default" else f"  ({plain(one['from'])})"
        click.echo(f"{click.style(one['name'], bold=True)} = {plain(_value(one['value']))}{source}")
        for line in wrap(one["help"], screen_width() - 4):
            click.secho(f"    {line}", dim=True)
    click.echo(f"\nSet them in {app_folder() / FILE_NAME}, or in the environment.")


def _value(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name}={number:g}" for name, number in value.items()) or "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


@click.command()
@wheel_options
@json_option
@pass_app
def plugins(app: App, as_json: bool) -> None:
    """List the plugins, what each implements, which failed."""
    _declared(app)
    host = app.plugins
    found: dict[str, dict[str, Any]] = {
        name: {"name": name, "from": _origin(host.origins[name]), "hooks": host.hooks_of(name)} for name in sorted(host.origins)
    }
    for failure in host.failures:
        one = found.setdefault(failure.name, {"name": failure.name, "from": "", "hooks": []})
        one.setdefault("failed", []).append(f"{failure.doing}: {failure.error}")
    if as_json:
        print_json(list(found.values()))
        return
    if not found:
        click.echo("No plugins are loaded.")
        return
    rows = [
        (one["name"], one["from"], ("FAILED in " + "; ".join(one["failed"])) if "failed" in one else ", ".join(one["hooks"]))
        for one in found.values()
    ]
    show_table(("plugin", "from", "implements"), rows)


def _origin(origin: str) -> str:
    """Where a plugin came from; a file's time of change is of no use to people."""
    name = origin.rpartition(" ")[0]
    return name if name.endswith(".py") else origin


def _listed(app: App, hook: str) -> list[tuple[str, Any]]:
    return app.plugins.registered(hook, app.settings)


@click.command()
@wheel_options
@json_option
@pass_app
def arms(app: App, as_json: bool) -> None:
    """List the arms, and whether each is ready."""
    by_name = {arm.name: plugin for plugin, arm in _listed(app, "register_arms")}
    found = []
    for arm in app.plugins.arms(app.settings):
        why = _why_not_ready(app, arm)
        one = {
            "name": arm.name,
            "stage": getattr(arm, "stage", "find"),
            "plugin": by_name.get(arm.name, ""),
            "ready": why is None,
        }
        found.append(one if why is None else {**one, "why": why})
    if as_json:
        print_json(found)
        return
    rows = [
        (str(one["name"]), str(one["stage"]), str(one["plugin"]), "ready" if one["ready"] else f"not ready: {one['why']}")
        for one in found
    ]
    show_table(("arm", "stage", "plugin", "state"), rows)


def _why_not_ready(app: App, arm: Any) -> str | None:
    chosen = app.settings["arms"]
    if chosen and arm.name not in chosen:
        return "the setting arms does not name it"
    if not hasattr(arm, "ready"):
        return None
    try:
        why = app.wheel().read(arm.ready)
    except WheelmemError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if why is None else str(why)


@click.command()
@wheel_options
@json_option
@pass_app
def providers(app: App, as_json: bool) -> None:
    """List the providers, in the order they are asked.

    `wheelmem status` asks each how it is.
    """
    by_name = {provider.name: plugin for plugin, provider in _listed(app, "register_providers")}
    found = [
        {
            "name": provider.name,
            "plugin": by_name.get(provider.name, ""),
            "does": [verb for verb in ("ask", "search", "about", "receive") if hasattr(provider, verb)],
        }
        for provider in app.plugins.providers(app.settings)
    ]
    if as_json:
        print_json(found)
    elif not found:
        click.echo("No provider is configured; the wheel answers by itself.")
    else:
        show_table(("provider", "plugin", "does"), [(one["name"], one["plugin"], ", ".join(one["does"])) for one in found])


@click.command()
@wheel_options
@json_option
@pass_app
def classifiers(app: App, as_json: bool) -> None:
    """List what weighs questions and routes records."""
    found = [
        {"name": item.name, "plugin": plugin, "does": [verb for verb in ("weigh", "route") if hasattr(item, verb)]}
        for plugin, item in _listed(app, "register_classifiers")
    ]
    if as_json:
        print_json(found)
    elif not found:
        click.echo("No classifier is installed; every arm counts alike.")
    else:
        show_table(("classifier", "plugin", "does"), [(one["name"], one["plugin"], ", ".join(one["does"])) for one in found])


PIP = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=PIP)
@click.argument("packages", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def install(ctx: click.Context, packages: tuple[str, ...]) -> None:
    """Install plugins beside wheelmem, as pip does.

    From PyPI, a folder or an address. What follows goes to `pip install` as it is:
    `wheelmem install -U some-plugin`, `wheelmem install -e .`
    """
    ctx.exit(_pip("install", *packages))


@click.command(context_settings=PIP)
@click.argument("packages", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def uninstall(ctx: click.Context, packages: tuple[str, ...], yes: bool) -> None:
    """Take plugins out again."""
    ctx.exit(_pip("uninstall", *(["-y"] if yes else []), *packages))


def _pip(*arguments: str) -> int:
    """pip in the environment this very Python runs in, which under pipx is not the one on the PATH."""
    if find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", *arguments]
    else:
        from shutil import which

        uv = which("uv")
        if uv is None:
            raise WheelmemError(f"{sys.executable} has no pip; run: {sys.executable} -m ensurepip")
        # An environment made by uv has no pip of its own.
        command = [uv, "pip", arguments[0], "--python", sys.executable, *(word for word in arguments[1:] if word != "-y")]
    return subprocess.call(command)
