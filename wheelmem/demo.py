"""A small invented wheel to try things on: three circles that each have a lantern of their own.

Ids and times are fixed, so building it again changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from .contract import WheelmemError
from .store import Wheel

__all__ = ["FERRY", "HERON", "KITCHEN", "MIRA", "ORCHARD", "QUESTION", "build", "records"]

MIRA = "node:human:1767225600001:mira"
TOMAS = "node:human:1767225600002:tomas"
YUKI = "node:human:1767225600003:yuki"
ELISE = "node:human:1767225600004:elise"
HERON = "node:agent:1767225600005:heron"
ORCHARD = "circle:1767225600010:orchard"
FERRY = "circle:1767225600020:ferry"
KITCHEN = "circle:1767225600030:kitchen"
LANDING = "pde:landing"
EPISODE = "2026-03-14-episode-3-landing"
QUESTION = "What colour is the lantern?"

_PEOPLE = (
    (MIRA, "human", "Mira Oyelaran"),
    (TOMAS, "human", "Tomas Lindqvist"),
    (YUKI, "human", "Yuki Harada"),
    (ELISE, "human", "Élise Caron"),
    (HERON, "agent", "Heron"),
)
# Circle, name, what it tends, who holds it, who else sits in it.
_CIRCLES = (
    (ORCHARD, "Orchard Circle", "the old apple trees and their harvest night", MIRA, (TOMAS,)),
    (FERRY, "Ferry Circle", "the crossing and its landing", YUKI, (TOMAS, HERON)),
    (KITCHEN, "Winter Kitchen", "one warm meal a week, for whoever comes", ELISE, (MIRA,)),
)
# Ceremony, type, direction, circle, when, who sat there, intentions, more.
_CEREMONIES: tuple[tuple[str, str, str, str, str, tuple[str, ...], tuple[str, ...], dict[str, str]], ...] = (
    ("o1", "opening", "east", ORCHARD, "2026-03-01T17:00", (MIRA, TOMAS), ("wake the orchard",), {}),
    ("o2", "talking_circle", "south", ORCHARD, "2026-03-08T17:00", (MIRA, TOMAS), ("prepare harvest night",), {}),
    (
        "o2c",
        "closing",
        "west",
        ORCHARD,
        "2026-03-08T19:00",
        (MIRA, TOMAS),
        ("the lantern is red, and hangs low",),
        {"closes": "o2"},
    ),
    ("o3", "smudging", "north", ORCHARD, "2026-03-22T07:00", (MIRA,), ("thank the trees that fell",), {}),
    ("f1", "opening", "east", FERRY, "2026-03-03T06:30", (YUKI, HERON), ("find a landing",), {"subject_id": LANDING}),
    (
        "f2",
        "talking_circle",
        "south",
        FERRY,
        "2026-03-14T06:30",
        (YUKI, TOMAS, HERON),
        ("where the ferry lands",),
        {"subject_id": LANDING, "episode_path": EPISODE},
    ),
    (
        "f2c",
        "closing",
        "west",
        FERRY,
        "2026-03-14T08:00",
        (YUKI, TOMAS),
        ("the stone steps, with a green lantern",),
        {"closes": "f2"},
    ),
    ("f3", "talking_circle", "west", FERRY, "2026-03-28T06:30", (YUKI, HERON), ("look back at the flood",), {}),
    ("k1", "opening", "east", KITCHEN, "2026-03-05T11:00", (ELISE, MIRA), ("light the stove",), {}),
    ("k2", "talking_circle", "south", KITCHEN, "2026-03-12T11:00", (ELISE, MIRA), ("choisir le menu du printemps",), {}),
    ("k2c", "closing", "west", KITCHEN, "2026-03-12T13:00", (ELISE,), ("soupe à la courge, tous les jeudis",), {"closes": "k2"}),
    ("k3", "spirit_feeding", "north", KITCHEN, "2026-03-26T11:00", (ELISE, MIRA), ("a plate for those who are gone",), {}),
)
# Ceremony, minutes after it began, direction, speaker, title, what was said.
_TURNS = (
    ("o1", 10, "east", MIRA, "Mira opens", "The buds are late this year. We begin with the rope swing and the broken ladder."),
    ("o1", 20, "east", TOMAS, "Tomas offers", "I can mend the ladder before the bees come."),
    (
        "o2",
        10,
        "south",
        MIRA,
        "Mira asks about harvest night",
        "How do we light the way on harvest night, and who carries the ladder?",
    ),
    (
        "o2",
        20,
        "south",
        TOMAS,
        "Tomas answers",
        "The colour of the lantern is red, as when my grandmother carried it between the apple trees.",
    ),
    (
        "o2",
        30,
        "south",
        MIRA,
        "Mira agrees",
        "Red paper, then, and it hangs low, where the children can reach it.",
    ),
    ("o3", 10, "north", MIRA, "Mira names the trees", "Two trees fell in the storm. Their wood warms the winter kitchen now."),
    (
        "f1",
        10,
        "east",
        YUKI,
        "Yuki opens",
        "The old landing is under water every spring. We look for another before the bell is rung again.",
    ),
    (
        "f1",
        20,
        "east",
        HERON,
        "Heron reads the charts",
        "Three charts agree on the stone steps; the fourth was drawn before the flood.",
    ),
    ("f2", 10, "south", YUKI, "Yuki asks", "Whoever crosses at night must see the landing. What do we hang there?"),
    (
        "f2",
        20,
        "south",
        HERON,
        "Heron compares",
        "A red lantern means danger on this river. Green is the colour that ferries answer to.",
    ),
    ("f2", 30, "south", TOMAS, "Tomas yields", "Green, then. I would have said red, but that lantern belongs to the orchard."),
    ("f2", 40, "west", YUKI, "Yuki decides", "So the colour of our lantern is green, and the ferry lands at the stone steps."),
    ("f3", 10, "west", YUKI, "Yuki looks back", "The flood took the rope but not the bell. Nobody was on the water."),
    ("f3", 20, "west", HERON, "Heron counts", "Eleven crossings were called off in March; each is in the log with its hour."),
    ("k1", 10, "east", ELISE, "Élise ouvre", "Le poêle est allumé. On commence par le pain, et par ceux qui ont froid."),
    ("k1", 20, "east", MIRA, "Mira brings wood", "Apple wood from the orchard: two trees fell, and it burns slowly."),
    ("k2", 10, "south", ELISE, "Élise propose", "Une soupe à la courge, servie dans la courge même, creusée comme une lanterne."),
    ("k2", 20, "south", MIRA, "Mira laughs", "An orange lantern that one can eat! The children will want the lid."),
    ("k2", 30, "south", ELISE, "Élise répond", "La couleur de la lanterne sera donc orange, et le couvercle ira aux enfants."),
    ("k3", 10, "north", ELISE, "Élise met un couvert de plus", "Une assiette pour ceux qui sont partis, près de la fenêtre."),
)
# Diary entry, participant, phase, type, when, ceremony or chronicle, words.
_DIARY = (
    (
        "1",
        TOMAS,
        "nindokendaan",
        "observation",
        "2026-03-08T21:00",
        "o2",
        "I said red before anyone else could. I should have asked the children.",
    ),
    (
        "2",
        HERON,
        "nindokendaan",
        "data",
        "2026-03-14T08:30",
        "f2",
        "Logged: landing moved to the stone steps; signal green; the bell stays.",
    ),
    (
        "3",
        YUKI,
        "ningwaab",
        "reflection",
        "2026-03-15T06:00",
        EPISODE,
        "I slept well for the first time since the flood. The steps will hold.",
    ),
    (
        "4",
        ELISE,
        "migwech",
        "learning",
        "2026-03-12T20:00",
        "k2",
        "Ce que les enfants gardent, c'est le couvercle, pas la soupe.",
    ),
)


def _ceremony(name: str) -> str:
    return f"ceremony:demo:{name}"


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, record) of everything the demo wheel holds, in the order of its arrival."""
    born = {"created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z"}
    for id, type, name in _PEOPLE:
        yield "node", {"id": id, "type": type, "name": name, "metadata": {}, **born}
    for id, name, intention, holder, others in _CIRCLES:
        metadata = {"kind": "circle", "intention": intention, "facilitator_id": holder, "active": True}
        yield "node", {"id": id, "type": "circle", "name": name, "direction": "east", "metadata": metadata, **born}
        for person in (holder, *others):
            duties = ["facilitate", "hold the space"] if person == holder else ["show up", "listen"]
            yield (
                "edge",
                {
                    "from_id": person,
                    "to_id": id,
                    "relationship_type": "member_of",
                    "strength": 1,
                    "ceremony_honored": False,
                    "obligations": duties,
                    "created_at": born["created_at"],
                },
            )
    yield "node", {"id": LANDING, "type": "knowledge", "name": "Where does the ferry land?", "metadata": {"kind": "pde"}, **born}
    chronicle = {"id": f"chronicle:{EPISODE}", "type": "knowledge", "name": "Episode 3: the landing"}
    yield "node", {**chronicle, "metadata": {"kind": "chronicle_episode"}, **born}
    starts = {}
    for name, type, direction, circle, at, people, intentions, more in _CEREMONIES:
        starts[name] = at
        closes = {"closes": _ceremony(more["closes"])} if "closes" in more else {}
        yield (
            "ceremony",
            {
                "id": _ceremony(name),
                "type": type,
                "direction": direction,
                "participants": list(people),
                "medicines_used": ["cedar"],
                "intentions": list(intentions),
                "timestamp": f"{at}:00.000Z",
                "circle_id": circle,
                **more,
                **closes,
            },
        )
    for number, (name, minutes, direction, speaker, title, words) in enumerate(_TURNS, 1):
        day, _, clock = starts[name].partition("T")
        hour, minute = divmod(int(clock[:2]) * 60 + int(clock[3:]) + minutes, 60)
        yield (
            "beat",
            {
                "id": f"beat:demo:{number}",
                "direction": direction,
                "title": f"{title}:",
                "description": words,
                "ceremonies": [_ceremony(name)],
                "learnings": [],
                "timestamp": f"{day}T{hour:02}:{minute:02}:00.000Z",
                "act": ("east", "south", "west", "north").index(direction) + 1,
                "relations_honored": [],
                "speaker": speaker,
                "witnesses": [],
            },
        )
    for id, who, phase, type, at, place, words in _DIARY:
        entry = {"id": f"diary:demo:{id}", "timestamp": f"{at}:00.000Z", "participant": who, "phase": phase}
        entry |= {"entryType": type, "content": words}
        if place in starts:
            yield "diary", {**entry, "metadata": {"ceremony_id": _ceremony(place)}}
        else:
            yield "diary", {**entry, "metadata": {}, "chronicle": f"chronicle:{place}"}


def build(wheel: Wheel) -> None:
    """Put the demo's records into a wheel that holds nothing else; raises WheelmemError for one that does."""
    if wheel.count()["ceremonies"] and wheel.get("ceremony", _ceremony("o1")) is None:
        raise WheelmemError(f"{wheel.path} holds ceremonies of your own; name another file for the demo: --db PATH")

    def keep(db: sqlite3.Connection) -> None:
        for kind, record in records():
            wheel.store(db, kind, record)

    wheel.write(keep)
