"""A few threads that read, and what happens when one of them is lost to code that never returns.

Threads here are daemons, so a hung plugin never keeps the process from ending (the standard pool joins its threads).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["Hung", "Job", "Workers", "in_event_loop"]

T = TypeVar("T")


class Hung(Exception):
    """A step of a job ran past its deadline and did not come back; ``step`` is what it was."""

    def __init__(self, step: Any) -> None:
        super().__init__(str(step))
        self.step = step


class Job(Generic[T]):
    """One function under way on a worker. The function brackets each step that may hang with ``begin`` and ``end``."""

    def __init__(self, fn: Callable[[Job[T]], T]) -> None:
        self._fn = fn
        self._step: tuple[Any, float] | None = None
        self._finished = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        # Guards what has finished against what is given up: never both.
        self._lock = threading.Lock()
        self._result: T
        self._error: BaseException | None = None
        self.abandoned = False

    def begin(self, step: Any, seconds: float) -> None:
        self._step = (step, time.monotonic() + seconds)

    def end(self) -> None:
        self._step = None

    def run(self) -> None:
        try:
            self._result = self._fn(self)
        except BaseException as error:
            self._error = error
        with self._lock:
            self._finished.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def finished(self) -> bool:
        return self._finished.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it has finished, within so many seconds."""
        return self._finished.wait(seconds)

    def when_finished(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._finished.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def patience(self) -> float:
        """How long to wait before looking again, in seconds."""
        step = self._step
        return 0.05 if step is None else min(1.0, max(0.01, step[1] - time.monotonic()))

    def check(self) -> None:
        """Raise Hung when the step under way is past its deadline."""
        step = self._step
        if step is None or time.monotonic() <= step[1]:
            return
        with self._lock:
            if self._finished.is_set():
                return
            self.abandoned = True
        raise Hung(step[0])

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._result


class Workers:
    """At most ``size`` threads that take jobs in turn; one that is abandoned is replaced."""

    def __init__(self, size: int = 4) -> None:
        self._size = size
        self._queue: SimpleQueue[Job[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        # Jobs whose asker went away before they finished. Whoever waits now sees to it that they hold no thread for ever.
        self._orphans: list[Job[Any]] = []

    def _reap(self) -> None:
        with self._lock:
            orphans = self._orphans = [job for job in self._orphans if not job.finished]
        for job in tuple(orphans):
            try:
                job.check()
            except Hung:
                self._lost(job)

    def _start(self, job: Job[Any]) -> None:
        with self._lock:
            self._queue.put(job)
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name="wheelmem-reader", daemon=True).start()

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            job.run()
            with self._lock:
                if job.abandoned:
                    return
                if self._queue.empty():
                    self._idle += 1

    def _lost(self, job: Job[Any]) -> None:
        with self._lock:
            if job in self._orphans:
                self._orphans.remove(job)
            self._threads -= 1
            if not self._queue.empty() and self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name="wheelmem-reader", daemon=True).start()

    def _left(self, job: Job[Any], error: BaseException) -> None:
        """Whoever waited for a job does so no more: it hangs, or (cancelled, interrupted) they gave up."""
        if isinstance(error, Hung):
            self._lost(job)
            return
        with self._lock:
            self._orphans.append(job)

    def run(self, fn: Callable[[Job[T]], T]) -> T:
        """``fn(job)`` on a worker; the calling thread waits. Raises Hung when a step does not come back."""
        job = Job(fn)
        self._start(job)
        try:
            while not job.wait(job.patience()):
                job.check()
                self._reap()
        except BaseException as error:
            self._left(job, error)
            raise
        return job.result()

    async def run_async(self, fn: Callable[[Job[T]], T]) -> T:
        """The same, awaited; without a running event loop it waits in place."""
        if not in_event_loop():
            return self.run(fn)
        import asyncio

        loop = asyncio.get_running_loop()
        job = Job(fn)
        finished = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(finished.set)
            except RuntimeError:
                pass  # the loop is gone, and with it whoever waited

        job.when_finished(wake)
        self._start(job)
        waiting = asyncio.ensure_future(finished.wait())
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=job.patience())
                if done:
                    break
                job.check()
                self._reap()
        except BaseException as error:
            self._left(job, error)
            raise
        finally:
            waiting.cancel()
        return job.result()


def in_event_loop() -> bool:
    """Whether an event loop is running in this thread; does not import asyncio to find out."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
