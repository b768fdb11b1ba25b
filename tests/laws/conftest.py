from collections.abc import Iterator

import pytest
from wheels import Bench


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()
