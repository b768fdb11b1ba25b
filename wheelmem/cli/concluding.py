"""``conclude``, ``judge`` and ``conclusions``: what was concluded, what it rests on, and what people make of it."""

from __future__ import annotations

from typing import Any

import click

from ..contract import WheelmemError
from .app import App, pass_app, wheel_options
from .options import scope_options
from .show import plain, print_json, screen_width, wrap

__all__ = ["register"]

KINDS = ("pattern", "summary", "open_question", "preference")
STATUSES = ("inferred", "confirmed", "rejected")


def register(cli: click.Group) -> None:
    """Add the commands about conclusions."""
    for command in (conclude, judge, conclusions):
        cli.add_command(command)


@click.command()
@click.argument("content", nargs=-1, required=True)
@click.option("--about", required=True, metavar="ID", help="Whom it is about.")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="What kind of conclusion it is.")
@click.option("--source", "sources", metavar="ID", multiple=True, help="A record it rests on.  [may be given again]")
@click.option("--status", type=click.Choice(STATUSES), default="inferred", show_default=True, help="How it stands.")
@click.option("--derived-by", metavar="ID", help="Who concluded it.")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print the conclusion as JSON, instead of its id.")
@pass_app
def conclude(app: App, /, content: tuple[str, ...], sources: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Keep a conclusion, and print its id.

    It is found by questions only once it is confirmed, and only where every record it rests on is within the scope.

    \b
      wheelmem conclude --about node:human:1772000000001:ana1 --kind preference --source beat:east:1773000100000 \\
          "Ana likes to meet at dawn"
    """
    from ..conclusions import conclude as keep

    node = keep(app.wheel(), content=" ".join(content), source_event_ids=sources, **given)
    if as_json:
        print_json(node)
    else:
        click.echo(node["id"])


@click.command()
@click.argument("id")
@click.argument("status", type=click.Choice(STATUSES))
@click.option("--by", required=True, metavar="WHO", help="Who judges.")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print the conclusion as JSON.")
@pass_app
def judge(app: App, id: str, status: str, by: str, as_json: bool) -> None:
    """Confirm or reject a conclusion, or leave it open again. Every judgement is kept."""
    from ..conclusions import judge as keep

    node = keep(app.wheel(), id, status, by=by)
    if as_json:
        print_json(node)
    else:
        click.echo(f"{plain(id)} is {status}, by {plain(by)}")


@click.group(invoke_without_command=True)
@click.option("--about", metavar="ID", help="Those about this person.")
@click.option("--status", type=click.Choice(STATUSES), help="Those that stand so.")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON, for programs, each with its judgements.")
@click.pass_context
def conclusions(ctx: click.Context, about: str | None, status: str | None, as_json: bool) -> None:
    """The conclusions the wheel holds, and what became of each."""
    if ctx.invoked_subcommand is not None:
        return
    from ..conclusions import conclusions as held
    from ..conclusions import judgements

    app = ctx.ensure_object(App)
    nodes = held(app.wheel(), about=about, status=status)
    if as_json:
        print_json([{**node, "judgements": judgements(app.wheel(), node["id"])} for node in nodes])
        return
    for node in nodes:
        _show(node, judgements(app.wheel(), node["id"]))
    if not nodes:
        click.echo("no conclusion" + (" like that" if about or status else ""))


@conclusions.command()
@click.option("--person", required=True, metavar="ID", help="Whom they are about.")
@click.option("--provider", metavar="NAME", help="Whose conclusions.  [default: the first provider that has any]")
@scope_options
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print the new ones as JSON, for programs.")
@pass_app
def pull(app: App, person: str, provider: str | None, scope: dict[str, Any], as_json: bool) -> None:
    """Bring what a provider concluded about a person within a scope to the wheel, as inferred; each once."""
    from ..conclusions import pull as bring
    from ..river import bind

    able = [one for one in app.plugins.providers(app.settings) if hasattr(one, "conclusions")]
    if provider is not None:
        able = [one for one in able if one.name == provider]
    if not able:
        raise WheelmemError(f"no provider {'is named ' + repr(provider) + ' and ' if provider else ''}has conclusions to give")
    import asyncio

    (chosen,) = bind(app.wheel(), able[:1])
    nodes = asyncio.run(bring(app.wheel(), chosen, person=person, scope=scope))
    if as_json:
        print_json(nodes)
        return
    for node in nodes:
        _show(node, [])
    click.echo(f"{len(nodes)} new conclusion(s) from {chosen.name}")


def _show(node: dict[str, Any], judged: list[dict[str, str]]) -> None:
    about = node["metadata"]
    by = f" by {about['derived_by']}" if about.get("derived_by") else f" from {about.get('source', 'somewhere')}"
    click.secho(plain(f"{about.get('status')} {about.get('projection_kind')} about {about.get('about')}{by}"), bold=True)
    for line in wrap(plain(node.get("description") or ""), screen_width() - 4):
        click.echo(f"    {line}")
    sources = about.get("source_event_ids") or []
    click.secho(f"    {plain(node['id'])}, resting on {len(sources)} record(s)", dim=True)
    for one in judged:
        click.secho(plain(f"    {one['judged_at']}: {one['status']}, by {one['judged_by']}"), dim=True)
