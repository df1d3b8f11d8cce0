"""Repositories by their alias, and what git knows about them."""
