"""Words: folding, query terms, excerpts, and the plain match that needs no index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from unicodedata import category, normalize

from .contract import DEFAULT_LIMIT, Record, Source

__all__ = ["STOPWORDS", "excerpt_around", "fold", "match_records", "query_terms", "substitute_names"]

_ENGLISH = """the and for are but not you all any can had her was one our out has him his how its may new now old see
two who did get let put say she too use what when where which while with this that than then them they there their
these those from have into just more most much must only other over same some such very will would your about after
again also been being before both could does each even ever here like make many might never often once shall should
still through under until upon whom whose why"""
_FRENCH = """les des une est pas pour que qui dans sur avec par mais comme plus tout tous elle ils elles nous vous leur
leurs cette ces son ses sont été être avoir fait quoi quel quelle dont"""

_MARKS = re.compile("[\u0300-\u036f]")
_WORDS = re.compile(r"[^\W_]+")
_SPACE = re.compile(r"\s+")
# The wheel's ids of people and agents, wherever they stand in a text.
PERSON_ID = re.compile(r"node:(?:human|agent):[0-9]+:[a-z0-9]+")


def fold(text: str) -> str:
    """``text`` as it is compared: lower case, compatibility forms taken apart (NFKD), accents removed."""
    text = text.lower()
    return text if text.isascii() else _MARKS.sub("", normalize("NFKD", text))


STOPWORDS = frozenset(fold(word) for word in (_ENGLISH + " " + _FRENCH).split())


def query_terms(query: str) -> list[str]:
    """The words of a query that are looked for: folded, three characters or more, no stopword, each once, in order."""
    words = _WORDS.findall(fold(query))
    return list(dict.fromkeys(word for word in words if len(word) >= 3 and word not in STOPWORDS))


def excerpt_around(text: str, terms: Iterable[str], width: int = 280) -> str:
    """At most about ``width`` characters of ``text`` around the earliest place where one of the folded terms stands.

    White space runs become one space; a text that fits is given whole; ``…`` marks a side that was cut. A cut never
    parts a letter from its combining marks.
    """
    text = _SPACE.sub(" ", text).strip()
    if len(text) <= width:
        return text
    folded, places = _fold_with_places(text)
    found = [place for place in (folded.find(term) for term in terms if term) if place >= 0]
    at = places[min(found)] if found else 0
    start = max(0, min(at - width // 3, len(text) - width))
    end = min(len(text), start + width)
    while start > 0 and category(text[start])[0] == "M":
        start -= 1
    while end < len(text) and category(text[end])[0] == "M":
        end += 1
    return ("…" if start > 0 else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _fold_with_places(text: str) -> tuple[str, Sequence[int]]:
    """The folded text, and for each of its characters the place in ``text`` that it came from."""
    if text.isascii():
        return text.lower(), range(len(text))
    lowered = text.lower()
    # Whole-string lower-casing knows a final sigma; only where it changes the length are characters taken one by one.
    letters: Iterable[str] = lowered if len(lowered) == len(text) else (char.lower() for char in text)
    folded: list[str] = []
    places: list[int] = []
    for place, char in enumerate(letters):
        piece = char if char.isascii() else _MARKS.sub("", normalize("NFKD", char))
        folded.append(piece)
        places.extend([place] * len(piece))
    return "".join(folded), places


def match_records(
    query: str, records: Iterable[Record | Mapping[str, Any]], limit: int = DEFAULT_LIMIT
) -> list[Source]:
    """The records whose text holds the query's words, best first, as sources of provider ``wheel``.

    One point for each term found anywhere in the folded text, two more when the whole folded query stands there. Ties go
    to the later ``at`` (compared as text), then to the earlier place. A query without terms matches nothing.
    """
    terms = query_terms(query)
    if not terms:
        return []
    whole = fold(query).strip()
    scored: list[tuple[int, str, Record]] = []
    for given in records:
        record = Record.from_json(given)
        text = fold(record.text)
        points = sum(term in text for term in terms)
        if len(whole) > 3 and whole in text:
            points += 2
        if points:
            scored.append((points, record.at or "", record))
    scored.sort(key=lambda item: item[:2], reverse=True)
    return [source_of(record, excerpt_around(record.text, terms)) for _, _, record in scored[:limit]]


def source_of(record: Record, excerpt: str, provider: str = "wheel") -> Source:
    """A record as a source with this excerpt; names are for whoever knows them to add."""
    return Source(
        provider=provider,
        wheel_kind=record.wheel_kind,
        wheel_id=record.wheel_id,
        ceremony_id=record.ceremony_id,
        speaker=record.speaker,
        excerpt=excerpt,
        at=record.at,
    )


def substitute_names(text: str, names: Mapping[str, str]) -> str:
    """``text`` with every person's or agent's id that ``names`` knows replaced by the name; others stay."""
    if "node:" not in text:
        return text
    return PERSON_ID.sub(lambda found: names.get(found[0], found[0]), text)


@lru_cache(maxsize=64)
def phrases(query: str) -> tuple[str, ...]:
    """What stands between double quotes in a query, the quotes themselves left out."""
    return tuple(text for text in (found.strip() for found in _QUOTED.findall(query)) if text)


_QUOTED = re.compile(r'["“«]([^"“”«»]+)["”»]')
