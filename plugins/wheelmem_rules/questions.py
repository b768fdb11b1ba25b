"""What a question asks for, told by the words it is put in. English and French; no model, no network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wheelmem.contract import Question
from wheelmem.text import STOPWORDS, fold, phrases

__all__ = ["KINDS", "asks_for", "people_in", "weigh"]

KINDS = ("exact", "when", "how many", "who", "broad", "plain")

# How each kind weighs the arms it names; the others stay as they are.
WEIGHTS: dict[str, dict[str, float]] = {
    # The words themselves are asked for: what stands near them is not.
    "exact": {"keyword": 8.0, "hops": 0.5, "vector": 0.25, "dates": 0.0},
    "when": {"dates": 3.0},
    "how many": {},
    "who": {},
    # Whatever is near the subject is part of what happened.
    "broad": {"keyword": 0.5, "vector": 1.5},
    "plain": {},
}

_PERIOD = r"(?:date|day|month|year|week|weekend|time|hour|season|decade|jour|mois|annee|an|semaine|heure|saison|moment|epoque)"
# Read in this order over the folded question; the first that fits decides. ``'`` stands for any apostrophe.
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "how many",
            r"\bhow (?:many|much)\b|\bhow often\b|\bnumber of\b|\bcombien (?!de temps)|\bcombien\?*$|\bnombre d|\ba combien\b",
        ),
        (
            "when",
            rf"\bwhen\b(?! (?:it|they|we|he|she|you|i) )|\bwhat {_PERIOD}\b(?!s? (?:of|did .* spend))|\b(?:which|in what|on what|at what) "
            rf"{_PERIOD}\b|\bhow (?:long|soon|recently|old)\b|\bsince (?:when|what)\b|\bwhat was the date\b|\bas of when\b"
            rf"|\bquand\b|\bquel(?:le)?s? {_PERIOD}s?\b|\bdepuis (?:quand|combien)\b|\bcombien de temps\b|\bjusqu'a quand\b",
        ),
        (
            "broad",
            r"\bwhat (?:has |had )?(?:happen(?:s|ed|ing)?|went on|was going on|is going on|is new|came of)\b|\bwhat (?:took|has taken) place\b"
            r"|\bwhat'?s (?:new|up|going on|been happening)\b|\btell me (?:everything|more|all|about)\b|\bsummar(?:y|ise|ize)\b"
            r"|\bcatch me up\b|\boverview\b|\bwhat do (?:we|you|they) know (?:about|of)\b|\bwhat did (?:we|they|everyone) (?:do|talk about|discuss)\b"
            r"|\bque s'est-il passe\b|\bqu'est-ce qui (?:s'est|se) passe\b|\bqu'est-il arrive\b|\bquoi de neuf\b|\braconte"
            r"|\bresume\b|\bresumer\b|\bque sait-on\b|\bou en (?:est|sommes|sont|etait)\b|\bde quoi (?:a-t-on|avons-nous|ont-ils) (?:parle|discute)\b",
        ),
        (
            "who",
            r"^(?:and |but |so )?(?:who|whose|whom)\b|\b(?:to|with|by|for|from) whom\b|^(?:with |to |by |for |from )who\b"
            r"|^(?:et |mais )?(?:a |avec |par |pour |de |chez |sur )?qui\b|\bqui est-ce\b|\bc'est qui\b|^according to who",
        ),
    )
)
_APOSTROPHES = re.compile("[’ʼ`´]")
_NAME_WORD = re.compile(r"[^\W_]+")


def asks_for(question: str, people: Iterable[str] = ()) -> str:
    """What a question asks for, one of KINDS. ``people`` are the names of those who speak where it is asked.

    A question with words in quotes asks for those words, whatever else it asks; a question that names one of the people, and
    nothing else tells, is about who.
    """
    if phrases(question):
        return "exact"
    text = _APOSTROPHES.sub("'", fold(question)).strip()
    for kind, pattern in _RULES:
        if pattern.search(text):
            return kind
    return "who" if people_in(question, people) else "plain"


def people_in(question: str, people: Iterable[str]) -> list[list[str]]:
    """Those of some names that a question names, by the whole name or a word of it: groups in the order in which it names them.

    A group has more than one name when the question's word is part of several.
    """
    words = {word: at for at, word in reversed(list(enumerate(_NAME_WORD.findall(fold(question)))))}
    found: dict[int, list[str]] = {}
    for name in people:
        places = [
            words[word] for word in _NAME_WORD.findall(fold(name)) if len(word) > 1 and word in words and word not in STOPWORDS
        ]
        if places:
            found.setdefault(min(places), []).append(name)
    return [sorted(found[at]) for at in sorted(found)]


def weigh(question: Question) -> Mapping[str, float] | None:
    """Factors for the arms that this kind of question concerns; None for a plain one."""
    return WEIGHTS[asks_for(question.query)] or None
