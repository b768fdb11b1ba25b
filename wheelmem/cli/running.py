"""Running the command line: every way it can end becomes an exit code, and at the most one line that says why."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from .app import App
from .group import cli

__all__ = ["run"]


def run(argv: Sequence[str] | None) -> int:
    """The exit code of ``wheelmem`` with these arguments."""
    app = App()
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show must not lose the rest.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if os.environ.get("_WHEELMEM_COMPLETE"):
        from . import completing  # noqa: F401 (importing it registers it)
    # Colours on a terminal only, which click sees to, and only when they are wanted.
    color = False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None
    arguments = None if argv is None else list(argv)
    try:
        code = cli.main(args=arguments, prog_name="wheelmem", standalone_mode=False, obj=app, color=color)
        if sys.stdout is not None:  # it is None when somebody closed it
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return _exit_code(end.code)
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        _let_go_of_stdout()
        return 1
    except OSError as error:
        if error.errno == errno.EPIPE:
            _let_go_of_stdout()
            return 1
        _debug()
        where = f"{error.filename}: " if error.filename else ""
        if error.errno == errno.ENOSPC and not where:
            where = "standard output: "
            _let_go_of_stdout()
        return _fail(_blame(app, f"{where}{error.strerror or error}"))
    except Exception as error:
        from ..contract import ContractError, WheelmemError

        if isinstance(error, WheelmemError):
            return _fail(str(error), 2 if isinstance(error, ContractError) else 1)
        _debug()
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _fail(_blame(app, text, f"{text} (a fault of wheelmem's own; WHEELMEM_DEBUG=1 shows where)"))


def _blame(app: App, text: str, otherwise: str | None = None) -> str:
    if app.running:
        plugin, command = app.running
        return f"plugin {plugin} failed in its command {command}: {text}"
    return otherwise or text


def _fail(text: str, code: int = 1) -> int:
    click.echo(f"Error: {' '.join(text.split())}", err=True)
    return code


def _exit_code(code: Any) -> int:
    if code is None:
        return 0
    return code if isinstance(code, int) else _fail(str(code))


def _debug() -> None:
    if os.environ.get("WHEELMEM_DEBUG"):
        import traceback

        traceback.print_exc()


def _let_go_of_stdout() -> None:
    """Nobody reads any more: what is left in the buffer must not be an error at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
