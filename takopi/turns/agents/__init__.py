"""The agents that plan turns, each with a prompt of its own; a project may bring others."""

from __future__ import annotations

from pathlib import Path

from takopi.core.errors import Refused
from takopi.turns.layout import FOLDER

DEFAULT = "pathfinder"
_HERE = Path(__file__).parent


def known_agents(root: Path) -> frozenset[str]:
    """The names of all agents, in small letters."""
    return frozenset(
        path.stem.lower() for path in (*_HERE.glob("*.xml"), *_own(root).glob("*.xml"))
    )


def read_prompt(root: Path, name: str) -> str:
    """The prompt of an agent; the project's own goes before ours, and case does not count."""
    for folder in (_own(root), _HERE):
        for path in sorted(folder.glob("*.xml")):
            if path.stem.lower() == name.strip().lower():
                return _whole(path)
    known = ", ".join(sorted(known_agents(root)))
    raise Refused(f"there is no agent {name}", way_out=f"choose one of {known}")


def _own(root: Path) -> Path:
    return root / FOLDER / "prompts"


def _whole(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.parent == _HERE:
        form = (_HERE / "plan_format.md").read_text(encoding="utf-8")
        text = text.replace("{{PLAN_FORMAT}}", form.strip())
    return text
