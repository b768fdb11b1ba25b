"""A markdown log turned into records: each top-level bullet, and each block of prose, with the section it stood in.

What is not kept is scaffolding: the headings themselves, HTML comments, and what stands before the first section.
Fenced code is opaque, by CommonMark's rules: a fence is closed by one of its own kind that is at least as long.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .folder import write_synced
from .record import Refused, dump, next_ulid, ulid_text
from .session import now_ms

_FENCE = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(`{3,}(?=[^`]*$)|~{3,})")
_BULLET = re.compile(r"[-*](?:\s|$)")


class Item(NamedTuple):
    section: str
    text: str


class _Reader:
    """Goes through a text once; `items` is what is kept, `dropped` every other line that is not blank."""

    def __init__(self, text: str, sections: bool) -> None:
        self.sections = sections
        self.section: str | None = None if sections else ""
        self.items: list[Item] = []
        self.dropped: list[str] = []
        self._open: list[str] = []
        lines = text.split("\n")
        fence = ""
        i = 0
        while i < len(lines):
            line = lines[i]
            i += 1
            if fence:
                self._take(line)
                closing = line.strip()
                if closing and not closing.strip(fence[0]) and len(closing) >= len(fence):
                    fence = ""
                continue
            if line.lstrip().startswith("<!--"):
                end = next((j for j in range(i - 1, len(lines)) if "-->" in _after_opening(lines[j], j == i - 1)), None)
                if end is not None:  # a comment that never ends is text
                    rest = _after_opening(lines[end], end == i - 1).partition("-->")[2]
                    self.dropped += [*lines[i - 1 : end], lines[end][: len(lines[end]) - len(rest)]]
                    i = end + 1
                    if rest.strip():
                        lines[end] = rest.lstrip()
                        i = end
                    continue
            opening = _FENCE.match(line)
            if opening:
                fence = opening[1]
            if sections and line.startswith("## "):
                self._close()
                self.section = line[3:].strip()
                self.dropped.append(line)
            else:
                if _BULLET.match(line):
                    self._close()
                self._take(line)
        self._close()

    def _take(self, line: str) -> None:
        if self.section is None:
            self.dropped.append(line)
        elif self._open or line.strip():
            self._open.append(line)

    def _close(self) -> None:
        while self._open and not self._open[-1].strip():
            self._open.pop()
        if self._open and self.section is not None:
            self.items.append(Item(self.section, "\n".join(self._open)))
        self._open = []


def _after_opening(line: str, first: bool) -> str:
    return line.partition("<!--")[2] if first else line


def items(text: str) -> list[Item]:
    """The items of a markdown log; one without `## ` sections is kept whole, under the section ''."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    read = _Reader(text, sections=True)
    if read.section is None:
        read = _Reader(text, sections=False)
    _check_nothing_lost(text, read)
    return read.items


def _check_nothing_lost(text: str, read: _Reader) -> None:
    """Every letter of the source is in an item or in what was dropped on purpose."""
    kept = [item.text for item in read.items] + read.dropped
    if sorted("".join("".join(kept).split())) != sorted("".join(text.split())):
        raise Refused("this text would not come over whole; nothing was written")


def migrate(source: str, dest: str, dry_run: bool = False, overwrite: bool = False) -> int:
    """Write the items of a markdown file as a log; how many there are. Refuses to overwrite unless told to."""
    with open(source, "rb") as file:
        data = file.read()
    try:
        found = items(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Refused(f"{source} is no UTF-8 at byte {error.start}") from None
    if dry_run:
        return len(found)
    if os.path.lexists(dest):
        if os.path.exists(dest) and os.path.samefile(source, dest):
            raise Refused(f"{dest} is the file to migrate")
        if not overwrite:
            raise Refused(f"{dest} is there already; --overwrite replaces it")
    lines, id = [], 0
    for item in found:
        id = next_ulid(id, now_ms())
        body = dump({"imported": "EPISODIC.md", "section": item.section, "text": item.text})
        lines.append(f'{{"id":"{ulid_text(id)}","scope":"user","path":"EPISODIC.jsonl","body":{body}}}\n')
    staged = f"{dest}.{os.getpid()}.tmp"
    try:
        write_synced(staged, "".join(lines).encode("utf-8"))
        os.replace(staged, dest)
    except BaseException:
        if os.path.exists(staged):
            os.unlink(staged)
        raise
    return len(found)
