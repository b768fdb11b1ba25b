"""Every command on every page, and in the README, is run as it stands, in the order of the page; so are the Python blocks."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running import ROOT, RUN, Shell, Step, agrees, blocks, steps

from wheelmem import demo, open_wheel

HERE = Path(sysconfig.get_path("scripts"))
DOCS = ROOT / "docs"
CEREMONY, BEAT, CONCLUSION = "ceremony:demo:o2", "beat:demo:4", "node:knowledge:memory_projection:of-the-tests"
# What a page leaves to the reader, and what stands for it here. The longest first.
READERS_OWN = {
    "node:human:…": demo.MIRA,
    "node:knowledge:…": CONCLUSION,
    "circle:…": demo.ORCHARD,
    "ceremony:…": CEREMONY,
    "beat:…": BEAT,
    "=…": "=secret",
}
# Pages with a test of their own, since they install something.
APART = {"install.md", "tutorial.md", "plugins.md", "README.md", "benchmarks.md"}
SERVERS = {
    r"^wheelmem (serve|demo --serve)\b": r"http://127\.0\.0\.1:\d+",
    r"^datasette (serve )?\S+\.(db|sqlite)\b": r"Uvicorn running on|http://127\.0\.0\.1:\d+",
    r"^wheelmem mcp .*--http": r"Serving MCP at http",
}


def make_demo(path: Path) -> None:
    """The demo's wheel, with a conclusion to judge."""
    with open_wheel(path) as wheel:
        demo.build(wheel)
        metadata = {"kind": "memory_projection", "status": "inferred", "projection_kind": "pattern", "about": demo.MIRA}
        node = {"id": CONCLUSION, "type": "knowledge", "name": "pattern: Low", "description": "The lantern hangs low."}
        wheel.put("node", {**node, "metadata": {**metadata, "source_event_ids": [BEAT]}})


@pytest.fixture
def shell(tmp_path: Path, free_port: int) -> Iterator[Callable[..., Shell]]:
    """Makes shells that have a demo wheel as wheel.db, named by $WHEELMEM_DB."""
    made: list[Shell] = []

    def make(**options: Any) -> Shell:
        folder = tmp_path / f"shell{len(made)}"
        work = folder / "work"
        env = {"WHEELMEM_DB": str(work / "wheel.db"), **options.pop("env", {})}
        instead = {**READERS_OWN, "8001": str(free_port), "8765": str(free_port), **options.pop("instead", {})}
        servers = {**SERVERS, **options.pop("servers", {})}
        made.append(Shell(folder, options.pop("path", [HERE]), env, instead, servers, **options))
        make_demo(work / "wheel.db")
        return made[-1]

    yield make
    for one in made:
        one.close()


def pages() -> list[str]:
    return sorted(page.name for page in DOCS.glob("*.md") if page.name not in APART and steps(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", pages())
def test_page(page: str, shell: Callable[..., Shell], request: pytest.FixtureRequest) -> None:
    prepare = PREPARED.get(page, lambda made, request: made())
    made = prepare(shell, request)
    for step in steps((DOCS / page).read_text(encoding="utf-8")):
        try:
            made.run(step)
        except AssertionError as error:
            # A model has to be fetched first; a machine that cannot reach its hub says so, and goes on.
            if "cannot be fetched from Hugging Face" not in str(error):
                raise


def memory_command(make: Callable[..., Shell], request: pytest.FixtureRequest) -> Shell:
    """An agent's machine: the account is ana's, the work lies in ~/work/bridge."""
    made = make()
    home = made.home
    (home / "work" / "bridge" / ".git").mkdir(parents=True)
    # A store that the agent has rewritten elsewhere.
    (home / "work" / "bridge" / "new.md").write_text("# SEMANTIC\n\n- The lantern is teal.\n")
    (made.state / "cwd").write_text(str(home / "work" / "bridge"))
    made.instead = {**made.instead, "/home/ana": str(home)}
    return made


def with_metadata(make: Callable[..., Shell], request: pytest.FixtureRequest) -> Shell:
    made = make()
    for name in ("metadata.yml", "datasette.yml"):
        shutil.copy(ROOT / name, made.work / name)
    return made


def with_honcho(make: Callable[..., Shell], request: pytest.FixtureRequest) -> Shell:
    url = honcho(request)
    return make(instead={"http://localhost:8000": url, "http://127.0.0.1:8000": url, "localhost:8000": url.partition("//")[2]})


def honcho(request: pytest.FixtureRequest) -> str:
    """A Honcho to speak to: its address."""
    sys.path.insert(0, str(ROOT / "tests" / "honcho"))
    try:
        from double import Double
    finally:
        sys.path.pop(0)
    double = Double()
    request.addfinalizer(double.stop)
    return double.url


PREPARED: dict[str, Callable[[Callable[..., Shell], pytest.FixtureRequest], Shell]] = {
    "memory-command.md": memory_command,
    "datasette.md": with_metadata,
    "honcho.md": with_honcho,
}

# Commands of the README that something else runs: the tests themselves, and installing from a checkout (below).
RUN_ELSEWHERE = (r"pytest -q$", r"^python3 -m venv .venv && .venv/bin/pip install -q \. ")


def test_readme(shell: Callable[..., Shell], request: pytest.FixtureRequest) -> None:
    url = honcho(request)
    made = shell(instead={"http://localhost:8000": url, "FOLDER": "folder"})
    plugin = next(lines for _, language, lines in blocks(readme()) if language == "python" and "plugins/latest.py" in lines[0])
    (made.work / "plugins").mkdir()
    (made.work / "plugins" / "latest.py").write_text("\n".join(plugin))
    for step in steps(readme()):
        if any(re.search(pattern, step.command) for pattern in RUN_ELSEWHERE):
            continue
        if step.command == "wheelmem demo":
            made.instead = {**made.instead, "~/.config/wheelmem": str(made.home / "wheelmem")}
            saved, made.env = made.env, {name: value for name, value in made.env.items() if name != "WHEELMEM_DB"}
            made.run(Step(step.line, step.command))
            made.env = saved
            continue
        if step.command.startswith("wheelmem ask") and "demo" not in step.command and step.expected:
            continue  # the demo's own output, which the step before has shown
        if re.match(r"wheelmem (serve|demo --serve)", step.command) and taken(8001):
            continue
        made.run(step)


def taken(port: int) -> bool:
    """Whether somebody on this machine listens there already."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_sets_up_from_a_checkout(checkout: Path, shell: Callable[..., Shell]) -> None:
    (step,) = (step for step in steps(readme()) if re.search(RUN_ELSEWHERE[1], step.command))
    made = shell(path=[])
    made.env = {}
    (made.state / "cwd").write_text(str(checkout))
    made.run(step)


def fresh(make: Callable[..., Shell], distributions: Path, **options: Any) -> Shell:
    """A shell that has nothing of ours, on a machine where wheelmem can be had from the index."""
    env = {"PIP_FIND_LINKS": str(distributions), **options.pop("env", {})}
    made = make(path=options.pop("path", []), env=env, **options)
    made.env = {name: value for name, value in made.env.items() if name != "WHEELMEM_DB"}
    (made.work / "wheel.db").unlink()
    return made


def test_the_tutorial_from_an_empty_environment(distributions: Path, shell: Callable[..., Shell]) -> None:
    made = fresh(shell, distributions)
    for step in steps((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        made.run(step)


def test_installing(distributions: Path, shell: Callable[..., Shell], tmp_path: Path) -> None:
    path = [tmp_path / "bin"]
    pipx = shutil.which("pipx", path=str(HERE)) or shutil.which("pipx")
    made = fresh(shell, distributions, path=path, env={"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(path[0])})
    for step in steps((DOCS / "install.md").read_text(encoding="utf-8")):
        if step.command.startswith("pipx "):
            if pipx is None:
                continue
            made.run(Step(step.line, step.command.replace("pipx", pipx, 1)))
            # What a plugin's user does next, in pipx's environment.
            made.run(Step(step.line, f"wheelmem install --quiet {DOCS / 'examples' / 'wheelmem-runs'}"))
            made.run(Step(step.line, "wheelmem plugins", ("…", "runs …", "…")))
            made.run(Step(step.line, "wheelmem uninstall -y wheelmem-runs"))
            continue
        made.run(step)


def test_a_plugin_from_an_empty_folder(distributions: Path, shell: Callable[..., Shell]) -> None:
    made = shell(path=[], env={"PIP_FIND_LINKS": str(distributions)})
    made.run(Step(0, "python3 -m venv env"))
    made.run(Step(0, "env/bin/pip install --quiet wheelmem pytest build"))
    made.run(Step(0, ". env/bin/activate"))
    for example in ("wheelmem-runs", "wheelmem-notes", "wheelmem-howto"):
        shutil.copytree(DOCS / "examples" / example, made.work / example, ignore=shutil.ignore_patterns("__pycache__"))
    for step in steps((DOCS / "plugins.md").read_text(encoding="utf-8")):
        made.run(step)


def test_benchmarks(shell: Callable[..., Shell]) -> None:
    """Each is on the page, and starts; how fast something is, is not for a test to say."""
    named = set(re.findall(r"^## (\w+\.py)$", (DOCS / "benchmarks.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {path.name for path in (ROOT / "benchmarks").glob("*.py") if not path.name.startswith("_")}
    made = shell()
    for name in sorted(named):
        made.run(Step(0, f"{sys.executable} {ROOT / 'benchmarks' / name} --help >/dev/null"))


@pytest.mark.parametrize("page", ["client.md", "python.md"])
def test_python_blocks(page: str, shell: Callable[..., Shell], free_port: int) -> None:
    made = shell()
    if page == "client.md":
        made.serve(Step(0, ""), f"datasette wheel.db --port {free_port} --secret s", "Uvicorn running on")
    for line, language, lines in blocks((DOCS / page).read_text(encoding="utf-8")):
        if language != "python":
            continue
        known = f"CIRCLE, OTHER_CIRCLE, TOKEN = {demo.ORCHARD!r}, {demo.FERRY!r}, None\n"
        (made.work / "block.py").write_text(known + as_owner("\n".join(lines), free_port))
        made.run(Step(line, f"{sys.executable} block.py"))


def as_owner(code: str, port: int) -> str:
    """A client's code with the owner's cookie in place of a token, which not every Datasette hands out."""
    from datasette.app import Datasette

    cookie = "ds_actor=" + Datasette([], secret="s").sign({"a": {"id": "root"}}, "actor")
    return code.replace("8001", str(port)).replace("token=TOKEN", f"headers={{'cookie': {cookie!r}}}")


async def test_the_lines_for_agent_hosts_start_a_server(shell: Callable[..., Shell]) -> None:
    import json
    import tomllib

    from mcp import Client, StdioServerParameters

    made = shell()
    found = []
    for _, language, lines in blocks((DOCS / "mcp.md").read_text(encoding="utf-8")):
        text = "\n".join(lines)
        if language == "json":
            given = json.loads(text)
            found += [one for key in ("mcpServers", "servers") for one in given.get(key, {}).values()]
        elif language == "toml":
            found += tomllib.loads(text)["mcp_servers"].values()
        elif text.startswith("claude mcp add"):
            command, *arguments = shlex.split(text.partition(" -- ")[2])
            found.append({"command": command, "args": arguments})
    assert len(found) == 4
    for one in found:
        arguments = [argument.replace("/home/ana", str(made.work)) for argument in one["args"]]
        host = StdioServerParameters(command=str(HERE / one["command"]), args=arguments, env=made.environment())
        async with Client(host) as client:
            assert "memory_ask" in [tool.name for tool in (await client.list_tools()).tools]


def test_configuration_in_the_pages_is_sound() -> None:
    import json
    import tomllib

    for page in [*DOCS.glob("*.md"), ROOT / "README.md"]:
        for line, language, lines in blocks(page.read_text(encoding="utf-8")):
            try:
                if language == "json":
                    json.loads("\n".join(lines))
                elif language == "toml":
                    tomllib.loads("\n".join(lines))
                elif language == "python":
                    compile("\n".join(lines), f"{page.name}:{line}", "exec", flags=0x2000)  # await at the top level
            except ValueError as error:
                raise AssertionError(f"{page.name}, line {line}: {error}") from None


def test_every_block_says_what_it_is() -> None:
    for page in [*DOCS.glob("*.md"), ROOT / "README.md"]:
        for line, language, _ in blocks(page.read_text(encoding="utf-8")):
            known = (*RUN, "python", "json", "toml", "yaml", "text", "zsh", "fish", "sql", "html", "http", "jsonl", "markdown")
            assert language in known, f"{page.name}, line {line}: a block of {language or 'no language'}"


def test_output_that_differs_is_seen() -> None:
    assert agrees(["a", "…", "d … f"], ["a", "b", "c", "d e f"])
    assert agrees(["…"], [])
    assert not agrees(["a"], ["a", "b"])
    assert not agrees(["a", "b"], ["a"])
    assert not agrees(["a …"], ["b c"])


def test_a_command_that_fails_is_seen(shell: Callable[..., Shell]) -> None:
    made = shell()
    with pytest.raises(AssertionError, match="exit code 2"):
        made.run(Step(1, "wheelmem ask --no-such-option x"))
    with pytest.raises(AssertionError, match="but the page shows"):
        made.run(Step(1, "echo one", ("two",)))
