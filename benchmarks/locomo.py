"""How much of the evidence a wheel finds on LoCoMo (Maharana et al., ACL 2024).

    python benchmarks/locomo.py build locomo10.json locomo.db
    python benchmarks/locomo.py score locomo.db
    python benchmarks/locomo.py score locomo.db --arm keyword --arm keyword,hops --by-category

``build`` makes a wheel: a conversation a circle, a session a ceremony dated as given, a turn a beat whose title is the
speaker's name and whose description is its text and ``[picture caption]``. ``score`` asks every question within its circle.

The metric. All five categories. A question's evidence is every ``D<n>:<n>`` in its evidence strings that the conversation
holds; a question without any is left out. Recall@k: the share of the evidence among the first k sources; hit@k: whether any
is; means over questions. MRR: of the first evidence among the first 50.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import click

from wheelmem import create_memory, load_settings, open_wheel
from wheelmem.contract import WheelmemError
from wheelmem.memory import Memory, run

CUTS = (1, 5, 10, 20)
DEPTH = 50
CATEGORIES = {1: "several turns", 2: "when", 3: "open", 4: "one turn", 5: "not answerable"}
EVIDENCE = re.compile(r"D(\d+):(\d+)")
DATES = ("%I:%M %p on %d %B, %Y", "%I:%M %p on %d %b, %Y")
QUESTIONS = "locomo-questions.jsonl"


# --- build -----------------------------------------------------------------------------------------------------------


def records(conversations: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, record) for every circle, session and turn."""
    for number, sample in enumerate(conversations, 1):
        talk = sample["conversation"]
        circle = circle_of(sample, number)
        names = [talk["speaker_a"], talk["speaker_b"]]
        yield "node", {"id": circle, "type": "circle", "name": " and ".join(names)}
        for session, turns in sessions(talk):
            ceremony = f"ceremony:{circle}:{session}"
            began = date(talk.get(f"session_{session}_date_time"))
            at = began.isoformat().replace("+00:00", "Z") if began else None
            yield (
                "ceremony",
                {
                    "id": ceremony,
                    "type": "talking_circle",
                    "direction": "east",
                    "participants": names,
                    "timestamp": at,
                    "circle_id": circle,
                },
            )
            for place, turn in enumerate(turns):
                caption = turn.get("blip_caption")
                # A turn has no time of its own; a second for each keeps the order they were said in.
                said = began + timedelta(seconds=place) if began else None
                yield (
                    "beat",
                    {
                        "id": beat_of(circle, turn["dia_id"]),
                        "title": turn["speaker"],
                        "description": f"{turn['text']} [{caption}]" if caption else turn["text"],
                        "ceremonies": [ceremony],
                        "timestamp": said.isoformat().replace("+00:00", "Z") if said else None,
                    },
                )


def circle_of(sample: Mapping[str, Any], number: int) -> str:
    return f"circle:locomo:{sample.get('sample_id') or number}"


def beat_of(circle: str, turn: str) -> str:
    return f"beat:{circle}:{turn}"


def sessions(talk: Mapping[str, Any]) -> list[tuple[int, list[dict[str, Any]]]]:
    named = ((re.fullmatch(r"session_(\d+)", key), value) for key, value in talk.items())
    return sorted(((int(found[1]), turns) for found, turns in named if found and turns), key=lambda item: item[0])


def date(text: str | None) -> datetime | None:
    for shape in DATES:
        try:
            return datetime.strptime((text or "").strip(), shape).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def questions(conversations: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every question that has evidence in its conversation, with its circle and the ids of the turns."""
    for number, sample in enumerate(conversations, 1):
        circle = circle_of(sample, number)
        held = {turn["dia_id"] for _, turns in sessions(sample["conversation"]) for turn in turns}
        for asked in sample["qa"]:
            named = (f"D{a}:{b}" for text in asked.get("evidence") or () for a, b in EVIDENCE.findall(text))
            evidence = [beat_of(circle, turn) for turn in dict.fromkeys(named) if turn in held]
            if evidence:
                yield {"question": asked["question"], "category": asked["category"], "circle": circle, "evidence": evidence}


# --- score -----------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Sums over questions."""

    questions: int = 0
    recall: tuple[float, ...] = (0.0,) * len(CUTS)
    hits: tuple[float, ...] = (0.0,) * len(CUTS)
    reciprocal: float = 0.0

    def add(self, found: Sequence[str], evidence: Sequence[str]) -> None:
        wanted = set(evidence)
        shares = [len(wanted.intersection(found[:cut])) / len(wanted) for cut in CUTS]
        self.questions += 1
        self.recall = tuple(a + b for a, b in zip(self.recall, shares, strict=True))
        self.hits = tuple(a + (b > 0) for a, b in zip(self.hits, shares, strict=True))
        self.reciprocal += next((1 / rank for rank, id in enumerate(found[:DEPTH], 1) if id in wanted), 0.0)

    def means(self) -> dict[str, float]:
        out: dict[str, float] = {"questions": self.questions}
        for name, sums in (("recall", self.recall), ("hit", self.hits)):
            out |= {f"{name}@{cut}": total / self.questions for cut, total in zip(CUTS, sums, strict=True)}
        return {**out, "mrr": self.reciprocal / self.questions}


def score(memory: Memory, asked: Sequence[Mapping[str, Any]], arms: Sequence[str] | None) -> dict[str, Any]:
    """Means over all questions and by category, and the median milliseconds of a question."""
    tallies: dict[str, Tally] = {}
    took: list[float] = []
    for question in asked:
        began = time.perf_counter()
        answer = run(
            memory, memory.search(query=question["question"], scope={"circle_id": question["circle"]}, limit=DEPTH, arms=arms)
        )
        took.append((time.perf_counter() - began) * 1000)
        found = [source.wheel_id for source in answer.sources]
        for name in ("all", CATEGORIES.get(question["category"], str(question["category"]))):
            tallies.setdefault(name, Tally()).add(found, question["evidence"])
    return {
        "arms": ",".join(arms) if arms else "every arm that is ready",
        "all": tallies["all"].means(),
        "categories": {name: tallies[name].means() for name in CATEGORIES.values() if name in tallies},
        "median_ms": median(took),
    }


def table(results: Sequence[Mapping[str, Any]], by_category: bool) -> str:
    names = ["questions", *(f"recall@{cut}" for cut in CUTS), *(f"hit@{cut}" for cut in CUTS), "mrr"]
    lines = [f"{'':32}" + "".join(f"{name:>11}" for name in names) + f"{'median ms':>11}"]
    for result in results:
        rows = {result["arms"]: result["all"], **({f"  {k}": v for k, v in result["categories"].items()} if by_category else {})}
        for label, means in rows.items():
            cells = "".join(f"{means[name]:>11.3f}" if name != "questions" else f"{means[name]:>11}" for name in names)
            lines.append(f"{label:32}" + cells + (f"{result['median_ms']:>11.1f}" if label == result["arms"] else ""))
    return "\n".join(lines)


# --- the command -----------------------------------------------------------------------------------------------------


@click.group(help=(__doc__ or "").partition("\n\n")[0])
def main() -> None:
    pass


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("db", type=click.Path(dir_okay=False, path_type=Path))
def build(file: Path, db: Path) -> None:
    """Make the wheel DB from a LoCoMo FILE; DB must not be there yet. Its questions are kept beside its records."""
    if db.exists():
        raise click.ClickException(f"{db} is there already; name another file, or remove it")
    try:
        conversations = json.loads(file.read_text(encoding="utf-8"))
        made, asked = list(records(conversations)), list(questions(conversations))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(f"{file} is no LoCoMo file ({type(error).__name__}: {error})") from None
    with open_wheel(db) as wheel:

        def fill(connection: Any) -> None:
            for kind, record in made:
                wheel.store(connection, kind, record)
            connection.executemany(
                "INSERT INTO other_records (file, id, record) VALUES (?, ?, ?)",
                ((QUESTIONS, str(number), json.dumps(question)) for number, question in enumerate(asked)),
            )

        wheel.write(fill)
    turns = sum(kind == "beat" for kind, _ in made)
    click.echo(f"{db}: {len(conversations)} conversations, {turns:,} turns, {len(asked):,} questions with evidence")


@main.command("score")
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--arm", "arms", multiple=True, help="arms to ask, several joined by commas; repeat to compare")
@click.option("--category", "categories", multiple=True, type=int, help="only questions of this category; may be repeated")
@click.option("--by-category", is_flag=True, help="print each category too")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def score_command(db: Path, arms: tuple[str, ...], categories: tuple[int, ...], by_category: bool, as_json: bool) -> None:
    """Ask every question of the wheel DB within its circle, once for each --arm."""
    settings = load_settings()
    with open_wheel(db, create=False) as wheel:
        rows = wheel.read(
            lambda connection: connection.execute(
                "SELECT record FROM other_records WHERE file = ? ORDER BY position", (QUESTIONS,)
            ).fetchall()
        )
        asked = [json.loads(row[0]) for row in rows]
        asked = [question for question in asked if not categories or question["category"] in categories]
        if not asked:
            raise click.ClickException(f"{db} holds no questions; make it with: benchmarks/locomo.py build FILE {db}")
        # Without providers: what is measured is what the wheel finds by itself.
        memory = create_memory(wheel=wheel, providers=(), settings=settings)
        results = [score(memory, asked, chosen.split(",") if chosen else None) for chosen in arms or ("",)]
    click.echo(json.dumps(results, indent=2) if as_json else table(results, by_category))


if __name__ == "__main__":
    try:
        main()
    except WheelmemError as error:
        sys.exit(f"Error: {error}")
