"""A process that runs verbs of the `memory` command over and over, until it is killed, interrupted, or has done its count.

    python worker.py VERB COUNT

It prints `> VERB` before each call and `< CODE` after it; in between stands what the verb printed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys

from wheelmem.home import cli
from wheelmem.home.folder import Home
from wheelmem.home.log import Log


class Halves:
    """A classifier that lands a third, drops a third and has nothing to say of the rest, by the record's number."""

    name = "halves"

    def route(self, record: dict[str, object]) -> list[dict[str, str]] | None:
        number = int(str(record["id"])[-2:], 32) % 3 if str(record["id"])[-2:].isalnum() else 0
        return [None, [], [{"store": "SEMANTIC", "content": str(record["id"])}]][number]


def some_routes(log: Log) -> str:
    """Decisions for about half of the log, at random."""
    routes = []
    for _, record in log.read():
        if random.random() < 0.5:
            landed = {"store": random.choice(["SEMANTIC", "PROCEDURAL"]), "content": str(record["id"])}
            routes.append({"id": record["id"], "targets": random.choice([[], [landed]])})
    return json.dumps(routes)


def argv(verb: str, number: int, log: Log) -> list[str]:
    if verb == "encode":
        return ["encode", "--body", f"{os.getpid()} {number}", "--session", f"w{os.getpid()}"]
    if verb == "drain":
        return ["drain", "--keep", "100000"]
    if verb == "apply":
        return ["apply", "--routes", some_routes(log)]
    return {"dream": ["dream"], "read": ["read", "--count"], "fold": ["fold"]}[verb]


def main(verb: str, count: int) -> None:
    cli.find_classifiers = lambda name, plugins_dir: [Halves()]
    log = Log(Home(os.environ["AGENT_HOME"]))
    stopped: list[int] = []
    signal.signal(signal.SIGINT, lambda *_: stopped.append(1))  # between calls, not in one
    for number in range(count):
        if stopped:
            return
        for store in ("SEMANTIC", "PROCEDURAL"):
            if verb in ("apply", "dream") and len(cli_get(store)) > 7000:
                cli.main(["replace", "--store", store, "--body", ""])
        given = argv(verb, number, log)
        print(f"> {verb}", flush=True)
        code = cli.main(given)
        print(f"< {code}", flush=True)


def cli_get(store: str) -> bytes:
    from wheelmem.home.dream import get

    return get(Home(os.environ["AGENT_HOME"]), store)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
