"""Folding, terms, excerpts, the plain match and the reach: what holds for any text and any wheel."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelmem import Scope, excerpt_around, is_empty_scope, match_records, query_terms, resolve_reach
from wheelmem.text import STOPWORDS, substitute_names

TEXTS = st.text(st.one_of(st.sampled_from("aàéß İΣς ﬁ日本\u0301🙂\t\n the"), st.characters()), max_size=400)


@given(TEXTS)
def test_terms_are_folded_words_of_three_letters_or_more_each_once(text: str) -> None:
    terms = query_terms(text)
    assert len(terms) == len(set(terms))
    for term in terms:
        assert len(term) >= 3
        assert term not in STOPWORDS
        assert not any("\u0300" <= char <= "\u036f" for char in term)


@given(TEXTS, st.lists(TEXTS, max_size=3), st.integers(1, 100))
def test_an_excerpt_is_part_of_the_text_and_cuts_no_letter(text: str, terms: list[str], width: int) -> None:
    excerpt = excerpt_around(text, terms, width)
    flat = " ".join(text.split())
    inner = excerpt.removeprefix("…").removesuffix("…") if excerpt != flat else excerpt
    whole = " ".join(unicodedata.normalize("NFC", text).split())
    assert "".join(inner.split()) in "".join(text.split()) or unicodedata.normalize("NFC", inner) in whole
    if len(flat) <= width and "…" not in text:
        assert not excerpt.endswith("…")


def test_a_person_id_is_never_halved_by_the_excerpt() -> None:
    long = "word " * 55 + "node:human:1772000000001:ana1 speaks " + "word " * 100
    assert "node:" not in excerpt_around(substitute_names(long, {"node:human:1772000000001:ana1": "Ana"}), ["speaks"])
    assert substitute_names("node:human:1:x node:circle:2:y", {"node:human:1:x": "X"}) == "X node:circle:2:y"


def test_matching_takes_plain_objects_and_prefers_the_whole_query() -> None:
    records = [
        {"wheel_kind": "beat", "wheel_id": "1", "text": "stone piers"},
        {"wheel_kind": "beat", "wheel_id": "2", "text": "piers of stone"},
        {"wheel_kind": "beat", "wheel_id": "3", "text": "nothing"},
    ]
    assert [source.wheel_id for source in match_records("stone piers", records)] == ["1", "2"]
    assert match_records("the of", records) == []


CEREMONIES: list[dict[str, Any]] = [
    {"id": "c:1", "circle_id": "circle:a", "participants": "Ana"},
    {"id": "c:2", "research_context": '{"episodePath": "2026-01-01-episode-1-x"}'},
    {"id": "c:3", "type": "closing", "research_context": "c:1"},
    {"id": "c:4", "type": "opening", "research_context": "c:1"},
    {"id": "c:5", "closes": "c:3"},
    {"id": "c:6", "type": "closing", "research_context": "c:unknown"},
]


@pytest.mark.parametrize(
    ("scope", "reached"),
    [
        ({"circle_id": "circle:a"}, ["c:1", "c:3", "c:5"]),
        ({"circle_id": " circle:a ", "exclude_ceremonies": ["c:1"]}, ["c:3", "c:5"]),
        ({"participant": "Ana", "exclude_ceremonies": ["c:3"]}, ["c:1", "c:5"]),
        ({"episode_path": ["2026-01-01-episode-1-x"]}, ["c:2"]),
        ({"ceremonies": ["c:6", "c:9"]}, ["c:6"]),
        ({"participant": "An"}, []),
        ({"exclude_ceremonies": ["c:1"]}, []),
        ({}, []),
    ],
)
def test_what_a_scope_reaches(scope: dict[str, Any], reached: list[str]) -> None:
    assert list(resolve_reach(scope, CEREMONIES, []).ceremonies) == reached


def test_seats_add_the_ceremonies_of_their_circles() -> None:
    seats = [{"person_id": "p:1", "circle_id": "circle:a"}, {"person_id": "p:2", "circle_id": "circle:b"}]
    assert resolve_reach({"participant": "p:1"}, CEREMONIES, seats).ceremonies == ("c:1", "c:3", "c:5")
    assert resolve_reach({"participant": "p:2"}, CEREMONIES, seats).is_empty


@given(st.lists(st.sampled_from(["c:1", "c:2", "c:3", "c:4", "c:5", "c:6", "", "c:9"]), max_size=5))
def test_what_is_excluded_is_never_reached(excluded: list[str]) -> None:
    scope = {"ceremonies": [ceremony["id"] for ceremony in CEREMONIES], "exclude_ceremonies": excluded}
    assert set(resolve_reach(scope, CEREMONIES, []).ceremonies) == {c["id"] for c in CEREMONIES} - set(excluded)


def test_emptiness() -> None:
    assert is_empty_scope({"ceremonies": [" ", ""], "exclude_ceremonies": ["c:1"]})
    assert not is_empty_scope(Scope(participant="x"))
