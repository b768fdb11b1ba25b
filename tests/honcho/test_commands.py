"""The commands around Honcho, run as their user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from double import Double
from world import ANA, KEY

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(double: Double, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HONCHO_", "WHEELMEM_", "MW_"))}
    return {
        **kept,
        "HONCHO_URL": double.url,
        "HONCHO_API_KEY": KEY,
        "WHEELMEM_USER_PATH": str(tmp_path / "user"),
        "WHEELMEM_DB": str(tmp_path / "wheel.db"),
        "COLUMNS": "100",
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    def call(*arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wheelmem", *arguments]
        done = subprocess.run(command, env={**environment, **more}, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        assert KEY not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    call("init")
    return call


def beat(**more: Any) -> str:
    given = {"direction": "east", "title": "Ana speaks", "description": "Teal.", "speaker": ANA, "ceremonies": ["ceremony:1:a"]}
    return json.dumps({**given, **more})


CEREMONY = '{"id": "ceremony:1:a", "type": "opening"}'


def test_a_record_is_delivered_after_its_id_is_printed(run: Run, double: Double) -> None:
    assert run("record", "ceremony", CEREMONY).stdout == "ceremony:1:a\n"
    id = run("record", "beat", beat()).stdout.strip()
    assert [m["metadata"]["wheel_id"] for m in double.messages("ceremony-1-a")] == ["ceremony:1:a", id]
    left = run("record", "beat", beat(), "--no-deliver").stdout.strip()
    assert double.session_of(left) == []
    status = json.loads(run("status", "--json").stdout)
    assert status["river"]["pending"] == 1
    assert status["river"]["held_back"][0]["id"] == left
    delivered = run("deliver")
    assert "honcho: 1 sent" in delivered.stdout
    assert double.session_of(left) == ["ceremony-1-a"]


@pytest.mark.parametrize(("kind", "more"), [("hang", {}), ("close", {}), ("html", {}), ("status", {"status": 500})])
def test_a_write_is_as_good_when_honcho_is_not(
    run: Run, double: Double, environment: dict[str, str], kind: str, more: dict[str, Any]
) -> None:
    with double.fault(kind, **more):
        command = [sys.executable, "-m", "wheelmem", "record", "ceremony", CEREMONY]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ceremony:1:a\n"
        printed = time.monotonic()
        said = process.stderr.read()
        assert process.wait() == 0
    assert time.monotonic() - printed < 10, "it does not wait for a Honcho that hangs"
    assert said.startswith("note: 1 record(s) wait for honcho:")
    assert len(said.splitlines()) == 1
    assert "wait for honcho" in run("status").stdout
    assert "honcho: 1 sent" in run("deliver").stdout
    assert len(double.messages("ceremony-1-a")) == 1


def test_deliver_says_what_is_wrong(run: Run, double: Double) -> None:
    run("record", "ceremony", CEREMONY, "--no-deliver")
    double.stop()
    done = run("deliver", code=1)
    assert "1 waiting" in done.stdout
    assert "cannot be reached" in done.stderr
    double.start()
    assert "no provider that receives is configured" in run("deliver", code=1, HONCHO_URL="").stderr
    assert "HONCHO_URL must be an address" in run("deliver", code=1, HONCHO_URL="nonsense").stderr
    run("resend", "beat", "beat:none", code=1)
    assert json.loads(run("resend", "ceremony", "ceremony:1:a", "--json").stdout)["delivered"][0]["sent"] == 1


def test_a_wheel_older_than_its_honcho(run: Run, double: Double, tmp_path: Path) -> None:
    older = {"WHEELMEM_DB": str(tmp_path / "older.db")}
    run("init", HONCHO_URL="", **older)
    run("record", "ceremony", CEREMONY, HONCHO_URL="", **older)
    run("record", "beat", beat(), HONCHO_URL="", **older)
    assert run("deliver", **older).stdout == "honcho: 0 sent\n"
    assert "2 record(s) never had are queued" in run("deliver", "--all", **older).stdout
    assert len(double.messages("ceremony-1-a")) == 2
    assert json.loads(run("deliver", "--all", "--json", **older).stdout)["delivered"][0]["sent"] == 0


def test_conclusions_from_the_command_line(run: Run, double: Double) -> None:
    run("record", "ceremony", CEREMONY)
    id = run("record", "beat", beat()).stdout.strip()
    made = run("conclude", "--about", ANA, "--kind", "pattern", "--source", id, "Ana", "says", "teal").stdout.strip()
    run("judge", made, "confirmed", "--by", "Ben")
    run("judge", made, "rejected", "--by", "Cora")
    (held,) = json.loads(run("conclusions", "--about", ANA, "--status", "rejected", "--json").stdout)
    assert [one["judged_by"] for one in held["judgements"]] == ["Ben", "Cora"]
    assert held["description"] == "Ana says teal"
    assert run("conclusions", "--status", "confirmed").stdout == "no conclusion like that\n"
    run("judge", "nothing", "confirmed", "--by", "Ben", code=1)
    run("conclude", "--about", ANA, "--kind", "pattern", "--source", "none", "x", code=1)
    pulled = json.loads(run("conclusions", "pull", "--person", ANA, "--ceremony", "ceremony:1:a", "--json").stdout)
    assert [node["metadata"]["status"] for node in pulled] == ["inferred"]
    again = run("conclusions", "pull", "--person", ANA, "--ceremony", "ceremony:1:a")
    assert again.stdout == "0 new conclusion(s) from honcho\n"
    assert "inferred pattern about" in run("conclusions").stdout


def test_honcho_confine(run: Run, double: Double) -> None:
    run("record", "ceremony", CEREMONY)
    double.workspaces["medicine-wheel"].configuration = {"dream": {"enabled": False}}
    answer = json.loads(run("ask", "opening", "--ceremony", "ceremony:1:a", "--json").stdout)
    assert answer["mode"] == "search"
    assert "wheelmem honcho confine" in answer["note"]
    assert "peer cards are off now" in run("honcho", "confine").stdout
    assert double.workspaces["medicine-wheel"].configuration == {"dream": {"enabled": False}, "peer_card": {"use": False}}
    assert "off already" in run("honcho", "confine").stdout
    assert json.loads(run("ask", "opening", "--ceremony", "ceremony:1:a", "--json").stdout)["mode"] == "dialectic"
    settings = run("settings").stdout
    assert "honcho.api_key" in settings
