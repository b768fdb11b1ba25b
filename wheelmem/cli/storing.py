"""``init``, ``record``, ``import`` and ``export``: what goes into a wheel and comes out of it."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..contract import ContractError, WheelmemError
from ..store.rows import KINDS
from .app import App, pass_app, wheel_options
from .options import parse_json
from .show import holdings, plain, print_json, show_table

if TYPE_CHECKING:
    from ..store.jsonl import ImportedFile

__all__ = ["register"]


def register(cli: click.Group) -> None:
    """Add the commands that keep."""
    for command in (init, record, import_, export):
        cli.add_command(command)


@click.command()
@wheel_options
@pass_app
def init(app: App) -> None:
    """Make an empty wheel. One that is there already is left as it is."""
    there = app.path.exists() and app.path.stat().st_size > 0
    wheel = app.wheel(create=True)
    if there:
        click.echo(f"{app.path} is a wheel already: {holdings(wheel.count())}")
    else:
        click.echo(f"made a wheel: {app.path}")


@click.command(epilog="Whatever else a record says is kept as it is. A beat may name ceremonies that are still to come.")
@click.argument("kind", type=click.Choice(["ceremony", "beat", "diary", "node", "edge"]))
@click.argument("json", metavar="JSON|-")
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print the record as it was stored, instead of its id.")
@click.option("--no-deliver", is_flag=True, help="Leave it waiting for the providers that receive, such as Honcho.")
@pass_app
def record(app: App, kind: str, json: str, as_json: bool, no_deliver: bool) -> None:
    """Keep one record, given as JSON, and print its id.

    With `-` the JSON is read from standard input. An id is minted and the time stamped unless the JSON has them; under an
    id that is held already the new value stands.

    \b
      ceremony  type; direction, participants, intentions, circle_id, subject_id, episode_path, closes…
      beat      direction, title; description, prose, speaker, witnesses, ceremonies, learnings…
      diary     participant, content; phase, entryType, metadata {"ceremony_id", "tags"}, chronicle…
      node      type, name; description, direction, metadata…
      edge      from_id, to_id, relationship_type; strength (0 to 1), obligations…

    \b
      wheelmem record node '{"type": "human", "name": "Ana"}'
    """
    from ..drafts import draft, draft_warnings

    given = parse_json(_text_of(json), "the record")
    wheel = app.wheel()

    def keep(db: sqlite3.Connection) -> tuple[dict[str, Any], list[str], str]:
        made = draft(kind, given, db)
        warnings = draft_warnings(kind, made, db)
        return made, warnings, wheel.store(db, kind, made)

    made, warnings, outcome = wheel.write(keep)
    if as_json:
        print_json(made)
    else:
        click.echo(" ".join(KINDS[kind].keys(made)))
    for warning in warnings:
        click.echo(f"note: {plain(warning)}", err=True)
    if outcome != "added":
        click.echo("note: it was held already" + ("; the new value stands" if outcome == "changed" else ""), err=True)
    if not no_deliver:
        app.deliver()


_FOLDER = click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))


@click.command("import")
@_FOLDER
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print what came in as JSON, for programs.")
@pass_app
def import_(app: App, folder: Path | None, as_json: bool) -> None:
    """Bring in a folder of JSONL files.

    DIR is the folder in which a medicine-wheel server keeps its wheel (the setting data_dir, or $MW_DATA_DIR, when it is left
    out). The wheel is made when there is none. Whatever a record says is kept; lines that are no records are set aside and
    told. A second import changes nothing, and one that was interrupted goes on where it stopped.
    """
    from ..store.jsonl import import_folder

    folder = _folder(app, folder)
    if not folder.exists() and not app.path.exists():
        # Before a wheel is made for nothing.
        raise WheelmemError(f"no folder at {folder}")
    with _Bars() as bars:
        report = import_folder(app.wheel(create=True), folder, progress=bars.show)
    if as_json:
        bad = [{"file": one.file, "line": one.line, "reason": one.reason} for one in report.quarantined]
        print_json({"files": [_counts(one) for one in report.files], "quarantined": bad})
        return
    show_table(
        ("file", "lines", "added", "changed", "same", "set aside"),
        [[name, *(f"{number:,}" for number in numbers)] for name, *numbers in map(_row, report.files)],
    )
    for one in report.files:
        if one.resumed_after:
            click.echo(f"{plain(one.file)} went on after line {one.resumed_after:,}, where it was interrupted before")
    for line in report.quarantined[:_SHOWN]:
        click.echo(f"set aside: {plain(f'{line.file} line {line.line}: {line.reason}')}", err=True)
    more = sum(one.bad for one in report.files) - _SHOWN
    if more > 0:
        click.echo(f"and {more:,} more; the table import_quarantine holds them all", err=True)


_SHOWN = 20


def _row(file: ImportedFile) -> tuple[str, int, int, int, int, int]:
    return file.file, file.lines, file.added, file.changed, file.same, file.bad


def _counts(file: ImportedFile) -> dict[str, Any]:
    return dict(zip(("file", "lines", "added", "changed", "same", "bad"), _row(file), strict=True))


@click.command()
@_FOLDER
@wheel_options
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON, for programs.")
@pass_app
def export(app: App, folder: Path | None, as_json: bool) -> None:
    """Write the wheel out as a folder of JSONL files.

    DIR is made when there is none (the setting data_dir, or $MW_DATA_DIR, when it is left out). What `wheelmem import` brought in
    comes out as it came.
    """
    from ..store.jsonl import export_folder

    with _Bars() as bars:
        report = export_folder(app.wheel(), _folder(app, folder), progress=bars.show)
    if as_json:
        print_json({"files": [{"file": one.file, "lines": one.lines} for one in report.files]})
    else:
        show_table(("file", "lines"), [(one.file, f"{one.lines:,}") for one in report.files])


def _folder(app: App, given: Path | None) -> Path:
    if given is None and not app.settings["data_dir"]:
        raise click.UsageError("Name a folder, or set data_dir (or $MW_DATA_DIR).")
    return given if given is not None else Path(app.settings["data_dir"]).expanduser()


class _Bars:
    """A progress bar for each file, one after the other, where a terminal shows what goes to standard error."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._bar: Any = None

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()

    def show(self, file: str, done: int, total: int) -> None:
        """``done`` of ``total`` of a file."""
        if not sys.stderr.isatty():
            return
        if file != self._file:
            self.__exit__()
            self._file = file
            self._bar = click.progressbar(length=max(total, 1), label=f"{plain(file):<20}", file=sys.stderr)
            self._bar.render_progress()
        self._bar.update(max(0, (done if total else 1) - self._bar.pos))


def _text_of(argument: str) -> str:
    if argument != "-":
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContractError(f"standard input is no UTF-8 text: {error.reason} at byte {error.start}") from None
