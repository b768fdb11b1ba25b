"""The contract's JSON: exactly its keys, in one order, nothing said with null; and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelmem import Answer, ContractError, ProviderStatus, Question, Reach, Record, Scope, Source
from wheelmem.contract import limit_of, question_text

NAMES = st.text(max_size=8)
SEVERAL = st.one_of(NAMES, st.lists(NAMES, max_size=3))
SCOPES = st.fixed_dictionaries(
    {},
    optional={
        "ceremonies": SEVERAL,
        "subject_id": SEVERAL,
        "circle_id": SEVERAL,
        "episode_path": SEVERAL,
        "participant": NAMES,
        "exclude_ceremonies": st.lists(NAMES, max_size=3),
    },
)
REACHES = st.fixed_dictionaries(
    {"scope": SCOPES, "ceremonies": st.lists(NAMES, max_size=3), "episodes": st.lists(NAMES, max_size=2)}
)
EXPLAIN = st.fixed_dictionaries(
    {
        "arms": st.lists(
            st.fixed_dictionaries({"arm": NAMES, "rank": st.integers(1, 50), "score": st.floats(0, 1)}, optional={"path": NAMES}),
            max_size=2,
        )
    },
    optional={"duplicates": st.lists(NAMES, min_size=1, max_size=2)},
)
SOURCES = st.fixed_dictionaries(
    {"provider": NAMES, "wheel_kind": NAMES, "wheel_id": NAMES, "excerpt": NAMES},
    optional={
        "ceremony_id": NAMES,
        "speaker": NAMES,
        "speaker_name": NAMES,
        "speaker_kind": st.sampled_from(["person", "agent", "wheel"]),
        "at": NAMES,
        "outside_wheel": st.just(True),
        "explain": EXPLAIN,
    },
)
ANSWERS = st.fixed_dictionaries(
    {
        "provider": NAMES,
        "mode": st.sampled_from(["dialectic", "search", "matched", "empty"]),
        "sources": st.lists(SOURCES, max_size=3),
        "reach": REACHES,
    },
    optional={"answer": NAMES, "note": NAMES},
)


@given(ANSWERS)
def test_an_answer_comes_back_from_its_json(given_: dict[str, Any]) -> None:
    answer = Answer.from_json(given_)
    assert answer.to_json() == given_
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer


@given(REACHES, st.sampled_from([None, "person:1"]))
def test_reaches_questions_and_records_come_back(reach: dict[str, Any], person: str | None) -> None:
    assert Reach.from_json(reach).to_json() == reach
    question = Question("what?", Reach.from_json(reach), person=person)
    assert Question.from_json(question.to_json()) == question
    record = Record("beat", "beat:1", speaker=person, text="words")
    assert Record.from_json(record.to_json()) == record


def test_the_order_of_keys_is_the_contracts() -> None:
    source = Source(provider="wheel", wheel_kind="beat", wheel_id="1", at="2026", speaker="x", excerpt="e")
    assert list(source.to_json()) == ["provider", "wheel_kind", "wheel_id", "speaker", "excerpt", "at"]
    answer = Answer("wheel", "matched", None, (source,), Reach(Scope(participant="x")), "why")
    assert list(answer.to_json()) == ["provider", "mode", "sources", "reach", "note"]
    status = ProviderStatus("wheel", True, True, {"mode": "matched"})
    assert list(status.to_json()) == ["provider", "enabled", "confined", "detail"]


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ([], "scope must be an object, not list"),
        ("circle:1", "scope must be an object, not str"),
        ({"circle": "x"}, "scope does not know circle"),
        ({"circle_id": 4}, "scope.circle_id must be a string or a list of strings"),
        ({"ceremonies": ["x", 1]}, "scope.ceremonies must be a string or a list of strings"),
        ({"subject_id": {"a": 1}}, "scope.subject_id must be a string or a list of strings"),
        ({"participant": ["x"]}, "scope.participant must be a string"),
        ({"exclude_ceremonies": "x"}, "scope.exclude_ceremonies must be a list of strings"),
        ({"exclude_ceremonies": [None]}, "scope.exclude_ceremonies must be a list of strings"),
    ],
)
def test_what_is_no_scope_is_refused_by_name(scope: Any, said: str) -> None:
    with pytest.raises(ContractError) as refused:
        Scope.from_json(scope)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(("given_", "limit"), [(None, 12), (0, 12), (-3, 12), ("7", 12), (2.5, 12), (True, 12), (7, 7), (99, 50)])
def test_a_limit_that_is_no_positive_whole_number_counts_as_not_given(given_: Any, limit: int) -> None:
    assert limit_of(given_) == limit


@pytest.mark.parametrize("question", ["", "   ", None, 4, "x" * 10_001])
def test_what_is_no_question_is_refused(question: Any) -> None:
    with pytest.raises(ContractError):
        question_text(question)
    assert question_text("x" * 10_000) == "x" * 10_000
