"""What each arm adds, and what it costs.

    python benchmarks/finding.py table locomo.db              # a wheel made with benchmarks/locomo.py build
    python benchmarks/finding.py table locomo.db --minilm     # also with vectors of a MiniLM (see benchmarks/minilm.py)
    python benchmarks/finding.py speed locomo.db --wheel 1m.db
    python benchmarks/finding.py growth docs/img/finding-growth.svg

``table`` prints the shares of benchmarks/locomo.py by category as Markdown, and with ``--write`` puts them into
docs/finding.md. Evidence that stands beside a source as its repeat counts as that source. The others tell medians of processor
time, taken in turn in one process, and their ratios.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
from locomo import CATEGORIES, DEPTH, QUESTIONS, Tally
from search import CIRCLES, build, cases

from wheelmem import create_memory, open_wheel
from wheelmem.memory import Memory, run
from wheelmem.settings import Settings
from wheelmem.store import Wheel

STEPS = {
    "keyword": ("keyword",),
    "+ hops": ("keyword", "hops"),
    "+ classifier": ("keyword", "hops", "speaker", "dates"),
}
DEFAULT = STEPS["+ classifier"]
MEASURES = ("recall@20", "hit@20", "mrr")
PAGE = Path(__file__).parent.parent / "docs" / "finding.md"
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->"


def memory_of(wheel: Wheel, embedder: Any = None) -> Memory:
    block = {"vector.embedder": embedder.name} if embedder else {}
    memory = create_memory(wheel=wheel, providers=(), settings=Settings(block))
    for arm in memory.arms:
        if embedder and hasattr(arm, "take_embedders"):
            arm.take_embedders(lambda: [embedder])
    return memory


# --- table -----------------------------------------------------------------------------------------------------------


def questions_of(wheel: Wheel) -> list[dict[str, Any]]:
    rows = wheel.read(
        lambda db: db.execute("SELECT record FROM other_records WHERE file = ? ORDER BY position", (QUESTIONS,)).fetchall()
    )
    return [json.loads(record) for (record,) in rows]


def tallies(memory: Memory, asked: Sequence[dict[str, Any]], arms: Sequence[str]) -> dict[str, Tally]:
    found: dict[str, Tally] = {"all": Tally(), **{name: Tally() for name in CATEGORIES.values()}}
    for question in asked:
        scope = {"circle_id": question["circle"]}
        answer = run(memory, memory.search(query=question["question"], scope=scope, limit=DEPTH, arms=arms, explain=True))
        stands_for = {
            repeat: source.wheel_id
            for source in answer.sources
            for repeat in (source.explain.duplicates if source.explain else None) or ()
        }
        evidence = [stands_for.get(id, id) for id in question["evidence"]]
        ids = [source.wheel_id for source in answer.sources]
        for name in ("all", CATEGORIES[question["category"]]):
            found[name].add(ids, evidence)
    return found


def markdown(rows: dict[str, dict[str, Tally]]) -> str:
    names = ["all", *CATEGORIES.values()]
    first = next(iter(rows.values()))
    lines = []
    for measure in MEASURES:
        lines += [
            "| " + " | ".join([measure, *(f"{name} ({first[name].questions})" for name in names)]) + " |",
            "|---" * (len(names) + 1) + "|",
        ]
        for label, found in rows.items():
            cells = [f"{found[name].means()[measure]:.3f}" if found[name].questions else "" for name in names]
            lines.append("| " + " | ".join([label, *cells]) + " |")
        lines.append("")
    return "\n".join(lines)


@click.group(help=(__doc__ or "").partition("\n\n")[0])
def main() -> None:
    pass


@main.command()
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--minilm", is_flag=True, help="also embed the wheel with a MiniLM, and measure with it")
@click.option("--write", is_flag=True, help="put the table into docs/finding.md")
def table(db: Path, minilm: bool, write: bool) -> None:
    """Each arm's share, by category of question."""
    rows = {}
    with open_wheel(db) as wheel:
        asked = questions_of(wheel)
        memory = memory_of(wheel)
        for label, arms in STEPS.items():
            rows[label] = tallies(memory, asked, arms)
        if minilm:
            from minilm import MiniLM
            from wheelmem_vector.commands import embed_wheel

            embedder = MiniLM()
            embed_wheel(wheel, embedder, lambda done, total: click.echo(f"embedded {done} of {total}", err=True))
            rows["+ vector (MiniLM)"] = tallies(memory_of(wheel, embedder), asked, (*DEFAULT, "vector"))
    text = markdown(rows)
    click.echo(text)
    if write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{text}{END}{after}", encoding="utf-8")


# --- speed -----------------------------------------------------------------------------------------------------------


def timed(ways: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Median seconds of processor time of each, in turn, after one run that does not count: a busy machine changes no ratio."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(runs + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if turn:
                taken[name].append(time.process_time() - start)
    return {name: median(times) for name, times in taken.items()}


def search(memory: Memory, query: str, scope: dict[str, Any], arms: Sequence[str]) -> Callable[[], Any]:
    return lambda: run(memory, memory.search(query=query, scope=scope, arms=arms))


def told(what: str, taken: dict[str, float]) -> None:
    base = taken["keyword"]
    cells = "  ".join(f"{name} {seconds * 1000:8.2f} ms ({seconds / base:.2f})" for name, seconds in taken.items())
    click.echo(f"{what:44} {cells}")


@main.command()
@click.argument("db", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--wheel", "large", type=click.Path(path_type=Path), help="a wheel of benchmarks/search.py; made when absent")
@click.option("--records", default=1_000_000, help="of a wheel that is made")
@click.option("--runs", default=7)
def speed(db: Path, large: Path | None, records: int, runs: int) -> None:
    """Default arms against the keyword arm alone, in a LoCoMo circle and within 1 % of a large wheel."""
    ways = {"keyword": ("keyword",), "+ hops": STEPS["+ hops"], "default arms": DEFAULT}
    with open_wheel(db) as wheel:
        memory = memory_of(wheel)
        asked = random.Random(1).sample(questions_of(wheel), 100)
        per_way: dict[str, list[float]] = {name: [] for name in ways}
        for question in asked:
            scope = {"circle_id": question["circle"]}
            taken = timed({name: search(memory, question["question"], scope, arms) for name, arms in ways.items()}, 3)
            for name, seconds in taken.items():
                per_way[name].append(seconds)
        told("a question within a LoCoMo circle", {name: median(times) for name, times in per_way.items()})
    if large is None:
        return
    if not large.exists():
        build(large, records)
    with open_wheel(large) as wheel:
        memory = memory_of(wheel)
        scope = {"circle_id": list(CIRCLES[:2])}
        for name, query in cases():
            told(f"{name} within 1 %", timed({way: search(memory, query, scope, arms) for way, arms in ways.items()}, runs))


class Random:
    """An embedder for measuring time: a vector by the text's hash, without meaning."""

    name = "random"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.model = f"random:{dimension}"

    def embed(self, texts: Sequence[str]) -> Any:
        import zlib

        import numpy as np

        return [np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.dimension) for text in texts]


# --- growth ----------------------------------------------------------------------------------------------------------

SIZES = (10_000, 100_000, 1_000_000)
COLOURS = {"keyword": "#1f6f8b", "hops": "#b3541e", "speaker": "#7a5195", "dates": "#4f772d", "vector": "#8a1c4a"}


@main.command()
@click.argument("svg", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="keep the wheels here, and take them again")
@click.option("--runs", default=5)
@click.option("--dimension", default=64, help="of the vectors")
def growth(svg: Path, folder: Path | None, runs: int, dimension: int) -> None:
    """Median time of each arm within 1 % of wheels of ten thousand to a million records, drawn as SVG.

    The vectors are drawn by lot, without meaning.
    """
    from wheelmem_vector.commands import embed_wheel

    series: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        where = folder or Path(temporary)
        for size in SIZES:
            path = where / f"{size}.db"
            if not path.exists():
                build(path, size)
            with open_wheel(path) as wheel:
                embedder = Random(dimension)
                embed_wheel(wheel, embedder)
                for name, seconds in arm_times(wheel, embedder, runs).items():
                    series.setdefault(name, []).append(seconds * 1000)
            shown = "  ".join(f"{name} {times[-1]:.2f} ms" for name, times in series.items())
            click.echo(f"{size:>9,} records  {shown}", err=True)
    svg.parent.mkdir(parents=True, exist_ok=True)
    svg.write_text(drawn(series), encoding="utf-8")


def arm_times(wheel: Wheel, embedder: Any, runs: int) -> dict[str, float]:
    """Median seconds of each arm's own part: the mean over the questions, in one snapshot of the wheel."""
    from wheelmem.contract import Question, Scope
    from wheelmem.retrieval import retrieve
    from wheelmem.store.reading import resolve

    memory = memory_of(wheel, embedder)
    taken: dict[str, list[float]] = {}
    with wheel.snapshot() as db:
        reach = resolve(db, Scope.from_json({"circle_id": list(CIRCLES[:2])}))
        for turn in range(runs + 1):
            sums: dict[str, float] = {}
            began = [0.0, ""]

            def begin(arm: Any, seconds: float, began: list[Any] = began) -> None:
                began[:] = [time.process_time(), arm.name]

            def end(began: list[Any] = began, sums: dict[str, float] = sums) -> None:
                sums[began[1]] = sums.get(began[1], 0.0) + time.process_time() - began[0]

            queries = [query for _, query in cases()]
            for query in queries:
                retrieve(db, Question(query, reach.reach), reach, memory.arms, {}, 60.0, (begin, end))
            if turn:
                for name, seconds in sums.items():
                    taken.setdefault(name, []).append(seconds / len(queries))
    return {name: median(times) for name, times in taken.items()}


def drawn(series: dict[str, list[float]]) -> str:
    """Both axes logarithmic."""
    from math import ceil, floor, log10

    width, height, left, top = 640, 400, 70, 30
    values = [value for times in series.values() for value in times]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))

    def x(size: int) -> float:
        return left + (log10(size) - 4) / 2 * (width - left - 110)

    def y(value: float) -> float:
        return height - 50 - (log10(value) - low) / max(1, high - low) * (height - 50 - top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        "<title>Milliseconds of each arm within one hundredth of a wheel, by its number of records</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{left}" x2="{x(SIZES[-1])}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} ms</text>')
    for size in SIZES:
        parts.append(f'<text x="{x(size):.1f}" y="{height - 28}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text x="{x(SIZES[1]):.1f}" y="{height - 8}" text-anchor="middle">records in the wheel; 1 % in reach</text>')
    ends = spread({name: y(times[-1]) for name, times in series.items()})
    for name, times in series.items():
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in zip(SIZES, times, strict=True))
        colour = COLOURS.get(name, "#333")
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{x(SIZES[-1]) + 8:.1f}" y="{ends[name] + 4:.1f}" fill="{colour}">{name} {times[-1]:.3g} ms</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def spread(places: dict[str, float]) -> dict[str, float]:
    """Labels moved apart where lines end close together."""
    out: dict[str, float] = {}
    last = -100.0
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        last = out[name] = max(place, last + 15)
    return out


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
