"""The pure parts give the right values that lie beside the project."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from wheelmem import excerpt_around, is_empty_scope, match_records, query_terms, resolve_reach
from wheelmem.ids import fold_id
from wheelmem.text import STOPWORDS, fold


def load(shared: Path, name: str) -> Any:
    return json.loads((shared / "vectors" / f"{name}.json").read_text(encoding="utf-8"))


def test_query_terms(shared: Path) -> None:
    cases = load(shared, "terms") + load(shared, "ours")["terms"]
    assert [query_terms(case["query"]) for case in cases] == [case["terms"] for case in cases]


def test_stopwords(shared: Path) -> None:
    lists = load(shared, "stopwords")
    assert {fold(word) for words in lists.values() for word in words} == STOPWORDS


def test_excerpts(shared: Path) -> None:
    cases = load(shared, "excerpt") + load(shared, "ours")["excerpt"]
    for case in cases:
        assert excerpt_around(case["text"], case["terms"], case["width"]) == case["excerpt"]


def test_matches(shared: Path) -> None:
    for case in load(shared, "match"):
        given = copy.deepcopy(case["records"])
        limit = {"limit": case["limit"]} if "limit" in case else {}
        assert [source.to_json() for source in match_records(case["query"], given, **limit)] == case["sources"]
        assert given == case["records"]


def test_reach(shared: Path) -> None:
    for case in load(shared, "reach"):
        given = copy.deepcopy(case)
        reach = resolve_reach(given["scope"], given["ceremonies"], given["seats"]).to_json()
        assert is_empty_scope(given["scope"]) is case["empty"]
        assert reach == {"scope": case["scope"], **case["reach"]}
        assert given == case


def test_honcho_ids(shared: Path) -> None:
    for case in load(shared, "honcho-ids"):
        assert fold_id(case["wheel_id"]) == case["honcho_id"]
