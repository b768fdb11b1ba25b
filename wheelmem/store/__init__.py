"""The store: a wheel in one SQLite file. SQL lives here and in plugins, nowhere else."""

from .rows import KINDS, TABLES, BadRecord
from .schema import StoreError
from .wheel import Wheel, open_wheel

__all__ = ["KINDS", "TABLES", "BadRecord", "StoreError", "Wheel", "open_wheel"]
