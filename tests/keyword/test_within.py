"""What other arms build on: terms, their postings in a reach, and their weights."""

from __future__ import annotations

from keyword_fixtures import ADA, CIRCLE, Say
from wheelmem_fts5.within import within
from wheelmem_fts5.words import Term, read_query

from wheelmem import Wheel
from wheelmem.contract import Scope
from wheelmem.store import reading


def test_terms_postings_and_weights_of_a_reach(wheel: Wheel, say: Say) -> None:
    say("beat:1", "a lantern beside a lantern", speaker=ADA)
    say("beat:2", "one lantern")
    say("beat:3", "a lantern elsewhere", ceremony="ceremony:elsewhere")
    say("beat:4", "a river", ceremony="ceremony:elsewhere")
    wheel.put("beat", {"id": "beat:4", "title": "a river", "ceremonies": ["ceremony:elsewhere", "ceremony:1"]})
    with wheel.snapshot() as db:
        ids = dict(db.execute("SELECT wheel_id, record_id FROM records"))
        inside = within(db, reading.resolve(db, Scope(circle_id=CIRCLE)))
        ada, lantern = read_query(db, "what of Ada's lanterns").terms
        assert (ada, lantern) == (Term("ada", people=(ADA,)), Term("lantern"))
        assert inside.size == 4
        assert ids["beat:4"] in inside
        assert ids["beat:3"] not in inside
        postings = inside.postings(lantern)
        assert dict(postings.counts()) == {ids["beat:1"]: 2, ids["beat:2"]: 1}
        assert inside.lengths(postings.ids) == [5, 2]
        assert inside.average == inside.words / 4
        assert all(weight > 0 for weight in inside.weights(postings))
        assert set(inside.postings(ada).ids) == {ids["ceremony:1"], ids["beat:1"]}
        assert inside.postings(Term("river")).ids == [ids["beat:4"]]
        assert inside.weights(inside.postings(Term("nothing"))) == []
        assert within(db, reading.resolve(db, Scope(circle_id=CIRCLE))) is inside


def test_a_reach_without_records(wheel: Wheel) -> None:
    with wheel.snapshot() as db:
        inside = within(db, reading.resolve(db, Scope(episode_path="2026-01-01-episode-1-river")))
        assert (inside.size, inside.postings(Term("lantern")).ids) == (0, [])
