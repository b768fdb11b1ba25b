"""A question's words as the index knows them. A question is data: nothing in it is ever read as FTS5's query syntax."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from wheelmem.text import STOPWORDS, phrases

from .people import People
from .schema import TOKENIZER

__all__ = ["MOST_TERMS", "STOP", "Phrase", "Query", "Term", "quoted", "read_query", "stems"]

# A pasted page has more words than tell anything; its longest are kept, since they are the rarest.
MOST_TERMS = 64

# What the host leaves out, less what tells records apart once they are weighed by rarity; the function words too short for
# the host to look at, and the ends of don't, I'm, we'll.
_TELLING = """after again before get here like make many might much must never new now old once one only over put say see son
still through two use"""
_SHORT = """a an am as at be by do go he i if in is it me my no of on or so to up us we
d ll m re s t ve im ive didn doesn don isn wasn won couldn wouldn shouldn hasn haven hadn aren weren
did does doing done having were went am ours yours hers itself himself herself myself yourself themselves
au aux ce de du en et il je la le lui ma me mes moi mon ne ni on ou sa se si ta te tes toi ton tu un ses
qu c j l n y est"""
STOP = (STOPWORDS - frozenset(_TELLING.split())) | frozenset(_SHORT.split())

# Scripts that put no spaces between words (and Hangul, which hangs its particles on them). A run of them is one word to
# the index, so what is asked for may stand anywhere inside one.
SPACELESS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for.

    ``stem`` is a word as the index has it; with ``part`` true, a piece of a word. ``people`` are ids (or plain names) of
    speakers by that name: what they said, and where their id stands, counts as holding the word.
    """

    stem: str
    part: bool = False
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must stand together; with ``parts``, as they are written, since they may stand inside a longer word."""

    text: str
    parts: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a question, each once, in its order, and the phrases that must be there."""

    terms: tuple[Term, ...]
    phrases: tuple[Phrase, ...] = ()


def read_query(db: sqlite3.Connection, text: str) -> Query:
    """A question's terms. Function words are left out, unless there is nothing else. Empty when nothing can be looked for."""
    words = _words(text)
    people = People.of(db)
    terms: dict[tuple[str, bool], Term] = {}
    for raw, stem, part in words.kept:
        known = () if part else people.called(raw)
        before = terms.get((stem, part))
        terms[stem, part] = Term(stem, part, tuple(dict.fromkeys((*(before.people if before else ()), *known))))
    return Query(tuple(terms.values()), words.phrases)


@dataclass(frozen=True, slots=True)
class _Words:
    kept: tuple[tuple[str, str, bool], ...]
    phrases: tuple[Phrase, ...]


@lru_cache(maxsize=256)
def _words(text: str) -> _Words:
    text = readable(text)
    found = [(raw, stem, part) for token, stemmed in stems(text) for raw, stem, part in _pieces(token, stemmed)]
    distinct = list(dict.fromkeys(found))
    texts = [phrase for phrase in phrases(text) if stems(phrase)]
    # A phrase of function words alone is looked for by them: what holds it must be found before it can be kept.
    needed = {stem for phrase in texts for stem in _all_stop(stems(phrase))}
    kept = [word for word in distinct if word[0] not in STOP or word[1] in needed] or distinct
    if len(kept) > MOST_TERMS:
        longest = frozenset(sorted(kept, key=lambda word: -len(word[0]))[:MOST_TERMS])
        kept = [word for word in kept if word in longest]
    return _Words(tuple(kept), tuple(Phrase(phrase, SPACELESS.search(phrase) is not None) for phrase in texts))


def _all_stop(words: tuple[tuple[str, str], ...]) -> list[str]:
    return [stem for _, stem in words] if all(raw in STOP for raw, _ in words) else []


def _pieces(token: str, stem: str) -> list[tuple[str, str, bool]]:
    """A word as it is; one in a script without spaces as its neighbouring pairs of letters, which is how such words overlap."""
    if token.isascii() or not SPACELESS.search(token):
        return [(token, stem, False)]
    pieces = [(rest, rest, False) for rest in SPACELESS.split(token) if rest]
    for run in SPACELESS.findall(token):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        pieces += [(pair, pair, True) for pair in pairs]
    return pieces


def readable(text: str) -> str:
    """``text`` as SQLite can take it: a lone surrogate becomes ``?``, NUL a space; neither is part of any word."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")


def quoted(text: str) -> str:
    """``text`` as one phrase of FTS5's query syntax, whatever it holds."""
    return '"' + readable(text).replace('"', '""') + '"'


class _Tokenizer:
    """SQLite's own tokenizers, by way of an index in memory: each word as folded, and as stemmed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._db: sqlite3.Connection | None = None

    def __call__(self, text: str) -> tuple[tuple[str, str], ...]:
        with self._lock:
            if self._db is None:
                self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                for name, tokenizer in (("folded", TOKENIZER.removeprefix("porter ")), ("stemmed", TOKENIZER)):
                    self._db.execute(f"CREATE VIRTUAL TABLE {name} USING fts5 (text, content='', tokenize='{tokenizer}')")
                    self._db.execute(f"CREATE VIRTUAL TABLE {name}_words USING fts5vocab ({name}, instance)")
            return tuple(zip(self._read("folded", text), self._read("stemmed", text), strict=True))

    def _read(self, table: str, text: str) -> list[str]:
        assert self._db is not None
        self._db.execute(f"INSERT INTO {table} (rowid, text) VALUES (1, ?)", (text,))
        words = [word for (word,) in self._db.execute(f"SELECT term FROM {table}_words ORDER BY offset")]
        self._db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        return words


_tokenize = _Tokenizer()


@lru_cache(maxsize=1024)
def stems(text: str) -> tuple[tuple[str, str], ...]:
    """Every word of a text, in order: as the index folds it (case and accents), and as it stems it."""
    return _tokenize(readable(text))
