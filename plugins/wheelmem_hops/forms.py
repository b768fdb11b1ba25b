"""Words whose forms no stemmer brings together: a question says *buy* where the turn says *bought*."""

from __future__ import annotations

from functools import lru_cache

from wheelmem_fts5.words import Term, stems

__all__ = ["forms"]

# A word a line would be long; a word is parted from the next by a semicolon, its forms by spaces.
_IRREGULAR = """
become became; begin began begun; bite bit bitten; blow blew blown; break broke broken; bring brought; build built;
burn burnt; buy bought; catch caught; choose chose chosen; come came; deal dealt; draw drew drawn; dream dreamt;
drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found;
fly flew flown; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given;
go went gone; grow grew grown; hear heard; hide hid hidden; hold held; keep kept; know knew known; lead led; learn learnt;
leave left; lend lent; light lit; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung;
rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; shake shook shaken; shoot shot;
shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; speak spoke spoken; spend spent; stand stood;
steal stole stolen; stick stuck; strike struck; sweep swept; swim swam swum; swing swung; take took taken; teach taught;
tear tore torn; tell told; think thought; throw threw thrown; understand understood; wake woke woken; wear wore worn;
weave wove woven; win won; write wrote written;
child children; foot feet; goose geese; man men; mouse mice; person people; tooth teeth; woman women;
knife knives; leaf leaves; life lives; wife wives; wolf wolves
"""


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for group in _IRREGULAR.split(";"):
        together = tuple(dict.fromkeys(stem for _, stem in stems(group)))
        for stem in together:
            # leaf and leave share a form: what either has, both have.
            table[stem] = tuple(dict.fromkeys((*table.get(stem, ()), *together)))
    return table


def forms(term: Term) -> list[Term]:
    """A term, and the other forms of the same word as the index has them."""
    if term.part:
        return [term]
    return [term, *(Term(stem) for stem in _table().get(term.stem, ()) if stem != term.stem)]
