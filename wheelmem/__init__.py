"""wheelmem: memory for people and agents who sit in circles."""

__version__ = "0.1.0"
