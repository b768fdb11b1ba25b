"""How the house is built: imports run one way, some rooms hold nothing but the standard library, nothing heavy comes early."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOST = ROOT / "wheelmem"
FLOORS = {
    "contract": 0,
    "ids": 1,
    "schemas": 1,
    "text": 1,
    "reach": 1,
    "settings": 1,
    "workers": 1,
    "hookspecs": 2,
    "plugins": 2,
    "store": 2,
    "retrieval": 3,
    "river": 3,
    "conclusions": 3,
    "drafts": 3,
    "memory": 4,
    "home": 4,
    "demo": 5,
    "cli": 5,
    "client": 5,
    "mcp": 5,
    "testing": 5,
    "__main__": 6,
    "__init__": 6,
}
PLUGINS = sorted(path.name for folder in ("plugins", "datasette_plugins") for path in (ROOT / folder).iterdir() if path.is_dir())


def imports(path: Path, top_level_only: bool = False) -> Iterator[tuple[str, int]]:
    """What a module imports: (dotted name from the host's root or a package's name, whether relative to the host)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = path.relative_to(HOST).with_suffix("").parts if path.is_relative_to(HOST) else ()
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, 0
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.module or "", 0
            else:
                base = parts[: len(parts) - node.level]
                names = [node.module] if node.module else [alias.name for alias in node.names]
                for name in names:
                    yield ".".join((*base, name)), 1


def modules() -> list[Path]:
    return [path for path in sorted(HOST.rglob("*.py")) if "__pycache__" not in path.parts]


def floor(name: str) -> int:
    return FLOORS[name.split(".")[0].removesuffix(".py")]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_upwards(path: Path) -> None:
    parts = path.relative_to(HOST).parts
    here = floor(parts[0])
    type_only = _type_checking(path)
    for name, relative in imports(path):
        if relative and name.split(".")[0] in FLOORS and name not in type_only:
            assert floor(name) <= here, f"{path} (floor {here}) imports {name} (floor {floor(name)})"


def _type_checking(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom) and inner.module:
                    names.add(inner.module)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_host_imports_no_plugin(path: Path) -> None:
    for name, _ in imports(path):
        assert name.split(".")[0] not in PLUGINS, f"{path} imports the plugin {name}"


@pytest.mark.parametrize("room", ["contract.py", "text.py", "reach.py", "home"])
def test_rooms_of_the_standard_library_alone(room: str) -> None:
    place = HOST / room
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        for name, relative in imports(path, top_level_only=True):
            if relative:
                assert name.split(".")[0] in {"contract", "text", "reach", "home"}, f"{path} imports {name}"
            else:
                assert name.split(".")[0] in sys.stdlib_module_names | {"__future__"}, f"{path} imports {name}"


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sorted(sys.modules))"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_wheelmem_imports_almost_nothing() -> None:
    assert not loaded("import wheelmem") & {"sqlite3", "pluggy", "click", "asyncio", "httpx", "datasette", "dataclasses", "json"}


def test_opening_and_searching_a_wheel_needs_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "from wheelmem import create_memory, open_wheel\nfrom wheelmem.memory import run\n"
        f"wheel = open_wheel({str(tmp_path / 'wheel.db')!r})\n"
    )
    loaded(code + "wheel.put('ceremony', {'id': 'c:1', 'type': 'opening'})")
    search = code + "memory = create_memory(wheel=wheel, providers=[])\n"
    search += "assert run(memory, memory.search(query='opening', scope={'ceremonies': 'c:1'})).sources"
    assert not loaded(search) & {"asyncio", "httpx", "datasette", "sqlite_utils", "numpy", "model2vec", "mcp"}


def test_everything_public_can_be_imported_by_name() -> None:
    import wheelmem

    for name in wheelmem.__all__:
        assert getattr(wheelmem, name) is not None
    with pytest.raises(AttributeError):
        _ = wheelmem.nothing_of_that_name
