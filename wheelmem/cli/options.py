"""Options that several commands share: the scope of a question, and how its answer is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..contract import LEVELS, ContractError
from .app import App, wheel_options

__all__ = ["answer_options", "parse_json", "reasoning_options", "scope_options"]

F = TypeVar("F", bound=Callable[..., Any])


def _completed(field: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            from ..store.choices import choices
            from ..store.connections import open_reader

            db = open_reader(ctx.ensure_object(App).path, 1.0)
            try:
                return [CompletionItem(id, help=label or None) for id, label in choices(db, field, incomplete)]
            finally:
                db.close()
        except Exception:
            return []  # a shell that completes is no place for errors

    return complete


def complete_arms(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The arms of this installation."""
    try:
        app = ctx.ensure_object(App)
        return [CompletionItem(arm.name) for arm in app.plugins.arms(app.settings) if arm.name.startswith(incomplete)]
    except Exception:
        return []


# Option, field of the scope, whether it may be given again, help.
_SCOPE = (
    ("--circle", "circle_id", True, "Every ceremony of this circle."),
    ("--ceremony", "ceremonies", True, "This ceremony, and what closes it."),
    ("--subject", "subject_id", True, "Every ceremony about this subject; a path is the boundary of an agent's home."),
    ("--episode", "episode_path", True, "Every ceremony of this episode, and its chronicle."),
    ("--participant", "participant", False, "Every ceremony this person sat in, and those of their circles."),
    ("--exclude", "exclude_ceremonies", True, "Leave this ceremony out of all that."),
)
_COMPLETED_AS = {"exclude_ceremonies": "ceremonies"}


def scope_options(command: F) -> F:
    """The options that name a scope; the command gets it as ``scope``, an object as the contract has it."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, scope=_scope(options), **options)

    made: Any = update_wrapper(wrapped, command)
    made = click.option("--scope", "scope_json", metavar="JSON", help="The whole scope as JSON, instead of the options above.")(
        made
    )
    for flag, field, multiple, help in reversed(_SCOPE):
        made = click.option(
            flag,
            field,
            metavar="ID" if field != "episode_path" else "PATH",
            multiple=multiple,
            help=help + ("  [may be given again]" if multiple else ""),
            shell_complete=_completed(_COMPLETED_AS.get(field, field)),
        )(made)
    return made  # type: ignore[no-any-return]


def _scope(options: dict[str, Any]) -> dict[str, Any]:
    """Take the scope out of a command's options."""
    text = options.pop("scope_json")
    scope: dict[str, Any] = {}
    for _, field, multiple, _ in _SCOPE:
        value = options.pop(field)
        if not value:
            continue
        if field == "subject_id":
            value = tuple(map(_subject, value))
        # One value stays one, as somebody writing JSON by hand would write it.
        scope[field] = list(value) if multiple and (len(value) > 1 or field == "exclude_ceremonies") else value
        if isinstance(scope[field], tuple):
            scope[field] = value[0]
    if text is None:
        return scope
    if scope:
        given = ", ".join(flag for flag, field, _, _ in _SCOPE if field in scope)
        raise click.UsageError(f"--scope says it all; leave out {given}, or write it into the JSON.")
    found = parse_json(text, "--scope")
    if not isinstance(found, dict):
        raise ContractError('--scope must be a JSON object, such as \'{"circle_id": "circle:…"}\'')
    return found


def _subject(value: str) -> str:
    """A subject's id; a path stands for the boundary of an agent's home there, on this machine."""
    if not value.startswith(("/", "./", "../", "~/")) and value not in (".", "..", "~"):
        return value
    from os.path import expanduser

    from ..home.wheel import boundary_subject

    return boundary_subject(expanduser(value))


def parse_json(text: str, what: str) -> Any:
    """A JSON value from a command line, or ContractError that says where it breaks."""

    def refuse(constant: str) -> Any:
        raise ContractError(f"{what} is no JSON: {constant} is no number in JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ContractError(f"{what} is no JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (RecursionError, ValueError):
        raise ContractError(f"{what} is no JSON that can be read: it is nested too deep, or holds a number too long") from None


def answer_options(command: F) -> F:
    """How many sources an answer has and how it is shown, for ask, search and about."""
    for option in (
        wheel_options,
        click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, for programs."),
        click.option("--explain", is_flag=True, help="Say of each source which arms found it, and how."),
        click.option(
            "--arm",
            "arms",
            metavar="NAME",
            multiple=True,
            shell_complete=complete_arms,
            help="Ask this arm only.  [may be given again]",
        ),
        click.option(
            "--limit", type=click.IntRange(min=1), help="How many sources at the most (50 is the most there is).  [default: 12]"
        ),
    ):
        command = option(command)
    return command


def reasoning_options(command: F) -> F:
    """How a provider should reason, for ask."""
    for option in (
        click.option("--level", type=click.Choice(LEVELS), help="How hard a provider should reason."),
        click.option("--peer", metavar="ID", shell_complete=_completed("participant"), help="Whom a provider should reason as."),
    ):
        command = option(command)
    return command
