"""A person's name finds what they said, where they sat and where they are named, whatever they are called by now."""

from __future__ import annotations

from keyword_fixtures import ADA, Find, Say

from wheelmem import Wheel


def test_a_name_finds_words_spoken_and_ceremonies_sat_in(wheel: Wheel, say: Say, find: Find) -> None:
    say("beat:1", "the lantern is lit", speaker=ADA)
    say("beat:2", "the lantern is out", speaker="Bob Reed")
    say("beat:3", f"thanks to {ADA} for the light")
    assert sorted(find("ada")) == ["beat:1", "beat:3", "ceremony:1"]
    assert sorted(find("What did Lovelace say?")) == ["beat:1", "beat:3", "ceremony:1"]
    assert find("ada lantern")[0] == "beat:1"
    assert sorted(find("reed")) == ["beat:2", "ceremony:1"]
    assert find("bob lantern")[0] == "beat:2"


def test_a_renamed_node_is_followed(wheel: Wheel, say: Say, find: Find) -> None:
    say("beat:1", "the lantern is lit", speaker=ADA)
    wheel.put("node", {"id": ADA, "type": "human", "name": "Augusta Byron"})
    assert sorted(find("Augusta")) == ["beat:1", "ceremony:1"]
    assert find("Lovelace") == []


def test_the_wheel_is_nobody(say: Say, find: Find) -> None:
    say("beat:1", "medicine for the wheel")
    assert find("wheel") == ["beat:1"]
    assert find("medicine") == ["beat:1"]


def test_the_words_in_an_id_are_not_words_of_the_text(say: Say, find: Find) -> None:
    say("beat:1", f"a human said so, and {ADA} heard")
    say("beat:2", f"{ADA} said so")
    assert find("human") == ["beat:1"]
    assert find("node agent") == []


def test_about_a_person_returns_theirs_alone_with_the_weights_of_all(wheel: Wheel, say: Say, find: Find) -> None:
    say("beat:1", "a lantern at dawn", speaker=ADA)
    say("beat:2", "a river at noon, as ever", speaker=ADA)
    for number in range(4):
        say(f"beat:bob{number}", "the lantern", speaker="Bob Reed")
    # Lantern is common in the whole reach, so the river weighs more, though each stands in one record of Ada's.
    assert find("lantern river", person=ADA) == ["beat:2", "beat:1"]
    assert find("lantern", person="Bob Reed") == [f"beat:bob{number}" for number in range(4)]
    assert find("lantern", person="Bob") == []
    assert find("lantern", person='Bob" OR 1=1') == []
