"""Where a captured record goes, told by what the capture says of itself: its tags, else its leading word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TAGS = {"semantic": "SEMANTIC", "procedural": "PROCEDURAL", "next": "EPISODIC"}
_WORDS = {"FACT:": "SEMANTIC", "RULE:": "PROCEDURAL", "NEXT:": "EPISODIC"}
_WIDTH = 200  # characters of a distilled line; the record itself stays in the archive


class RulesRouter:
    """Routes by tags `semantic`, `procedural`, `next`, `drop`, else by a leading `FACT:`, `RULE:`, `NEXT:`.

    Several tags give several targets; `drop` counts only where no other of them is there. Of anything else nothing is
    said, so the record stays where it is.
    """

    name = "rules"

    def route(self, record: Mapping[str, Any]) -> list[dict[str, str]] | None:
        """Targets for a record of the log: `[{"store", "content"}]`, [] to drop it, None when nothing tells."""
        tags = record.get("tags")
        tagged = {tag.lower() for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
        word, said = _leading_word(_text(record.get("body")))
        stores = [store for tag, store in _TAGS.items() if tag in tagged]
        if not stores:
            if "drop" in tagged:
                return []
            if word not in _WORDS:
                return None
            stores = [_WORDS[word]]
        line = _distilled(said)
        if not line:
            return None
        return [{"store": store} if store == "EPISODIC" else {"store": store, "content": line} for store in stores]


def _text(body: object) -> str:
    if isinstance(body, dict) and isinstance(body.get("text"), str):
        return str(body["text"])
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _leading_word(text: str) -> tuple[str, str]:
    text = text.strip().removeprefix("- ").lstrip()
    word = text[:5]
    return (word, text[5:]) if word in _WORDS else ("", text)


def _distilled(text: str) -> str:
    """The text as one bullet line, cut between words where it is long."""
    line = " ".join(text.split())
    if len(line) > _WIDTH:
        cut = line[: _WIDTH - 1]
        line = (cut.rpartition(" ")[0] or cut) + "…"
    return f"- {line}" if line else ""
