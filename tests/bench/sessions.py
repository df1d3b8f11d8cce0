"""How long `takopi session context` takes in a large project, late in a long session."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from takopi.turns.following import settle
from takopi.turns.layout import Turn
from takopi.turns.service import create_session
from tests.bench.measure import Row, median

FILES = 5_000
TURNS = 50
AIM_MS = 2_000.0
ROUNDS = 5

_RULES = "*.pyc\n__pycache__/\n/build/\n**/node_modules\n*.log\n!keep.log\n.venv\n"


def large_project(root: Path) -> Turn:
    """Files in folders, some of them left out, and a session whose reports are all in context."""
    (root / ".gitignore").write_text(_RULES, encoding="utf-8")
    for number in range(FILES):
        path = root / f"part{number // 500}/module{number // 50}/file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"number = {number}\n" * 20, encoding="utf-8")
    turn = create_session(root, "long").latest()
    for _ in range(TURNS - 1):
        turn.path("report.md").write_text("# Execution Report\n" + "- done\n" * 200, "utf-8")
        turn = settle(turn)
    return turn


def measure() -> Row:
    """The whole command, against a bare interpreter that walks over the same files."""
    spent: list[float] = []
    floor: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        turn = large_project(root)
        environ = os.environ | {"TAKOPI_HOME": str(root / ".home")}
        takopi = [str(Path(sys.executable).with_name("takopi")), "session", "context"]
        walk = [sys.executable, "-c", "import os; list(os.walk('.'))"]
        for _ in range(ROUNDS):
            floor.append(_time_ms(walk, root, environ))
            spent.append(_time_ms(takopi, root, environ))
        assert turn.path("input.md").read_text("utf-8").count("# Execution Report") == TURNS - 1
    return Row(
        f"context: {FILES} files, {TURNS} turns",
        median(spent),
        "ms",
        "python walks over the files",
        median(floor),
        f"at most {AIM_MS:g} ms",
        most=AIM_MS,
    )


def _time_ms(argv: list[str], cwd: Path, environ: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000
