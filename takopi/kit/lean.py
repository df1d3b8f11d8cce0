"""Imports a package without what it would bring along and takopi never lets it use.

What is left out can be imported as usual afterwards. This is for the start of the process, when no
other thread imports anything.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection
from types import ModuleType
from typing import cast


class _OnDemand(ModuleType):
    """Stands in for a module until something of it is used."""

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


def load_without(
    package: str, *, refused: Collection[str] = (), on_demand: Collection[str] = ()
) -> None:
    """Import the package: what is `refused` is not there for it, the rest comes when it is used."""
    stand_ins = dict.fromkeys(refused) | {name: _OnDemand(name) for name in on_demand}
    added = {name: each for name, each in stand_ins.items() if name not in sys.modules}
    # None is how an import is refused.
    sys.modules.update(cast("dict[str, ModuleType]", added))
    try:
        importlib.import_module(package)
    finally:
        for name in added:
            del sys.modules[name]
