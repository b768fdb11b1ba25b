"""The ``wheelmem`` command line.

``main`` runs it and gives the exit code: 0, 1 when something could not be done, 2 for wrong use, 130 after Ctrl-C.
No error leaves it as a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on ``argv`` (the process's own arguments by default); the exit code."""
    try:
        from .running import run

        return run(argv)
    except KeyboardInterrupt:
        return 130
