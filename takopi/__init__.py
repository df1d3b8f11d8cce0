"""takopi puts a person's coding agents into their pocket."""

__version__ = "0.9.0"
