"""``wheelmem embed`` and ``wheelmem arms`` as a user runs them: real processes, stopped and killed."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from models import MEANINGS, Server, make_model, serving
from wheelmem_vector.commands import embed_wheel
from wheelmem_vector.embedders import Model2VecEmbedder, OpenAIEmbedder
from wheelmem_vector.store import hash_of, ids_of, packed, text_of, unit

from wheelmem import create_memory, open_wheel
from wheelmem.contract import WheelmemError
from wheelmem.memory import run
from wheelmem.settings import Settings

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))
SCOPE = {"ceremonies": "ceremony:1"}


@pytest.fixture
def wheel(machine: Path) -> Path:
    """The default wheel, with two records and a ceremony."""
    path = machine / "wheel.db"
    with open_wheel(path) as made:
        made.put("ceremony", {"id": "ceremony:1", "type": "talking_circle"})
        made.put(
            "beat", {"id": "beat:1", "title": "a lamp by the ford", "ceremonies": ["ceremony:1"], "speaker": "node:human:1:ana"}
        )
        made.put(
            "beat", {"id": "beat:2", "title": "a lantern at dawn", "ceremonies": ["ceremony:1"], "speaker": "node:human:2:ben"}
        )
    return path


def fill(path: Path, count: int, seed: int = 0) -> None:
    chance = random.Random(seed)
    words = " ".join(MEANINGS).split()
    with open_wheel(path) as made:
        rows = [
            {"id": f"beat:more{n}", "title": " ".join(chance.choices(words, k=6)), "ceremonies": ["ceremony:1"]}
            for n in range(count)
        ]
        made.write(lambda db: [made.store(db, "beat", row) for row in rows])


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli() -> Run:
    """Runs ``wheelmem`` as a process of its own, with settings from the environment."""

    def start(*arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        more = {f"WHEELMEM_{name.upper()}": value for name, value in env.items()}
        done = subprocess.run(
            [sys.executable, "-m", "wheelmem", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **more},
            timeout=120,
        )
        assert "Traceback" not in done.stderr
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    return start


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def state(cli: Run, **env: str) -> str:
    """What ``wheelmem arms`` says of the vector arm."""
    (arm,) = [arm for arm in json.loads(cli("arms", "--json", **env).stdout) if arm["name"] == "vector"]
    return "ready" if arm["ready"] else arm["why"]


def sound(path: Path, model: str) -> int:
    """How many good vectors the wheel has; fails when one is wrong without being marked, doubled or torn."""
    with open_wheel(path) as wheel:
        texts = dict(wheel.read(lambda db: db.execute("SELECT record_id, text FROM records").fetchall()))
        vectors = unit(Model2VecEmbedder(model).embed([text_of(text) for text in texts.values()]))
        right = {id: (hash_of(text_of(texts[id])), packed(vector)) for id, vector in zip(texts, vectors, strict=True)}
        blocks = wheel.read(lambda db: db.execute("SELECT block, ids, hashes, numbers FROM vector_blocks").fetchall())
        marked = {id for (id,) in wheel.read(lambda db: db.execute("SELECT record_id FROM vector_changed").fetchall())}
    seen: set[int] = set()
    good = 0
    for block, ids, hashes, numbers in blocks:
        keys = ids_of(block, ids)
        width = len(numbers) // len(keys)
        assert len(numbers) == width * len(keys)
        assert len(hashes) == 8 * len(keys)
        for at, key in enumerate(keys):
            assert key not in seen
            seen.add(key)
            as_it_should_be = right.get(key) == (hashes[8 * at : 8 * at + 8], numbers[width * at : width * (at + 1)])
            assert as_it_should_be or key in marked
            good += as_it_should_be
    return good


def test_arms_says_what_is_to_be_done_next(cli: Run, wheel: Path, model: str, tmp_path: Path) -> None:
    assert state(cli) == "no embedding model is set; set vector.model, then run wheelmem embed"
    assert state(cli, vector_model=model) == "nothing is embedded yet; run wheelmem embed"
    assert state(cli, vector_embedder="nobody's") == 'no embedder is named "nobody\'s"; there are: model2vec, openai'
    cli("embed", vector_model=model)
    assert state(cli, vector_model=model) == "ready"
    other = str(make_model(tmp_path / "other", seed=3))
    assert state(cli, vector_model=other).endswith("run wheelmem embed")
    assert "there is no folder" in state(cli, vector_model=str(tmp_path / "gone"))


def test_embed_says_what_it_did_also_as_json(cli: Run, wheel: Path, model: str) -> None:
    done = cli("embed", "--json", vector_model=model)
    said = json.loads(done.stdout)
    assert done.stderr == ""
    assert said["model"].startswith("model2vec:tiny@")
    assert (said["dimension"], said["embedded"]) == (16, 3)
    assert json.loads(cli("embed", "--json", vector_model=model).stdout)["embedded"] == 0
    assert cli("embed", vector_model=model).stdout == f"every record is embedded with {said['model']}\n"
    with open_wheel(wheel) as opened:
        opened.put("beat", {"id": "beat:3", "title": "stone", "ceremonies": ["ceremony:1"]})
    assert cli("embed", "--db", str(wheel), vector_model=model).stdout == f"1 record(s) embedded with {said['model']}\n"
    assert sound(wheel, model) == 4


def test_without_a_model_or_a_wheel_embed_says_so_in_one_line(cli: Run, wheel: Path, tmp_path: Path, model: str) -> None:
    for env, said in (
        ({}, "no embedding model is set; set vector.model"),
        ({"vector_model": str(tmp_path / "gone")}, "there is no folder"),
        ({"vector_model": str(tmp_path)}, "cannot load the model2vec model"),
        ({"vector_model": "minishlab/no-such-model"}, "is not on this machine and cannot be fetched"),
        ({"vector_url": "http://localhost:9"}, "no embedding server is set; set vector.model"),
        ({"vector_url": "localhost", "vector_model": "m"}, "vector.url is no address of a server"),
        ({"vector_embedder": "none"}, "no embedder is named 'none'"),
    ):
        done = cli("embed", code=1, **env)
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert "make one with: wheelmem init" in cli("embed", "--db", str(tmp_path / "no.db"), code=1, vector_model=model).stderr


def test_a_search_never_fetches_a_model(wheel: Path) -> None:
    with pytest.raises(WheelmemError, match="run wheelmem embed, which fetches it"):
        _ = Model2VecEmbedder("minishlab/no-such-model").model


def test_nothing_heavy_is_imported_before_it_is_needed(wheel: Path, model: str) -> None:
    def imported(*commands: list[str], **env: str) -> set[str]:
        code = f"import sys\nfrom wheelmem.cli import main\nfor one in {list(commands)!r}: main(one)\nprint('\\n', *sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **env})
        return set(done.stdout.splitlines()[-1].split())

    heavy = {"numpy", "model2vec", "httpx", "huggingface_hub"}
    search = ["search", "lamp", "--ceremony", "ceremony:1"]
    assert not imported(["arms"], ["embed", "--help"], ["settings"], search) & heavy
    # A model that is set, in a wheel without vectors, costs nothing either.
    assert not imported(["arms"], search, WHEELMEM_VECTOR_MODEL=model) & heavy


def test_ctrl_c_stops_embed_and_keeps_what_is_made(wheel: Path, model: str, cli: Run) -> None:
    fill(wheel, 6000)
    env = {**os.environ, "WHEELMEM_VECTOR_MODEL": model}
    process = subprocess.Popen(
        [sys.executable, "-m", "wheelmem", "embed"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_vectors(wheel)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, out, err)
    assert "Traceback" not in err
    assert "wheelmem embed goes on from there" in err
    made = sound(wheel, model)
    assert 0 < made < 6003
    assert json.loads(cli("embed", "--json", vector_model=model).stdout)["embedded"] == 6003 - made
    assert sound(wheel, model) == 6003


def wait_for_vectors(path: Path) -> None:
    db = sqlite3.connect(path)
    until = time.monotonic() + 60
    while not db.execute("SELECT count(*) FROM vector_blocks").fetchone()[0]:
        assert time.monotonic() < until, "no vector was made"
        time.sleep(0.005)
    db.close()


def test_killed_again_and_again_embed_comes_to_its_end(wheel: Path, model: str, cli: Run) -> None:
    fill(wheel, 4000)
    chance = random.Random(2)
    env = {**os.environ, "WHEELMEM_VECTOR_MODEL": model}
    for _ in range(REPEATS):
        process = subprocess.Popen(
            [sys.executable, "-m", "wheelmem", "embed"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for_vectors(wheel)
        time.sleep(chance.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert sound(wheel, model)
        # Some are changed between, and some lose their vectors, so that every round has work to be killed at.
        with open_wheel(wheel) as opened:
            for _ in range(5):
                changed = {"id": f"beat:more{chance.randrange(4000)}", "title": "a stone bridge", "ceremonies": ["ceremony:1"]}
                opened.put("beat", changed)
            opened.write(
                lambda db: db.execute("DELETE FROM vector_blocks WHERE block IN (SELECT block FROM vector_blocks LIMIT 4)")
            )
        finds_only_what_is(wheel, model)
    cli("embed", vector_model=model)
    assert sound(wheel, model) == 4003


def finds_only_what_is(path: Path, model: str) -> None:
    """Every score of a search is that of the record's text as it is, whatever lies in the blocks."""
    with open_wheel(path) as wheel:
        memory = create_memory(wheel=wheel, providers=(), settings=Settings({"vector.model": model}))
        answer = run(memory, memory.search(query="ferry ship", scope=SCOPE, arms=["vector"], limit=50, explain=True))
        texts = dict(wheel.read(lambda db: db.execute("SELECT wheel_id, text FROM records").fetchall()))
    embedder = Model2VecEmbedder(model)
    (asked,) = unit(embedder.embed(["ferry ship"]))
    for source in answer.sources:
        (vector,) = unit(embedder.embed([text_of(texts[source.wheel_id])]))
        assert source.explain is not None
        assert abs(source.explain.arms[0].score - float(vector @ asked)) < 1e-3


def ask(path: Path, query: str = "lantern", **settings: Any) -> Any:
    block = {f"vector.{name}": value for name, value in settings.items()}
    with open_wheel(path) as wheel:
        memory = create_memory(wheel=wheel, providers=(), settings=Settings(block))
        return run(memory, memory.search(query=query, scope=SCOPE))


def test_a_server_that_hangs_costs_the_arm_its_part_only(wheel: Path, server: Server) -> None:
    with open_wheel(wheel) as opened:
        embed_wheel(opened, OpenAIEmbedder(server.url, "tiny"))
    answering = server.answer
    server.answer = lambda body: (time.sleep(3), answering(body))[1]  # type: ignore[method-assign]
    began = time.monotonic()
    answer = ask(wheel, url=server.url, model="tiny", timeout=0.2)
    assert time.monotonic() - began < 3
    assert answer.sources[0].wheel_id == "beat:2"
    assert "arm vector failed" in answer.note


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "set vector.key"), (404, "serves this model"), (429, "try again later"), (503, "try again later")]
)
def test_a_refusal_is_one_line_that_says_what_to_do_and_never_the_key(
    cli: Run, wheel: Path, server: Server, status: int, hint: str
) -> None:
    server.status = status
    address = server.url.replace("//", "//ana:pa55word@")
    done = cli("embed", code=1, vector_url=address, vector_model="tiny", vector_key="s3cret")
    assert f"answered {status} for model tiny" in done.stderr
    assert hint in done.stderr
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stderr
    assert "pa55word" not in done.stderr


def test_a_key_and_a_password_are_kept_nowhere(cli: Run, wheel: Path, server: Server) -> None:
    env = {"vector_url": server.url.replace("//", "//ana:pa55word@"), "vector_model": "tiny", "vector_key": "s3cret"}
    cli("embed", **env)
    assert state(cli, **env) == "ready"
    for done in (cli("settings", **env), cli("embed", "--json", **env)):
        assert "s3cret" not in done.stdout
    assert b"pa55word" not in wheel.read_bytes()
    for key in ("ké", "a\nb"):
        said = cli("embed", code=1, vector_url=server.url, vector_model="other", vector_key=key).stderr
        assert "cannot be sent" in said
        assert key not in said


class Odd:
    """An embedder that gives what it is told to."""

    name = "odd"
    model = "odd"
    dimension = 2

    def __init__(self, given: Any) -> None:
        self.given = given

    def embed(self, texts: Any) -> Any:
        return self.given(texts)


@pytest.mark.parametrize(
    "given",
    [
        lambda texts: [[1.0, 0.0]] * (len(texts) - 1),
        lambda texts: [[1.0, 0.0, 0.0]] * len(texts),
        lambda texts: [[1.0]] + [[1.0, 0.0]] * (len(texts) - 1),
        lambda texts: ["one"] * len(texts),
        lambda texts: None,
    ],
)
def test_an_embedder_that_gives_nonsense_is_named_and_nothing_is_kept(wheel: Path, given: Any) -> None:
    with open_wheel(wheel) as opened:
        with pytest.raises(WheelmemError, match="embedder odd gave"):
            embed_wheel(opened, Odd(given))
        assert opened.read(lambda db: db.execute("SELECT count(*) FROM vector_blocks").fetchone()) == (0,)


def test_no_number_is_no_direction(wheel: Path, machine: Path) -> None:
    """A vector of zeros, or of what is no number, is near nothing; the others are found all the same."""
    with open_wheel(wheel) as opened:
        embed_wheel(opened, Odd(lambda texts: [[1.0, 0.0] if "lamp" in text else [float("nan"), 0.0] for text in texts]))
    (machine / "plugins").mkdir()
    (machine / "plugins" / "odd.py").write_text(
        "from wheelmem import hookimpl\n\n\nclass Odd:\n    name = model = 'odd'\n    dimension = 2\n\n"
        "    def embed(self, texts):\n        return [[1.0, 0.0]] * len(texts)\n\n\n"
        "@hookimpl\ndef register_embedders(register):\n    register(Odd())\n"
    )
    arguments = [sys.executable, "-m", "wheelmem", "search", "ferry", "--ceremony", "ceremony:1", "--json", "--arm", "vector"]
    env = {**os.environ, "WHEELMEM_VECTOR_EMBEDDER": "odd"}
    done = subprocess.run(
        [*arguments, "--plugins-dir", str(machine / "plugins")], capture_output=True, text=True, env=env, check=True
    )
    assert [source["wheel_id"] for source in json.loads(done.stdout)["sources"]] == ["beat:1"]


def test_about_a_person_only_their_own_records_are_found(wheel: Path, model: str) -> None:
    with open_wheel(wheel) as opened:
        embed_wheel(opened, Model2VecEmbedder(model))
        memory = create_memory(wheel=opened, providers=(), settings=Settings({"vector.model": model}))
        for person, own in (("node:human:1:ana", ["beat:1"]), ("node:human:2:ben", ["beat:2"]), ("node:human:3:eve", [])):
            answer = run(memory, memory.about(person=person, scope=SCOPE, question="light", arms=["vector"]))
            assert [source.wheel_id for source in answer.sources] == own


def test_the_arm_needs_no_other_plugin(cli: Run, wheel: Path, model: str, tmp_path: Path) -> None:
    env = {"vector_model": model, "load_plugins": "vector"}
    path = str(tmp_path / "alone.db")
    cli("init", "--db", path, **env)
    with open_wheel(path) as opened:
        opened.put("ceremony", {"id": "ceremony:1", "type": "talking_circle"})
        opened.put("beat", {"id": "beat:1", "title": "a lamp", "ceremonies": ["ceremony:1"]})
    cli("embed", "--db", path, **env)
    done = cli("search", "lantern", "--ceremony", "ceremony:1", "--db", path, "--json", **env)
    assert [source["wheel_id"] for source in json.loads(done.stdout)["sources"]] == ["beat:1"]


def test_records_at_any_position_have_a_vector(wheel: Path, model: str) -> None:
    """Rows that another tool put at positions of its own choosing, below zero and far up."""
    positions = [-9, -1, 0, 255, 256, 2**31, 2**40 + 7, 2**59]
    db = sqlite3.connect(wheel, isolation_level=None)
    for position in positions:
        db.execute(
            "INSERT OR REPLACE INTO beats (position, id, title, ceremonies) VALUES (?, ?, 'a ferry', '[\"ceremony:1\"]')",
            (position, f"beat:at{position}"),
        )
    db.close()
    with open_wheel(wheel) as opened:
        embed_wheel(opened, Model2VecEmbedder(model))
    assert sound(wheel, model) == 3 + len(positions)
    found = {source.wheel_id for source in ask(wheel, "ship", model=model).sources}
    assert found >= {f"beat:at{position}" for position in positions}


def test_a_change_in_any_block_is_marked_whichever_others_there_are(wheel: Path, model: str) -> None:
    fill(wheel, 700)
    with open_wheel(wheel) as opened:
        embed_wheel(opened, Model2VecEmbedder(model))
    db = sqlite3.connect(wheel, isolation_level=None)
    db.execute("DELETE FROM beats WHERE position < 300")
    db.close()
    with open_wheel(wheel) as opened:
        embed_wheel(opened, Model2VecEmbedder(model))
    db = sqlite3.connect(wheel, isolation_level=None)
    ids = [id for (id,) in db.execute("SELECT position * 8 + 1 FROM beats WHERE position % 50 = 0")]
    db.execute("UPDATE beats SET title = title || ' morning' WHERE position % 50 = 0")
    assert [id for (id,) in db.execute("SELECT record_id FROM vector_changed ORDER BY record_id")] == ids
    db.close()
