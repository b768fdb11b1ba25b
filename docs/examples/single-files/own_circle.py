"""A policy: whoever is signed in reaches the circles they are seated in; nobody else reaches anything."""

from wheelmem import hookimpl


class OwnCircle:
    name = "own-circle"

    async def confine(self, actor, wheel):
        person = (actor or {}).get("wheel_id")
        if not person:
            return {}  # an empty scope: it reaches nothing
        return {"circle_id": [seat["circle_id"] for seat in await wheel.seats() if seat["person_id"] == person]}


@hookimpl
def register_policies(register, settings):
    register(OwnCircle())
