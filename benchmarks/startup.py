"""How long the command line takes to start, as a ratio to an empty Python: `python benchmarks/startup.py [--runs N]`.

Whole processes, taken in turn so that whatever else the machine does falls on all alike; medians. The wheel is the demo's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wheelmem.demo import FERRY

BOUNDS = {"--version": 8, "search": 15}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=31, help="how often each is run (31)")
    runs = parser.parse_args().runs
    script = str(Path(sys.executable).parent / "wheelmem")
    with tempfile.TemporaryDirectory() as folder:
        wheel = str(Path(folder) / "demo.db")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("WHEELMEM_", "HONCHO_"))}
        environment |= {"WHEELMEM_USER_PATH": folder, "WHEELMEM_DB": wheel}
        subprocess.run([script, "demo", "--db", wheel], env=environment, check=True, capture_output=True)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "--version": [script, "--version"],
            "search": [script, "search", "lantern", "--circle", FERRY],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for run in range(runs + 1):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, env=environment, check=True, capture_output=True)
                if run:  # the first run of each fills caches
                    times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians.pop("python -c pass")
    print(f"python -c pass       {base * 1000:7.1f} ms   median of {runs}")
    for name, median in medians.items():
        print(f"wheelmem {name:<11} {median * 1000:7.1f} ms   {median / base:5.2f} times that (at most {BOUNDS[name]})")


if __name__ == "__main__":
    main()
