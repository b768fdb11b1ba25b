"""The pages: to ask on, of a ceremony, of a person. All of it works without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from wheelmem.contract import Answer, ContractError, Scope, Source
from wheelmem.reach import is_empty_scope
from wheelmem.store import listing, reading, writing
from wheelmem.store.choices import choices
from wheelmem.store.connections import ReadConnection
from wheelmem.text import fold, query_terms

from . import access, drawing
from .asking import judge_conclusion, may_see_conclusion
from .callers import Caller, caller
from .web import Refusal, answer, check_origin, door, error_of, path_id, read_body

__all__ = ["ROUTES"]

VERBS = {"ask": "Ask", "search": "Search", "about": "About a person"}
MODES = {
    "dialectic": "reasoned over what the scope reaches",
    "search": "found by a provider, within the scope",
    "matched": "matched on the wheel's own records",
    "empty": "this scope reaches nothing, so nobody was asked",
}
FIELDS = {
    "participant": "People",
    "circle_id": "Circles",
    "subject_id": "Subjects",
    "episode_path": "Episodes",
    "ceremonies": "Ceremonies",
}
KINDS = {"beat": "turn", "diary": "diary entry", "ceremony": "ceremony", "conclusion": "conclusion", "message": "message"}
MARKS = 400
FOUND = 8
SAID = 100
PAGE_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
}

Handler = Callable[[Any, Any], Awaitable[Any]]


def page(**handlers: Handler) -> Callable[..., Awaitable[Any]]:
    """A view of the given methods that answers people: what goes wrong is said on a page."""

    async def view(datasette: Any, request: Any) -> Any:
        method = "GET" if request.method == "HEAD" else request.method
        try:
            if method not in handlers:
                raise Refusal(405, f"{request.method} is not for this page")
            check_origin(request, navigable=True)
            return await handlers[method](datasette, request)
        except Exception as error:
            refusal = error_of(error)
        if refusal.status == 403:
            return await access.forbidden(datasette, request, str(refusal))
        shown = {"title": "Memory", "error": str(refusal), "status": refusal.status}
        return await _render(datasette, request, "error.html", shown, refusal.status)

    return view


async def _render(datasette: Any, request: Any, template: str, context: Mapping[str, Any], status: int = 200) -> Any:
    from datasette.utils.asgi import Response

    html = await datasette.render_template(template, {**context, "wheelmem_at": _paths(datasette)}, request=request)
    # 0.65 does not say what language its pages are in.
    return Response.html(html.replace("<html>", '<html lang="en">', 1), status=status, headers=PAGE_HEADERS)


@dataclass(frozen=True)
class _Paths:
    """Where things are, below whatever address Datasette is served at."""

    memory: str
    static: str

    def ceremony(self, id: str) -> str:
        return f"{self.memory}/ceremonies/{quote(id, safe='')}"

    def person(self, id: str) -> str:
        return f"{self.memory}/people/{quote(id, safe='')}"

    def conclusion(self, id: str) -> str:
        return f"{self.memory}/conclusions/{quote(id, safe='')}"

    def within(self, **scope: str) -> str:
        return f"{self.memory}?{urlencode(scope)}"


def _paths(datasette: Any) -> _Paths:
    return _Paths(str(datasette.urls.path("/-/memory")), str(datasette.urls.path("/-/static-plugins/wheelmem")))


# --- asking --------------------------------------------------------------------------------------------------------


def _scope(request: Any) -> dict[str, Any]:
    """The scope that an address names."""
    found: dict[str, Any] = {}
    for name in (*FIELDS, "exclude_ceremonies"):
        values = [value.strip() for value in request.args.getlist(name) if value.strip()]
        if values:
            found[name] = values[0] if name == "participant" else list(dict.fromkeys(values))
    return found


@dataclass(frozen=True)
class _Choice:
    """One thing a scope may name: its id and what people call it."""

    id: str
    name: str
    chosen: bool = False
    left_out: bool = False


def _choices(who: Caller, db: ReadConnection, field: str, text: str, limit: int) -> list[tuple[str, str]]:
    """What this caller may name in a field of a scope."""
    allowed = who.allowed(db)
    if allowed is None:
        return choices(db, field, text, limit)
    within = listing.named_within(db, allowed.reach.ceremonies, field)
    return [(id, name) for id, name in choices(db, field, text, 1_000_000) if id in within][:limit]


def _pickers(who: Caller, db: ReadConnection, scope: Mapping[str, Any], text: str) -> dict[str, list[_Choice]]:
    """For each field: what is chosen, then what was found for ``text``."""
    out = {}
    left_out = scope.get("exclude_ceremonies", [])
    for field in FIELDS:
        given = scope.get(field, [])
        chosen = [given] if isinstance(given, str) else list(given)
        if field == "ceremonies":
            chosen += [id for id in left_out if id not in chosen]
        names = {}
        for id in chosen:
            # Of what they may not name, people see no more than the id they gave themselves.
            names.update({one: name for one, name in _choices(who, db, field, id, 3) if one == id})
        kept = [_Choice(id, names.get(id) or id, id in given, id in left_out) for id in chosen]
        found = [_Choice(id, name or id) for id, name in _choices(who, db, field, text, FOUND)] if text else []
        out[field] = kept + [one for one in found if one.id not in chosen]
    return out


async def _memory(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-ask")
    args = request.args
    verb = args.get("verb") if args.get("verb") in VERBS else "ask"
    words, person, text = (args.get(name, "").strip() for name in ("q", "person", "find"))
    scope = Scope.from_json(_scope(request))
    person = await who.house.read(lambda db: _who_is_meant(who, db, person))
    wants = args.get("go") == "answer" or (args.get("go") is None and bool(words or (verb == "about" and person)))
    found, problem = await _asked(who, verb, words, person, scope) if wants else (None, None)

    def look(db: ReadConnection) -> dict[str, Any]:
        reach = who.reach(db, scope)
        cited: dict[str, list[int]] = {}
        for number, source in enumerate(found.sources if found else (), 1):
            place = source.ceremony_id or (source.wheel_id if source.wheel_kind == "ceremony" else None)
            if place:
                cited.setdefault(place, []).append(number)
        allowed = who.allowed(db)
        all_marks = listing.marks(db, None if allowed is None else allowed.reach.ceremonies, MARKS)
        drawn = {mark.id for mark in all_marks}
        missing = [id for id in reach.reach.ceremonies if id not in drawn]
        more = listing.marks(db, missing, MARKS)
        keys = [(source.wheel_kind, source.wheel_id) for source in (found.sources if found else ()) if not source.outside_wheel]
        return {
            "extent": listing.extent(db, reach),
            "dots": drawing.wheel([*all_marks, *more], reach.reach.ceremonies, cited),
            "reached": listing.marks(db, reach.reach.ceremonies, 50),
            "pickers": _pickers(who, db, _scope(request), text),
            "rows": listing.rows_of(db, keys),
        }

    context = await who.house.read(look)
    rows = context["rows"] if await who.may("memory-read") else {}
    database = who.house.database.name
    cards = (
        [_card(datasette, number, source, words, rows, database) for number, source in enumerate(found.sources, 1)]
        if found
        else []
    )
    ticks, first, last = drawing.strip([(card["number"], card["at"], card["who"]) for card in cards])
    return await _render(
        datasette,
        request,
        "wheelmem_memory.html",
        {
            **context,
            "verb": verb,
            "verbs": VERBS,
            "words": words,
            "person": person,
            "find": text,
            "fields": FIELDS,
            "scope": scope,
            "scope_empty": is_empty_scope(scope),
            "answer": found,
            "problem": problem,
            "mode": MODES.get(found.mode, found.mode) if found else "",
            "cards": cards,
            "ticks": ticks,
            "strip_rows": max((tick.row for tick in ticks), default=0) + 1,
            "strip_ends": (first, last),
        },
        400 if problem else 200,
    )


def _who_is_meant(who: Caller, db: ReadConnection, person: str) -> str:
    """The id of somebody called by name, where exactly one is; else as given."""
    if not person:
        return person
    called = [id for id, name in _choices(who, db, "participant", person, FOUND) if fold(name) == fold(person)]
    return called[0] if len(called) == 1 else person


async def _asked(who: Caller, verb: str, words: str, person: str, scope: Scope) -> tuple[Answer | None, str | None]:
    """The answer, or what was wrong with the question."""
    memory = who.memory
    try:
        if verb == "about":
            return await memory.about(person=person, scope=scope, question=words or None), None
        if verb == "search":
            return await memory.search(query=words, scope=scope), None
        return await memory.ask(question=words, scope=scope), None
    except ContractError as error:
        return None, str(error)


_WORD = re.compile(r"[^\W_]+")


def _marked(text: str, words: str) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it is one of the words asked for (or another form of it)."""
    beginnings = [term if len(term) < 5 else term[: max(4, len(term) - 3)] for term in query_terms(words)]
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in _WORD.finditer(text):
        folded = fold(match[0])
        if any(folded.startswith(beginning) for beginning in beginnings):
            pieces += [(text[at : match.start()], False), (match[0], True)]
            at = match.end()
    return [piece for piece in [*pieces, (text[at:], False)] if piece[0]]


def _card(datasette: Any, number: int, source: Source, words: str, rows: Mapping[Any, Any], database: str) -> dict[str, Any]:
    row = rows.get((source.wheel_kind, source.wheel_id))
    whose = source.speaker_kind or ("person" if source.speaker else None)
    return {
        "number": number,
        "source": source,
        "who": source.speaker_name or source.speaker or "nobody named",
        "whose": {"person": "", "agent": "agent", "wheel": ""}.get(whose or "", ""),
        "is_person": source.speaker_kind in ("person", "agent") or (source.speaker and source.speaker_kind is None),
        "kind": KINDS.get(source.wheel_kind, source.wheel_kind),
        "at": source.at,
        "when": _when(source.at),
        "pieces": _marked(source.excerpt, words),
        "ceremony": source.ceremony_id or (source.wheel_id if source.wheel_kind == "ceremony" else None),
        "row": f"{datasette.urls.table(database, row[0])}/{row[1]}" if row else None,
    }


def _when(at: str | None) -> str:
    """A time as it was written, to the minute."""
    text = (at or "").strip()
    return text[:16].replace("T", " ") if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text) else text[:40]


async def _pick(datasette: Any, request: Any) -> Any:
    """What could be named, for a picker that searches as one types."""
    who = await caller(datasette, request)
    await who.need("memory-ask")
    text = request.args.get("find", "").strip()

    def look(db: ReadConnection) -> dict[str, list[dict[str, str]]]:
        return {
            field: [{"id": id, "name": name or id} for id, name in _choices(who, db, field, text, FOUND)] if text else []
            for field in FIELDS
        }

    return answer(await who.house.read(look))


# --- a ceremony ----------------------------------------------------------------------------------------------------


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str) and item]


def _named(db: ReadConnection, ids: Sequence[str]) -> list[tuple[str, str]]:
    names = reading.names(db, ids)
    return [(id, names.get(id, id)) for id in dict.fromkeys(ids)]


async def _ceremony(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-ask")
    id = path_id(request)

    def look(db: ReadConnection) -> dict[str, Any]:
        who.need_ceremony(db, id)
        ceremony = writing.get(db, "ceremony", id)
        if ceremony is None:
            raise Refusal(404, f"the wheel holds no ceremony {id}")
        allowed = who.allowed(db)
        turns, _, _ = listing.listed(db, "beat", {"ceremony": [id]}, -1, 0)
        entries, _, _ = listing.listed(db, "diary", {"ceremony_id": [id]}, -1, 0)
        closings, _, _ = listing.listed(db, "ceremony", {"closes": [id]}, -1, 0)
        closed = ceremony.get("closes")
        held = [one["id"] for one in closings] + ([closed] if isinstance(closed, str) else [])
        shown = [mark for mark in listing.marks(db, held, 50) if allowed is None or mark.id in allowed.reach.ceremonies]
        speakers = [str(one.get("speaker") or "") for one in turns] + [str(one.get("participant") or "") for one in entries]
        witnesses = [name for one in turns for name in _texts(one.get("witnesses"))]
        circle = ceremony.get("circle_id")
        mark = listing.marks(db, [id], 1)
        return {
            "ceremony": ceremony,
            "name": mark[0].name if mark else id,
            "turns": list(reversed(turns)),
            "entries": entries,
            "closings": [one for one in shown if one.id != closed],
            "closes": next((one for one in shown if one.id == closed), None),
            "people": _named(db, _texts(ceremony.get("participants"))),
            "names": dict(_named(db, [one for one in [*speakers, *witnesses] if one])),
            "circle": _named(db, [circle])[0] if isinstance(circle, str) and circle else None,
            "intentions": _texts(ceremony.get("intentions")),
            "lists": {"Medicines": _texts(ceremony.get("medicines_used"))},
        }

    return await _render(
        datasette, request, "wheelmem_ceremony.html", {**await who.house.read(look), "texts": _texts, "when": _when}
    )


# --- a person ------------------------------------------------------------------------------------------------------


async def _person(datasette: Any, request: Any) -> Any:
    who = await caller(datasette, request)
    await who.need("memory-ask")
    id = path_id(request)
    reads, judges = await who.may("memory-read"), await who.may("memory-judge")

    def look(db: ReadConnection) -> dict[str, Any]:
        reach = who.allowed(db) or listing.everything(db)
        inside = set(reach.reach.ceremonies)
        sat = [one for one in listing.sat_in(db, id) if one in inside]
        said = [found.record for found in reading.latest(db, reach, id, SAID)]
        pages = listing.own_pages(db, id, SAID) if reads or who.own_diary == id else []
        about = [node for node in listing.concluded_about(db, id) if may_see_conclusion(who, db, node)]
        if not (sat or said or pages or about):
            raise Refusal(404, f"there is nothing to see of {id} here")
        return {
            "id": id,
            "name": reading.names(db, [id]).get(id, id),
            "kind": reading.kinds(db, [id]).get(id),
            "sat": listing.marks(db, sat, 200),
            "said": said,
            "pages": pages,
            "conclusions": about,
        }

    context = await who.house.read(look)
    back = str(_paths(datasette).person(id))
    return await _render(
        datasette,
        request,
        "wheelmem_person.html",
        {**context, "judges": judges, "back": back, "kinds": KINDS, "when": _when, "said_most": SAID},
    )


async def _judged(datasette: Any, request: Any) -> Any:
    """A form's judgement of a conclusion; back to the page it came from."""
    who = await caller(datasette, request)
    await who.need("memory-judge")
    form = dict(parse_qsl((await read_body(request)).decode("utf-8", "replace")))
    await judge_conclusion(who, path_id(request), form.get("status"))
    from datasette.utils.asgi import Response

    paths = _paths(datasette)
    back = form.get("back", "")
    # Only to where a form of ours stands.
    return Response.redirect(back if unquote(back).startswith(f"{paths.memory}/people/") else paths.memory, 303)


ID = "(?P<id>[^/]+)"
ROUTES = [
    (r"^/-/memory$", page(GET=_memory)),
    (r"^/-/memory/pick$", door(GET=_pick)),
    (rf"^/-/memory/ceremonies/{ID}$", page(GET=_ceremony)),
    (rf"^/-/memory/people/{ID}$", page(GET=_person)),
    (rf"^/-/memory/conclusions/{ID}$", page(POST=_judged)),
]
