"""Rules that need no model: what a question asks for, and where a captured record goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wheelmem.hookspecs import hookimpl

if TYPE_CHECKING:
    from wheelmem.contract import Question


class Rules:
    """The classifier ``rules``: questions and captured records, each read by a module imported when it is needed."""

    name = "rules"

    def weigh(self, question: Question) -> Mapping[str, float] | None:
        """Factors for the arms that this kind of question concerns; None for a plain one."""
        from .questions import weigh

        return weigh(question)

    def route(self, record: Mapping[str, Any]) -> list[dict[str, str]] | None:
        """Where a captured record goes; None when nothing tells."""
        from .routing import RulesRouter

        return RulesRouter().route(record)


@hookimpl
def register_classifiers(register: Callable[[Any], None]) -> None:
    register(Rules())


@hookimpl
def register_arms(register: Callable[[Any], None]) -> None:
    from .favours import DatesArm, SpeakerArm

    register(SpeakerArm())
    register(DatesArm())
