"""What the doors that create a record accept, refuse and fill in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelmem.contract import ContractError, NotHeldError
from wheelmem.drafts import CEREMONY_TYPES, DIRECTIONS, ENTRY_TYPES, NODE_TYPES, PHASES, draft, draft_warnings
from wheelmem.plugins import load_plugins
from wheelmem.store import KINDS, open_wheel

GOOD = {
    "node": {"type": "human", "name": "Ana"},
    "edge": {"from_id": "node:a", "to_id": "node:b", "relationship_type": "mentors"},
    "ceremony": {"type": "opening", "direction": "east"},
    "beat": {"direction": "south", "title": "Ana speaks", "description": "words", "ceremonies": ["ceremony:held"]},
    "diary": {"participant": "node:a", "content": "words", "phase": "ningwaab", "entryType": "data"},
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    with open_wheel(tmp_path_factory.mktemp("drafts") / "wheel.db", plugins=load_plugins(load="")) as wheel:
        wheel.put("node", {"id": "node:a", "type": "human", "name": "A"})
        wheel.put("node", {"id": "node:b", "type": "human", "name": "B"})
        wheel.put("node", {"id": "circle:held", "type": "circle", "name": "C"})
        wheel.put("ceremony", {"id": "ceremony:held", "type": "opening"})
        yield wheel


@pytest.fixture
def make(wheel):
    return lambda kind, given: wheel.read(lambda db: draft(kind, given, db))


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_record_is_kept_with_what_it_lacked(make, kind):
    made = make(kind, {**GOOD[kind], "seen_by": "a heron"})
    assert made.items() >= {**GOOD[kind], "seen_by": "a heron"}.items()
    stamped = {"node": "created_at", "edge": "created_at"}.get(kind, "timestamp")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", made[stamped])


@pytest.mark.parametrize(
    ("kind", "more", "shape"),
    [
        ("node", {}, r"node:human:\d{13}:[a-z0-9]+"),
        ("node", {"type": "agent"}, r"node:agent:\d{13}:[a-z0-9]+"),
        ("node", {"type": "circle"}, r"circle:\d{13}:[a-z0-9]+"),
        ("ceremony", {}, r"ceremony:\d{13}:[a-z0-9]+"),
        ("beat", {}, r"beat:south:\d{13}"),
        ("diary", {}, r"diary:\d{13}:[a-z0-9]+"),
    ],
)
def test_ids_are_minted_in_the_wheel_s_shapes(make, kind, more, shape):
    assert re.fullmatch(shape, make(kind, {**GOOD[kind], **more})["id"])


def test_many_records_in_one_millisecond_have_ids_of_their_own(wheel, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 1_773_000_000_000_000_000)
    ids = set()
    for _ in range(20):

        def keep(db):
            made = draft("beat", GOOD["beat"], db)
            wheel.store(db, "beat", made)
            return made["id"]

        ids.add(wheel.write(keep))
    assert len(ids) == 20


def test_given_ids_and_times_are_kept(make):
    given = {**GOOD["diary"], "id": "diary:żółw", "timestamp": "2026-03-08T21:00:00+02:00"}
    assert make("diary", given).items() >= given.items()


@pytest.mark.parametrize(
    ("kind", "field", "allowed"),
    [
        ("node", "type", NODE_TYPES),
        ("node", "direction", DIRECTIONS),
        ("ceremony", "type", CEREMONY_TYPES),
        ("ceremony", "direction", DIRECTIONS),
        ("beat", "direction", DIRECTIONS),
        ("diary", "phase", PHASES),
        ("diary", "entryType", ENTRY_TYPES),
    ],
)
def test_unknown_values_are_refused_with_what_is_allowed(make, kind, field, allowed):
    with pytest.raises(ContractError, match=f"{field}.*{', '.join(allowed)}"):
        make(kind, {**GOOD[kind], field: "sideways"})
    for value in allowed:
        assert make(kind, {**GOOD[kind], field: value})[field] == value


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("node", "type"),
        ("node", "name"),
        ("edge", "from_id"),
        ("edge", "to_id"),
        ("edge", "relationship_type"),
        ("ceremony", "type"),
        ("beat", "direction"),
        ("beat", "title"),
        ("diary", "participant"),
        ("diary", "content"),
    ],
)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_what_a_record_cannot_do_without(make, kind, field, value):
    with pytest.raises(ContractError, match=field):
        make(kind, {**GOOD[kind], field: value})


@pytest.mark.parametrize(
    ("kind", "field", "value", "said"),
    [
        ("node", "name", 3, "name of a node must be a string"),
        ("node", "metadata", [], "must be an object"),
        ("edge", "strength", 1.01, "from 0 to 1"),
        ("edge", "strength", -0.01, "from 0 to 1"),
        ("edge", "strength", float("nan"), "from 0 to 1"),
        ("edge", "strength", "0.5", "must be a number"),
        ("edge", "strength", True, "must be a number"),
        ("edge", "to_id", "node:a", "an edge joins two"),
        ("edge", "ceremony_honored", "yes", "true or false"),
        ("edge", "obligations", [1], "list of strings"),
        ("ceremony", "participants", {"a": 1}, "list of strings"),
        ("ceremony", "episode_path", "2026-03-20-footbridge", "YYYY-MM-DD-episode-NNN-slug"),
        ("ceremony", "episode_path", "2026-13-20-episode-1-x", "YYYY-MM-DD-episode-NNN-slug"),
        ("ceremony", "research_context", '{"episodePath": "nowhere"}', "YYYY-MM-DD-episode-NNN-slug"),
        ("ceremony", "timestamp", "yesterday", "2026-03-08T18:00:00Z"),
        ("ceremony", "timestamp", "2026-02-30", "2026-03-08T18:00:00Z"),
        ("beat", "act", "first", "must be a number"),
        ("beat", "act", 1.5, "whole number"),
        ("beat", "id", "  ", "needs id"),
        ("beat", "id", "a\x00b", "no id can hold"),
        ("beat", "extra", float("inf"), "JSON cannot write"),
        ("diary", "metadata", {"ceremony_id": 3}, "ceremony_id"),
    ],
)
def test_what_does_not_fit_is_refused(make, kind, field, value, said):
    with pytest.raises(ContractError, match=said):
        make(kind, {**GOOD[kind], field: value})


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("edge", {"to_id": "node:gone"}),
        ("edge", {"from_id": "node:gone"}),
        ("ceremony", {"type": "closing", "closes": "ceremony:gone"}),
        ("ceremony", {"type": "closing", "research_context": "ceremony:gone"}),
        ("ceremony", {"circle_id": "circle:gone"}),
        ("ceremony", {"circle_id": "node:a"}),
        ("diary", {"metadata": {"ceremony_id": "ceremony:gone"}}),
        ("diary", {"ceremony_id": "ceremony:gone"}),
    ],
)
def test_what_must_be_held_is_refused_when_it_is_not(make, kind, more):
    with pytest.raises(NotHeldError, match=r"the wheel holds no .*(gone|node:a)"):
        make(kind, {**GOOD[kind], **more})


def test_what_is_held_may_be_named(make):
    assert make("ceremony", {"type": "closing", "closes": "ceremony:held", "circle_id": "circle:held"})
    assert make("diary", {**GOOD["diary"], "metadata": {"ceremony_id": "ceremony:held", "tags": ["x"]}})


def test_a_diary_entry_that_names_its_ceremony_beside_the_metadata_is_found_there(make):
    made = make("diary", {**GOOD["diary"], "ceremony_id": "ceremony:held"})
    assert made["metadata"]["ceremony_id"] == "ceremony:held"


@pytest.mark.parametrize("key", ["episode_path", "episodePath"])
@pytest.mark.parametrize("as_text", [True, False])
def test_an_episode_is_lifted_out_of_the_context(make, key, as_text):
    path = "2026-03-20-episode-12-footbridge"
    context = f'{{"{key}": "{path}"}}' if as_text else {key: path}
    assert make("ceremony", {**GOOD["ceremony"], "research_context": context})["episode_path"] == path


def test_an_edge_is_of_middling_strength_unless_it_says_so(make):
    assert make("edge", GOOD["edge"])["strength"] == 0.5
    assert make("edge", {**GOOD["edge"], "strength": 0})["strength"] == 0


def test_one_bare_string_becomes_a_list(make):
    assert make("ceremony", {**GOOD["ceremony"], "participants": "Ana"})["participants"] == ["Ana"]


def test_a_beat_tells_its_keeper_what_is_odd(wheel):
    def warned(**more):
        return wheel.read(lambda db: draft_warnings("beat", draft("beat", {**GOOD["beat"], **more}, db), db))

    assert warned() == []
    assert "ceremony:gone" in warned(ceremonies=["ceremony:held", "ceremony:gone"])[0]
    assert "no scope reaches it" in warned(ceremonies=[])[0]
    assert "node:human:1:gone" in warned(speaker="node:human:1:gone")[0]
    assert "act 2" in warned(act=4)[0]
    assert "beyond its title" in warned(description="")[0]


# Lone surrogates too: JSON can write them.
words = st.text(st.characters(exclude_categories=[]), max_size=5)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@given(kind=st.sampled_from(list(GOOD)), data=st.data())
def test_whatever_is_given_is_a_record_that_can_be_stored_or_an_error_that_says_why(wheel, kind, data):
    names = [*KINDS[kind].columns, "unlisted"]
    changes = data.draw(st.dictionaries(st.sampled_from(names), anything, max_size=3) | anything)
    offered = {**GOOD[kind], **changes} if isinstance(changes, dict) else changes

    def keep(db):
        made = draft(kind, offered, db)
        assert all(isinstance(line, str) for line in draft_warnings(kind, made, db))
        wheel.store(db, kind, made)
        return made

    try:
        made = wheel.write(keep)
    except (ContractError, NotHeldError):
        return
    held = wheel.get(kind, *KINDS[kind].keys(made))
    assert held == made
