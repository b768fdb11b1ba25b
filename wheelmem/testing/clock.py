"""Another time for the code under test, so that a result that reads a clock shows."""

from __future__ import annotations

import datetime
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["another_time", "reads_clock"]

# 11 years, 5 months, 13 days and some hours: another year, month, weekday and hour.
AHEAD = 361_234_567.0
# Clocks that only go forward are set back instead: whoever waits for a deadline meanwhile must not think that it passed.
BACK = 98_765.0

_SQL_CLOCK = re.compile(
    r"'now'|\bcurrent_(?:date|time|timestamp)\b|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|\b(?:random|randomblob)\s*\(",
    re.IGNORECASE,
)


def reads_clock(statement: str) -> bool:
    """Whether an SQL statement asks SQLite for the time, or for chance."""
    return _SQL_CLOCK.search(statement) is not None


class _Meta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _later(real: float) -> float:
    return real + AHEAD


class _Datetime(datetime.datetime, metaclass=_Meta):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return datetime.datetime.fromtimestamp(_later(_TIME()), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


class _Date(datetime.date, metaclass=_Meta):
    @classmethod
    def today(cls) -> Any:
        return datetime.date.fromtimestamp(_later(_TIME()))


_TIME = time.time


def _shifted(real: Callable[[], Any], by: float) -> Callable[[], Any]:
    return lambda: type(real())(real() + (by if isinstance(real(), float) else int(by * 1_000_000_000)))


def _of(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes seconds since the epoch, by default those of now."""
    return lambda seconds=None: real(_later(_TIME()) if seconds is None else seconds)


def _strftime(format: str, *moment: Any) -> str:
    return _STRFTIME(format, *(moment or (_LOCALTIME(_later(_TIME())),)))


_STRFTIME, _LOCALTIME = time.strftime, time.localtime

_INSTEAD: dict[Any, Any] = {
    time.time: _shifted(time.time, AHEAD),
    time.time_ns: _shifted(time.time_ns, AHEAD),
    time.monotonic: _shifted(time.monotonic, -BACK),
    time.monotonic_ns: _shifted(time.monotonic_ns, -BACK),
    time.perf_counter: _shifted(time.perf_counter, -BACK),
    time.perf_counter_ns: _shifted(time.perf_counter_ns, -BACK),
    time.localtime: _of(time.localtime),
    time.gmtime: _of(time.gmtime),
    time.ctime: _of(time.ctime),
    time.strftime: _strftime,
    datetime.datetime: _Datetime,
    datetime.date: _Date,
}


def _replace(module: Any) -> list[tuple[Any, str, Any]]:
    changed = []
    for name, value in list(vars(module).items()):
        try:
            instead = _INSTEAD.get(value)
        except TypeError:  # unhashable, so no clock
            continue
        if instead is not None:
            changed.append((module, name, value))
            setattr(module, name, instead)
    return changed


@contextmanager
def another_time(package: str) -> Iterator[None]:
    """Until left, the clocks of ``time`` and ``datetime`` tell another time, also where a module of ``package`` imported them
    by name."""
    modules = [time, datetime]
    modules += [module for name, module in list(sys.modules.items()) if module is not None and name.partition(".")[0] == package]
    changed = []
    try:
        for module in modules:
            changed += _replace(module)
        yield
    finally:
        for module, name, value in reversed(changed):
            setattr(module, name, value)
