"""The laws, as functions to call on an arm or a provider of one's own; each raises AssertionError that says what broke."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..contract import ContractError, ProviderAnswer, ProviderStatus, Question, Reach, WheelmemError
from ..memory import create_memory, run
from ..retrieval import ArmWarning
from ..settings import Settings
from ..store import Wheel
from ..text import query_terms
from .cases import Bench, Case, disturb, generate
from .clock import another_time, reads_clock

__all__ = ["assert_confined", "assert_deterministic", "assert_survives"]

# How many rows of an arm are read in one go: more than the host ever takes.
MOST_ROWS = 1_000


class _Words:
    """A finder that counts the question's words, for arms that follow what another found."""

    name = "words"
    stage = "find"

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: Any, found: Sequence[Any], limit: int
    ) -> Iterator[tuple[int, float, str | None]]:
        terms = query_terms(question.query)
        rows = db.execute("SELECT record_id, text FROM records WHERE record_id IN (SELECT record_id FROM temp.reach_records)")
        for record_id, text in rows.fetchall():
            score = sum(term in text.lower() for term in terms)
            if score:
                yield record_id, float(score), None


class _Watched:
    """An arm as it is, with the statements it runs looked at, and optionally under another time and order of rows."""

    def __init__(self, arm: Any, elsewhere: bool = False) -> None:
        self.arm = arm
        self.name = arm.name
        self.stage = getattr(arm, "stage", "find")
        self.elsewhere = elsewhere
        self.asked_the_time: list[str] = []
        self.found = 0
        if hasattr(arm, "ready"):
            self.ready = arm.ready

    def retrieve(
        self, db: sqlite3.Connection, question: Question, reach: Any, found: Sequence[Any], limit: int
    ) -> list[tuple[int, float, str | None]]:
        def look(statement: str) -> None:
            if reads_clock(statement):
                self.asked_the_time.append(" ".join(statement.split()))

        db.set_trace_callback(look)
        # Rows that no ORDER BY sorts may come in any order; the other way round shows an arm that counts on one.
        db.execute(f"PRAGMA reverse_unordered_selects = {int(self.elsewhere)}")
        package = type(self.arm).__module__.partition(".")[0]
        try:
            with another_time(package) if self.elsewhere else nullcontext():
                rows = []
                for row in self.arm.retrieve(db, question, reach, found, limit):
                    rows.append(row)
                    if len(rows) >= MOST_ROWS:
                        break
        finally:
            db.execute("PRAGMA reverse_unordered_selects = 0")
            db.set_trace_callback(None)
        self.found += len(rows)
        return rows


def _settings(given: Settings | None) -> Settings:
    # What this machine's settings say must not decide whether a test passes.
    return Settings() if given is None else given


def _answers(wheel: Wheel, case: Case, watched: _Watched, settings: Settings) -> list[tuple[str, str]]:
    """Each call of a memory by name, with its answer as JSON without the reach (which law 1 compares apart)."""
    arms = [watched] if watched.stage == "find" else [_Words(), watched]
    memory = create_memory(wheel=wheel, providers=[], arms=arms, classifiers=[], settings=settings)
    calls: dict[str, Any] = {
        "search": lambda: memory.search(query=case.query, scope=case.scope, limit=50, explain=True),
        "search, three of them": lambda: memory.search(query=case.query, scope=case.scope, limit=3, explain=True),
        "about": lambda: memory.about(person=case.person, scope=case.scope, question=case.query, limit=50, explain=True),
    }
    said = []
    for name, call in calls.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error", ArmWarning)
            try:
                answer = run(memory, call())
            except ArmWarning as warning:
                raise AssertionError(f"{warning} ({case})") from None
        notes = [note for note in (answer.note or "").split("; ") if note.startswith(f"arm {watched.name} ")]
        if notes:
            raise AssertionError(f"{notes[0]} ({case})")
        shown = answer.to_json()
        del shown["reach"]
        said.append((name, json.dumps(shown)))
    return said


def _compare(arm: Any, case: Case, what: str, expected: list[tuple[str, str]], found: list[tuple[str, str]]) -> None:
    for (call, was), (_, is_now) in zip(expected, found, strict=True):
        if was != is_now:
            before, after = _difference(was, is_now)
            raise AssertionError(f"arm {arm.name}: {what} ({case}; {call})\n  then: {before}\n  now:  {after}")


def _difference(was: str, is_now: str) -> tuple[str, str]:
    """The first source that differs, on both sides."""
    before, after = json.loads(was)["sources"], json.loads(is_now)["sources"]
    for n in range(max(len(before), len(after))):
        one = before[n] if n < len(before) else None
        other = after[n] if n < len(after) else None
        if one != other:
            return _short(one), _short(other)
    return was, is_now


def _short(source: dict[str, Any] | None) -> str:
    if source is None:
        return "nothing"
    arms = ", ".join(f"{arm['arm']} {arm['rank']}. {arm['score']!r}" for arm in source.get("explain", {}).get("arms", ()))
    return f"{source['wheel_kind']} {source['wheel_id']} ({arms})"


def _ready(arm: Any, wheel: Wheel) -> None:
    why = wheel.read(arm.ready) if hasattr(arm, "ready") else None
    if why is not None:
        raise AssertionError(f"arm {arm.name} is not ready on a generated wheel: {why}; hand its plugin over with plugin=")


def _no_clock(watched: _Watched) -> None:
    if watched.asked_the_time:
        raise AssertionError(f"arm {watched.name} asks SQLite for the time, or for chance: {watched.asked_the_time[0]}")


def _found_something(watched: _Watched, examples: int) -> None:
    if not watched.found:
        raise AssertionError(f"arm {watched.name} found nothing in {examples} generated wheels, so nothing was tested")


def assert_confined(
    arm: Any, *, examples: int = 25, seed: int = 0, plugin: object | None = None, settings: Settings | None = None
) -> None:
    """Law 1 on an arm: nothing outside the reach, and no clock, changes what it finds, its order or its scores.

    On ``examples`` generated wheels, drawn from ``seed`` on, the arm is asked in a wheel that holds everything and in one that
    holds only what the scope reaches; then again after what lies outside was changed, added to and deleted; then at another
    time. Every answer must be the same. ``plugin`` is the module or object with the arm's ``prepare_store`` when it is not
    installed. An arm of stage ``follow`` is given what a plain word finder found.
    """
    settings = _settings(settings)
    watched, elsewhere = _Watched(arm), _Watched(arm, elsewhere=True)
    with Bench(plugin) as bench:
        for number in range(seed, seed + examples):
            case = generate(number)
            with bench.wheel(case.inside) as inside, bench.wheel(case.rows) as everything:
                _ready(arm, everything)
                expected = _answers(inside, case, watched, settings)
                _no_clock(watched)
                with_all = _answers(everything, case, watched, settings)
                _compare(arm, case, "records outside the reach change what it finds", expected, with_all)
                disturb(everything.path, case)
                changed = _answers(everything, case, watched, settings)
                _compare(arm, case, "changes outside the reach change what it finds", expected, changed)
                later = _answers(inside, case, elsewhere, settings)
                _compare(arm, case, "it answers otherwise at another time, or when rows lie otherwise", expected, later)
    _found_something(watched, examples)


def assert_deterministic(
    arm: Any, *, examples: int = 10, seed: int = 0, plugin: object | None = None, settings: Settings | None = None
) -> None:
    """Law 6 on an arm: the same store and the same question give the same answer.

    Asked again, at another time, with unsorted rows the other way round, after the file was vacuumed and analyzed, and in
    processes whose sets are ordered otherwise. (Those processes get the arm by ``pickle``; for an arm that cannot be pickled
    this last part is left out, with a warning.) The arguments are those of ``assert_confined``.
    """
    settings = _settings(settings)
    watched, elsewhere = _Watched(arm), _Watched(arm, elsewhere=True)
    said: list[tuple[Case, list[tuple[str, str]]]] = []
    with Bench(plugin) as bench:
        for number in range(seed, seed + examples):
            case = generate(number)
            with bench.wheel(case.rows) as wheel:
                _ready(arm, wheel)
                expected = _answers(wheel, case, watched, settings)
                said.append((case, expected))
                _compare(arm, case, "asked again, it answers otherwise", expected, _answers(wheel, case, watched, settings))
                later = _answers(wheel, case, elsewhere, settings)
                _compare(arm, case, "it answers otherwise at another time, or when rows lie otherwise", expected, later)
                db = sqlite3.connect(wheel.path, isolation_level=None)
                db.execute("ANALYZE")
                db.execute("VACUUM")
                db.close()
                tidied = _answers(wheel, case, watched, settings)
                _compare(arm, case, "after VACUUM and ANALYZE it answers otherwise", expected, tidied)
    _no_clock(watched)
    _found_something(watched, examples)
    for hash_seed in ("1", "2"):
        for (case, expected), found in zip(said, _in_process(arm, examples, seed, plugin, hash_seed), strict=False):
            _compare(arm, case, "in another process, with another order of sets, it answers otherwise", expected, found)


def _in_process(arm: Any, examples: int, seed: int, plugin: object | None, hash_seed: str) -> list[list[tuple[str, str]]]:
    name = getattr(plugin, "__name__", None)
    try:
        packed = pickle.dumps((arm, None if plugin is None or isinstance(name, str) else plugin))
    except Exception as error:
        warnings.warn(f"arm {arm.name} cannot be pickled ({error}); the order of its sets was not tested", stacklevel=3)
        return []
    with tempfile.TemporaryDirectory(prefix="wheelmem-testing-") as folder:
        path = Path(folder) / "arm"
        path.write_bytes(packed)
        asked = json.dumps({"path": sys.path, "arm": str(path), "examples": examples, "seed": seed, "plugin": name})
        done = subprocess.run(
            [sys.executable, "-c", "import wheelmem.testing.checks as c; c._answer_elsewhere()"],
            input=asked,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            check=False,
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        if "Unpickling" in reason or "ModuleNotFoundError" in reason or "AttributeError: Can't get" in reason:
            warnings.warn(f"arm {arm.name} cannot be unpickled ({reason}); the order of its sets was not tested", stacklevel=3)
            return []
        raise AssertionError(f"arm {arm.name} failed in a process of its own: {reason}")
    return [[(call, answer) for call, answer in one] for one in json.loads(done.stdout)]


def _answer_elsewhere() -> None:
    """What ``assert_deterministic`` runs in a process of its own: asked on stdin, answered on stdout."""
    asked = json.load(sys.stdin)
    arm, plugin = pickle.loads(Path(asked["arm"]).read_bytes())
    if asked["plugin"]:
        from importlib import import_module

        plugin = import_module(asked["plugin"])
    said = []
    with Bench(plugin) as bench:
        for number in range(asked["seed"], asked["seed"] + asked["examples"]):
            case = generate(number)
            with bench.wheel(case.rows) as wheel:
                said.append(_answers(wheel, case, _Watched(arm), Settings()))
    json.dump(said, sys.stdout)


# --- providers -------------------------------------------------------------------------------------------------------

_REACHES = (
    Reach.from_json({"scope": {"ceremonies": "ceremony:1"}, "ceremonies": ["ceremony:1"]}),
    Reach.from_json({"scope": {"circle_id": "circle:a/b c"}, "ceremonies": [f"ceremony:{n}:élan ☃" for n in range(1_200)]}),
    Reach.from_json({"scope": {"episode_path": "2026-01-01-episode-001-x"}, "episodes": ["2026-01-01-episode-001-x"]}),
)
_QUERIES = ("lantern", "🏮 * \" ' ; -- <b>{}[]%s", "a\x00b", "\ud800 half a pair", "word " * 1_999)
# What a provider's note must not show: a caller reads it.
_SECRETS = ("Traceback (most recent", "Bearer ", "Authorization")


def assert_survives(provider: Any, *, seconds: float = 10.0) -> None:
    """Law 5 from a provider's side: whatever it is asked, it answers soundly or raises, in time, and goes on.

    It is asked odd questions over small, large and episode-only reaches; several at once; again after a call was cancelled
    half way; and from a second event loop, since a command line makes one for each call. It may raise every time (its server
    may be away), but with one line fit to be shown; what it answers must be a ProviderAnswer; a source may claim to be a
    record only under a ceremony of the reach that was asked. ``status`` answers always. ``receive``, when there is one, says
    ``sent``, ``wait`` or ``refused`` for each record of a batch. ``seconds`` is what one call may take.
    """
    name = getattr(provider, "name", None)
    if not isinstance(name, str) or not name:
        raise AssertionError(f"{type(provider).__name__} needs a name")
    for _ in range(2):
        asyncio.run(_survives(provider, seconds))


async def _survives(provider: Any, seconds: float) -> None:
    await _status(provider, seconds)
    verbs = [verb for verb in ("ask", "search", "about") if hasattr(provider, verb)]
    for missing in {"ask", "search"} - set(verbs):
        raise AssertionError(f"provider {provider.name} has no {missing}")
    for verb in verbs:
        person = "node:human:1:ana" if verb == "about" else None
        for reach in _REACHES:
            for query in _QUERIES:
                await _asked(provider, verb, Question(query, reach, None, person, "low", 12), seconds)
        questions = [Question(f"lantern {n}", _REACHES[0], None, person) for n in range(8)]
        await asyncio.gather(*(_asked(provider, verb, question, seconds) for question in questions))
        half_way = asyncio.ensure_future(getattr(provider, verb)(questions[0]))
        await asyncio.sleep(0)
        half_way.cancel()
        done, _ = await asyncio.wait({half_way}, timeout=seconds)
        if not done:
            raise AssertionError(f"provider {provider.name}: {verb} does not end when it is cancelled")
        if not half_way.cancelled():
            half_way.exception()
        await _asked(provider, verb, questions[1], seconds)
    if hasattr(provider, "receive"):
        await _received(provider, seconds)
    await _status(provider, seconds)


async def _in_time(provider: Any, doing: str, call: Awaitable[Any], seconds: float) -> Any:
    task = asyncio.ensure_future(call)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        raise AssertionError(f"provider {provider.name}: {doing} took more than {seconds:g} s")
    return task


async def _status(provider: Any, seconds: float) -> None:
    task = await _in_time(provider, "status", provider.status(), seconds)
    try:
        status = ProviderStatus.from_json(task.result())
    except Exception as error:
        raise AssertionError(f"provider {provider.name}: status failed ({type(error).__name__}: {error})") from error
    if status.provider != provider.name:
        raise AssertionError(f"provider {provider.name}: its status calls it {status.provider!r}")


async def _asked(provider: Any, verb: str, question: Question, seconds: float) -> None:
    shown = f"{verb}({question.query[:20]!r}) within {len(question.reach.ceremonies)} ceremonies"
    before = question.to_json()
    task = await _in_time(provider, shown, getattr(provider, verb)(question), seconds)
    error = task.exception()
    if error is not None:
        _fit_to_show(provider, shown, error)
        return
    try:
        answer = ProviderAnswer.from_json(task.result())
    except ContractError as wrong:
        raise AssertionError(f"provider {provider.name}: {shown} gave no ProviderAnswer: {wrong}") from None
    if answer.mode not in ("dialectic", "search"):
        raise AssertionError(f"provider {provider.name}: {shown} gave mode {answer.mode!r}; dialectic and search there are")
    if answer.mode == "dialectic" and not (isinstance(answer.answer, str) and answer.answer.strip()):
        raise AssertionError(f"provider {provider.name}: {shown} reasoned, and said nothing")
    for source in answer.sources:
        outside = source.ceremony_id is not None and source.ceremony_id not in question.reach.ceremonies
        if source.wheel_kind != "message" and outside:
            where = f"{source.wheel_kind} {source.wheel_id} of {source.ceremony_id}"
            raise AssertionError(f"provider {provider.name}: {shown} cited {where}, outside the reach it was given")
    if question.to_json() != before:
        raise AssertionError(f"provider {provider.name}: {shown} changed the question")


def _fit_to_show(provider: Any, doing: str, error: BaseException) -> None:
    if not isinstance(error, Exception):
        raise AssertionError(f"provider {provider.name}: {doing} raised {type(error).__name__}, which ends a program") from error
    if isinstance(error, AttributeError | NameError | TypeError | RecursionError | AssertionError):
        raise AssertionError(f"provider {provider.name}: {doing} failed by a fault: {type(error).__name__}: {error}") from error
    text = str(error)
    if isinstance(error, RuntimeError) and " loop" in text:
        raise AssertionError(f"provider {provider.name}: {doing} keeps to one event loop: {text}") from error
    if "\n" in text.strip() or any(secret in text for secret in _SECRETS):
        raise AssertionError(f"provider {provider.name}: {doing} raised what is not fit to be shown: {text!r}") from error


async def _received(provider: Any, seconds: float) -> None:
    from ..river import Outcome, project

    odd = {"title": "\ud800\x00", "description": "x" * 30_000, "ceremonies": ["ceremony:1"], "speaker": "Elm"}
    batch = [
        project("ceremony", {"id": "ceremony:1", "type": "opening", "participants": ["Elm"]}),
        project("beat", {"id": "beat:1", **odd}),
        project("diary", {"id": "diary:1", "content": "", "participant": "node:human:1:ana"}),
    ]
    task = await _in_time(provider, "receive", provider.receive(batch), seconds)
    if task.exception() is not None:
        _fit_to_show(provider, "receive", task.exception())
        return
    said = list(task.result())
    try:
        sound = len([Outcome.of(one) for one in said]) == len(batch)
    except WheelmemError:
        sound = False
    if not sound:
        raise AssertionError(f"provider {provider.name}: receive said {said!r}; each record is due one of sent, wait, refused")
