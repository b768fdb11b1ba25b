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

_PERIOD = (
    "(?:date|day|month|year|week|weekend|time|hour|season|decade|jour|mois|annee|an|semaine|heure|saison|moment|epoque)"
)
# Read in this order over the folded question; the first that fits decides. An apostrophe is always ``'``.
_RULES: dict[str, tuple[str, ...]] = {
    "how many": (
        r"\bhow (?:many|much|often)\b",
        r"\b(?:the|what) number of\b",
        r"\bcombien\b(?! de temps)",
        r"\bnombre d",
    ),
    "when": (
        # "when it rained" tells a time rather than asks for one.
        r"\bwhen\b(?! (?:i|it|you|we|he|she|they)\b)",
        rf"\b(?:what|which) {_PERIOD}\b(?! of\b)",
        rf"\bwhat (?:is|was|were) the {_PERIOD}s?\b",
        r"\bhow (?:long|soon|recently|old)\b",
        r"\bsince what\b",
        r"\bquand\b(?! (?:j'|je|il|elle|on|tu|nous|vous|ils|elles)\b)",
        rf"\bquel(?:le)?s? {_PERIOD}s?\b",
        r"\bcombien de temps\b",
    ),
    "broad": (
        r"\bwhat (?:has |had |is |was )?(?:happen(?:s|ed|ing)?|went on|going on|new|came of)\b",
        r"\bwhat (?:took|has taken) place\b",
        r"\bwhat's (?:new|up|going on|been happening|happening)\b",
        r"\btell me (?:everything|more|all|about)\b",
        r"\b(?:summar(?:y|ise|ize)|overview|recap)\b",
        r"\bcatch me up\b",
        r"\bwhat do (?:we|you|they) know (?:about|of)\b",
        r"\bwhat did (?:we|they|everyone|everybody) (?:do|talk about|discuss)\b",
        r"\b(?:s'est|se)[- ](?:il |t-il )?passee?\b",
        r"\b(?:est-il|est) arrive\b",
        r"\bquoi de neuf\b",
        r"\bracont",
        r"\bresum",
        r"\bque sait-on\b",
        r"\bou en (?:est|sommes|sont|etait)\b",
        r"\bde quoi (?:a-t-on|avons-nous|ont-ils|ont-elles) (?:parle|discute)\b",
    ),
    "who": (
        r"^(?:(?:and|but|so|to|with|by|for|from) )?(?:who|whose|whom)\b",
        r"\b(?:to|with|by|for|from) whom\b",
        r"^(?:(?:et|mais|a|avec|par|pour|de|chez|sur) )*qui\b",
        r"\bqui est-ce\b",
    ),
}
_READ = {kind: re.compile("|".join(patterns)) for kind, patterns in _RULES.items()}
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
    for kind, pattern in _READ.items():
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
