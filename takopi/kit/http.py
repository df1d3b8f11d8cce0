"""The only door to HTTP."""

import httpx2

__all__ = ["httpx2"]
