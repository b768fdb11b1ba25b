"""The OpenAPI description is true: no door answers anything it does not declare."""

from __future__ import annotations

import os
from typing import Any

import pytest

REPEATS = int(os.environ.get("WHEELMEM_TEST_REPEATS", "3"))


async def test_every_door_is_described(make: Any, wheel_file: Any) -> None:
    from datasette_wheelmem import asking, openapi, records

    ds = make([wheel_file])
    await ds.invoke_startup()
    described = (await ds.client.get("/api/openapi.json")).json()
    doors = {pattern.strip("^$").replace("(?P<id>[^/]+)", "{id}") for pattern, _ in (*asking.ROUTES, *records.ROUTES)}
    assert doors == set(described["paths"])
    assert described == openapi.describe()


def test_no_door_answers_what_it_does_not_declare(house: Any) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    schema = schemathesis.openapi.from_url(f"{house.url}/api/openapi.json")
    seen: dict[int, int] = {}
    for result in schema.get_all_operations():
        operation = result.ok()

        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            try:
                strategy = operation.as_strategy(generation_mode=mode)
            except Exception as error:
                if "negative" in str(error).lower():
                    continue
                raise

            @given(case=strategy)
            @settings(
                max_examples=4 * REPEATS,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            )
            def hold(case: Any) -> None:
                response = case.call(headers={"Cookie": f"ds_actor={house.cookie}"})
                seen[response.status_code] = seen.get(response.status_code, 0) + 1
                case.validate_response(response, checks=checks)

            try:
                hold()
            except Exception as error:
                if type(error).__name__ in ("Unsatisfiable", "SkipTest"):
                    continue
                raise
    # Good requests and bad ones were among them.
    assert {200, 201, 400, 404} <= set(seen), seen
    assert sum(seen.values()) > 100
