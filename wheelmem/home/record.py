"""What a line of the log is: ids that sort, records from and to JSON, and the error a caller sees."""

from __future__ import annotations

import json
import os
from typing import Any

ROUTABLE = ("SEMANTIC", "PROCEDURAL", "EPISODIC")
MAX_LINE = 1 << 20  # bytes; a capture is a note to oneself, not a file store

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}
_TOP = (1 << 128) - 1


class Refused(Exception):
    """A call that changes nothing: `str(error)` is one line for stderr, `code` the exit code (1 refused, 2 wrong use)."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


# --- ids ---------------------------------------------------------------------------------------------------------------


def is_ulid(text: object) -> bool:
    """Whether this is a ULID as it is written here: ULIDs sort as text as they do as numbers."""
    return isinstance(text, str) and len(text) == 26 and text[0] <= "7" and not text.strip(_ALPHABET)


def ulid_value(text: object) -> int | None:
    """The 128 bits of a ULID as a number; None for what is none."""
    if not isinstance(text, str) or not is_ulid(text):
        return None
    value = 0
    for letter in text:
        value = value << 5 | _VALUES[letter]
    return value


def ulid_text(value: int) -> str:
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


def ulid_ms(text: object) -> int | None:
    """When a ULID was made, in epoch milliseconds; None for what is none."""
    value = ulid_value(text)
    return None if value is None else value >> 80


def next_ulid(last: int, now_ms: int) -> int:
    """A ULID above `last`, of the time `now_ms` when that is later than last's own."""
    if now_ms > last >> 80 or last >= _TOP:
        return now_ms << 80 | int.from_bytes(os.urandom(10), "big")
    return last + 1


# --- JSON --------------------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _any_int(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # longer than Python turns into an int; its digits stay in the line itself
        return float(digits)


_scan = json.JSONDecoder(parse_constant=_refuse_constant).scan_once  # type: ignore[attr-defined]
_scan_long = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_any_int).scan_once  # type: ignore[attr-defined]
_BLANK = " \t\r\n"


def parse_json(text: str) -> Any:
    """The value of a JSON text; ValueError for anything else, NaN and Infinity too."""
    text = text.strip(_BLANK)
    try:
        try:
            value, end = _scan(text, 0)
        except ValueError as error:
            if "digits" not in str(error):
                raise
            value, end = _scan_long(text, 0)
    except StopIteration as stop:
        raise ValueError(f"no value at character {stop.value}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if end != len(text):
        raise ValueError(f"something follows the value at character {end}")
    return value


def parse_record(raw: bytes) -> dict[str, Any]:
    """The record of one line; ValueError for a torn or foreign one."""
    record = parse_json(raw.decode("utf-8"))
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        raise ValueError("no record: it has no id")
    return record


def dump(value: object) -> str:
    """Compact JSON with non-ASCII letters as they are; lone surrogates, which UTF-8 cannot hold, stay escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text) if _lone(text) else text


def _lone(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def compact(text: str) -> str:
    """JSON text without spaces between tokens and with letters unescaped; every number keeps its spelling."""
    import re

    parse_json(text)
    return re.sub(
        r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+',
        lambda m: dump(parse_json(m[1])) if m[1] else "",
        text,
    )


def record_line(id: str, session: str, host: str, cwd: str, body: str, tags: list[str]) -> bytes:
    """One line of the log, without its newline; `body` is JSON text already. Refused when it is too long."""
    line = f'{{"id":"{id}","session":{dump(session)},"host":{dump(host)},"cwd":{dump(cwd)},"body":{body}'
    data = (line + (f',"tags":{dump(tags)}}}' if tags else "}")).encode("utf-8")
    if len(data) > MAX_LINE:
        raise Refused(f"the record is {len(data)} bytes long; at most {MAX_LINE} fit a line of the log")
    return data


def members(text: str) -> dict[str, tuple[int, int]]:
    """Where the value of each member of a JSON object begins and ends in its text; the last one of a repeated name."""
    spans = {}

    def after_blanks(i: int) -> int:
        while text[i] in _BLANK:
            i += 1
        return i

    i = after_blanks(after_blanks(0) + 1)
    while text[i] == '"':
        name, i = _scan_long(text, i)
        start = after_blanks(after_blanks(i) + 1)
        _, i = _scan_long(text, start)
        spans[name] = start, i
        i = after_blanks(i)
        if text[i] == ",":
            i = after_blanks(i + 1)
    return spans


def with_routes(raw: bytes, stores: list[str]) -> bytes:
    """The line with `routes` set to these stores, and every other byte of it untouched."""
    text = raw.decode("utf-8")
    span = members(text).get("routes")
    if span is None:
        end = text.rindex("}")
        return f'{text[:end]},"routes":{dump(stores)}{text[end:]}'.encode()
    return (text[: span[0]] + dump(stores) + text[span[1] :]).encode()


def body_text(raw: bytes, record: dict[str, Any]) -> str:
    """The body as prose: itself when it is text, else its JSON, compact, each number spelled as it was."""
    body = record.get("body", "")
    if isinstance(body, str):
        return body
    text = raw.decode("utf-8")
    start, end = members(text)["body"]
    return compact(text[start:end])


def short_host() -> str:
    """This machine's name up to its first dot."""
    return os.uname().nodename.split(".")[0]
