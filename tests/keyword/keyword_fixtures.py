"""What the fixtures give, and whom they know."""

from collections.abc import Callable

ADA = "node:human:1700000000001:ada1"
CIRCLE = "circle:garden"

Say = Callable[..., None]
Find = Callable[..., list[str]]
