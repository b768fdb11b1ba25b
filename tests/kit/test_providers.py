"""``assert_survives``: a right provider passes, and each way of being wrong is caught and said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wheelmem import ProviderAnswer, ProviderStatus, Question, Source
from wheelmem.testing import assert_survives


class Provider:
    """Answers everything from a list it holds."""

    name = "listed"

    async def status(self) -> ProviderStatus:
        return ProviderStatus(self.name, True, True)

    async def ask(self, question: Question) -> ProviderAnswer:
        sources = [Source(self.name, "beat", "beat:1", ceremony_id=id) for id in question.reach.ceremonies[:1]]
        return ProviderAnswer("search", None, None, tuple(sources))

    async def search(self, question: Question) -> ProviderAnswer:
        return await self.ask(question)


class Away(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        raise ConnectionError("cannot reach memory.example")


class Receives(Provider):
    async def receive(self, projections: Any) -> list[str]:
        return ["sent" for _ in projections]


class OneLoop(Provider):
    """Keeps the first event loop it was used in."""

    loop: Any = None

    async def ask(self, question: Question) -> ProviderAnswer:
        if self.loop is None:
            self.loop = asyncio.get_running_loop()
        waiting = self.loop.create_future()
        self.loop.call_soon(waiting.set_result, None)
        await waiting
        return ProviderAnswer("search")


class StatusFails(Provider):
    async def status(self) -> ProviderStatus:
        raise ConnectionError("away")


class OtherName(Provider):
    async def status(self) -> ProviderStatus:
        return ProviderStatus("somebody", True)


class Hangs(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        await asyncio.sleep(600)
        raise AssertionError


class Surrogates(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        question.query.encode()
        raise TypeError("cannot encode")


class Secret(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        raise ConnectionError("401 for Authorization: Bearer abc")


class Lines(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        raise ConnectionError("401\n<html>")


class Nonsense(Provider):
    async def ask(self, question: Question) -> Any:
        return ["an answer"]


class Mode(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        return ProviderAnswer("certain")


class Says(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        return ProviderAnswer("dialectic", " ")


class Cites(Provider):
    async def ask(self, question: Question) -> ProviderAnswer:
        return ProviderAnswer("search", sources=(Source(self.name, "beat", "beat:9", ceremony_id="ceremony:elsewhere"),))


class Short(Provider):
    async def receive(self, projections: Any) -> list[str]:
        return ["sent"]


@pytest.mark.parametrize("provider", [Provider(), Away(), Receives()], ids=lambda value: type(value).__name__)
def test_a_right_provider_passes(provider: Any) -> None:
    assert_survives(provider)


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (OneLoop(), "keeps to one event loop"),
        (StatusFails(), r"status failed \(ConnectionError: away\)"),
        (OtherName(), "its status calls it 'somebody'"),
        (Hangs(), "took more than 0.5 s"),
        (Surrogates(), "failed by a fault: TypeError"),
        (Secret(), "not fit to be shown"),
        (Lines(), "not fit to be shown"),
        (Nonsense(), "gave no ProviderAnswer"),
        (Mode(), "gave mode 'certain'"),
        (Says(), "reasoned, and said nothing"),
        (Cites(), "cited beat beat:9 of ceremony:elsewhere, outside the reach"),
        (Short(), "receive said"),
        (object(), "object needs a name"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_assert_survives_catches(provider: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_survives(provider, seconds=0.5)
