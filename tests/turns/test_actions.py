"""Actions as they meet the world: commands that misbehave, and files that have moved meanwhile."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from takopi.kit.proc import open_keeper
from takopi.turns.actions import Bench, perform
from takopi.turns.plan import Action, Create, Edit, Execute, Research, Swap

FLOOD_BYTES = 100_000_000
MOST_BYTES = 4_000_000


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    root = tmp_path / "root"
    root.mkdir()
    async with open_keeper(on_lost=lambda: None) as keeper:
        environ = {"PATH": "/usr/bin:/bin", "CANARY": "a secret"}
        yield Bench(root=root, keeper=keeper, environ=environ, secrets=("a secret",), grace_s=0.2)


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_command_that_never_ends_is_stopped_in_time(bench: Bench) -> None:
    with trio.fail_after(120):
        outcome = await perform(Execute(command="echo on; sleep 1000", timeout_s=0.5), bench)
    assert (outcome.status, outcome.reason) == ("FAILURE", "it was stopped after 0.5 s")
    assert outcome.details == "```text\non\n```"


@pytest.mark.parametrize("ending", ["sleep 1000", "exit 0"])
async def test_what_a_command_leaves_behind_ends_with_it(bench: Bench, ending: str) -> None:
    """Detached, in a session of its own, deaf to being asked, and with its output elsewhere."""
    fork = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; sleep 1000' > /dev/null 2>&1 &"
    command = f"{fork}\nwhile ! test -s pid; do sleep 0.02; done; {ending}"
    with trio.fail_after(120):
        await perform(Execute(command=command, timeout_s=60 if "exit" in ending else 5), bench)
    assert not alive(int((bench.root / "pid").read_text("utf-8")))


async def test_flood_is_cut_and_takes_no_memory(bench: Bench) -> None:
    command = f"echo first; head -c {FLOOD_BYTES} /dev/zero | tr '\\0' x; echo; echo last"
    tracemalloc.start()
    try:
        with trio.fail_after(300):
            outcome = await perform(Execute(command=command, timeout_s=300), bench)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outcome.status == "SUCCESS", outcome.reason
    assert len(outcome.details) < 40_000
    assert "```text\nfirst\nxxx" in outcome.details
    assert outcome.details.endswith("xxx\nlast\n```")
    assert f"… {FLOOD_BYTES + 12 - 32 * 1024} bytes left out …" in outcome.details
    assert peak < MOST_BYTES


async def test_command_that_reads_gets_nothing(bench: Bench) -> None:
    with trio.fail_after(120):
        outcome = await perform(Execute(command="cat; echo read $?"), bench)
    assert outcome.details == "- **Exit Code:** 0\n\n```text\nread 0\n```"


async def test_command_gets_no_secret(bench: Bench) -> None:
    outcome = await perform(Execute(command="echo canary $CANARY"), bench)
    assert "```text\ncanary\n```" in outcome.details


async def test_output_is_told_without_what_a_terminal_obeys(bench: Bench) -> None:
    outcome = await perform(Execute(command="printf '\\033[31mred\\033[0m'; echo e >&2"), bench)
    assert outcome.details == "- **Exit Code:** 0\n\n```text\nrede\n```"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Create(path="out/x", content=""), "the path leaves the project through a symlink"),
        (Create(path="git/x", content=""), "the path lies in .git/, which plans must not touch"),
        (
            Create(path=".teddy/x", content=""),
            "the path lies in .teddy/, which plans must not touch",
        ),
        (Create(path="../x", content=""), "the path leaves the project"),
        (Create(path="dangling", content=""), "the path leaves the project through a symlink"),
        (Create(path="there", content=""), "the file exists already"),
        (
            Edit(path="out/y", swaps=(Swap("a", "b"),)),
            "the path leaves the project through a symlink",
        ),
        (Edit(path="there", swaps=(Swap("a", "b"),)), "FIND block did not match."),
        (Execute(command="pwd", cwd="out"), "the folder leaves the project through a symlink"),
        (Execute(command="pwd", cwd="git"), "the folder lies in .git/, which plans must not touch"),
    ],
)
async def test_path_is_looked_at_again_when_its_turn_comes(
    bench: Bench, tmp_path: Path, action: Action, reason: str
) -> None:
    """A link may be put there after the plan was checked and approved."""
    root = bench.root
    (tmp_path / "y").write_text("a", encoding="utf-8")
    (root / "there").write_text("-", encoding="utf-8")
    (root / ".git").mkdir()
    (root / ".teddy").mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "git").symlink_to(root / ".git")
    (root / "dangling").symlink_to(tmp_path / "x")
    before = files(tmp_path)
    outcome = await perform(action, bench)
    assert (outcome.status, outcome.reason) == ("FAILURE", reason)
    assert files(tmp_path) == before
    assert (tmp_path / "y").read_text("utf-8") == "a"


@pytest.mark.parametrize("cwd", ["", ".", "./", "././"])
async def test_command_runs_in_the_project_itself(bench: Bench, cwd: str) -> None:
    outcome = await perform(Execute(command="pwd", cwd=cwd), bench)
    assert f"```text\n{bench.root}\n```" in outcome.details


@pytest.mark.parametrize("queries", [("what", "-n"), ("what",) * 11])
async def test_queries_that_a_person_made_unfit_ask_nothing(
    bench: Bench, queries: tuple[str, ...]
) -> None:
    bench = replace(bench, research_command=("touch",))
    outcome = await perform(Research(queries=queries), bench)
    assert outcome.status == "FAILURE"
    assert "quer" in outcome.reason
    assert files(bench.root) == []
