"""How fast the `memory` command is, each time as a ratio against a named peer in the same run (medians of whole processes).

    python benchmarks/home.py [--rounds N] [--records N]

encode        against `python -c pass`; at most 5
read --under  over many records in 200 folders, against reading and parsing the same file with the json module; at most 2
fold          likewise
read --count  its peak memory against that of counting a log a hundred times shorter; no ratio to keep, but it must not grow
              with the file
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARSE = "import json, sys\nfor line in open(sys.argv[1], encoding='utf-8'): json.loads(line)"


def seconds(argv: list[str], env: dict[str, str]) -> float:
    """How long a process takes from start to end."""
    begun = time.perf_counter()
    subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def compare(name: str, argv: list[str], peer: list[str], env: dict[str, str], rounds: int, most: float) -> bool:
    """Run both in turn, print the ratio of their medians; whether it is within `most`."""
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(seconds(peer, env))
        ours.append(seconds(argv, env))
    mine, other = statistics.median(ours), statistics.median(theirs)
    good = mine / other <= most
    told = f"{mine * 1000:9.1f} ms  peer {other * 1000:9.1f} ms  {mine / other:5.2f}x (at most {most:g}x)"
    print(f"{name:13} {told}{'' if good else ' MISSED'}")
    return good


def peak(argv: list[str], env: dict[str, str]) -> float:
    """The peak memory of a process in MiB."""
    pid = os.fork()
    if pid == 0:
        subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        os._exit(min(255, usage // 1024))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def make_log(root: Path, count: int) -> Path:
    """A home whose log has this many records, captured in 200 folders of 20 projects."""
    home = root / f"home-{count}"
    home.mkdir()
    folders = []
    for project in range(20):
        (root / f"p{project}").mkdir(exist_ok=True)
        (root / f"p{project}" / "pyproject.toml").touch()
        for n in range(10):
            folder = root / f"p{project}" / "src" / f"part{n}"
            folder.mkdir(parents=True, exist_ok=True)
            folders.append(str(folder))
    host = os.uname().nodename.split(".")[0]
    with open(home / "EPISODIC.jsonl", "w", encoding="utf-8") as file:
        for n in range(count):
            record = {
                "id": f"01HX{n:022d}", "session": f"s{n % 50}", "host": host, "cwd": folders[n * 7 % 200],
                "body": f"Capture {n}: " + "the river rose past the second pier and nobody had drawn the line. " * 2,
                "tags": ["river", f"t{n % 10}"],
            }  # fmt: skip
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return home


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, default=100_000)
    args = parser.parse_args()
    memory = str(Path(sys.executable).with_name("memory"))
    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_", "CLAUDE_"))} | {"HOME": made}
        small, home = make_log(root, 1), make_log(root, args.records)
        log = str(home / "EPISODIC.jsonl")
        parse = [sys.executable, "-c", PARSE, log]
        encode = [memory, "encode", "--body", "x", "--session", "s", "--home", str(small)]
        read = [memory, "read", "--home", str(home)]
        within = [
            compare("encode", encode, [sys.executable, "-c", "pass"], env, max(args.rounds * 5, 1), 5),
            compare(
                "read --under", [memory, "read", "--under", str(root / "p3"), "--home", str(home)], parse, env, args.rounds, 2
            ),
            compare("fold", [memory, "fold", "--home", str(home)], parse, env, args.rounds, 2),
        ]
        size = os.path.getsize(log) / 2**20
        short = peak([memory, "read", "--count", "--home", str(make_log(root, max(args.records // 100, 2)))], env)
        long = peak([*read, "--count"], env)
        within.append(long - short < size / 4)
        print(f"{'read --count':13} {long} MiB at its peak for a log of {size:.0f} MiB, {short} MiB for a hundredth of it")
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
