"""Loads a heavy module when it is first used: beside the loop, and to its end.

A cancel waits for it. Python pulls the ground from under the threads that are left when a process
ends, and an extension that is just being loaded aborts then.
"""

from __future__ import annotations

import importlib

import trio


async def load(module: str) -> None:
    """Import the module, if nobody has; afterwards its import costs nothing."""
    await trio.to_thread.run_sync(importlib.import_module, module)
