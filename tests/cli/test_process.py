"""The command line as a process: exit codes, pipes, terminals, signals, completion, and what it imports."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest

from wheelmem.demo import FERRY, KITCHEN, QUESTION

HEAVY = {"datasette", "httpx", "sqlite_utils", "asyncio"}
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def imported(*arguments: str) -> set[str]:
    """The top-level modules in the process once a command has run."""
    code = (
        "import sys\nfrom wheelmem.cli import main\nsys.stdout = sys.stderr\n"
        f"main({list(map(str, arguments))!r})\n"
        "print(*{name.partition('.')[0] for name in sys.modules} | set(sys.modules), file=sys.__stdout__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_version_imports_neither_plugins_nor_the_store(machine):
    names = imported("--version")
    assert not names & {*HEAVY, "pluggy", "sqlite3", "wheelmem.store", "wheelmem.contract"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "lantern", "--circle", FERRY],
        ["ask", QUESTION, "--circle", FERRY],
        ["reach", "--circle", FERRY],
        ["arms"],
    ],
)
def test_nothing_heavy_is_imported_to_answer(demo, arguments):
    assert not imported(*arguments) & HEAVY


def test_python_dash_m_is_the_same_command(process):
    assert process("--version").stdout == b"wheelmem 0.1.0\n"
    script = shutil.which("wheelmem", path=os.path.dirname(sys.executable))
    assert script
    assert subprocess.run([script, "--version"], capture_output=True).stdout == b"wheelmem 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["search", "x", "--db", "/nowhere/x.db"], 1),
        (["search"], 2),
        (["nonsense"], 2),
        (["search", "x", "--scope", "{"], 2),
    ],
)
def test_exit_codes(process, arguments, code):
    done = process(*arguments)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_a_reader_who_goes_away_is_no_error(demo):
    command = f"{sys.executable} -m wheelmem ask '{QUESTION}' --circle {FERRY} --json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_outputs_are_no_error(demo):
    for closed in (">&-", "2>&-"):
        command = f"{sys.executable} -m wheelmem search lantern --circle {FERRY} {closed}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_standard_output_is_told_in_a_line(demo):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "wheelmem", "status"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_is_quiet(machine, demo):
    running = subprocess.Popen(
        [sys.executable, "-m", "wheelmem", "record", "node", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever starts the tests in the background has them ignore it, and their children too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # It waits for its input now; a moment later it certainly does.
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=20)
    assert running.returncode == 130
    assert said.strip() == ""


def on_a_terminal(arguments, env=None) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **(env or {})}
    running = subprocess.Popen(
        [sys.executable, "-m", "wheelmem", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        close_fds=True,
    )
    os.close(theirs)
    written = b""
    while select.select([ours], [], [], 30)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert running.wait(30) == 0
    return written.decode()


def test_matched_words_are_marked_on_a_terminal_and_nowhere_else(demo, process):
    arguments = ["search", "lanterns", "--circle", FERRY]
    shown = on_a_terminal(arguments)
    assert re.search(r"\x1b\[33m\x1b\[1mlantern\x1b\[0m", shown)
    assert "\x1b[33m\x1b[1mThe\x1b" not in shown
    for quiet in (on_a_terminal(arguments, {"NO_COLOR": "1"}), on_a_terminal(arguments, {"TERM": "dumb"})):
        assert "\x1b" not in quiet
        assert quiet == ANSI.sub("", shown)
    assert "\x1b[33m" in on_a_terminal(arguments, {"NO_COLOR": ""})
    assert b"\x1b" not in process(*arguments).stdout


def test_a_terminal_sees_how_far_an_export_is_and_a_pipe_does_not(demo, process, tmp_path):
    assert "100%" in on_a_terminal(["export", str(tmp_path / "out")])
    assert process("export", tmp_path / "out").stderr == b""


def test_json_is_never_coloured(demo):
    assert "\x1b" not in on_a_terminal(["search", "lantern", "--circle", FERRY, "--json"])


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_output_that_knows_ascii_only_is_no_error(demo, process, more):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("about", "node:human:1767225600004:elise", "--circle", KITCHEN, *more, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u00c9lise" in done.stdout if more else b"lise Caron" in done.stdout


BASH = """
eval "$(_WHEELMEM_COMPLETE=bash_source wheelmem)"
COMP_LINE="$1" COMP_POINT=${#1}
_wheelmem_completion wheelmem
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wheelmem unins", "uninstall"),
        ("wheelmem search x --circle ferr", FERRY),
        ("wheelmem search x --circle circle:1767225600020:", "ferry"),
        ("wheelmem search x --circle=circle:1767225600020:f", "ferry"),
        ("wheelmem search x --participant Yuki", "node:human:1767225600003:yuki"),
        ("wheelmem search x --episode 2026", "2026-03-14-episode-3-landing"),
        ("wheelmem search x --subject pde", "pde:landing"),
        ("wheelmem search x --ceremony ceremony:demo:o3", "o3"),
        ("wheelmem search x --exclude ceremony:demo:o3", "o3"),
        ("wheelmem search x --arm key", "keyword"),
        ("wheelmem record bea", "beat"),
        ("wheelmem --db /nowhere.db search x --circle ci", ""),
    ],
)
def test_the_shell_completes_what_the_wheel_knows(demo, line, offered):
    if offered.endswith("ferry") and "circle:1767225600020:" in line:
        offered = "1767225600020:ferry"
    environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", BASH, "bash", line], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() in (offered, offered.rpartition(":")[2])
    assert done.stderr == ""
