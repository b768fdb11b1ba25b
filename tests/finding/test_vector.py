"""The vector arm and ``wheelmem embed``: what is found by meaning, what goes stale, what a kill leaves behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from models import MEANINGS, Server, make_model, serving
from rows import ceremony, turn

from wheelmem import create_memory, open_wheel
from wheelmem.memory import run
from wheelmem.settings import Settings
from wheelmem.store import Wheel
from wheelmem.testing import generate
from wheelmem.testing.cases import Bench

pytest.importorskip("numpy")
pytest.importorskip("model2vec")

from wheelmem_vector.commands import embed_wheel
from wheelmem_vector.embedders import EmbedError, Model2VecEmbedder, OpenAIEmbedder
from wheelmem_vector.store import hash_of, ids_of, text_of

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
SCOPE = {"ceremonies": "ceremony:1"}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_model(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def found(finder: Any, model: str, query: str, scope: dict[str, Any] = SCOPE) -> list[str]:
    answer = finder.search(query, scope, arms=["vector"], block={"vector.model": model})
    assert "vector" not in (answer.note or ""), answer.note
    return [source.wheel_id for source in answer.sources]


def some_rows(number: int, ceremony_id: str = "ceremony:1", seed: int = 0) -> list[Any]:
    random = Random(seed)
    words = " ".join(MEANINGS).split()
    return [ceremony(ceremony_id)] + [
        turn(f"beat:{ceremony_id}:{n}", " ".join(random.choices(words, k=5)), ceremony_id, n % 60) for n in range(number)
    ]


def held(wheel: Wheel) -> dict[int, tuple[bytes, bytes]]:
    """Every vector of a wheel: record → (hash, bytes). Fails when a record has two, or a block is torn."""
    vectors: dict[int, tuple[bytes, bytes]] = {}

    def look(db: sqlite3.Connection) -> None:
        ((_, dimension),) = db.execute("SELECT id, dimension FROM vector_model").fetchall() or [("", 0)]
        for block, ids, hashes, blob in db.execute("SELECT block, ids, hashes, numbers FROM vector_blocks"):
            keys = ids_of(block, ids)
            assert len(hashes) == 8 * len(keys)
            assert len(blob) == 2 * dimension * len(keys)
            for at, key in enumerate(keys):
                assert key not in vectors
                vectors[key] = (hashes[8 * at : 8 * at + 8], blob[2 * dimension * at : 2 * dimension * (at + 1)])

    wheel.read(look)
    return vectors


def right(wheel: Wheel, embedder: Any) -> dict[int, tuple[bytes, bytes]]:
    """What every vector should be."""
    from wheelmem_vector.store import packed, unit

    rows = wheel.read(lambda db: db.execute("SELECT record_id, text FROM records").fetchall())
    vectors = unit(embedder.embed([text_of(text) for _, text in rows]))
    return {
        id: (hash_of(text_of(text)), packed(vector))
        for (id, text), vector in zip(rows, vectors, strict=True)
    }


def test_it_finds_by_meaning_what_shares_no_word(finder: Any, model: str) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "A lamp by the ford"), turn("beat:2", "A ship at dawn", minute=9))
    assert embed_wheel(finder.wheel, Model2VecEmbedder(model)) == 3
    assert found(finder, model, "lantern")[0] == "beat:1"
    assert found(finder, model, "ferry")[0] == "beat:2"


def test_until_it_is_set_up_it_says_so_and_the_rest_answers(finder: Any, model: str) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "A lamp"))
    assert finder.search("lamp", SCOPE).note == "no provider is configured; the wheel matched its own records"
    assert "no embedding model is set" in finder.search("lamp", SCOPE, arms=["vector", "keyword"]).note
    not_yet = finder.search("lamp", SCOPE, arms=["vector", "keyword"], block={"vector.model": model})
    assert "run wheelmem embed" in not_yet.note
    assert [source.wheel_id for source in not_yet.sources] == ["beat:1"]
    missing = finder.search("lamp", SCOPE, block={"vector.model": "/nowhere/at/all"})
    assert [source.wheel_id for source in missing.sources] == ["beat:1"]


def test_only_what_is_new_or_changed_is_embedded(finder: Any, model: str) -> None:
    asked: list[str] = []

    class Counting(Model2VecEmbedder):
        def embed(self, texts: Any) -> Any:
            asked.extend(texts)
            return super().embed(texts)

    embedder = Counting(model)
    finder.put(*some_rows(300))
    assert embed_wheel(finder.wheel, embedder) == 301
    asked.clear()
    assert embed_wheel(finder.wheel, embedder) == 0
    assert asked == []
    finder.put(turn("beat:new", "a ferry"), turn("beat:ceremony:1:7", "a rock"))
    finder.wheel.delete("beat", "beat:ceremony:1:8")
    assert embed_wheel(finder.wheel, embedder) == 2
    assert sorted(asked) == ["a ferry", "a rock"]
    assert held(finder.wheel) == right(finder.wheel, embedder)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE beats SET description = 'a ship' WHERE id = 'beat:1'",
        "INSERT OR REPLACE INTO beats (position, id, description, ceremonies) "
        "SELECT position, id, 'a ship', ceremonies FROM beats WHERE id = 'beat:1'",
        "DELETE FROM beats WHERE id = 'beat:1'",
    ],
)
def test_a_change_with_any_tool_makes_a_vector_stale_never_wrong(finder: Any, model: str, change: str) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "a lamp"), turn("beat:2", "early light", minute=9))
    embed_wheel(finder.wheel, Model2VecEmbedder(model))
    assert found(finder, model, "lantern")[0] == "beat:1"
    other = sqlite3.connect(finder.wheel.path)
    with other:
        other.execute(change)
    other.close()
    assert "beat:1" not in found(finder, model, "lantern")
    embed_wheel(finder.wheel, Model2VecEmbedder(model))
    assert ("beat:1" in found(finder, model, "boat")) == ("DELETE" not in change)


def test_a_change_that_leaves_the_text_as_it_is_leaves_the_vector(finder: Any, model: str) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "a lamp"))
    embed_wheel(finder.wheel, Model2VecEmbedder(model))
    finder.put(turn("beat:1", "a lamp", minute=30))
    assert found(finder, model, "lantern") == ["beat:1"]
    assert embed_wheel(finder.wheel, Model2VecEmbedder(model)) == 0


def test_another_model_takes_the_place_of_the_first(finder: Any, model: str, tmp_path: Path) -> None:
    finder.put(*some_rows(20))
    embed_wheel(finder.wheel, Model2VecEmbedder(model))
    other = str(make_model(tmp_path / "other", seed=9, dimension=24))
    answer = finder.search("lamp", SCOPE, arms=["vector"], block={"vector.model": other})
    assert "run wheelmem embed" in answer.note
    assert answer.sources == ()
    embed_wheel(finder.wheel, Model2VecEmbedder(other))
    assert held(finder.wheel) == right(finder.wheel, Model2VecEmbedder(other))
    assert found(finder, other, "lamp")


def test_what_changes_while_it_is_embedded_gets_no_vector_of_what_it_was(finder: Any, model: str) -> None:
    class Meanwhile(Model2VecEmbedder):
        def embed(self, texts: Any) -> Any:
            if "a lamp" in texts:
                finder.put(turn("beat:1", "a ship"))
            return super().embed(texts)

    finder.put(ceremony("ceremony:1"), turn("beat:1", "a lamp"))
    embed_wheel(finder.wheel, Meanwhile(model))
    assert "beat:1" not in found(finder, model, "lantern")
    assert embed_wheel(finder.wheel, Model2VecEmbedder(model)) == 1
    assert found(finder, model, "ferry")[0] == "beat:1"


KILLED = """
import sys, time
from wheelmem import open_wheel
from wheelmem_vector.commands import embed_wheel
from wheelmem_vector.embedders import Model2VecEmbedder
print("started", flush=True)
with open_wheel(sys.argv[1], create=False) as wheel:
    embed_wheel(wheel, Model2VecEmbedder(sys.argv[2]), lambda done, total: print(done, flush=True))
"""


def test_killed_at_any_moment_it_goes_on_without_a_wrong_or_double_vector(tmp_path: Path, model: str) -> None:
    random = Random(4)
    path = tmp_path / "wheel.db"
    with open_wheel(path) as wheel:
        rows = some_rows(2000)
        wheel.write(lambda db: [wheel.store(db, kind, record) for kind, record in rows])
        expected = right(wheel, Model2VecEmbedder(model))
        for _ in range(2 * REPEATS):
            process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), model], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            for _ in range(random.randint(1, 4)):
                process.stdout.readline()
            time.sleep(random.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            part = held(wheel)
            assert part.items() <= expected.items()
            # And some of it is undone again, so that every round has work to be killed at.
            undo = "DELETE FROM vector_blocks WHERE block IN (SELECT block FROM vector_blocks LIMIT 3)"
            wheel.write(lambda db, undo=undo: db.execute(undo))
        embed_wheel(wheel, Model2VecEmbedder(model))
        assert held(wheel) == expected


def test_the_vectors_take_little_more_than_themselves(finder: Any, tmp_path: Path) -> None:
    embedder = Model2VecEmbedder(str(make_model(tmp_path / "wide", dimension=384)))
    rows = some_rows(2000)
    finder.wheel.write(lambda db: [finder.wheel.store(db, kind, record) for kind, record in rows])
    before = pages(finder.wheel)
    assert embed_wheel(finder.wheel, embedder) == 2001
    assert pages(finder.wheel) - before <= 1.2 * 2001 * 384 * 2


def pages(wheel: Wheel) -> int:
    """The bytes of the file that hold something."""
    sizes = "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)"
    return wheel.read(lambda db: db.execute(sizes).fetchone()[0] * db.execute("PRAGMA page_size").fetchone()[0])


# --- a server --------------------------------------------------------------------------------------------------------


def over_http(server: Server, **more: Any) -> dict[str, Any]:
    return {"vector.url": server.url, "vector.model": "tiny", **more}


def embedder_of(server: Server, url: str = "", key: str = "") -> OpenAIEmbedder:
    return OpenAIEmbedder(url or server.url, "tiny", key)


def test_a_server_embeds_records_and_questions(finder: Any, server: Server) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "A lamp by the ford"), turn("beat:2", "A ship at dawn", minute=9))
    assert embed_wheel(finder.wheel, embedder_of(server)) == 3
    answer = finder.search("ferry", SCOPE, arms=["vector"], block=over_http(server, **{"vector.key": "s3cret"}))
    assert answer.sources[0].wheel_id == "beat:2"
    assert server.asked[-1] == {"model": "tiny", "input": ["ferry"]}
    assert server.headers[-1]["Authorization"] == "Bearer s3cret"
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_the_address_may_be_given_in_any_of_its_forms(server: Server, ending: str) -> None:
    assert len(embedder_of(server, server.url + ending).embed(["lamp"])) == 1


def test_a_server_that_fails_costs_the_arm_its_part_only(finder: Any, server: Server) -> None:
    finder.put(ceremony("ceremony:1"), turn("beat:1", "A lamp"))
    embed_wheel(finder.wheel, embedder_of(server))
    server.status = 500
    answer = finder.search("lamp", SCOPE, block=over_http(server))
    assert [source.wheel_id for source in answer.sources] == ["beat:1"]
    assert "arm vector failed" in answer.note
    assert "Bearer" not in answer.note


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("status", "answered 503 for model tiny"), ("drop", "answered 1 vectors for 2 texts"), ("gone", "cannot be reached")],
)
def test_what_a_server_does_wrong_is_said_in_one_line(server: Server, wrong: str, said: str) -> None:
    embedder = embedder_of(server)
    if wrong == "status":
        server.status = 503
    elif wrong == "drop":
        server.drop = 1
    else:
        embedder = OpenAIEmbedder("http://127.0.0.1:9", "tiny")
    with pytest.raises(EmbedError, match=said) as error:
        embedder.embed(["one", "two"])
    assert "\n" not in str(error.value)


# --- the laws --------------------------------------------------------------------------------------------------------


def everything(wheel: Wheel, case: Any, model: str) -> list[str]:
    import json

    memory = create_memory(wheel=wheel, providers=(), settings=Settings({"vector.model": model}))
    said = []
    for call in (
        memory.search(query=case.query, scope=case.scope, explain=True, limit=50),
        memory.search(query=case.query, scope=case.scope, explain=True, limit=50, arms=["vector"]),
        memory.about(person=case.person, scope=case.scope, question=case.query, explain=True, limit=50),
    ):
        shown = run(memory, call).to_json()
        shown.pop("reach")
        said.append(json.dumps(shown))
    return said


def test_no_record_outside_the_reach_changes_a_score_of_any_arm(model: str) -> None:
    embedder = Model2VecEmbedder(model)
    by_vector = 0
    with Bench() as bench:
        for seed in range(10 * REPEATS):
            case = generate(seed)
            with bench.wheel(case.inside) as inside, bench.wheel(case.rows) as whole:
                embed_wheel(inside, embedder)
                embed_wheel(whole, embedder)
                expected = everything(inside, case, model)
                assert everything(whole, case, model) == expected, case
                for _ in range(2):
                    assert everything(whole, case, model) == expected, case
                by_vector += '"arm": "vector"' in expected[1]
    assert by_vector * 3 >= 10 * REPEATS


def test_a_score_is_the_same_in_whatever_company(make_finder: Any, model: str) -> None:
    """The same three hundred records, alone and among thousands, at other places in memory: the same scores, to the last bit."""
    alone, among = make_finder("alone.db"), make_finder("among.db")
    rows = some_rows(300)
    others = some_rows(REPEATS * 700, "ceremony:2", seed=5)
    mixed = [row for pair in zip(others, rows, strict=False) for row in pair] + others[len(rows) :]
    for finder, stored in ((alone, rows), (among, mixed)):
        finder.wheel.write(lambda db, finder=finder, stored=stored: [finder.wheel.store(db, *row) for row in stored])
        embed_wheel(finder.wheel, Model2VecEmbedder(model))
    for query in ("lamp at the ford", "early ship", "teal rock water"):
        scores = []
        for finder in (alone, among):
            answer = finder.search(query, SCOPE, arms=["vector"], block={"vector.model": model}, limit=50)
            scores.append([(s.wheel_id, s.explain.arms[0].score) for s in answer.sources])
        assert scores[0] == scores[1]
        assert len(scores[0]) == 50
