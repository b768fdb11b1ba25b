"""``ask``, ``search``, ``about``, ``reach`` and ``status``."""

from __future__ import annotations

from typing import Any

import click

from ..contract import Answer, Reach
from ..reach import is_empty_scope
from .app import App, pass_app, wheel_options
from .options import answer_options, reasoning_options, scope_options
from .show import holdings, plain, print_json, screen_width, show_answer, show_table, when, wrap

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the commands that ask."""
    for command in (ask, search, about, reach, status):
        cli.add_command(command)


@click.command()
@click.argument("question", nargs=-1, required=True)
@scope_options
@reasoning_options
@answer_options
@pass_app
def ask(
    app: App,
    /,
    question: tuple[str, ...],
    scope: dict[str, Any],
    peer: str | None,
    level: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Ask a question within a scope.

    The first provider that can answers in words, from records within the scope alone; without one the wheel shows the
    records that match. Every source is a record of the wheel, or says that it is not.

    \b
      wheelmem ask "Which colour is the lantern?" --circle circle:1772000001000:garden
    """
    words = " ".join(question)
    call = app.memory.ask(question=words, scope=scope, peer=peer, reasoning_level=level, **_asked(options))
    _show(app, app.run(call), words, as_json)


@click.command()
@click.argument("query", nargs=-1, required=True)
@scope_options
@answer_options
@pass_app
def search(app: App, /, query: tuple[str, ...], scope: dict[str, Any], as_json: bool, **options: Any) -> None:
    """Find the records of a scope closest to some words.

    A phrase in double quotes is looked for as it stands. Words that begin with a dash go after `--`.

    \b
      wheelmem search lantern --participant node:human:1772000000002:ben2
    """
    words = " ".join(query)
    _show(app, app.run(app.memory.search(query=words, scope=scope, **_asked(options))), words, as_json)


@click.command()
@click.argument("person")
@click.argument("question", nargs=-1)
@scope_options
@answer_options
@pass_app
def about(app: App, /, person: str, question: tuple[str, ...], scope: dict[str, Any], as_json: bool, **options: Any) -> None:
    """What a person said within a scope.

    PERSON is an id, or a plain name as the records have it. With a QUESTION their closest records, else their latest.

    \b
      wheelmem about node:human:1772000000002:ben2 --circle circle:1772000001000:garden
    """
    words = " ".join(question)
    call = app.memory.about(person=person, scope=scope, question=words or None, **_asked(options))
    _show(app, app.run(call), words, as_json)


@click.command()
@scope_options
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print the reach as JSON, for programs.")
@pass_app
def reach(app: App, scope: dict[str, Any], as_json: bool) -> None:
    """Show which ceremonies a scope covers."""
    found: Reach = app.run(app.memory.reach(scope=scope))
    if as_json:
        print_json(found.to_json())
        return
    if found.is_empty:
        click.secho("empty", bold=True)
        _say_why_empty(app, found)
        return
    count = len(found.ceremonies)
    click.secho(f"{count} {'ceremony' if count == 1 else 'ceremonies'}", bold=True)
    if count:
        show_table(("date", "type", "circle", "ceremony"), _ceremony_rows(app, found))
    for path in dict.fromkeys(found.episodes):
        click.echo(f"episode {plain(path)}")


def _ceremony_rows(app: App, reach: Reach) -> list[tuple[str, str, str, str]]:
    wheel = app.wheel()
    ceremonies = [wheel.get("ceremony", id) or {"id": id} for id in reach.ceremonies]
    circles = [str(ceremony.get("circle_id", "")) for ceremony in ceremonies]
    names = {id: (wheel.get("node", id) or {}).get("name") or id for id in dict.fromkeys(circles) if id}
    return [
        (when(one.get("timestamp")), str(one.get("type", "")), str(names.get(circle, "")), one["id"])
        for one, circle in zip(ceremonies, circles, strict=True)
    ]


@click.command()
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, for programs.")
@pass_app
def status(app: App, as_json: bool) -> None:
    """How the wheel and its providers are."""
    from ..river import River

    statuses = app.run(app.memory.status())
    river = River(app.wheel(), app.receivers).status()
    if as_json:
        print_json({"providers": [status.to_json() for status in statuses], "river": river})
        return
    click.echo(f"{app.path}: {holdings(app.wheel().count())}")
    click.echo()
    rows = []
    for one in statuses:
        state = "ready" if one.enabled else "not enabled"
        confined = {True: "yes", False: "no", None: "not known"}[one.confined]
        detail = one.error or ", ".join(f"{name}: {value}" for name, value in (one.detail or {}).items())
        rows.append((one.provider, state, confined, detail))
    show_table(("provider", "state", "keeps to a reach", "detail"), rows)
    for one in river["providers"]:
        _show_river(one)


def _show_river(one: dict[str, Any]) -> None:
    """What waits for a provider, since when and why."""
    name = one["provider"]
    if one["pending"]:
        since = f" since {when(one['since'])}" if "since" in one else ""
        why = f": {one['error']}" if "error" in one else ""
        _print(f"{one['pending']:,} record(s) wait for {name}{since}{why}")
    if one.get("refused"):
        _print(f"{one['refused']:,} record(s) were refused by {name}: {one.get('refusal', 'it did not say why')}")
    if one.get("rebuilding"):
        _print(f"{one['rebuilding']:,} session(s) of {name} are left out until they are made anew: wheelmem deliver")


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    return {"limit": options["limit"], "explain": options["explain"], "arms": options["arms"] or None}


def _show(app: App, answer: Answer, query: str, as_json: bool) -> None:
    if as_json:
        print_json(answer.to_json())
        return
    show_answer(answer, query)
    if answer.mode == "empty":
        _say_why_empty(app, answer.reach)
    elif not answer.sources:
        count = len(answer.reach.ceremonies)
        where = "one ceremony was" if count == 1 else f"{count} ceremonies were"
        _say(f"Nothing there matches; {where} looked through. `wheelmem reach` shows which.")


def _say_why_empty(app: App, reach: Reach) -> None:
    if not is_empty_scope(reach.scope):
        named = ", ".join(
            f"{field} {' or '.join(reach.scope.named(field))}"
            for field in ("ceremonies", "subject_id", "circle_id", "participant")
            if reach.scope.named(field)
        )
        left_out = " once what is excluded is left out" if reach.scope.exclude_ceremonies else ""
        _say(f"Nothing is reached: the wheel holds no ceremony for {named}{left_out}.")
    else:
        _say(
            "Nothing is reached: no scope was given, and an empty scope reaches nothing. Say what to draw on with --circle, "
            "--ceremony, --subject, --episode, --participant or --scope."
        )
    from ..store.choices import choices

    circles = app.wheel().read(lambda db: choices(db, "circle_id", limit=5))
    if circles:
        _say("Circles of this wheel: " + ", ".join(f"{id} ({name})" if name else id for id, name in circles))


def _say(text: str) -> None:
    _print(text, err=True)


def _print(text: str, err: bool = False) -> None:
    for line in wrap(plain(text), screen_width()):
        click.echo(line, err=err)
