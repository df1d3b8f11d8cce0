"""What the config may name, as far as the command line knows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from takopi.app.commands.table import NAMES
from takopi.config.loaded import Names
from takopi.config.paths import find_home
from takopi.engines.catalog import load_catalog


def known_names() -> Names:
    """Every engine with its settings, and the commands of the chat."""
    catalog = load_catalog(find_home(os.environ).folder)
    return Names(engines=catalog.settings_types(), commands=NAMES)


def no_engine(wanted: Sequence[str]) -> str:
    """What to do where none of them is installed."""
    return (
        f"none of {', '.join(wanted)} is installed yet: install one and log in; "
        "until then the demo engine answers, which has no model"
    )
