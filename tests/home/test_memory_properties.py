"""What holds for any record, path, session and markdown."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from homeworld import World
from hypothesis import assume, example, given
from hypothesis import strategies as st

from wheelmem.home import session
from wheelmem.home.boundary import MARKERS, Boundaries, Config, below
from wheelmem.home.dream import check_decisions, land
from wheelmem.home.folder import Home
from wheelmem.home.log import Log, drain
from wheelmem.home.migrate import items
from wheelmem.home.record import body_text, compact, dump, members, parse_json, parse_record, record_line, ulid_text, with_routes

text = st.text(st.characters(exclude_categories=[]), max_size=20)
numbers = st.sampled_from(["0", "-0.0", "1.0", "1e400", "12345678901234567890", "1E5", "9" * 4400])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
ids = st.integers(0, 2**128 - 1).map(ulid_text)
spaces = st.sampled_from(["", " ", "\t", "  "])


@st.composite
def lines(draw: st.DrawFn, id: str | None = None) -> bytes:
    """A line of the log as anyone may have written it: any order, spacing, escapes, unknown fields, old shapes."""
    fields: dict[str, str] = {"id": dump(id or draw(ids))}
    for name in draw(
        st.lists(st.sampled_from(["session", "host", "cwd", "scope", "path", "tags", "routes", "other"]), unique=True)
    ):
        fields[name] = json.dumps(draw(json_values), ensure_ascii=draw(st.booleans()))
    fields["body"] = draw(numbers | json_values.map(json.dumps) | json_values.map(dump))
    gap = draw(spaces)
    names = draw(st.permutations(list(fields)))
    line = "{" + gap + ("," + gap).join(f'"{name}"{gap}:{gap}{fields[name]}' for name in names) + gap + "}"
    assume(all(ord(c) < 0xD800 or ord(c) > 0xDFFF for c in line))
    return line.encode()


@contextmanager
def a_home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory() as folder:
        yield Home(os.path.join(folder, "agent"))


@given(st.lists(st.tuples(json_values, st.lists(text.filter(bool), max_size=3)), min_size=1, max_size=4), text, text)
def test_what_is_captured_is_read(captures: list[tuple[Any, list[str]]], owner: str, cwd: str) -> None:
    with a_home() as home:
        log = Log(home)
        given = [
            log.append(lambda id, b=body, t=tags: record_line(id, owner, "elm", cwd, compact(json.dumps(b)), t))  # type: ignore[misc]
            for body, tags in captures
        ]
        read = [record for _, record in log.read()]
        assert [record["id"] for record in read] == given == sorted(set(given))
        for record, (body, tags) in zip(read, captures, strict=True):
            assert record == {"id": record["id"], "session": owner, "host": "elm", "cwd": cwd, "body": body} | (
                {"tags": tags} if tags else {}
            )
        raw = Path(log.path).read_bytes()
        assert raw.count(b"\n") == len(captures)


@given(lines(), st.lists(st.sampled_from(["SEMANTIC", "PROCEDURAL", "EPISODIC"]), unique=True))
def test_routes_are_set_and_nothing_else_touched(line: bytes, stores: list[str]) -> None:
    after = with_routes(line, stores)
    record = parse_record(line)
    assert parse_record(after) == record | {"routes": stores}
    span = members(line.decode()).get("routes")
    put = json.dumps(stores, separators=(",", ":"))
    if span is None:
        assert after.replace(f',"routes":{put}'.encode(), b"") == line
    else:
        assert after.decode() == line.decode()[: span[0]] + put + line.decode()[span[1] :]
    assert with_routes(after, stores) == after


@given(lines())
def test_a_body_becomes_prose_without_changing_its_value(line: bytes) -> None:
    record = parse_record(line)
    told = body_text(line, record)
    body = record["body"]
    assert told == body if isinstance(body, str) else parse_json(told) == body


@given(
    st.lists(lines() | st.binary(max_size=30).filter(lambda raw: b"\n" not in raw), max_size=6), st.binary(max_size=9), st.data()
)
def test_a_drain_moves_bytes_and_loses_none(rows: list[bytes], tail: bytes, data: st.DataObject) -> None:
    """Whatever the log holds: each record is in log or archive, everything else in the quarantine, byte for byte."""
    assume(b"\n" not in tail)
    with a_home() as home:
        os.mkdir(home.root)
        log = Log(home)
        Path(log.path).write_bytes(b"\n".join([*rows, tail]))
        wanted = [row for row in [*rows, tail] if row.strip()]
        good = [row for row in wanted if is_record(row)]
        leaving = data.draw(st.sets(st.integers(0, max(len(good) - 1, 0))))
        number = iter(range(len(good)))
        done = drain(log, lambda record: next(number) in leaving, keep=5)
        stayed = [row for row in Path(log.path).read_bytes().split(b"\n") if row.strip()]
        archived = Path(done.archive).read_bytes().split(b"\n")[:-1] if done.archive else []
        aside = (
            Path(home.path(log.quarantine)).read_bytes().split(b"\n")[:-1] if os.path.exists(home.path(log.quarantine)) else []
        )
        assert archived == [row for i, row in enumerate(good) if i in leaving]
        assert stayed == [row for i, row in enumerate(good) if i not in leaving]
        assert aside == [row for row in wanted if not is_record(row)]


def is_record(raw: bytes) -> bool:
    try:
        parse_record(raw)
    except ValueError:
        return False
    return True


targets = st.lists(
    st.fixed_dictionaries(
        {"store": st.sampled_from(["SEMANTIC", "PROCEDURAL", "EPISODIC"]), "content": st.text("abc é\n", min_size=1, max_size=5)}
    ).filter(lambda target: target["content"].strip() != ""),
    max_size=3,
)


@given(st.dictionaries(st.integers(0, 5), targets), st.integers(0, 6), st.sampled_from(["", "old", "old\n"]))
def test_landing_is_each_content_once_in_order(decided: dict[int, list[dict[str, str]]], count: int, old: str) -> None:
    decided = {number: chosen for number, chosen in decided.items() if number < count}
    with a_home() as home:
        os.mkdir(home.root)
        rows = [f'{{"id":"01HX{n:022d}","body":{n}}}' for n in range(count)]
        Path(home.root, "EPISODIC.jsonl").write_text("".join(row + "\n" for row in rows))
        Path(home.root, "SEMANTIC.md").write_text(old)
        decisions = check_decisions([{"id": f"01HX{n:022d}", "targets": chosen} for n, chosen in decided.items()])
        landed = land(Log(home), decisions)
        expected = old if not old or old.endswith("\n") else old + "\n"
        contents = [t["content"] for n in sorted(decided) for t in decided[n] if t["store"] == "SEMANTIC"]
        assert Path(home.root, "SEMANTIC.md").read_text() == (
            expected + "".join(c if c.endswith("\n") else c + "\n" for c in contents) if contents else old
        )
        gone = [n for n, chosen in sorted(decided.items()) if not any(t["store"] == "EPISODIC" for t in chosen)]
        assert [record["body"] for _, record in Log(home).read()] == [n for n in range(count) if n not in gone]
        archives = list(Path(home.root).glob(".bak/*"))
        assert "".join(path.read_text() for path in archives) == "".join(rows[n] + "\n" for n in gone)
        assert (landed.consumed, landed.retained) == (len(gone), count - len(gone))


# --- boundaries --------------------------------------------------------------------------------------------------------

segments = st.sampled_from(["a", "b", "c"])
places = st.lists(segments, max_size=4).map("/".join)


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """What to make below a root: folders, markers, worktrees, submodules, links."""
    kinds = st.sampled_from(["folder", "folder", "marker", "glob", "worktree", "submodule", "odd git file", "link"])
    return [
        (draw(kinds), draw(places), draw(st.sampled_from(MARKERS) if i % 2 else places)) for i in range(draw(st.integers(0, 8)))
    ]


def build(root: Path, tree: list[tuple[str, str, str]]) -> None:
    for kind, place, other in tree:
        folder = root / place
        try:
            folder.mkdir(parents=True, exist_ok=True)
            git = folder / ".git"
            if kind == "marker":
                (folder / (other if other in MARKERS else "PLAN.md")).mkdir(exist_ok=True)
            elif kind == "glob":
                (folder / "x.room").touch()
            elif kind == "link":
                (folder / "link").symlink_to(root / other)
            elif kind in ("worktree", "submodule", "odd git file") and not git.exists():
                (root / "primary" / ".git").mkdir(parents=True, exist_ok=True)
                to = {"worktree": "primary/.git/worktrees/w", "submodule": "primary/.git/modules/m/n"}.get(kind, "nowhere.git/x")
                git.write_text(f"gitdir: {os.path.relpath(root / to, folder) if 'a' in place else root / to}\n")
        except OSError:
            continue


def marker_of(folder: Path, globs: bool) -> str | None:
    for marker in MARKERS:
        if (folder / marker).exists():
            return marker
    return "*.room" if globs and any(folder.glob("*.room")) else None


@given(
    trees(),
    st.lists(st.sampled_from(["a", "b", "c", "link", "gone", ".."]), max_size=5).map("/".join),
    st.booleans(),
    st.booleans(),
)
@example([("worktree", "a", "a")], "a/gone", False, False)
def test_a_boundary_is_the_nearest_marked_folder(tree: list[Any], place: str, globs: bool, user_in_it: bool) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve() / "root"
        root.mkdir()
        build(root, tree)
        before = os.environ["HOME"]
        os.environ["HOME"] = str(root / "a" if user_in_it else root.parent)
        try:
            config = Config(None)
            config.globs = ["*.room"] if globs else []
            path = os.path.join(root, place)
            node, basis = Boundaries(config).of_path(path)
            again = Boundaries(config)
            again.of_path(str(root / "a" / "b"))  # what was looked at before changes nothing
            assert again.of_path(path) == (node, basis)
            assert again.of_path(os.path.realpath(path)) == (node, basis)
            check_boundary(Path(os.path.realpath(path)), node, basis, root, globs)
        finally:
            os.environ["HOME"] = before
            shutil.rmtree(root)


def check_boundary(real: Path, node: str, basis: str, root: Path, globs: bool) -> None:
    user = Path(os.environ["HOME"]).resolve()
    for folder in [real, *real.parents]:
        if folder == user:
            assert (node, basis) == ((str(user), "$HOME") if real.exists() else ("legacy", "vanished-cwd"))
            return
        marker = marker_of(folder, globs)
        if marker is None:
            continue
        if basis == ".git-file":
            assert marker == ".git"
            assert (folder / ".git").is_file()
            assert node == str(root / "primary")
        else:
            assert (node, basis) == (str(folder), marker)
        return
    assert (node, basis) == ((str(real), "markerless") if real.exists() else ("legacy", "vanished-cwd"))


def test_the_root_is_a_place_like_any_other() -> None:
    node, basis = Boundaries(Config(None)).of_path("/")
    assert node == "/"
    assert basis in (*MARKERS, "markerless", "$HOME")
    assert below("/a", "/")
    assert not below("/ab", "/a")


def test_fold_is_the_same_bytes_run_to_run(world: World) -> None:
    for name in ("a/.git", "b", "c/x"):
        (world.work / name).mkdir(parents=True)
    (world.work / "c" / "go.mod").touch()
    for name in ("a", "b", "c/x", "."):
        world.encode("--body", name, cwd=world.work / name)
    world.write("EPISODIC.jsonl", world.text("EPISODIC.jsonl") + '{"id":"old","scope":"user","body":1}\n')
    folds = {world.ok("fold", PYTHONHASHSEED=str(seed), cwd=world.work / "b") for seed in range(4)}
    assert len(folds) == 1
    assert folds.pop().count("\n") == 5


# --- sessions ----------------------------------------------------------------------------------------------------------

session_ids = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=12).filter(
    lambda id: id not in (".", "..")
)


@given(st.lists(session_ids, min_size=1, max_size=3, unique=True), st.data())
def test_sessions_live_as_they_are_told(known: list[str], data: st.DataObject) -> None:
    model: dict[str, str] = {}
    with a_home() as home:
        for _ in range(data.draw(st.integers(1, 8))):
            id = data.draw(st.sampled_from(known))
            what = data.draw(st.sampled_from(["register", "heartbeat", "release"]))
            if what == "register":
                session.register(home, id)
                model[id] = "live"
            elif what == "release":
                assert session.release(home, id) == (id in model)
                model.update({id: "completed"} if id in model else {})
            elif id in model:
                session.heartbeat(home, id)
            for each in known:
                assert session.status(home, each)["state"] == model.get(each, "absent")
        assert session.ids(home) == sorted(model)
        assert session.live_ids(home) == {id for id, state in model.items() if state == "live"}
        assert session.live_ids(home, stale=0) == set()


# --- migrate -----------------------------------------------------------------------------------------------------------


@st.composite
def markdown(draw: st.DrawFn) -> tuple[str, list[tuple[str, list[str]]], list[str]]:
    """A markdown log of numbered words, what must be kept of it (section and its words), and what must not."""
    count = iter(range(10**6))
    out: list[str] = []
    kept: list[tuple[str, list[str]]] = []
    dropped: list[str] = []

    def word(keep: bool = True) -> str:
        made = f"w{next(count)}w"
        (kept[-1][1] if keep and kept else dropped).append(made)
        return made

    if draw(st.booleans()):
        out += ["# Title " + word(), "", word(), "- " + word()]
    for _ in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from(["A", "B", "Same", "Same"]))
        out.append(f"## {name}")
        kept.append((name, []))
        for _ in range(draw(st.integers(0, 5))):
            kind = draw(
                st.sampled_from(["bullet", "star", "nested", "prose", "fence", "comment", "tail", "blank", "h3", "inline"])
            )
            blocks: dict[str, Callable[[str], list[str]]] = {
                "bullet": lambda fence: [f"- {word()}", f"  {word()}"],
                "star": lambda fence: [f"* {word()}"],
                "nested": lambda fence: [f"- {word()}", f"  - {word()}", "", f"    * {word()}"],
                "prose": lambda fence: [word(), word()],
                "fence": lambda fence: [
                    f"{fence}sh", f"## {word()}", f"- {word()}", "~~~" if fence[0] == "`" else "```",
                    f"<!-- {word()} -->", fence[:-1], fence + fence[0],
                ],
                "comment": lambda fence: ["<!--", f"## {word(False)}", f"- {word(False)}", fence, "-->"],
                "tail": lambda fence: [f"<!-- {word(False)}", f"{word(False)} --> {word()}"],
                "blank": lambda fence: ["", "  "],
                "h3": lambda fence: [f"### {word()}", "#" + word()],
                "inline": lambda fence: [f"- {word()} <!-- {word()} --> {word()}"],
            }  # fmt: skip
            out += blocks[kind](draw(st.sampled_from(["```", "~~~", "````"])))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    return ending.join([*out, ""]), kept, dropped


@given(markdown())
def test_migrate_keeps_every_word_in_its_section_and_order(made: tuple[str, list[tuple[str, list[str]]], list[str]]) -> None:
    text, kept, dropped = made
    found = items(text)
    words = [(item.section, word) for item in found for word in item.text.split() for word in [word.strip("#")] if is_word(word)]
    assert words == [(section, word) for section, its in kept for word in its]
    assert not {word for _, word in words} & set(dropped)
    for item in found:
        assert item.text.split("\n")[0].strip()
        assert item.text.split("\n")[-1].strip()


def is_word(word: str) -> bool:
    return word.startswith("w") and word.endswith("w") and word[1:-1].isdigit()


@given(st.text("#-* `~<!->\n\tab", max_size=60))
def test_migrate_takes_any_text(text: str) -> None:
    for item in items(text):
        assert item.text.strip()
