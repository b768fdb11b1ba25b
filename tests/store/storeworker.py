"""One process that writes a wheel, or reads it, and says on standard output what it has been told.

    python storeworker.py write PATH NAME [COUNT]   put records without end, or so many; print each id once it is kept
    python storeworker.py fill PATH BYTES           the same, with no file allowed to grow beyond so many bytes
    python storeworker.py read PATH                 read until standard input closes; print how many times
    python storeworker.py import PATH FOLDER        bring a folder in
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from pathlib import Path

from wheelmem import create_memory
from wheelmem.memory import run
from wheelmem.plugins import load_plugins
from wheelmem.store import StoreError, Wheel, open_wheel
from wheelmem.store.jsonl import import_folder


def say(*words: object) -> None:
    # In one call, past every buffer: what was printed stays printed when the process is killed.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def write(wheel: Wheel, name: str, count: int) -> None:
    number = 0
    while number != count:
        place = f"ceremony:{name}:{number // 10}"
        if number % 10 == 0:
            wheel.put("ceremony", {"id": place, "type": "talking_circle", "participants": [name]})
            say("ceremony", place)
        id = f"beat:{name}:{number}"
        said = f"{name} says {number} " * 8
        wheel.put("beat", {"id": id, "title": f"lantern {number}", "description": said, "ceremonies": [place]})
        say("beat", id)
        number += 1


def read(wheel: Wheel) -> None:
    done = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    memory = create_memory(wheel=wheel)
    times = 0
    held = -1
    # A breath between two looks: ten readers that never rest would leave a small machine's writers no time at all.
    while not done.wait(0.05):
        answer = run(memory, memory.search(query="lantern", scope={"participant": "w0"}))
        assert answer.note is None or "failed" not in answer.note, answer.note
        counts = wheel.count()
        now = sum(counts.values())
        assert now >= held, (held, now)
        held = now
        times += 1
    say(times)


def main() -> None:
    what, path, *rest = sys.argv[1:]
    with open_wheel(Path(path), plugins=load_plugins(load="fts5")) as wheel:
        say("open")
        try:
            if what == "write":
                write(wheel, rest[0], int(rest[1]) if len(rest) > 1 else -1)
            elif what == "fill":
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(rest[0]), resource.RLIM_INFINITY))
                write(wheel, "full", -1)
            elif what == "read":
                read(wheel)
            else:
                import_folder(wheel, rest[0])
                say("imported")
        except StoreError as error:
            say("error", error)


main()
