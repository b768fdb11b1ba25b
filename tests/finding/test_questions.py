"""What questions ask for: a labelled list, English and French, and how often the rules are right."""

from __future__ import annotations

from typing import Any

import pytest
from rows import ceremony, turn
from wheelmem_rules.favours import tells_a_date
from wheelmem_rules.questions import KINDS, asks_for, people_in

PEOPLE = ("Ana", "Ben", "Cora Lind", "Éloïse", "Weaver")
LABELLED = [
    # when
    ("When did we paint the lantern?", "when"),
    ("What year did the mill close?", "when"),
    ("On what day is the next circle?", "when"),
    ("Which month was the flood?", "when"),
    ("In which season do the swallows come back?", "when"),
    ("How long has Ben been away?", "when"),
    ("How long did the survey take?", "when"),
    ("How soon can the bridge be crossed?", "when"),
    ("What time does the ferry leave?", "when"),
    ("Since when is the path closed?", "when"),
    ("What was the date of the opening?", "when"),
    ("How old was the oak when it fell?", "when"),
    ("Do you remember when the frost came?", "when"),
    ("Quand a-t-on peint la lanterne ?", "when"),
    ("Depuis quand le sentier est-il fermé ?", "when"),
    ("En quelle année le moulin a-t-il fermé ?", "when"),
    ("Quel jour se tient le prochain cercle ?", "when"),
    ("À quelle heure part le bac ?", "when"),
    ("Combien de temps a duré le relevé ?", "when"),
    ("C'est quand, la prochaine crue ?", "when"),
    # how many
    ("How many surveys were read?", "how many"),
    ("How much cedar is left?", "how many"),
    ("How often do we meet?", "how many"),
    ("How many times has Ana spoken of the weir?", "how many"),
    ("What is the number of boats in the harbour?", "how many"),
    ("Combien de relevés ont été lus ?", "how many"),
    ("Combien coûte la passerelle ?", "how many"),
    ("Quel est le nombre de bateaux ?", "how many"),
    ("De combien d'arbres parle-t-on ?", "how many"),
    # who
    ("Who painted the lantern?", "who"),
    ("Whose boat is that?", "who"),
    ("To whom did the letter go?", "who"),
    ("With whom did she walk to the weir?", "who"),
    ("And who holds the key?", "who"),
    ("Who is against the bridge?", "who"),
    ("What does Ana think of the colour?", "who"),
    ("Which colour would Ben have chosen?", "who"),
    ("Where does Cora keep the survey?", "who"),
    ("Why is Weaver worried?", "who"),
    ("Qui a peint la lanterne ?", "who"),
    ("À qui appartient ce bateau ?", "who"),
    ("Avec qui est-elle venue ?", "who"),
    ("Chez qui dort la visiteuse ?", "who"),
    ("Que pense Éloïse du pont ?", "who"),
    ("Pourquoi Ben est-il parti ?", "who"),
    # exact words
    ('Where does "below the mill" stand?', "exact"),
    ("Who said “the banks are stone”?", "exact"),
    ('"lantern post"', "exact"),
    ("Où lit-on « un pont et pas un gué » ?", "exact"),
    ('When was "clay moves" written?', "exact"),
    # broad
    ("What happened at the last circle?", "broad"),
    ("What has happened since the flood?", "broad"),
    ("What went on in the archive?", "broad"),
    ("What's new in the garden?", "broad"),
    ("Tell me about the footbridge", "broad"),
    ("Summarise the talk about the weir", "broad"),
    ("Give me an overview of the survey", "broad"),
    ("Catch me up on the bridge", "broad"),
    ("What do we know about the clay?", "broad"),
    ("What did they talk about on the boat?", "broad"),
    ("Que s'est-il passé au cercle ?", "broad"),
    ("Qu'est-ce qui s'est passé après la crue ?", "broad"),
    ("Quoi de neuf au jardin ?", "broad"),
    ("Raconte la réunion du pont", "broad"),
    ("Où en est la passerelle ?", "broad"),
    ("Résume la discussion sur le barrage", "broad"),
    ("Que sait-on de l'argile ?", "broad"),
    # plain
    ("Which colour is the lantern?", "plain"),
    ("Where does the footbridge stand?", "plain"),
    ("Why is the clay a problem?", "plain"),
    ("Is the lantern green?", "plain"),
    ("What is kept in the archive?", "plain"),
    ("What does the sign say when it rains?", "plain"),
    ("lantern colour", "plain"),
    ("De quelle couleur est la lanterne ?", "plain"),
    ("Où se trouve la passerelle ?", "plain"),
    ("Pourquoi l'argile pose-t-elle problème ?", "plain"),
    ("Que dit le panneau quand il pleut ?", "plain"),
    ("couleur de la lanterne", "plain"),
]


def test_the_list_is_long_enough_and_has_every_kind() -> None:
    assert len({question for question, _ in LABELLED}) >= 60
    assert {label for _, label in LABELLED} == set(KINDS)


def test_the_rules_are_right_about_nearly_all_of_it() -> None:
    wrong = [(question, label, asks_for(question, PEOPLE)) for question, label in LABELLED]
    wrong = [item for item in wrong if item[1] != item[2]]
    right = 1 - len(wrong) / len(LABELLED)
    print(f"{right:.1%} of {len(LABELLED)} right")
    assert right >= 0.95, wrong


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What does ANA think of Ben?", [["Ana"], ["Ben"]]),
        ("What did Ben tell Ana?", [["Ben"], ["Ana"]]),
        ("Where does Lind live?", [["Cora Lind"]]),
        ("que pense eloise", [["Éloïse"]]),
        ("banana", []),
    ],
)
def test_people_are_found_by_a_word_of_their_name_in_the_order_they_are_named(question: str, named: list[list[str]]) -> None:
    assert people_in(question, PEOPLE) == named


SCOPE = {"ceremonies": "ceremony:1"}


def order(finder: Any, query: str, **more: Any) -> list[str]:
    return [source.wheel_id for source in finder.search(query, SCOPE, **more).sources if source.wheel_kind == "beat"]


def test_whom_a_question_names_is_favoured(finder: Any) -> None:
    for id, name in (("node:human:1:ana", "Ana"), ("node:human:2:ben", "Ben")):
        finder.put(("node", {"id": id, "type": "human", "name": name}))
    finder.put(
        ceremony("ceremony:1"),
        turn("beat:ana", "Green suits the lantern.", speaker="node:human:1:ana"),
        turn("beat:ben", "Green suits the lantern.", minute=40, speaker="node:human:2:ben"),
    )
    arms = ["keyword", "speaker"]
    assert order(finder, "Which lantern would Ana choose?", arms=arms)[0] == "beat:ana"
    assert order(finder, "Which lantern would Ben choose?", arms=arms)[0] == "beat:ben"


def test_a_turn_without_a_speaker_is_theirs_whose_name_is_its_title_when_they_took_part(finder: Any) -> None:
    finder.put(
        ceremony("ceremony:1", participants=["Ana", "Ben"]),
        turn("beat:ana", "Ana likes green lanterns more than anything.", title="Ben"),
        turn("beat:ben", "Green lanterns, said nobody else so far.", minute=40, title="Ana"),
    )
    found = finder.search("green lanterns of Ana", SCOPE).sources
    paths = {s.wheel_id: {a.arm: a.path for a in s.explain.arms} for s in found}
    assert paths["beat:ben"]["speaker"] == "said by Ana"
    assert "speaker" not in paths["beat:ana"]


def test_who_took_part_elsewhere_tells_nothing_here(finder: Any) -> None:
    finder.put(
        ceremony("ceremony:1", participants=["Ben"]),
        ceremony("ceremony:hidden", participants=["Ana"]),
        turn("beat:1", "Green lanterns.", ["ceremony:1", "ceremony:hidden"], title="Ana"),
    )
    (source,) = (s for s in finder.search("green lanterns of Ana", SCOPE).sources if s.wheel_kind == "beat")
    assert "speaker" not in {report.arm for report in source.explain.arms}


def test_a_question_that_asks_when_favours_a_date(finder: Any) -> None:
    finder.put(
        ceremony("ceremony:1"),
        turn("beat:what", "We painted the lantern teal"),
        turn("beat:when", "We painted the lantern yesterday, and it took us the whole of it", minute=40),
    )
    arms = ["keyword", "dates"]
    assert order(finder, "What was the lantern painted?", arms=arms)[0] == "beat:what"
    assert order(finder, "When was the lantern painted?", arms=arms)[0] == "beat:when"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("We met on 3 March.", True),
        ("It was in May", True),
        ("Two weeks ago, I think", True),
        ("mardi dernier, au port", True),
        ("Cela a duré trois heures", True),
        ("the year the mill closed", True),
        ("We may march on", False),
        ("Ceremony: closing (west)\nParticipants: node:human:1767225600001:ana", False),
        ("The lantern is teal", False),
    ],
)
def test_what_tells_a_date(text: str, told: bool) -> None:
    assert tells_a_date(text) == told


def test_words_in_quotes_stand_before_what_stands_near_them(finder: Any) -> None:
    finder.put(
        ceremony("ceremony:1"),
        turn("beat:1", "Is there a lantern post?"),
        turn("beat:2", "There is, by the door, next to the post office.", minute=1),
    )
    assert order(finder, 'Which "lantern post"')[0] == "beat:1"
