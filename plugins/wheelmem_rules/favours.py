"""Arms that favour: of what was found, the words of the person a question names, and records that tell a date."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence

from wheelmem.contract import Question
from wheelmem.hookspecs import ArmReach, FoundRecord
from wheelmem.text import PERSON_ID, fold

from .questions import people_in

__all__ = ["DatesArm", "SpeakerArm", "tells_a_date"]

_UNITS = (
    "minute hour day night week weekend month year decade century morning evening afternoon "
    "summer winter spring autumn "
    "heure jour nuit semaine mois annee an siecle matin soir ete hiver printemps automne"
)
_NAMES = (
    "january february april june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday "
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre "
    "lundi mardi mercredi jeudi vendredi samedi dimanche"
)
_FROM_NOW = (
    "yesterday today tonight tomorrow ago recently last next hier demain recemment prochain prochaine dernier derniere "
    "aujourd'hui avant-hier"
)
# Over folded text. Any number counts: most are years, days or hours, or say how long.
_DATE = re.compile(
    rf"\b(?:\d+(?:st|nd|rd|th|er|e|am|pm|h)?|{'|'.join(_FROM_NOW.split())}|{'|'.join(_NAMES.split())}|(?:{'|'.join(_UNITS.split())})s?)\b"
)
# In small letters these two are other words.
_MARCH_MAY = re.compile(r"\b(?:March|May)\b")


def tells_a_date(text: str) -> bool:
    """Whether a text names a day, a month, a year, how long, or a time from now ("two weeks ago", « mardi dernier »)."""
    text = PERSON_ID.sub(" ", text)
    return _DATE.search(fold(text).replace("’", "'")) is not None or _MARCH_MAY.search(text) is not None


KEPT = 200_000


class DatesArm:
    """Favours records that tell a date; a question that asks when makes it count for more."""

    name = "dates"
    stage = "favour"
    weight = 0.1

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: ArmReach, found: Sequence[FoundRecord], limit: int
    ) -> Iterable[tuple[int, float, str | None]]:
        """Those of the found records whose text tells a date, each with the score it was found with."""
        # Kept while the file does not change: a circle is asked again and again.
        told: dict[int, bool] = getattr(db, "cache", {}).setdefault("dates.told", {})
        if len(told) > KEPT:
            told.clear()
        told.update((id, tells_a_date(text)) for id, text in _texts(db, [one for one in found if one.record_id not in told]))
        return [(one.record_id, one.score, None) for one in found if told.get(one.record_id)]


class SpeakerArm:
    """Favours the words of the person a question names (of several, the one it names first).

    Who spoke is a record's speaker; a turn that tells none, but whose title is a participant of its ceremony, is theirs.
    """

    name = "speaker"
    stage = "favour"
    weight = 0.3

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: ArmReach, found: Sequence[FoundRecord], limit: int
    ) -> Iterable[tuple[int, float, str | None]]:
        """Those of the found records that the person spoke, each with the score it was found with."""
        speakers = _speakers(db, reach, found)
        named = people_in(question.query, dict.fromkeys(speakers.values()))
        if not named:
            return []
        return [
            (one.record_id, one.score, f"said by {speakers[one.record_id]}")
            for one in found
            if speakers.get(one.record_id) in named[0]
        ]


def _texts(db: sqlite3.Connection, found: Sequence[FoundRecord]) -> Iterable[tuple[int, str]]:
    ids = json.dumps([one.record_id for one in found])
    return db.execute("SELECT record_id, text FROM records WHERE record_id IN (SELECT value FROM json_each(?))", (ids,))


def _speakers(db: sqlite3.Connection, reach: ArmReach, found: Sequence[FoundRecord]) -> dict[int, str]:
    """The name of who spoke each record, where somebody did."""
    ids = json.dumps([one.record_id for one in found])
    names: dict[int, str] = dict(
        db.execute(
            "SELECT r.record_id, coalesce(nullif(n.name, ''), r.speaker) FROM records r LEFT JOIN nodes n ON n.id = r.speaker "
            "WHERE r.record_id IN (SELECT value FROM json_each(?)) AND r.speaker IS NOT NULL AND r.kind <> 'ceremony'",
            (ids,),
        ).fetchall()
    )
    places = frozenset(reach.places)
    for record_id, place, title in db.execute(
        "SELECT l.record_id, l.place, b.title FROM ("
        "  SELECT record_id, home AS place FROM records WHERE record_id IN (SELECT value FROM json_each(:ids)) "
        "  AND kind = 'beat' AND speaker IS NULL "
        "  UNION ALL SELECT a.record_id, a.place FROM also_in a JOIN records r ON r.record_id = a.record_id "
        "  WHERE a.record_id IN (SELECT value FROM json_each(:ids)) AND r.kind = 'beat' AND r.speaker IS NULL"
        ") l JOIN beats b ON b.position = l.record_id / 8 JOIN places p ON p.place = l.place "
        "JOIN ceremony_participants c ON c.ceremony_id = p.id AND c.participant = b.title",
        {"ids": ids},
    ):
        if place in places:
            names[record_id] = title
    return names
