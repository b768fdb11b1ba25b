"""Three arms that never come back: in SQL, asleep, and looping in Python."""

import time

from wheelmem import hookimpl


class Sql:
    name = "hangs-sql"
    stage = "find"

    def retrieve(self, db, question, reach, found, limit):
        return db.execute("WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n").fetchall()


class Asleep:
    name = "hangs-asleep"
    stage = "find"

    def retrieve(self, db, question, reach, found, limit):
        time.sleep(3600)


class Loop:
    name = "hangs-loop"
    stage = "find"

    def retrieve(self, db, question, reach, found, limit):
        while True:
            pass


@hookimpl
def register_arms(register, settings):
    for arm in (Sql(), Asleep(), Loop()):
        register(arm)
