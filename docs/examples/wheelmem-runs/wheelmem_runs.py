"""An arm that finds records which hold the question's words side by side."""

import re

from wheelmem import hookimpl

WORD = re.compile(r"\w+")


def words(text):
    return WORD.findall(text.lower())


def longest_run(asked, text):
    """How many of the words asked for stand side by side in the text, in the order they were asked."""
    held = words(text)
    best = 0
    for start in range(len(asked)):
        for place in range(len(held)):
            length = 0
            while asked[start + length : start + length + 1] == held[place + length : place + length + 1] != []:
                length += 1
            best = max(best, length)
    return best


class Runs:
    name = "runs"
    stage = "find"

    def retrieve(self, db, question, reach, found, limit):
        asked = words(question.query)
        # reach_records holds the records of the reach, and nothing else is looked at.
        rows = db.execute("SELECT record_id, text FROM records WHERE record_id IN (SELECT record_id FROM reach_records)")
        scored = [(longest_run(asked, text), record_id) for record_id, text in rows]
        scored.sort(key=lambda pair: -pair[0])
        for length, record_id in scored[:limit]:
            if length:
                yield record_id, float(length), f"{length} words in a row"


@hookimpl
def register_arms(register, settings):
    register(Runs())
