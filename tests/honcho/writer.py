"""A process that records and delivers without end, until it is killed. Arguments: the wheel's file, Honcho's address.

Prints each id once it has been stored.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from wheelmem_honcho import HonchoClient, honcho_provider

from wheelmem.plugins import PluginHost
from wheelmem.river import River, enroll
from wheelmem.store import open_wheel


async def main(path: str, url: str, name: str) -> None:
    wheel = open_wheel(path, plugins=PluginHost())
    provider = honcho_provider(HonchoClient(url, timeout=5))
    enroll(wheel, [provider])
    river = River(wheel, [provider])
    delivering: asyncio.Task[object] | None = None
    for n in itertools.count():
        id = f"beat:{name}:{n:05}"
        record = {"id": id, "title": id, "speaker": f"speaker {n % 3}", "ceremonies": [f"ceremony:{n % 2}"]}
        await asyncio.to_thread(wheel.put, "beat", record)
        print(id, flush=True)
        if delivering is None or delivering.done():
            delivering = asyncio.create_task(river.deliver())
        await asyncio.sleep(0.005)


asyncio.run(main(*sys.argv[1:]))
