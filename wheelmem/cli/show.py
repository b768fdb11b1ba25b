"""Answers, reaches and tables as people read them on a terminal, and JSON as programs do."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from unicodedata import category, east_asian_width

import click

from ..contract import Answer, Source
from ..text import fold, query_terms

__all__ = ["counted", "holdings", "plain", "print_json", "screen_width", "show_answer", "show_table", "wrap"]

MAX_WIDTH = 100
_WORD = re.compile(r"[^\W_]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def print_json(value: Any) -> None:
    """One JSON document on standard output, readable where the output can carry it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    click.echo(text)


def plain(text: str) -> str:
    """``text`` on one line, with nothing in it that a terminal would obey."""
    return " ".join(_CONTROL.sub(" ", text).split())


def screen_width() -> int:
    """How many columns to fill: those of ``$COLUMNS`` or the terminal, 80 where there is none, 100 at the most."""
    try:
        columns = int(os.environ.get("COLUMNS", 0))
        if columns <= 0:
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 80
    except (OSError, ValueError):
        columns = 80
    return max(20, min(columns or 80, MAX_WIDTH))


def columns_of(text: str) -> int:
    """How many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrap(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` columns, broken at spaces; only a word that fits no line is cut."""
    lines: list[str] = []
    line, used = "", 0
    for word in text.split():
        taken = columns_of(word)
        if line and used + 1 + taken <= width:
            line, used = f"{line} {word}", used + 1 + taken
            continue
        if line:
            lines.append(line)
        while taken > width:
            cut, sum_ = 0, 0
            while cut < len(word) and sum_ + columns_of(word[cut]) <= width:
                sum_ += columns_of(word[cut])
                cut += 1
            lines.append(word[: max(cut, 1)])
            word = word[max(cut, 1) :]
            taken = columns_of(word)
        line, used = word, taken
    return [*lines, line] if line else lines


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """What of a folded word stays the same when it is inflected: enough to mark it, not to search by it."""
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _marked(line: str, stems: frozenset[str]) -> str:
    def mark(found: re.Match[str]) -> str:
        word = found[0]
        return click.style(word, bold=True, fg="yellow") if _stem(fold(word)) in stems else word

    return _WORD.sub(mark, line) if stems else line


def show_answer(answer: Answer, query: str = "") -> None:
    """Mode, note, the answer, then the sources."""
    width = screen_width()
    places = {source.ceremony_id for source in answer.sources if source.ceremony_id}
    count = counted(len(answer.sources), "source")
    if places:
        count += f" from {counted(len(places), 'ceremony', 'ceremonies')}"
    mode = answer.mode if answer.provider == "wheel" else f"{answer.mode} by {plain(answer.provider)}"
    for place, line in enumerate(wrap(f"{mode} · {count}", width)):
        head = mode if place == 0 and line.startswith(mode) else ""
        click.echo(click.style(head, bold=True, fg="green" if answer.sources else None) + line[len(head) :])
    if answer.note:
        for line in wrap(f"note: {plain(answer.note)}", width):
            click.secho(line, dim=True)
    if answer.answer:
        click.echo()
        for paragraph in answer.answer.splitlines():
            for line in wrap(plain(paragraph), width) or [""]:
                click.echo(line)
    words = query_terms(query) or _WORD.findall(fold(query))
    stems = frozenset(_stem(word) for word in words)
    for number, source in enumerate(answer.sources, 1):
        click.echo()
        _show_source(number, source, stems, width)


def _show_source(number: int, source: Source, stems: frozenset[str], width: int) -> None:
    indent = "    "
    who = plain(source.speaker_name or source.speaker or "nobody named")
    if source.speaker_kind == "agent":
        who += " (agent)"
    facts = [_kind_in_words(source.wheel_kind), when(source.at)]
    if source.provider != "wheel":
        facts.append(f"from {source.provider}" + (", not a record of the wheel" if source.outside_wheel else ""))
    head = f"{number:>2}. "
    for place, line in enumerate(wrap(f"{who} · {' · '.join(fact for fact in facts if fact)}", width - 4)):
        rest = line
        if place == 0 and line.startswith(who):
            rest = click.style(who, bold=True) + line[len(who) :]
        click.echo((head if place == 0 else indent) + rest)
    for line in wrap(plain(source.excerpt), width - 4):
        click.echo(indent + _marked(line, stems))
    where = f" in {source.ceremony_id}" if source.ceremony_id and source.ceremony_id != source.wheel_id else ""
    for line in wrap(plain(f"{source.wheel_id}{where}"), width - 4):
        click.secho(indent + line, dim=True)
    if source.explain is None:
        return
    for report in source.explain.arms:
        path = f", {plain(report.path)}" if report.path else ""
        for line in wrap(f"{report.arm}: rank {report.rank}, score {report.score:.4g}{path}", width - 6):
            click.secho(f"{indent}  {line}", fg="cyan")
    if source.explain.duplicates:
        for line in wrap(f"the same words: {', '.join(source.explain.duplicates)}", width - 6):
            click.secho(f"{indent}  {line}", fg="cyan")


def _kind_in_words(kind: str) -> str:
    return {"beat": "turn", "diary": "diary entry"}.get(kind, kind)


def when(at: str | None) -> str:
    """A time as it was written, to the minute."""
    text = plain(at or "")
    return text[:16].replace("T", " ") if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text) else text[:40]


def holdings(counts: Mapping[str, int]) -> str:
    """How many rows each table of a wheel holds, in words."""
    one = {"nodes": "node", "edges": "edge", "ceremonies": "ceremony", "beats": "beat", "diary": "diary entry"}
    many = {"diary": "diary entries"}
    return ", ".join(counted(number, one.get(table, table), many.get(table, table)) for table, number in counts.items())


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``no sources``, ``1 source``, ``2 sources``."""
    return f"{number or 'no':{',' if number else ''}} {one if number == 1 else many or one + 's'}"


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns of text under headings; the last column is wrapped to the width there is."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(columns_of, column)) for column in zip(headings, *cells, strict=True)][:-1]
    left = sum(widths) + 2 * len(widths)
    last = max(20, screen_width() - left)
    for place, row in enumerate((headings, *cells)):
        start = "".join(cell + " " * (width - columns_of(cell) + 2) for cell, width in zip(row, widths, strict=False))
        for number, line in enumerate(wrap(row[-1], last) or [""]):
            text = (start if number == 0 else " " * left) + line
            click.echo(click.style(text.rstrip(), bold=True) if place == 0 else text.rstrip())
