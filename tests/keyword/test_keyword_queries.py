"""A question is data: whatever is in it is looked for, and nothing of it is read as a query language."""

from __future__ import annotations

import pytest
from keyword_fixtures import Find, Say
from wheelmem_fts5.words import MOST_TERMS, _words, stems


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("lanterns", ["beat:lantern"]),
        ("lanterning", ["beat:lantern"]),
        ("élargir LANTERN", ["beat:lantern", "beat:french"]),
        ("elargir", ["beat:french"]),
        ("zoe", ["beat:french"]),
        ("don't", ["beat:don't"]),
        ("a/b", ["beat:a/b"]),
        ("20.04", ["beat:20.04"]),
        ("--flag", ["beat:flag"]),
        ("-flag", ["beat:flag"]),
        ("key:value", ["beat:key"]),
        ("text:lantern", ["beat:lantern"]),
        ("(x", ["beat:x"]),
        ("x)", ["beat:x"]),
        ("x*", ["beat:x"]),
        ("^x", ["beat:x"]),
        ("x+x", ["beat:x"]),
        ("NEAR(lantern x, 5)", ["beat:x", "beat:near", "beat:lantern"]),
        ("NEAR", ["beat:near"]),
        ("lantern NOT lantern", ["beat:lantern"]),
        ("lantern AND flag", ["beat:flag", "beat:lantern"]),
        ('lantern"', ["beat:lantern"]),
        ("'lantern", ["beat:lantern"]),
        ('"""', []),
        ("lan\x00tern", []),
        ("x\x00y", ["beat:x"]),
        ("\ud800", []),
        ("\ud800 lantern \udfff", ["beat:lantern"]),
        ("🏮", []),
        ("🏮 lantern", ["beat:lantern"]),
        ("*", []),
        ("%", []),
        (";--", []),
        ("{x}", ["beat:x"]),
        ("会議", ["beat:会議"]),
        ("議事", ["beat:会議"]),
        ("会", ["beat:会議"]),
        ("会議 lantern", ["beat:会議", "beat:lantern"]),
        ("회의", ["beat:회의"]),
        ("ประชุม", ["beat:ประชุม"]),
        ("что", ["beat:что"]),
        ("ЧТО", ["beat:что"]),
    ],
)
def test_odd_questions_search_sensibly_or_find_nothing(say: Say, find: Find, question: str, found: list[str]) -> None:
    for id, words in {
        "lantern": "the lantern by the door",
        "french": "élargir le pont, dit Zoë",
        "don't": "we don't know yet, they said that it would come",
        "a/b": "an a/b test of two doors",
        "20.04": "version 20.04 of the door",
        "flag": "start it with --flag",
        "key": "write key:value there",
        "x": "x marks it",
        "near": "it is near",
        "会議": "2024年会議議事メモ",
        "회의": "회의를 시작",
        "ประชุม": "การประชุมใหญ่",
        "что": "вот что было",
    }.items():
        say(f"beat:{id}", words)
    assert sorted(find(question)) == sorted(found)


def test_function_words_alone_are_looked_for_when_there_is_nothing_else(say: Say, find: Find) -> None:
    say("beat:1", "to be or not to be")
    say("beat:2", "a lantern")
    assert find("to be") == ["beat:1"]
    assert find("what is the lantern to be") == ["beat:2"]


def test_ten_thousand_characters(say: Say, find: Find) -> None:
    say("beat:1", "a lantern")
    assert find("x" * 9_980 + " lantern") == ["beat:1"]
    assert find(('"lantern ' * 2_000)[:10_000]) == ["beat:1"]
    page = " ".join(f"w{number:x}" for number in range(1_900))
    assert find(f"illumination {page} lanternlight lantern lanterns"[:10_000]) == ["beat:1"]
    assert len(_words(page).kept) == MOST_TERMS


def test_a_phrase_in_quotes_must_be_there(say: Say, find: Find) -> None:
    say("beat:1", "the red lantern burned")
    say("beat:2", "the lantern, red as ever")
    say("beat:3", "to be or not to be, said the lantern")
    assert sorted(find("red lantern")) == ["beat:1", "beat:2", "beat:3"]
    assert find('"red lantern"') == ["beat:1"]
    assert find('"red lanterns" door') == ["beat:1"]
    assert find("«lantern red»") == ["beat:2"]
    assert find('"to be or not"') == ["beat:3"]
    assert find('lantern "not to be"') == ["beat:3"]
    assert find('"not to be" door') == ["beat:3"]
    assert find('"red lantern" "lantern red"') == []
    assert find('"lantern NOT red" OR *') == []
    assert find('"..." lantern') == find("lantern")


def test_a_phrase_in_a_script_without_spaces(say: Say, find: Find) -> None:
    say("beat:1", "本日の会議メモです")
    say("beat:2", "会う、議する、メモ")
    assert find('"会議メモ"') == ["beat:1"]
    assert sorted(find("会議メモ")) == ["beat:1", "beat:2"]
    assert find("会議メモ")[0] == "beat:1"


def test_rarer_words_and_shorter_records_come_first(say: Say, find: Find) -> None:
    say("beat:long", "a lantern and a great many other words that were said around it all night long")
    say("beat:short", "a lantern")
    say("beat:twice", "a lantern beside a lantern")
    for number in range(5):
        say(f"beat:common{number}", "an evening")
    assert find("lantern evening")[:3] == ["beat:twice", "beat:short", "beat:long"]
    assert find("lantern") == ["beat:twice", "beat:short", "beat:long"]


def test_ties_go_to_the_later_then_by_id(say: Say, find: Find) -> None:
    say("beat:b", "a lantern", timestamp="2026-01-01T10:00:00Z")
    say("beat:a", "a lantern", timestamp="2026-01-01T11:00:00+01:00")
    say("beat:undated", "a lantern")
    say("beat:c", "a lantern", timestamp="2026-01-02")
    for limit in (1, 2, 3, 4):
        assert find("lantern", limit=limit) == ["beat:c", "beat:a", "beat:b", "beat:undated"][:limit]


def test_ties_at_the_cut_are_all_looked_at(say: Say, find: Find) -> None:
    # More of them than an arm may bring: the latest is the last to come in.
    for number in range(130):
        say(f"beat:{number}", "a lantern", timestamp=f"2026-01-01T10:{number // 60:02}:{number % 60:02}Z")
    assert find("lantern", limit=3) == ["beat:129", "beat:128", "beat:127"]


def test_words_are_stemmed_as_the_index_stems_them() -> None:
    assert stems("Élargis the LANTERNS") == (("elargis", "elargi"), ("the", "the"), ("lanterns", "lantern"))
    assert stems("\ud800\x00🏮") == ()
